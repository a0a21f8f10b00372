"""Benchmarks of the kernels, compared with the limit set by the memory bandwidth."""
