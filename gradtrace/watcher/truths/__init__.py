"""Observers of what must hold of every training run: finite losses and gradients, steps that are made and have an effect,
modes, schedules and parameters that stay as they were meant."""
