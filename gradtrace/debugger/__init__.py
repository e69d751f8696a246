"""Stops a script under watch, in the user's own frame, and answers questions about its gradients there."""
