"""Determinants of Dirac operators from dense matrices, and averages with these weights."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import bsr_array, csr_array, diags_array, eye_array

from tests.extensions.quarks.reference.dirac import (
    GAMMA,
    GAMMA5,
    Phases,
    diagonal_part,
    with_phases,
)
from tests.reference.fields import Complex, Real, extents_of, parity

Sparse = Any
"""A sparse matrix of SciPy."""

PERIODIC = (1, 1, 1, 1)
ANTIPERIODIC = (1, 1, 1, -1)


class Determinant(NamedTuple):
    """The determinant of M = A - kappa D, from which the odd sites are eliminated."""

    even: float
    """ln |det Mh|, Mh = A_ee - kappa^2 D_eo A_oo^-1 D_oe."""
    odd: float
    """ln |det A_oo|."""
    phase: complex
    """The phase of det M."""

    @property
    def log(self) -> float:
        """ln |det M|."""
        return self.even + self.odd


def site_blocks(values: Complex, columns: npt.NDArray[np.int64]) -> Sparse:
    """A sparse matrix with one block ``values[site, row, column]`` in every row of sites."""
    pointers = np.arange(len(columns) + 1)
    return csr_array(bsr_array((values, columns, pointers)))


def hopping_matrix(links: Complex, phases: Phases) -> Sparse:
    """D as a sparse matrix, whose rows and columns are (t, z, y, x, spin, colour)."""
    u, extents, n = with_phases(links, phases), extents_of(links), links.shape[-1]
    here = np.arange(int(np.prod(extents))).reshape(extents[::-1])
    total = csr_array((here.size * 4 * n,) * 2, dtype=complex)
    for mu in range(4):
        ahead = np.roll(here, -1, axis=3 - mu).reshape(-1)
        for sign in (-1, 1):
            step = np.einsum("ij,...ab->...iajb", np.eye(4) + sign * GAMMA[mu], u[..., mu, :, :])
            one = site_blocks(step.reshape(-1, 4 * n, 4 * n), ahead)
            total = total + (one if sign < 0 else one.conj().T)
    return total


def determinant(
    links: Complex,
    kappa: float,
    phases: Phases = ANTIPERIODIC,
    mu: float = 0.0,
    csw: float = 0.0,
    hopping: Sparse | None = None,
) -> Determinant:
    """The determinant of the Wilson operator with a twisted mass and the clover term.

    The hopping matrix is computed anew if it is not given.
    """
    d = hopping_matrix(links, phases) if hopping is None else hopping
    own = diagonal_part(links, kappa, mu, csw).reshape(-1, *2 * [4 * links.shape[-1]])
    size, parities = own.shape[-1], parity(extents_of(links)).reshape(-1)
    rows = [np.flatnonzero(np.repeat(parities == p, size)) for p in range(2)]
    a_even, inverse = (
        site_blocks(one, np.arange(len(one)))
        for one in (own[parities == 0], np.linalg.inv(own[parities == 1]))
    )
    d_even_odd, d_odd_even = d[rows[0]][:, rows[1]], d[rows[1]][:, rows[0]]
    reduced = a_even - kappa**2 * (d_even_odd @ inverse @ d_odd_even)
    even_phase, even = np.linalg.slogdet(reduced.toarray())
    odd_phases, odds = np.linalg.slogdet(own[parities == 1])
    return Determinant(float(even), float(odds.sum()), complex(even_phase * odd_phases.prod()))


def log_of_doublet(
    links: Complex,
    kappa: float,
    mu_sigma: float,
    mu_delta: float,
    phases: Phases = ANTIPERIODIC,
    hopping: Sparse | None = None,
) -> float:
    """ln |det M| of a doublet, M = 1 - kappa D + 2 i kappa mu_sigma gamma_5 tau_1 + ... tau_3.

    With Q = gamma_5 (1 - kappa D +- 2 kappa mu_delta) for the two flavours it is that of
    Q_+ Q_- + (2 kappa mu_sigma)^2, a matrix of one flavour on all sites.
    """
    d = hopping_matrix(links, phases) if hopping is None else hopping
    sites, n = int(np.prod(extents_of(links))), links.shape[-1]
    unit = eye_array(d.shape[0], dtype=complex, format="csr")
    turn = diags_array(np.tile(np.repeat(np.diag(GAMMA5), n), sites), format="csr")
    upper, lower = (
        turn @ ((1 + 2 * kappa * sign * mu_delta) * unit - kappa * d) for sign in (1, -1)
    )
    matrix = (upper @ lower + (2 * kappa * mu_sigma) ** 2 * unit).toarray()
    return float(np.linalg.slogdet(matrix)[1])


class Reweighted(NamedTuple):
    """Averages with weights of the columns of the data, and their jackknife errors."""

    values: Real
    errors: Real
    share: float
    """Number of configurations with equal weights that had these errors, divided by that of all."""


def reweighted(data: Real, log_weights: Real, blocks: int = 50) -> Reweighted:
    """Averages of ``data[configuration, column]`` with the weights exp(`log_weights`).

    The configurations are independent, or blocks are long compared with their correlations.
    """
    w = np.exp(log_weights - log_weights.max())
    parts = np.array_split(np.arange(w.size), blocks)
    sums = np.array([(w[part, None] * data[part]).sum(axis=0) for part in parts])
    norms = np.array([w[part].sum() for part in parts])
    values = sums.sum(axis=0) / norms.sum()
    without = (sums.sum(axis=0) - sums) / (norms.sum() - norms)[:, None]
    spread = ((without - without.mean(axis=0)) ** 2).sum(axis=0)
    errors = np.sqrt((blocks - 1) / blocks * spread)
    return Reweighted(values, errors, float(w.sum() ** 2 / (w.size * (w**2).sum())))
