"""Polyakov loops: their averages, correlators and free energies, and screening masses."""
