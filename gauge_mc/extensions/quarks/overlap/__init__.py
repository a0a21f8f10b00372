"""Overlap quarks: the sign function of the kernel, its low modes, solutions for many masses."""
