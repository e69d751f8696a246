"""Graphs as plain values: folded, compared, saved. No torch."""
