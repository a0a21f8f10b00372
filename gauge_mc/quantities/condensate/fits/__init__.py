"""Results as numbers."""
