"""Crossovers of runs with quarks: peaks of susceptibilities."""
