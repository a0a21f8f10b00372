"""Variational analysis: energies from matrices of correlators between smearing levels.

The generalised eigenvalue problem C(t) v = lambda(t, t0) C(t0) v gives, for n levels, the n lowest
energies: lambda tends to exp(-E (t - t0)) (M. Luescher and U. Wolff, Nucl. Phys. B 339 (1990) 222).
With t0 >= t/2 the corrections to the lowest energies fall as the gap to the state n (B. Blossier et
al., arXiv:0902.1265). But C(t0) must be known well in all directions: where noise exceeds one of
its eigenvalues, states are mistaken for each other, and errors grow by orders of magnitude.
"""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np

from gauge_mc.analysis.timeseries.gamma_method import estimate
from gauge_mc.arrays import Array, Integers
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.quantities.potential.analysis.effective_energies import EffectiveEnergies
from gauge_mc.quantities.potential.analysis.loops import LoopMatrices
from gauge_mc.quantities.potential.analysis.plateau_search import LOOP_PRECISION

HALF = "half"
"""Value of ``--t0`` for t0 = t/2, rounded up, as far as C(t0) is known well enough."""


def reference_time(text: str | tuple[int, ...]) -> int | None:
    """Parse ``--t0``: a number, or ``half``, which becomes None.

    Raises
    ------
    UsageError
        If the text is neither.
    """
    if text == HALF:
        return None
    if isinstance(text, tuple):
        if len(text) > 1:
            raise UsageError(f"--t0 has {len(text)} numbers; give one, or {HALF}.")
        return text[0]
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:9]) < 10**6:
        raise UsageError(f"--t0 is '{text[:20]}'; give a time from 1 on, or {HALF}.")
    return int(text)


