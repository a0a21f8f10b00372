"""Plaquettes and other small loops, which are the terms of gauge actions."""
