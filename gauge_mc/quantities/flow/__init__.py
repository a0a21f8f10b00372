"""The gradient flow: energy density, scales and topological charge."""
