"""What becomes of the gradients that backward calls make."""
