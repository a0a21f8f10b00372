"""Fields on the lattice, which live on devices, and reductions over their sites."""
