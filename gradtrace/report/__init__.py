"""What becomes of findings: settings, suppressions, baseline, exit code, recordings."""
