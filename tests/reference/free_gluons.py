"""Averages of loops at weak coupling, where gluons are free."""

from collections.abc import Sequence

import numpy as np

from .fields import Complex, Real

Path = Sequence[tuple[int, int]]
"""Directions and signs of the steps of a closed path."""


def field_strength(momenta: Real, path: Path) -> Complex:
    """Sum of the potentials along a closed path: the vector ``[p, mu]`` that multiplies A(p)."""
    strength, position = np.zeros(momenta.shape, complex), np.zeros(4, int)
    for mu, sign in path:
        step = sign * np.eye(4, dtype=int)[mu]
        begin = position if sign > 0 else position + step
        strength[:, mu] += sign * np.exp(1j * momenta @ begin)
        position = position + step
    return strength


def free_gluons(
    extents: Sequence[int], loops: Sequence[Sequence[Path]], weights: Sequence[float]
) -> list[float]:
    """Return beta (1 - W) / (N^2 - 1) of each kind of loops, for the action that is their sum.

    The action is the sum over p of A^dagger M A with M = sum over loops of w f f^dagger, where f
    is the field strength for momentum p and w the weight of the kind; A^dagger f f^dagger A is
    f^dagger M^-1 f on average, without the modes of the gauge, and a half of it per component of
    the algebra.
    """
    axes = [2 * np.pi * np.arange(n) / n for n in extents]
    p = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 4)[1:]
    kinds = [[field_strength(p, path) for path in paths] for paths in loops]
    matrix = sum(
        weight * f[:, :, None] * f[:, None, :].conj()
        for weight, strengths in zip(weights, kinds, strict=True)
        for f in strengths
    )
    inverse = np.linalg.pinv(matrix, rcond=1e-10, hermitian=True)
    sums = (
        [np.einsum("pi,pij,pj->", f.conj(), inverse, f).real for f in strengths]
        for strengths in kinds
    )
    return [np.mean(values) / np.prod(extents) / 2 for values in sums]
