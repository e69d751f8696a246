"""The mode, backward calls and steps, and what all observers share."""
