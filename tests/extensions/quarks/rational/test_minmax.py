"""Minmax polynomials for the sign of x, and Clenshaw's recurrence."""

import numpy as np
import pytest

from gauge_mc.extensions.quarks.modes.chirality import HermitianOperator, SquaredOperator
from gauge_mc.extensions.quarks.operators import Wilson
from gauge_mc.extensions.quarks.rational_functions import (
    ChebyshevSum,
    degree_for,
    minmax_polynomial,
)
from gauge_mc.extensions.quarks.vectors import SpinorField
from tests.extensions.quarks.links import field_of
from tests.extensions.quarks.reference import dirac as reference
from tests.reference.fields import random_field


@pytest.mark.parametrize(
    ("lower", "error"), [(0.3, 0.1), (0.1, 1e-3), (0.01, 1e-6), (0.05, 1e-12), (0.002, 1e-9)]
)
def test_the_error_is_reached_with_equal_sizes(lower, error):
    """De la Vallee Poussin: no polynomial of the degree n has a smaller error than the smallest of
    n + 2 extrema with changing signs; so this one is nearly the best."""
    found = minmax_polynomial(lower, error)
    y = np.geomspace(lower, 1, 100001)
    errors = 1 - np.sqrt(y) * found(y)
    assert np.abs(errors).max() <= found.error <= error
    parts = np.split(errors, np.flatnonzero(np.diff(np.sign(errors))) + 1)
    extrema = np.sort([np.abs(part).max() for part in parts])[-found.degree - 2 :]
    assert len(extrema) == found.degree + 2
    # Rounding errors stop the exchange at errors of 1e-12.
    assert extrema[0] > (0.8 if error > 1e-11 else 0.2) * extrema[-1]


@pytest.mark.parametrize("degree", [0, 1, 2, 3])
def test_small_degrees(degree):
    found = minmax_polynomial(0.2, degree=degree)
    y = np.linspace(0.2, 1, 2001)
    assert found.degree == degree
    assert np.abs(1 - np.sqrt(y) * found(y)).max() <= found.error
    if degree == 0:  # a constant c with 1 - c sqrt(0.2) = c - 1
        assert found.coefficients[0] == pytest.approx(2 / (1 + 0.2**0.5), rel=1e-12)


def test_the_degree_is_about_the_smallest():
    for lower, error in ((0.1, 1e-3), (0.01, 1e-6), (1e-3, 1e-4)):
        found = minmax_polynomial(lower, error)
        assert abs(found.degree - degree_for(lower, error)) <= 1
        assert minmax_polynomial(lower, degree=found.degree - 2).error > error


@pytest.mark.first_quick
@pytest.mark.parametrize("degree", [0, 1, 2, 3, 8])
def test_clenshaw(degree, best_device, rng):
    """The polynomial of Q^2, against its powers with NumPy."""
    extents, kappa = (4, 4, 4, 4), 0.19
    links = random_field(extents, "su2", rng)
    field = field_of(links, best_device)
    psi = np.stack([reference.random_spinor(extents, 2, rng) for _ in range(2)])
    source = SpinorField.from_numpy(field, psi)
    target, c = source.like(), rng.normal(size=degree + 1)
    lower, upper = 0.3, 9.0
    square = SquaredOperator(HermitianOperator(Wilson(field, kappa).prepared()))
    sums = ChebyshevSum(square, target, source, c, lower, upper)
    sums([1.0, 2.0, 3.0, 4.0])  # so that the work fields are not clean
    sums()

    def z(x):
        for _ in range(2):
            m = [reference.wilson(links, one, kappa, [1, 1, 1, -1]) for one in x]
            x = reference.spin(reference.GAMMA5, np.stack(m))
        return x

    terms = [psi, (2 * z(psi) - (lower + upper) * psi) / (upper - lower)]
    while len(terms) <= degree:
        last = (2 * z(terms[-1]) - (lower + upper) * terms[-1]) / (upper - lower)
        terms.append(2 * last - terms[-2])
    expected = sum(one * term for one, term in zip(c, terms, strict=False))
    assert np.abs(target.to_numpy() - expected).max() < 1e-12 * np.abs(expected).max()
    assert np.array_equal(source.to_numpy(), psi)
