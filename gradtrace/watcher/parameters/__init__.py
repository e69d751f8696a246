"""Parameters: where they are made, which optimizer holds them, whether gradients reach them."""
