"""Quarks with a fifth direction: operators along it, effective quarks in four dimensions."""
