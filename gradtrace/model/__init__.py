"""Plain facts: frozen dataclasses of the standard library alone, which rules and renderers read."""
