"""Spinor fields: storage, linear algebra, boundary conditions, gamma matrices."""
