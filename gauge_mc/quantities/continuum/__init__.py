"""Continuum limits of products of the numbers that fits quote."""
