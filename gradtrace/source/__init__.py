"""The user's source: its syntax, and questions to it. No torch."""
