"""Gradient flow, and the energy and topological charge that are measured along it.

The gauge field enters as anti-Hermitian A_mu with D_mu = d_mu + A_mu, so that
U_mu(x) = P exp(integral of A_mu from x to x + mu), ordered from left to right, and a plaquette is
exp(F_mu nu) up to higher orders, F_mu nu = d_mu A_nu - d_nu A_mu + [A_mu, A_nu]. Generators are
normalised to tr(T_a T_b) = -delta_ab / 2. Densities are arrays ``[t, z, y, x]``.
"""

from collections.abc import Callable, Iterable
from itertools import combinations

import numpy as np

from .fields import Complex, Extents, Real, cold_field, coordinates, dagger, shift, trace
from .observables import plaquette_matrix, staple, transport

PLANES = tuple(combinations(range(4), 2))
"""The six planes (mu, nu), mu < nu."""

C1 = {"wilson": 0.0, "symanzik": -1 / 12, "zeuthen": -1 / 12}
"""Coefficient of the rectangles in the action of each flow; the plaquettes have 1 - 8 c1."""

Strength = Callable[[Complex, int, int], Complex]
"""strength(links, mu, nu): the field strength of one plane, ``F[t, z, y, x, a, b]``."""


# The algebra


def algebra(m: Complex) -> Complex:
    """Projection on traceless anti-Hermitian matrices: (M - M^dagger) / 2 minus its trace / N."""
    n = m.shape[-1]
    half = (m - dagger(m)) / 2
    projected: Complex = half - trace(half)[..., None, None] / n * np.eye(n)
    return projected


def exponential(x: Complex) -> Complex:
    """exp(X) of anti-Hermitian X from the eigenvalues of the Hermitian matrix i X."""
    values, vectors = np.linalg.eigh(1j * x)
    result: Complex = vectors * np.exp(-1j * values)[..., None, :] @ dagger(vectors)
    return result


# The action and its force


def rectangle_staple(links: Complex, mu: int, directions: Iterable[int] = range(4)) -> Complex:
    """Sum of the 18 rectangle staples, in the convention of `observables.staple`.

    The 2x1 rectangles through U_mu(x) add up to Tr(U_mu(x) A(x)). In the plane of mu and nu,
    U_mu(x) is the first or the second half of a long side, or a short side, and the rectangle
    lies on either side of it: 6 rectangles. Each is a loop that begins with U_mu(x); the staple
    is the rest of it, which leads from x + mu back to x.
    """
    total = np.zeros_like(links[..., mu, :, :])
    ahead, back = (mu, 1), (mu, -1)
    for nu in directions:
        if nu == mu:
            continue
        for side in (1, -1):
            out, home = (nu, side), (nu, -side)
            first_half = [ahead, out, back, back, home]
            second_half = [out, back, back, home, ahead]
            short_side = [out, out, back, home, home]
            for path in (first_half, second_half, short_side):
                total += shift(transport(links, path), mu)
    return total


def action_density(links: Complex, c1: float) -> Real:
    """g0^2 times the action of plaquettes and rectangles, per site.

    2 c0 sum Re Tr(1 - plaquette) + 2 c1 sum Re Tr(1 - rectangle) with c0 = 1 - 8 c1, over the six
    plaquettes and the twelve 2x1 rectangles whose lowest corner is x, each in one orientation
    (Luescher and Weisz, Commun. Math. Phys. 97 (1985) 59). c1 = 0 is the Wilson action, and
    c1 = -1/12 the Luescher-Weisz action at tree level. In the continuum it becomes
    -1/2 sum_mu,nu tr(F_mu nu F_mu nu) for any c1.
    """
    n = links.shape[-1]
    density = np.zeros(links.shape[:4])
    for mu, nu in PLANES:
        density += 2 * (1 - 8 * c1) * (n - trace(plaquette_matrix(links, mu, nu)).real)
        for i, j in ((mu, nu), (nu, mu)):
            rectangle = transport(links, [(i, 1), (i, 1), (j, 1), (i, -1), (i, -1), (j, -1)])
            density += 2 * c1 * (n - trace(rectangle).real)
    return density


