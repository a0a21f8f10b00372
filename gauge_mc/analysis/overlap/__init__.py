"""The spectrum of the overlap operator: tables, the index, and random-matrix theory."""
