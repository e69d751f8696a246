"""Runs a user's script so that it cannot notice."""
