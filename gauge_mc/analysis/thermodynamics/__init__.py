"""Bulk thermodynamics: pressure, energy density and entropy density of gluons."""
