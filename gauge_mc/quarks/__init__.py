"""Quarks on gauge fields: spinor fields, Dirac operators and solvers."""
