"""Stories as text, JSON and pages."""
