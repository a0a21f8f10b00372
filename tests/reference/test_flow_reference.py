"""The reference of the gradient flow against definitions, exact solutions and continuum fields."""

import numpy as np
import pytest
from scipy import linalg

from . import fields, flow, observables
from .fields import CHARGES, Complex, Extents, Real, angle, dagger

GROUPS = ("su2", "su3")
KINDS = ("wilson", "symanzik", "zeuthen")
EXTENTS: Extents = (4, 2, 4, 6)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(10064518)


def random_algebra(n: int, shape: tuple[int, ...], rng: np.random.Generator) -> Complex:
    """Gaussian traceless anti-Hermitian matrices."""
    gaussian = rng.normal(size=(2, *shape, n, n))
    return flow.algebra(gaussian[0] + 1j * gaussian[1])


def rough_field(extents: Extents, group: str, width: float, rng: np.random.Generator) -> Complex:
    """Independent links at a distance of about `width` from 1."""
    shape = (*extents[::-1], 4)
    return flow.exponential(width * random_algebra(fields.COLOURS[group], shape, rng))


def smooth_field(extents: Extents, group: str, rng: np.random.Generator) -> Complex:
    """Links after a little flow in few steps, with plaquettes like those of an ensemble."""
    return flow.flow(rough_field(extents, group, 0.5, rng), 0.2, 2, "wilson")


def reflect(links: Complex, mu: int) -> Complex:
    """Reflection of the axis mu, x_mu -> L_mu - 1 - x_mu, which reverses its links."""
    mirrored = np.flip(links, axis=3 - mu).copy()
    mirrored[..., mu, :, :] = dagger(fields.shift(mirrored[..., mu, :, :], mu))
    return mirrored


# The algebra


@pytest.mark.parametrize("n", [2, 3, 4])
def test_algebra_and_exponential(n: int, rng: np.random.Generator) -> None:
    m = rng.normal(size=(5, n, n)) + 1j * rng.normal(size=(5, n, n))
    x = flow.algebra(m)
    assert np.allclose(dagger(x), -x)
    assert np.allclose(fields.trace(x), 0)
    assert np.allclose(flow.algebra(x), x)
    y = random_algebra(n, (5,), rng)
    # The projection is orthogonal: nothing in the algebra is nearer to M.
    assert np.allclose(fields.trace((m - x) @ y).real, 0)
    assert np.allclose(flow.exponential(x), linalg.expm(x))


# The action and its force


@pytest.mark.parametrize("group", GROUPS)
def test_each_rectangle_goes_through_six_links(group: str, rng: np.random.Generator) -> None:
    u = fields.random_field(EXTENTS, group, rng)
    n = u.shape[-1]
    # c0 = 0 for c1 = 1/8: twelve rectangles for each site, in one orientation.
    rectangles = np.sum(12 * n - 4 * flow.action_density(u, 1 / 8))
    through = sum(
        np.sum(fields.trace(u[..., mu, :, :] @ flow.rectangle_staple(u, mu)).real)
        for mu in range(4)
    )
    assert through == pytest.approx(6 * rectangles, abs=1e-9)


def test_rectangles_of_one_link_by_hand(rng: np.random.Generator) -> None:
    """The six rectangles in the (x, y) plane with the link from (1, 1) to (2, 1)."""
    u = fields.random_field((6, 6, 2, 2), "su3", rng)
    # Nothing depends on z and t, and links in these directions are 1.
    u[..., 2:, :, :] = np.eye(3)
    u[:] = u[:1, :1]

    def x(i: int, j: int) -> Complex:
        link: Complex = u[0, 0, j, i, 0]
        return link

    def y(i: int, j: int) -> Complex:
        link: Complex = u[0, 0, j, i, 1]
        return link

    def loop(*matrices: Complex) -> Complex:
        product: Complex = np.linalg.multi_dot(matrices)
        return product

    d = dagger
    expected = (
        # First and second half of the lower long side.
        loop(x(2, 1), y(3, 1), d(x(2, 2)), d(x(1, 2)), d(y(1, 1)))
        + loop(y(2, 1), d(x(1, 2)), d(x(0, 2)), d(y(0, 1)), x(0, 1))
        # First and second half of the upper long side.
        + loop(x(2, 1), d(y(3, 0)), d(x(2, 0)), d(x(1, 0)), y(1, 0))
        + loop(d(y(2, 0)), d(x(1, 0)), d(x(0, 0)), y(0, 0), x(0, 1))
        # The lower and the upper short side; (1, -1) is (1, 5).
        + loop(y(2, 1), y(2, 2), d(x(1, 3)), d(y(1, 2)), d(y(1, 1)))
        + loop(d(y(2, 0)), d(y(2, 5)), d(x(1, 5)), y(1, 5), y(1, 0))
    )
    # The 12 rectangles in the planes of x with z and with t are all 1.
    expected = expected + 12 * d(x(1, 1))
    assert np.allclose(flow.rectangle_staple(u, 0)[0, 0, 1, 1], expected, atol=1e-12)


