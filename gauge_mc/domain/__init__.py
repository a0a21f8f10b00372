"""The lattice and how it is divided: layout in memory, slabs, halos, devices and processes."""
