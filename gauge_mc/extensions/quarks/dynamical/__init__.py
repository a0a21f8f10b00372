"""Dynamical quarks in hybrid Monte Carlo."""