@pytest.mark.parametrize("kind", ["wilson", "symanzik"])
@pytest.mark.parametrize("group", GROUPS)
def test_force_is_the_derivative_of_the_action(
    group: str, kind: str, rng: np.random.Generator
) -> None:
    u = fields.random_field(EXTENTS, group, rng)
    x = random_algebra(u.shape[-1], u.shape[:5], rng)
    z = flow.force(u, kind)
    predicted = 2 * np.sum(fields.trace(x @ z).real)

    def action(s: float) -> float:
        return float(flow.action_density(flow.exponential(s * x) @ u, flow.C1[kind]).sum())

    def slope(h: float) -> float:
        return (action(h) - action(-h)) / (2 * h)

    assert (4 * slope(1e-3) - slope(2e-3)) / 3 == pytest.approx(predicted, rel=1e-7)
    assert np.allclose(flow.algebra(z), z)


def plane_wave(
    extents: Extents, group: str, waves: tuple[int, ...], amplitude: Real, size: float
) -> tuple[Complex, Real]:
    """Links exp(size amplitude_mu cos(p (x + mu / 2)) T) and the momentum p.

    T is the diagonal generator of `CHARGES`, p_mu = 2 pi waves_mu / L_mu.
    """
    p = 2 * np.pi * np.array(waves) / np.array(extents)
    phase = np.tensordot(p, fields.coordinates(extents), 1)[..., None] + p / 2
    generator = 1j * np.diag(CHARGES[group])
    a = size * amplitude * np.cos(phase)
    return flow.exponential(a[..., None, None] * generator), p


def kernel(p: Real, kind: str) -> Real:
    """K of the linearised flow dA/dt = -K A of a plane wave.

    K_mu nu = delta_mu nu sum_rho w_mu rho phat_rho^2 - w_mu nu phat_mu phat_nu with
    phat = 2 sin(p / 2) and w_mu nu = 1 - c1 (phat_mu^2 + phat_nu^2) (Weisz, Nucl. Phys. B212
    (1983) 1); the Zeuthen flow multiplies row mu by 1 - phat_mu^2 / 12.
    """
    phat = 2 * np.sin(p / 2)
    w = 1 - flow.C1[kind] * np.add.outer(phat**2, phat**2)
    k = np.diag(w @ phat**2) - w * np.outer(phat, phat)
    zeuthen: Real = (1 - phat**2 / 12)[:, None] * k
    return zeuthen if kind == "zeuthen" else k


@pytest.mark.first_quick
@pytest.mark.parametrize("kind", KINDS)
def test_plane_waves_decay_with_the_lattice_heat_kernel(kind: str) -> None:
    extents, t, size = (4, 6, 2, 8), 0.1, 1e-4
    amplitude = np.array([0.3, -0.8, 0.5, 0.6])  # Transverse and longitudinal.
    u, p = plane_wave(extents, "su3", (1, 1, 0, 3), amplitude, size)
    v = flow.flow(u, t, 8, kind)
    decayed = linalg.expm(-t * kernel(p, kind)) @ amplitude
    expected, _ = plane_wave(extents, "su3", (1, 1, 0, 3), decayed, size)
    assert abs(v - expected).max() < 1e-4 * size
    # E is quadratic in A: the mean of cos^2 is 1/2, and -tr T^2 = sum q^2.
    energy = sum(q**2 for q in CHARGES["su3"]) / 2 * size**2
    energy *= decayed @ kernel(p, "wilson") @ decayed
    assert flow.energy_plaquette(v).mean() == pytest.approx(energy, rel=1e-3, abs=0)


# Integration


def test_errors_of_one_step(rng: np.random.Generator) -> None:
    """One step is wrong by O(eps^4), and the embedded one of second order by O(eps^3)."""
    u = smooth_field((2, 4, 2, 4), "su3", rng)
    errors = []
    for eps in (0.04, 0.02):
        exact = flow.flow(u, eps, 8, "wilson")
        errors.append([np.linalg.norm(w - exact) for w in flow.embedded_step(u, eps, "wilson")])
    third, second = np.array(errors[0]) / np.array(errors[1])
    assert third == pytest.approx(16, rel=0.15)
    assert second == pytest.approx(8, rel=0.15)


