"""gradtrace: see the autograd graph a PyTorch script built, and be told which line broke the gradients.

The command line is the interface: `gradtrace show`, `gradtrace dot` and `gradtrace check`. Importing the package is
free: torch is loaded only once a script is watched.
"""

__all__ = ["__version__"]


def __getattr__(name: str) -> str:
    """The version, looked up when asked for: reading the metadata takes longer than all the rest of the import."""
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("gradtrace")
    except PackageNotFoundError:  # a checkout that was never installed
        return "0+unknown"
