"""Functions of operators: polynomials, rational functions, and their shifted solutions."""
