"""`python -m gradtrace`, so that `torchrun -m gradtrace` works too."""

import sys

if not getattr(sys.flags, "safe_path", sys.flags.isolated):
    # python put the working directory there: a rich.py in it is the user's and not for us
    sys.path[0] = sys.path[1]

from gradtrace.cli import main

if __name__ == "__main__":
    main()
