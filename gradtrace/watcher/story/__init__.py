"""What each statement changed, for follow."""
