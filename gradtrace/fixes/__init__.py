"""Patches for findings: candidates are made from the source, and tried by running the edited script."""
