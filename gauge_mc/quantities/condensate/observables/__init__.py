"""Measurements of this folder's results."""
