"""Loops of all sizes, with smearing, several devices and multilevel averages."""
