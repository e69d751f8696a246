"""Graphs as trees, drawings and pages."""
