"""Fields on the lattice, resident on devices, and what is computed from all of their sites."""
