"""The spectrum of the overlap operator, and random matrix theory."""
