"""Means of eigenvalues of chiral random matrices, against closed forms, a paper and samples."""

import math

import numpy as np
import pytest

from gauge_mc.extensions.quarks.overlap.random_matrices import (
    ORTHOGONAL,
    UNITARY,
    _kernel_eigenvalues,
    mean_eigenvalues,
)


def test_closed_forms():
    """P(lambda_1 > s) is exp(-s^2/4) for the unitary class at nu = 0, and exp(-s/2 - s^2/8) and
    exp(-s^2/8) for the orthogonal one at nu = 0 and 1."""
    tail = math.sqrt(math.pi / 2) * math.erfc(math.sqrt(0.5))  # of exp(-x^2/2) from 1 on
    assert mean_eigenvalues(UNITARY, 0, 1)[0] == pytest.approx(math.sqrt(math.pi), rel=1e-12)
    found = mean_eigenvalues(ORTHOGONAL, 0, 1)[0]
    assert found == pytest.approx(2 * math.exp(0.5) * tail, rel=1e-12)
    assert mean_eigenvalues(ORTHOGONAL, 1, 1)[0] == pytest.approx(math.sqrt(2 * math.pi), rel=1e-12)


def test_published_ratios():
    """The ratios of sectors for SU(3) that hep-lat/0306022 compares with."""
    first = [mean_eigenvalues(UNITARY, nu, 1)[0] for nu in (0, 1, 2)]
    assert first[0] / first[1] == pytest.approx(0.5703, abs=5e-5)
    assert first[1] / first[2] == pytest.approx(0.7154, abs=5e-5)
    assert mean_eigenvalues(UNITARY, -2, 1) == mean_eigenvalues(UNITARY, 2, 1)


@pytest.mark.slow
@pytest.mark.parametrize("dyson", [UNITARY, ORTHOGONAL])
@pytest.mark.parametrize("nu", [0, 2])
def test_samples_of_matrices(dyson, nu, rng):
    """Singular values of random matrices of the size n, whose means differ by less than 1 %."""
    n, samples, number = 40, 1200, 3
    matrices = rng.normal(size=(samples, n, n + nu))
    if dyson == UNITARY:
        matrices = (matrices + 1j * rng.normal(size=matrices.shape)) / math.sqrt(2)
    squares = np.linalg.eigvalsh(matrices @ np.swapaxes(matrices.conj(), 1, 2))
    lowest = 2 * math.sqrt(n + nu / 2) * np.sqrt(np.abs(squares[:, :number]))
    errors = lowest.std(axis=0) / math.sqrt(samples)
    expected = np.array(mean_eigenvalues(dyson, nu, number))
    assert (np.abs(lowest.mean(axis=0) - expected) < 4 * errors + 0.01 * expected).all()


@pytest.mark.parametrize("s", [0.3, 2.0, 7.5, 31.0])
def test_bessel_functions_of_the_kernel(s):
    """The traces are halves of integrals: the series of J_3, and J_4 + J_6 = 10 J_5 / s."""
    traces = {nu: _kernel_eigenvalues(nu, s).sum() for nu in range(3, 8)}
    j4, j5, j6 = (traces[n - 1] - traces[n + 1] for n in (4, 5, 6))
    assert j4 + j6 == pytest.approx(10 * j5 / s, abs=1e-12)
    series = sum(
        (-1) ** k * (s / 2) ** (2 * k + 4) / (math.factorial(k) * math.factorial(k + 3) * (k + 2))
        for k in range(40)
    )
    assert s > 10 or traces[3] == pytest.approx(series / 2, rel=1e-11)
