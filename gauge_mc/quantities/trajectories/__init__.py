"""Trajectories of hybrid Monte Carlo: acceptance, energies and cost."""
