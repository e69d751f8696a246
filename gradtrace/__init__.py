"""gradtrace: see the autograd graph a PyTorch script built, and find the line that breaks its gradients.

The command line is the main interface: `gradtrace show`, `gradtrace dot` and `gradtrace check`. In a REPL, a notebook or
a test there are the same from Python:

    gradtrace.show(loss)            the graph behind a tensor, as a tree
    gradtrace.dot(loss)             as a drawing
    with gradtrace.watch() as w:    what happens inside: w.findings, w.graphs

Importing the package is free: torch is loaded only when one of these is used.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradtrace.integrations.interactive import dot as dot
    from gradtrace.integrations.interactive import show as show
    from gradtrace.integrations.interactive import watch as watch

    __version__: str

__all__ = ["__version__", "dot", "show", "watch"]


def __getattr__(name: str) -> Any:
    """The public names, looked up when they are used, and what `%load_ext gradtrace` needs."""
    from importlib import import_module

    if name == "load_ipython_extension":
        return import_module("gradtrace.integrations.notebook").load
    if name in ("dot", "show", "watch"):
        return getattr(import_module("gradtrace.integrations.interactive"), name)
    if name == "__version__":
        return _version()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _version() -> str:
    """Reading the metadata takes longer than all the rest of the import."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("gradtrace")
    except PackageNotFoundError:  # a checkout that was never installed
        return "0+unknown"
