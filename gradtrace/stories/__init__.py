"""The story of a run as plain values. No torch."""
