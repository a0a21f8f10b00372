"""Observables: what is measured on a field, one module each."""
