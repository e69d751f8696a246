"""What `fix` found, one output format a file."""