@pytest.mark.slow
def test_adaptive_flow_agrees_with_small_steps(rng: np.random.Generator) -> None:
    u, t, tolerance = rough_field((4, 4, 2, 2), "su3", 0.5, rng), 1.0, 1e-3
    v, steps = flow.adaptive_flow(u, t, tolerance, "wilson", first_step=0.5)
    assert sum(steps) == pytest.approx(t, abs=1e-14)
    assert steps[0] < 0.1  # The first trial is repeated with a smaller step,
    assert max(steps) > 1.5 * steps[0]  # and steps grow as the field becomes smooth.
    # The tolerance bounds the error of the second-order result; the third-order one is better.
    assert flow.distance(v, flow.flow(u, t, 40, "wilson")) < tolerance


def test_steps_follow_the_tolerance(rng: np.random.Generator) -> None:
    """A step of error d leads to 0.95 eps (tolerance / d)^(1/3), accepted or not."""
    u, eps = rough_field((2, 4, 2, 2), "su3", 0.5, rng), 0.02
    v, w = flow.embedded_step(u, eps, "wilson")
    d = np.sqrt(np.sum(abs(v - w) ** 2, axis=(-1, -2))).max() / 9
    _, steps = flow.adaptive_flow(u, 0.1, 1.1 * d, "wilson", first_step=eps)
    assert steps[:2] == pytest.approx([eps, 0.95 * eps * 1.1 ** (1 / 3)])
    _, steps = flow.adaptive_flow(u, 0.1, 0.9 * d, "wilson", first_step=eps)
    assert steps[0] == pytest.approx(0.95 * eps * 0.9 ** (1 / 3))


def test_adaptive_flow_of_a_vacuum_is_one_step() -> None:
    u = fields.cold_field((2, 2, 2, 2), "su2")
    v, steps = flow.adaptive_flow(u, 3.0, 1e-6, "wilson", first_step=5.0)
    assert steps == [3.0]
    assert np.allclose(v, u, atol=1e-14)


# Energy and charge


def test_energies_agree_with_the_definition(rng: np.random.Generator) -> None:
    u = fields.random_field(EXTENTS, "su3", rng)
    sites = np.prod(EXTENTS)
    mean = observables.plaquette(u).mean
    assert flow.energy_plaquette(u).sum() == pytest.approx(2 * 3 * 6 * sites * (1 - mean))
    total = np.zeros(EXTENTS[::-1])
    for mu in range(4):
        for nu in range(4):
            if mu != nu:
                f = flow.field_strength(u, mu, nu)
                assert np.allclose(f, -flow.field_strength(u, nu, mu))
                total -= fields.trace(f @ f).real / 2
    assert np.allclose(flow.energy_clover(u), total)
    planes = [1 - observables.plaquette_field(u, mu, nu) for mu, nu in flow.PLANES]
    assert flow.largest_plaquette_action(u) == pytest.approx(3 * np.max(planes))


@pytest.mark.parametrize("m", [1, 2, 3])
def test_clover_by_hand(m: int) -> None:
    """In a constant abelian field every m x m loop has the angle m^2 omega."""
    extents = (4, 6, 4, 8)
    u = fields.abelian_field(extents, "su2", {(1, 3): 2})
    f = flow.field_strength(u, 1, 3, m)
    omega = angle(extents, (1, 3), 2)
    expected = np.diag([1j, -1j]) * np.sin(m**2 * omega) / m**2
    assert np.allclose(f, expected, atol=1e-13)
    assert np.allclose(flow.field_strength(u, 0, 2, m), 0, atol=1e-13)


