"""Smearing, and projections to SU(N).

APE (Albanese et al., Phys. Lett. B192 (1987) 163), stout (Morningstar and Peardon, hep-lat/0311018)
and HYP (Hasenfratz and Knechtli, hep-lat/0103029).
"""

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from .fields import Complex, dagger, shift
from .flow import exponential
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


def stout(links: Complex, rho: float, directions: Iterable[int] = SPACE) -> Complex:
    """One iteration U -> exp(i Q) U (hep-lat/0311018, eqs. 1 to 3).

    Q = i/2 (Omega^dagger - Omega) - i/(2N) Tr(Omega^dagger - Omega) with Omega = C U^dagger. C is
    rho times the sum of the staples from x to x + mu. Links of `directions` change, with staples in
    the planes of two of them.
    """
    n = links.shape[-1]
    directions = tuple(directions)
    result = links.copy()
    for mu in directions:
        u = links[..., mu, :, :]
        omega = rho * dagger(staple(links, mu, directions)) @ dagger(u)
        difference = dagger(omega) - omega
        trace = np.trace(difference, axis1=-2, axis2=-1)[..., None, None]
        q = 0.5j * difference - 0.5j / n * trace * np.eye(n)
        result[..., mu, :, :] = exponential(1j * q) @ u
    return result


def hyp(
    links: Complex,
    alphas: Sequence[float] = (0.75, 0.6, 0.3),
    project: Callable[[Complex], Complex] = project_maximal,
) -> Complex:
    """HYP smearing of all links, as hep-lat/0103029 writes it, eqs. (1) to (3).

    V_mu             = P[(1 - a1) U_mu + a1/6 sum over nu of staples of V_nu;mu and V_mu;nu],
    V_mu;nu          = P[(1 - a2) U_mu + a2/4 sum over rho of staples of V_rho;nu mu, V_mu;rho nu],
    V_mu;nu rho      = P[(1 - a3) U_mu + a3/2 staples of U_eta and U_mu],

    where staples extend up and down in directions other than mu and those after the semicolon.
    """
    first, second, third = alphas

    def sides(along: Complex, side: Complex, mu: int, nu: int) -> Complex:
        """Both staples: `along` is the link of direction mu, `side` that of direction nu."""
        up = side @ shift(along, nu) @ dagger(shift(side, mu))
        down = dagger(side) @ along @ shift(side, mu)
        total: Complex = up + shift(down, nu, -1)
        return total

    def others(*directions: int) -> list[int]:
        return [nu for nu in range(4) if nu not in directions]

    u = [links[..., mu, :, :] for mu in range(4)]
    bar, tilde = {}, {}
    for mu in range(4):
        for eta in others(mu):
            nu, rho = others(mu, eta)
            total = (1 - third) * u[mu] + third / 2 * sides(u[mu], u[eta], mu, eta)
            bar[mu, nu, rho] = bar[mu, rho, nu] = project(total)
    for mu in range(4):
        for nu in others(mu):
            total = (1 - second) * u[mu]
            for rho in others(mu, nu):
                total = total + second / 4 * sides(bar[mu, rho, nu], bar[rho, nu, mu], mu, rho)
            tilde[mu, nu] = project(total)
    result = links.copy()
    for mu in range(4):
        total = (1 - first) * u[mu]
        for nu in others(mu):
            total = total + first / 6 * sides(tilde[mu, nu], tilde[nu, mu], mu, nu)
        result[..., mu, :, :] = project(total)
    return result


def spatial_hyp(
    links: Complex,
    alphas: Sequence[float] = (0.6, 0.3),
    project: Callable[[Complex], Complex] = project_maximal,
    excluded: int = 3,
) -> Complex:
    """HYP smearing in three dimensions: two levels, of four and two staples, without `excluded`."""
    outer, inner = alphas
    space = [mu for mu in range(4) if mu != excluded]
    result = links.copy()
    for mu in space:
        total = (1 - outer) * links[..., mu, :, :]
        for rho in space:
            if rho == mu:
                continue
            (eta,) = set(space) - {mu, rho}
            within = ape_alpha(links, inner, [eta], [mu, rho], project)
            total = total + outer / 4 * dagger(staple(within, mu, [rho]))
        result[..., mu, :, :] = project(total)
    return result
