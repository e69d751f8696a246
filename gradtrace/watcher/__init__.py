"""Watches torch while the script runs: the only package that imports it."""
