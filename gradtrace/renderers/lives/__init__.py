"""The lives of parameters as text and JSON."""
