"""Updates of a field, one module per kind of sweep, for every gauge action."""
