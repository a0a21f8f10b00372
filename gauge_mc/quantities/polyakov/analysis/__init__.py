"""Numbers from tables."""
