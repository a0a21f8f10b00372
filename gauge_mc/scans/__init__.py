"""Scans: independent runs on a grid of couplings and lattices, in one directory."""
