"""Graphs as plain values, for show and dot."""