def variational(matrices: LoopMatrices, t0: int | None = None) -> list[EffectiveEnergies]:
    """Return the effective energies ln lambda(t, t0)/lambda(t + 1, t0) of all states.

    States are identified by their eigenvectors: at each t, they are assigned to those at t0 + 1 so
    that the product of the overlaps |v^T C(t0) v'| is largest. At t0 + 1 they are sorted by energy.
    Later than one step after the time of `last_references` the vectors v are kept, and lambda is
    v^T C(t) v, because vectors of noisy matrices are mixtures. The time series are linearised:
    with the eigenvectors v of the mean matrices, d lambda = v^T dC(t) v - lambda v^T dC(t0) v.

    Parameters
    ----------
    matrices : LoopMatrices
        Loops between all pairs of smearing levels, along one path.
    t0 : int, optional
        Reference time; by default t/2, rounded up, for the energy at t, but not later than the
        time of `last_references`.

    Returns
    -------
    list of EffectiveEnergies
        One for each state, the ground state first.

    Raises
    ------
    UsageError
        If there is only one level, or t0 leaves no time.
    GaugeError
        If the matrices at t0 are not positive at any distance.
    """
    size, last = len(matrices.levels), int(matrices.t[-1])
    if size < 2:
        raise UsageError("A variational analysis needs at least two smearing levels; name more.")
    if matrices.t[0] != 1:
        raise UsageError(
            "A variational analysis needs loops of all t from 1 on, which multilevel averages "
            "leave out; fit a single level with --level instead."
        )
    if last < 2 or (t0 is not None and t0 >= last):
        raise UsageError(
            f"The reference time t0 = {t0 or 1} leaves no energy, as the loops end at t = {last}; "
            "choose a smaller one."
        )
    start = t0 or 1
    shape = (size, matrices.sweeps.size, matrices.r.size, last - start)
    series = np.full(shape, np.nan)
    precision = np.full((size, *shape[2:]), np.nan)
    latest = last_references(matrices)
    for i in range(matrices.r.size):
        for k in range(last - start):
            t = start + k
            reference = t0 or min((t + 1) // 2, int(latest[i]))
            logs = _logs(matrices.values[:, i], reference, (t, t + 1), int(latest[i]) + 1)
            if logs is None:
                break  # the matrices at later t0 are known no better
            now, then = logs
            series[:, :, i, k] = now - then
            errors = [[estimate(one).error for one in state] for state in logs]
            precision[:, i, k] = np.max(errors, axis=0)
    if t0 is not None and np.isnan(precision[0]).all():
        raise GaugeError(
            f"The matrices at t0 = {t0} are not positive, because of noise; choose t0 up to "
            f"{latest.max()}, or {HALF}."
        )
    parts = (matrices.path, matrices.sweeps, matrices.r, matrices.distances, start)
    return [EffectiveEnergies(*parts, series[n], precision[n]) for n in range(size)]


def last_references(matrices: LoopMatrices) -> Integers:
    """Return the last t0 for which C(t0) and C(t0 + 1) are known in all directions, for each R.

    Every eigenvalue of these and all earlier matrices, divided by the geometric means of their
    diagonals, must be known to better than `LOOP_PRECISION`.

    Returns
    -------
    ndarray of int64, shape (R,)
        Times from 1 on; 1 also where not even C(1) and C(2) are known so well.
    """
    found = []
    for samples in matrices.values.transpose(1, 2, 0, 3, 4):  # of one R, by time
        bad = (i for i, one in enumerate(samples) if _precision(one) >= LOOP_PRECISION)
        found.append(max(1, next(bad, len(samples)) - 1))
    return np.array(found, dtype=np.int64)


def _precision(samples: Array) -> float:
    """Return the largest relative error of the eigenvalues of a matrix, infinite if one is <= 0."""
    mean = samples.mean(axis=0)
    diagonal = mean.diagonal()
    if not (diagonal > 0).all():
        return math.inf
    scale = 1 / np.sqrt(diagonal)
    values, vectors = np.linalg.eigh(mean * np.outer(scale, scale))
    vectors *= scale[:, None]
    if not (values > 0).all():
        return math.inf
    series = np.einsum("an,cab,bn->nc", vectors, samples, vectors, optimize=True)
    errors = np.array([estimate(one).error for one in series])
    return float(np.max(errors / values))


def _logs(samples: Array, t0: int, times: tuple[int, ...], t_v: int) -> list[Array] | None:
    """Return the series of ln lambda(t, t0), shape (states, configurations), at several times.

    Parameters
    ----------
    samples : ndarray of float64, shape (configurations, T, levels, levels)
        The matrices at t = 1, 2, ….
    t0 : int
        Time of the matrix on the right-hand side of the eigenvalue problem.
    times : tuple of int
        Times t of the matrices on the left-hand side.
    t_v : int
        Last time of which eigenvectors are used.

    Returns
    -------
    list of ndarray or None
        NaN where an eigenvalue is not positive; None if the matrix at t0 is not.
    """
    mean = samples.mean(axis=0)
    try:
        root = np.linalg.inv(np.linalg.cholesky(mean[t0 - 1]))
    except np.linalg.LinAlgError:
        return None
    found = []
    reference = _vectors(root, mean[t0])[1]
    for t in times:
        if t == t0:
            found.append(np.zeros((len(root), len(samples))))
            continue
        _, vectors = _vectors(root, mean[max(t0 + 1, min(t, t_v)) - 1])
        vectors = vectors[:, _assignment(np.abs(reference.T @ mean[t0 - 1] @ vectors))]
        values = np.einsum("an,ab,bn->n", vectors, mean[t - 1], vectors)
        change = [
            np.einsum("an,cab,bn->nc", vectors, samples[:, one - 1] - mean[one - 1], vectors)
            for one in (t, t0)
        ]
        scale = np.where(values > 0, values, np.nan)[:, None]
        found.append(np.log(scale) + change[0] / scale - change[1])
    return found


def _vectors(root: Array, matrix: Array) -> tuple[Array, Array]:
    """Return eigenvalues, the largest first, and vectors with v^T C(t0) v = 1 in columns."""
    values, vectors = np.linalg.eigh(root @ matrix @ root.T)
    return values[::-1], (root.T @ vectors)[:, ::-1]


def _assignment(overlaps: Array) -> list[int]:
    """Return which state (column) belongs to each reference state (row)."""
    size = len(overlaps)
    logs = np.log(np.maximum(overlaps, 1e-300))
    return list(
        max(permutations(range(size)), key=lambda order: logs[np.arange(size), list(order)].sum())
    )


MOST_LEVELS = 6
"""Largest number of levels, as all orders of the states are tried."""
