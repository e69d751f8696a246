"""Observers that each look for one kind of fault."""
