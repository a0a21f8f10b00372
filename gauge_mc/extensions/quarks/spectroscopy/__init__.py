"""Hadrons: propagators and correlators of mesons and baryons, masses, residual mass."""
