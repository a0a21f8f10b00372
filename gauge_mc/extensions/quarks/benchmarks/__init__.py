"""Benchmarks of quarks."""
