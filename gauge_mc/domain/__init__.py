"""The lattice and its domain decomposition: memory layout, slabs, halos, devices, processes."""
