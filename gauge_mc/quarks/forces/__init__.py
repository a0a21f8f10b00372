"""What hybrid Monte Carlo needs of quarks: pseudofermions, their solutions and forces."""
