"""Variational analysis: operators of single states from matrices between smearing levels.

The vectors of the generalised eigenvalue problem C(t1) v = lambda C(t0) v give, for n levels, the
operators with the largest overlaps with the n lowest states (M. Luescher and U. Wolff, Nucl. Phys.
B 339 (1990) 222). They are determined at the first two times, where the matrices are known best,
and kept, so that v^T C(t) v is a correlator like that of one level, with less of the other states.
"""

from __future__ import annotations

import numpy as np

from gauge_mc.arrays import Array
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.quantities.potential.loop_tables import LoopMatrices, PathLoops

SMALLEST = 1e-6
"""Smallest eigenvalue of C(t0), in units of the largest one, that is not taken for rounding."""


def variational(matrices: LoopMatrices) -> list[PathLoops]:
    """Return the correlators of the operators of all states, the ground state first.

    Parameters
    ----------
    matrices : LoopMatrices
        Loops between all pairs of smearing levels, along one path.

    Raises
    ------
    UsageError
        If there is only one time.
    GaugeError
        If a diagonal element is not positive at the first time.
    """
    if matrices.t.size < 2:
        raise UsageError("A variational analysis needs loops of at least two t; measure larger t.")
    vectors = [_vectors(mean[0], mean[1]) for mean in matrices.values.mean(axis=0)]
    states = min(one.shape[1] for one in vectors)
    kept = np.stack([one[:, :states] for one in vectors])
    values = np.einsum("ran,crtab,rbn->ncrt", kept, matrices.values, kept, optimize=True)
    parts = matrices.path, matrices.levels[-1], matrices.sweeps, matrices.r, matrices.t
    return [PathLoops(*parts, state, matrices.levels, matrices.replicas) for state in values]


def _vectors(reference: Array, matrix: Array) -> Array:
    """Return the vectors v with v^T C(t0) v = 1 in columns, the lowest state first."""
    diagonal = reference.diagonal()
    if not (diagonal > 0).all():
        raise GaugeError(
            "The Wilson loops of the shortest t are not positive, because of noise; measure more "
            "configurations."
        )
    scale = 1 / np.sqrt(diagonal)
    sizes, basis = np.linalg.eigh(reference * np.outer(scale, scale))
    chosen = sizes > SMALLEST * sizes[-1]
    root = scale[:, None] * basis[:, chosen] / np.sqrt(sizes[chosen])
    return np.asarray(root @ np.linalg.eigh(root.T @ matrix @ root)[1][:, ::-1])
