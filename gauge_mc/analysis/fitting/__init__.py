"""Fits of models to series, with correlations and averages over models."""