@pytest.mark.parametrize(
    ("first", "second", "sign"), [((0, 1), (2, 3), 1), ((0, 2), (1, 3), -1), ((0, 3), (1, 2), 1)]
)
@pytest.mark.parametrize("group", GROUPS)
def test_charge_of_constant_fields(
    group: str, first: tuple[int, int], second: tuple[int, int], sign: int
) -> None:
    """Q = eps sum_i q_i^2 n n' for n and n' flux quanta in two orthogonal planes.

    F = i q_i omega on the diagonal, hence q = eps sum_i q_i^2 omega omega' / (4 pi^2), with
    omega = 2 pi n / (L L').
    """
    extents = (6, 4, 4, 6)
    u = fields.abelian_field(extents, group, {first: 1, second: -1})
    sines = np.array(
        [
            [np.sin(q * angle(extents, plane, quanta)) for q in CHARGES[group]]
            for plane, quanta in ((first, 1), (second, -1))
        ]
    )
    # F is traceless, but the sines of SU(3) do not add up to zero.
    sines -= sines.mean(axis=1, keepdims=True)
    expected = sign * np.sum(sines[0] * sines[1]) / (4 * np.pi**2)
    assert np.allclose(flow.charge(u), expected, atol=1e-14)
    exact = -sign * sum(q**2 for q in CHARGES[group])
    assert flow.charge(u).sum() == pytest.approx(exact, rel=0.25)


def test_improved_field_strength_has_neither_a2_nor_a4_errors() -> None:
    """F of plane waves: the relative error falls by 2^6 when the momentum is halved."""
    amplitude, size = np.array([0.0, 1.0, 0.0, 0.0]), 1e-5
    errors = []
    for length in (12, 24):
        u, p = plane_wave((length, 2, 2, 2), "su2", (1, 0, 0, 0), amplitude, size)
        # A_y = size cos(p x) T does not depend on y, so that links along y contain it exactly.
        x = np.arange(length)
        exact = -size * p[0] * np.sin(p[0] * x)
        f = flow.improved_field_strength(u, 0, 1)[0, 0, 0, :, 0, 0].imag
        errors.append(np.linalg.norm(f - exact) / np.linalg.norm(exact))
    assert errors[0] / errors[1] == pytest.approx(64, rel=0.1)


# The instanton


@pytest.fixture(scope="module")
def instanton() -> Complex:
    return flow.instanton((8, 8, 8, 8), 2.0, "su2")


def test_links_of_the_instanton_are_in_the_group(instanton: Complex) -> None:
    assert np.allclose(instanton @ dagger(instanton), np.eye(2), atol=1e-13)
    assert np.allclose(np.linalg.det(instanton), 1, atol=1e-13)


@pytest.mark.slow
def test_instanton_has_charge_plus_one(instanton: Complex) -> None:
    flowed = flow.flow(instanton, 0.2, 2, "wilson")
    improved = flow.charge(flowed, flow.improved_field_strength).sum()
    assert improved == pytest.approx(1, abs=0.02)
    # (1 + (d_mu^2 + d_nu^2) / 6) F in an instanton makes Q = 1 - 4 / (5 rho^2) of the clover.
    clover = flow.charge(flowed).sum()
    assert clover == pytest.approx(1 - 4 / 5 / 2**2, abs=0.03)
    assert abs(improved - 1) < abs(clover - 1)
    # The action of charge 1 is at least 8 pi^2; the periodic field is not quite the minimum.
    assert 1 < flow.energy_plaquette(flowed).sum() / (8 * np.pi**2) < 1.1


@pytest.mark.slow
def test_instanton_is_self_dual_and_in_the_middle(instanton: Complex) -> None:
    """Up to some per cent, because the field is made periodic."""
    f = {plane: flow.improved_field_strength(instanton, *plane) for plane in flow.PLANES}
    middle = (slice(3, 5),) * 4
    pairs = (((0, 1), (2, 3), 1), ((0, 2), (1, 3), -1), ((0, 3), (1, 2), 1))
    for first, second, sign in pairs:
        one, other = f[first][middle], sign * f[second][middle]
        assert np.linalg.norm(one - other) < 0.1 * np.linalg.norm(one + other)
    density = flow.charge(instanton)
    assert np.allclose(density[middle], density.max(), rtol=1e-6)


@pytest.mark.parametrize("mu", [0, 3])
def test_reflection_changes_the_sign_of_the_charge(instanton: Complex, mu: int) -> None:
    mirrored = reflect(instanton, mu)
    density = np.flip(flow.charge(instanton), axis=3 - mu)
    assert np.allclose(flow.charge(mirrored), -density, atol=1e-13)
    energy = np.flip(flow.energy_clover(instanton), axis=3 - mu)
    assert np.allclose(flow.energy_clover(mirrored), energy, atol=1e-13)


def test_su3_instanton_is_the_su2_one(instanton: Complex) -> None:
    u = flow.instanton((8, 8, 8, 8), 2.0, "su3")
    assert np.allclose(u[..., :2, :2], instanton)
    # F of SU(2) is traceless already.
    assert np.allclose(flow.charge(u), flow.charge(instanton), atol=1e-13)
