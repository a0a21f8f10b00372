"""Correlators of hadrons, their masses, and extrapolations in the quark mass."""
