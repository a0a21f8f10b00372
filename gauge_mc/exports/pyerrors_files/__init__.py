"""Observables of pyerrors, and files that contain them."""
