"""The measurement of Wilson loops."""
