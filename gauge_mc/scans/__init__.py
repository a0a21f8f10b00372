"""Scans: many independent runs over a grid of couplings and lattices, in one directory."""