def anisotropic_force(links: Complex, xi: float) -> Complex:
    """The Wilson flow on a lattice with a_s = xi a_t, t in units of a_s^2 (arXiv:1205.0781).

    The sum over nu of D_nu F_nu_mu in units of a_s: a derivative along t, and the field strength of
    a plane with t, have a factor xi, and a link along t is exp(a_t A_t).
    """
    z = np.zeros_like(links)
    for mu in range(4):
        a = np.zeros_like(links[..., mu, :, :])
        for nu in range(4):
            if nu != mu:
                factor = xi**2 if nu == 3 else 1.0
                a += factor * staple(links, mu, [nu])
        z[..., mu, :, :] = -algebra(links[..., mu, :, :] @ a)
    return z


def force(links: Complex, kind: str) -> Complex:
    """Z of the flow equation dV/dt = Z(V) V, ``Z[t, z, y, x, mu, a, b]``.

    - "wilson": Z = -g0^2 dS, with dS = T_a times the derivative of the Wilson action with respect
      to U -> exp(s T_a) U (Luescher, arXiv:1006.4518, eq. 1.4). It is minus `algebra` of the sum
      of the plaquettes that begin with U_mu(x), and the action falls.
    - "symanzik": the same with the Luescher-Weisz action, c0 = 5/3 and c1 = -1/12.
    - "zeuthen": (1 + (1/12) D_mu D*_mu) applied to the Symanzik force (Ramos and Sint,
      arXiv:1508.05552), with the operator of `covariant_second_difference`. The reason for it
      is that a link stands for the average of A_mu over one lattice spacing,
      B_mu = (1 + d_mu^2 / 24) A_mu. The flow dA_mu/dt = -dS/dA_mu of the continuum is therefore
      dB_mu/dt = -(1 + d_mu^2 / 24)^2 dS/dB_mu, and the factor is 1 + d_mu^2 / 12 up to O(a^4).

    When the links change by U -> exp(s X) U, the derivative of the total `action_density` at
    s = 0 is 2 Re sum tr(X Z), with the Wilson or the Symanzik force Z.
    """
    c1 = C1[kind]
    z = np.zeros_like(links)
    for mu in range(4):
        a = (1 - 8 * c1) * staple(links, mu)
        if c1:
            a += c1 * rectangle_staple(links, mu)
        z[..., mu, :, :] = -algebra(links[..., mu, :, :] @ a)
    if kind == "zeuthen":
        for mu in range(4):
            z[..., mu, :, :] += covariant_second_difference(links, z[..., mu, :, :], mu) / 12
    return z


def covariant_second_difference(links: Complex, f: Complex, mu: int) -> Complex:
    """D_mu D*_mu f of an adjoint field f on sites.

    With the forward difference D_mu f(x) = U_mu(x) f(x + mu) U_mu(x)^dagger - f(x) and the
    backward difference D*_mu f(x) = f(x) - U_mu(x - mu)^dagger f(x - mu) U_mu(x - mu), as in
    Ramos and Sint, arXiv:1508.05552.
    """
    u = links[..., mu, :, :]
    before = shift(u, mu, -1)
    backward = f - dagger(before) @ shift(f, mu, -1) @ before
    return u @ shift(backward, mu) @ dagger(u) - backward


# Integration


def rk3_step(links: Complex, eps: float, kind: str, xi: float = 1.0) -> Complex:
    """One step of the third-order Runge-Kutta scheme (Luescher, arXiv:1006.4518, appendix C)."""
    return embedded_step(links, eps, kind, xi)[0]


def embedded_step(
    links: Complex, eps: float, kind: str, xi: float = 1.0
) -> tuple[Complex, Complex]:
    """One step by the third-order scheme, and by the second-order scheme embedded in it.

    With Z_i = eps Z(W_i) (Luescher, arXiv:1006.4518, eqs. C.1 and C.2):

        W_0 = V_t
        W_1 = exp(Z_0 / 4) W_0
        W_2 = exp(8/9 Z_1 - 17/36 Z_0) W_1
        V_t+eps = exp(3/4 Z_2 - 8/9 Z_1 + 17/36 Z_0) W_2

    and to second order V'_t+eps = exp(-Z_0 + 2 Z_1) V_t (Fritzsch and Ramos, arXiv:1301.4388,
    appendix D).
    """

    def derivative(w: Complex) -> Complex:
        return force(w, kind) if xi == 1 else anisotropic_force(w, xi)

    w0 = links
    z0 = eps * derivative(w0)
    w1 = exponential(z0 / 4) @ w0
    z1 = eps * derivative(w1)
    w2 = exponential(8 / 9 * z1 - 17 / 36 * z0) @ w1
    z2 = eps * derivative(w2)
    third = exponential(3 / 4 * z2 - 8 / 9 * z1 + 17 / 36 * z0) @ w2
    second = exponential(-z0 + 2 * z1) @ w0
    return third, second


