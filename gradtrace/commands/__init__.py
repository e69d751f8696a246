"""One command a file: each joins the packages below it."""
