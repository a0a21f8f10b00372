"""Exact distributions and expectation values that ensembles are tested against."""

import numpy as np
import numpy.typing as npt
from scipy import special, stats

from .fields import Complex, Real, dagger, trace
from .observables import staple

HAAR_MOMENTS = {
    "su2": {(1, 0): 0.0, (2, 0): 1.0, (1, 1): 1.0, (4, 0): 2.0, (3, 3): 5.0, (3, 0): 0.0},
    "su3": {(1, 0): 0.0, (2, 0): 0.0, (1, 1): 1.0, (3, 0): 1.0, (2, 2): 2.0, (3, 3): 6.0},
}
"""Integrals of (Tr U)^m (Tr U*)^n over the group: how often N^m x N*^n contains the singlet."""


def a0_cdf(a0: npt.ArrayLike, alpha: npt.ArrayLike) -> Real:
    """Distribution function of the heatbath's a0 ~ sqrt(1 - a0^2) exp(alpha a0) on [-1, 1].

    `a0` and `alpha` broadcast; good to 1e-12 for alpha from 0 to 1e4. With a0 = cos(theta) the
    density is sin^2(theta) exp(-2 alpha sin^2(theta / 2)) up to a factor, smooth, and below
    exp(-50) beyond the theta where the integrals are cut; both are done by Gauss-Legendre.
    """
    a0, alpha = np.broadcast_arrays(np.asarray(a0, float), np.asarray(alpha, float))
    cut = 2 * np.arcsin(np.sqrt(np.minimum(1, 25 / np.maximum(alpha, 25))))
    theta = np.minimum(np.arccos(np.clip(a0, -1, 1)), cut)
    return 1 - a0_integral(theta, alpha) / a0_integral(cut, alpha)


def a0_integral(theta: Real, alpha: Real) -> Real:
    """Integral of sin^2(s) exp(-2 alpha sin^2(s / 2)) over s from 0 to theta."""
    total = np.zeros_like(theta)
    for node, weight in zip(*np.polynomial.legendre.leggauss(80), strict=True):
        s = theta * (1 + node) / 2
        total += weight / 2 * theta * np.sin(s) ** 2 * np.exp(-2 * alpha * np.sin(s / 2) ** 2)
    return total


def a0_pvalue(a0: Real, alpha: npt.ArrayLike) -> float:
    """Kolmogorov-Smirnov p-value of draws a0, each with its own alpha or all with the same."""
    return float(stats.kstest(a0_cdf(a0, alpha).ravel(), "uniform").pvalue)


def su2_character_ratio(beta: float) -> float:
    """u = I_2(beta) / I_1(beta), the expectation of Tr / 2 for a single SU(2) plaquette."""
    return float(special.ive(2, beta) / special.ive(1, beta))


def su2_strong_coupling_plaquette(beta: float) -> float:
    """SU(2) plaquette in four dimensions at small beta, up to corrections of order beta^13.

    Character expansion (Drouffe and Zuber, Phys. Rept. 102 (1983) 1): ln Z per site is
    6 ln(2 I_1(beta) / beta) plus the connected closed surfaces, a sphere in the representation of
    dimension d and coefficient c counting d^2 c^area, with c = u = I_2 / I_1 for the fundamental
    and v = I_3 / I_1 for the adjoint one:

    - 4 cubes: 16 u^6 + 36 v^6;
    - 36 pairs of cubes with a common plaquette (6 plaquettes a site, each in 4 cubes), which is
      empty or adjoint: 144 u^10 + 432 u^10 v;
    - 32 + 8 balls of three or four mutually adjacent cubes of a hypercube: 160 u^12;
    - what the exponential of the cubes counts too much, pairs with a common plaquette and each
      cube with itself: -(36 + 4 / 2) 16 u^12 = -608 u^12.

    The plaquette is 1/6 of the derivative by beta. Expanded, it is
    beta/4 - beta^3/96 + 7 beta^5/1536 - 31 beta^7/23040 + ..., as in Balian, Drouffe and
    Itzykson, Phys. Rev. D11 (1975) 2104; and u + 4 u^5 - 8 u^7 + ... in u, because
    u' = 1/4 - u^2/2 + ...: u + 4 u^5 alone is 2.3e-4 too high at beta = 1.
    """
    u = su2_character_ratio(beta)
    v = 1 - 4 * u / beta
    du = 1 - 3 * u / beta - u**2
    dv = u - 4 * v / beta - u * v
    surfaces_by_u = 96 * u**5 + 1440 * u**9 + 4320 * u**9 * v - 5376 * u**11
    surfaces_by_v = 216 * v**5 + 432 * u**10
    return u + (surfaces_by_u * du + surfaces_by_v * dv) / 6


def schwinger_dyson(links: Complex, beta: float) -> float:
    """A function of a configuration whose average over the Wilson ensemble at `beta` is zero.

    Take one link U, W = U A with A the sum of its staples, and f(U) = Re Tr W, so that the weight
    of the link is exp((beta / N) f). The Haar measure does not change under
    U -> exp(i eps T_a) U, hence the integral of the derivative D_a of anything vanishes; of
    exp((beta / N) f) D_a f it gives

        < D_a D_a f + (beta / N) (D_a f)^2 > = 0,

    with D_a f = -Im Tr(T_a W) and D_a D_a f = -Re Tr(T_a T_a W). Summed over the generators,
    normalised to Tr(T_a T_b) = delta_ab / 2, sum T_a T_a = (N^2 - 1) / (2 N), and by
    completeness sum (Im Tr(T_a W))^2 = Tr(M^2) / 2 for M the traceless part of
    (W - W^dagger) / (2 i):

        Q = (beta / (2 N)) Tr(M^2) - ((N^2 - 1) / (2 N)) Re Tr W,   < Q > = 0

    exactly, at any volume and beta, because the staples do not contain the link (extents >= 2).
    Returned is Q averaged over all links. Its average reveals a wrong beta or distribution of
    an update; it cannot reveal that an update changes too little, which no average of Q shows.
    """
    n = links.shape[-1]
    total = 0.0
    for mu in range(4):
        w = links[..., mu, :, :] @ staple(links, mu)
        m = (w - dagger(w)) / 2j
        m = m - trace(m)[..., None, None] / n * np.eye(n)
        casimir = (n**2 - 1) / (2 * n)
        total += np.mean(beta / (2 * n) * trace(m @ m).real - casimir * trace(w).real)
    return float(total) / 4
