"""Updates of a field, one module each, for every gauge action."""
