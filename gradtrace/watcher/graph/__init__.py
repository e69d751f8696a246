"""Walking autograd graphs safely, and what their nodes saved."""
