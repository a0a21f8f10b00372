"""Runs: parameters, run directory, Markov chain, generation and measurement."""