def flow(links: Complex, t_end: float, steps: int, kind: str) -> Complex:
    """Field at flow time `t_end` after equal steps of the third-order scheme."""
    for _ in range(steps):
        links = rk3_step(links, t_end / steps, kind)
    return links


def distance(v: Complex, w: Complex) -> float:
    """Largest distance of two links, |V - W| / N^2 with the Frobenius norm (arXiv:1301.4388, D)."""
    return float(np.linalg.norm(v - w, axis=(-1, -2)).max()) / int(v.shape[-1]) ** 2


def adaptive_flow(
    links: Complex, t_end: float, tolerance: float, kind: str, first_step: float
) -> tuple[Complex, list[float]]:
    """Field at flow time `t_end`, and the step sizes that were accepted.

    Fritzsch and Ramos, arXiv:1301.4388, appendix D: with d the `distance` of the third-order and
    the second-order result of a step, the next step has the size
    0.95 eps (tolerance / d)^(1/3). A step with d > tolerance is repeated with that size. The last
    step is shortened so that it ends at `t_end`.
    """
    t, eps = 0.0, first_step
    steps = []
    while t < t_end:
        last = t + eps >= t_end
        if last:
            eps = t_end - t
        third, second = embedded_step(links, eps, kind)
        d = max(distance(third, second), np.finfo(float).tiny)
        if d <= tolerance:
            links = third
            t = t_end if last else t + eps
            steps.append(eps)
        eps *= 0.95 * (tolerance / d) ** (1 / 3)
    return links, steps


# Energy and charge


def energy_plaquette(links: Complex) -> Real:
    """E(x) = 2 sum_mu<nu Re Tr(1 - P_mu nu(x)) (Luescher, arXiv:1006.4518, eq. 3.1)."""
    return action_density(links, 0)


def field_strength(links: Complex, mu: int, nu: int, m: int = 1) -> Complex:
    """F_mu nu(x) from the clover of m x m loops: `algebra` of their average, divided by m^2.

    The four loops begin and end at x, lie in the four quadrants of the plane, and all run in the
    sense that turns mu into nu. F is traceless.
    """
    total = np.zeros_like(links[..., mu, :, :])
    # Each side is the one before it, turned by 90 degrees.
    sides = [(mu, 1), (nu, 1), (mu, -1), (nu, -1)]
    for first in range(4):
        path = [sides[(first + turn) % 4] for turn in range(4) for _ in range(m)]
        total += transport(links, path)
    return algebra(total / 4) / m**2


def improved_field_strength(links: Complex, mu: int, nu: int) -> Complex:
    """F_mu nu(x) free of O(a^2) and O(a^4): 3/2 F^(1x1) - 3/5 F^(2x2) + 1/10 F^(3x3).

    Bilson-Thompson, Leinweber and Williams, hep-lat/0203008, three loops; there the coefficients
    3/2, -3/20 and 1/90 multiply clovers that are not divided by m^2. An m x m clover averages F
    over a square of side 2 m, F + (m^2 / 6) (d_mu^2 + d_nu^2) F + O(m^4): the coefficients k_m
    solve sum k_m = 1, sum k_m m^2 = 0 and sum k_m m^4 = 0.
    """
    k = {1: 3 / 2, 2: -3 / 5, 3: 1 / 10}
    terms = [k[m] * field_strength(links, mu, nu, m) for m in k]
    return terms[0] + terms[1] + terms[2]


def energy_clover(links: Complex, strength: Strength = field_strength, xi: float = 1.0) -> Real:
    """E(x) = -1/2 sum_mu,nu tr(F_mu nu F_mu nu), over all ordered pairs of directions.

    It is the sum of |F_mu nu|^2 (Frobenius norm) over mu < nu. In units of a_s^-4 planes with t
    have the factor xi^2.
    """
    density = np.zeros(links.shape[:4])
    for mu, nu in PLANES:
        f = strength(links, mu, nu)
        density -= (xi**2 if nu == 3 else 1.0) * trace(f @ f).real
    return density


