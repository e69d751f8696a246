"""Observers of what several processes do together: their job's store, replicas of a model, and what they exchange."""
