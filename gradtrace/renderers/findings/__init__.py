"""The formats of check, one a file: `render(report, paper) -> str`."""
