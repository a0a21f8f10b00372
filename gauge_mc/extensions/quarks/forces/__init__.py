"""Pseudofermions of hybrid Monte Carlo, their solutions and forces."""
