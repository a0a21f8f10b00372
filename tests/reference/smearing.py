"""APE smearing (Albanese et al., Phys. Lett. B192 (1987) 163) and projections to SU(N)."""

from collections.abc import Callable, Iterable

import numpy as np

from .fields import Complex, dagger
from .observables import staple
from .updates import SUBGROUPS, embed, quaternion

SPACE = (0, 1, 2)


def project_unitary(m: Complex) -> Complex:
    """Polar projection: the unitary factor of M by SVD, divided by det^(1/N) (principal root).

    M (M^dagger M)^(-1/2) is the unitary matrix nearest to M; for SU(2) sums it has det 1 already.
    """
    left, _, right = np.linalg.svd(m)
    unitary = left @ right
    phase = np.angle(np.linalg.det(unitary)) / m.shape[-1]
    projected: Complex = unitary * np.exp(-1j * phase)[..., None, None]
    return projected


def project_maximal(m: Complex, tolerance: float = 1e-15, iterations: int = 10000) -> Complex:
    """The SU(N) matrix P that maximises Re Tr(P M^dagger).

    Starts from `project_unitary` and maximises over one SU(2) subgroup after the other: of
    P -> g P only the part w of P M^dagger in the subgroup counts, Re Tr(g w) is largest for
    g = w^dagger / |w|. Each step raises the trace; stops when no g differs from 1 any more.
    For sums of SU(2) matrices one step is exact: P = M / sqrt(det M).
    """
    n = m.shape[-1]
    p = project_unitary(m)
    for _ in range(iterations):
        moved = 0.0
        for i, j in SUBGROUPS[n]:
            w = quaternion(p @ dagger(m), i, j)
            w = w / np.linalg.norm(w, axis=-1, keepdims=True)
            p = dagger(embed(w, i, j, n)) @ p
            moved = max(moved, float(abs(w[..., 1:]).max()))
        if moved < tolerance:
            return p
    raise RuntimeError(f"no convergence: {moved} left after {iterations} iterations")


def ape(
    links: Complex,
    weight: float,
    staples: Iterable[int] = SPACE,
    smeared: Iterable[int] = SPACE,
    project: Callable[[Complex], Complex] = project_maximal,
) -> Complex:
    """One iteration U -> P[(U + w sum staples) / (1 + 6 w)] (arXiv:1010.4834, eq. 18).

    Links of the directions `smeared` change, all at once; the sum has the staples in the planes
    with the directions `staples` (space: 4 staples for each spatial link, all: 6), each leading
    from x to x + mu, which is the dagger of those in `observables.staple`. The factor
    1 / (1 + 6 w) is written as in the paper whatever the number of staples: P undoes it.
    """
    staples = tuple(staples)
    result = links.copy()
    for mu in smeared:
        total = links[..., mu, :, :] + weight * dagger(staple(links, mu, staples))
        result[..., mu, :, :] = project(total / (1 + 6 * weight))
    return result


def ape_alpha(
    links: Complex,
    alpha: float,
    staples: Iterable[int] = SPACE,
    smeared: Iterable[int] = SPACE,
    project: Callable[[Complex], Complex] = project_maximal,
) -> Complex:
    """The other usual form: U -> P[(1 - alpha) U + (alpha / n) sum of the n staples].

    The same as `ape` with w = alpha / (n (1 - alpha)).
    """
    staples = tuple(staples)
    result = links.copy()
    for mu in smeared:
        n = 2 * len(set(staples) - {mu})
        total = (1 - alpha) * links[..., mu, :, :] + alpha / n * dagger(staple(links, mu, staples))
        result[..., mu, :, :] = project(total)
    return result
