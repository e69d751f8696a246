"""`python -m gradtrace`, so that `torchrun -m gradtrace` works too."""

from gradtrace.cli import main

if __name__ == "__main__":
    main()
