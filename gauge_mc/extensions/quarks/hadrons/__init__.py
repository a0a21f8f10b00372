"""Propagators of quarks and their contractions to correlators of hadrons."""
