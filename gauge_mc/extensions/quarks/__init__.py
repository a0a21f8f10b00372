"""Quarks: operators, solvers, hadrons, condensate, overlap, and quarks in hybrid Monte Carlo."""
