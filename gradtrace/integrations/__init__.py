"""gradtrace from Python, from a notebook, and from pytest."""
