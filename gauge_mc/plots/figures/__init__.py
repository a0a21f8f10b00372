"""Figures: files, style, and the elements that several plots share."""
