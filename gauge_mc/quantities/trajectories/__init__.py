"""Trajectories of hybrid Monte Carlo: acceptance, energies, forces, iterations."""
