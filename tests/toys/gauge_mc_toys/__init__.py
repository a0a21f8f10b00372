"""Toy plug-ins for gauge-mc: one module for every kind."""
