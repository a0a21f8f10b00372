"""Quarks on gauge fields: Dirac operators, solvers, sources and hadrons."""