def charge(links: Complex, strength: Strength = field_strength) -> Real:
    """Topological charge density q(x) = -1/(32 pi^2) eps_mu nu rho sigma tr(F_mu nu F_rho sigma).

    The directions x, y, z, t are 0, 1, 2, 3, and eps_0123 = +1; then

        q = -1/(4 pi^2) tr(F_01 F_23 - F_02 F_13 + F_03 F_12).

    F is anti-Hermitian, so that tr(F F) < 0, and a self-dual field (F_01 = F_23, F_02 = -F_13,
    F_03 = F_12) has q = -1/(4 pi^2) tr(F_01^2 + F_02^2 + F_03^2) > 0, which is
    -1/2 sum_mu,nu tr(F_mu nu F_mu nu) divided by 8 pi^2.
    """
    f = {plane: strength(links, *plane) for plane in PLANES}
    dual = f[0, 1] @ f[2, 3] - f[0, 2] @ f[1, 3] + f[0, 3] @ f[1, 2]
    return -trace(dual).real / (4 * np.pi**2)


def largest_plaquette_action(links: Complex) -> float:
    """Largest Re Tr(1 - P) of all plaquettes.

    Fields on which it stays below a certain bound fall into topological sectors (Luescher,
    arXiv:1006.4518).
    """
    n = links.shape[-1]
    return max(float((n - trace(plaquette_matrix(links, mu, nu)).real).max()) for mu, nu in PLANES)


# An instanton


def anti_self_dual_symbol() -> Real:
    """'t Hooft's symbol etabar[a, mu, nu] ('t Hooft, Phys. Rev. D14 (1976) 3432).

    etabar_a mu nu = eps_a mu nu for spatial mu and nu, -delta_a mu for nu = t, and antisymmetric.
    """
    eta = np.zeros((3, 4, 4))
    for a, b, c in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        eta[a, b, c], eta[a, c, b] = 1, -1
        eta[a, a, 3], eta[a, 3, a] = -1, 1
    return eta


def instanton(extents: Extents, rho: float, group: str) -> Complex:
    """Field with an instanton of radius `rho` in the middle of the lattice, of charge Q = +1.

    In singular gauge, with T_a = -i sigma_a / 2 ('t Hooft, Phys. Rev. D14 (1976) 3432),

        A_mu(x) = -T_a etabar_a mu nu d_nu ln(1 + rho^2 / x^2)

    is self-dual with respect to eps_xyzt = +1: the anti-self-dual symbol gives the self-dual
    field, because the singular gauge transformation by x / |x| turns it into the regular gauge,
    A_mu = 2 T_a eta_a mu nu x_nu / (x^2 + rho^2), where F is proportional to the self-dual eta.
    On the torus x^2 is replaced by the periodic

        s^2 = sum_nu (L_nu / pi)^2 sin^2(pi x_nu / L_nu),

    which leaves A_mu smooth except for the singularity at the centre, a pure gauge that winds
    once. The charge in the continuum is therefore exactly 1, although the field is self-dual only
    in the limit of rho much smaller than L. The centre is half a lattice spacing away from the
    nearest sites in every direction. Along a link in direction mu the magnitude of A_mu changes,
    but not its direction in the algebra (etabar_a mu mu = 0), so that the path-ordered
    exponential is the exponential of the integral. For SU(3) the field is in the upper left 2x2
    block.
    """
    generators = -0.5j * np.array([[[0, 1], [1, 0]], [[0, -1j], [1j, 0]], [[1, 0], [0, -1]]])
    length = np.array(extents, dtype=float).reshape(4, 1, 1, 1, 1)
    centre = length // 2 - 0.5
    x = coordinates(extents) - centre
    gradient = length / np.pi * np.sin(2 * np.pi * x / length)
    links = cold_field(extents, group)
    for mu in range(4):
        # A_mu = T_a etabar_a mu nu (d_nu s^2) rho^2 / (s^2 (s^2 + rho^2)).
        integral = np.zeros(extents[::-1])
        for node, weight in zip(*np.polynomial.legendre.leggauss(32), strict=True):
            along = x.copy()
            along[mu] += (1 + node) / 2
            s2 = np.sum((length / np.pi * np.sin(np.pi * along / length)) ** 2, axis=0)
            integral += weight / 2 * rho**2 / (s2 * (s2 + rho**2))
        eta = anti_self_dual_symbol()[:, mu]
        direction = np.einsum("an,n...,aij->...ij", eta, gradient, generators)
        links[..., mu, :2, :2] = exponential(integral[..., None, None] * direction)
    return links
