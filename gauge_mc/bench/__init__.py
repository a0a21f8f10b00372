"""Benchmarks: how fast the kernels are, and how that compares with what the memory allows."""
