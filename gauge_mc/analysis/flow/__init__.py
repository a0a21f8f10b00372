"""The gradient flow: its scales and the topological charge."""
