"""The reference against definitions, invariances, known answers and exact expectation values."""

from itertools import islice

import numpy as np
import pytest
from scipy import integrate, optimize

from . import distributions, fields, observables, randoms, smearing, updates
from .fields import CHARGES, Complex, Extents, angle, dagger

GROUPS = ("su2", "su3")
EXTENTS: Extents = (4, 6, 2, 8)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20101)


def is_special_unitary(matrices: Complex) -> bool:
    n = matrices.shape[-1]
    unit = matrices @ dagger(matrices)
    return np.allclose(unit, np.eye(n), atol=1e-13) and np.allclose(
        np.linalg.det(matrices), 1, atol=1e-13
    )


# Fields


@pytest.mark.parametrize("group", GROUPS)
def test_random_links_are_haar_distributed(group: str, rng: np.random.Generator) -> None:
    n = fields.COLOURS[group]
    u = fields.random_su(n, (40000,), rng)
    assert is_special_unitary(u)
    tr = fields.trace(fields.random_su(n, (), rng) @ u)
    for (p, q), exact in distributions.HAAR_MOMENTS[group].items():
        sample = (tr**p * tr.conj() ** q).real
        assert sample.mean() == pytest.approx(exact, abs=4 * sample.std() / 200)
    second = abs(u) ** 2
    assert np.allclose(second.mean(axis=0), 1 / n, atol=4 * second.std() / 200)


@pytest.mark.parametrize("group", GROUPS)
def test_reunitarise_restores_links(group: str, rng: np.random.Generator) -> None:
    u = fields.random_field((2, 2, 2, 2), group, rng)
    assert np.allclose(fields.reunitarise(u), u, atol=1e-14)
    spoilt = u * 1.01 + 1e-3 * rng.normal(size=u.shape)
    assert is_special_unitary(fields.reunitarise(spoilt))
    assert abs(fields.reunitarise(spoilt) - u).max() < 0.02


def one_link_at_a_time(links: Complex, mu: int, nu: int, site: tuple[int, ...]) -> complex:
    """Plaquette trace by explicit indices, without roll."""

    def link(direction: int, *steps: int) -> Complex:
        x = list(site)
        for step in steps:
            x[3 - step] = (x[3 - step] + 1) % links.shape[3 - step]
        matrix: Complex = links[(*x, direction)]
        return matrix

    u, v = link(mu) @ link(nu, mu), link(nu) @ link(mu, nu)
    return complex(np.trace(u @ v.conj().T))


@pytest.mark.parametrize("group", GROUPS)
def test_plaquette_and_staples_by_explicit_indices(group: str, rng: np.random.Generator) -> None:
    u = fields.random_field(EXTENTS, group, rng)
    n = u.shape[-1]
    for site in ((0, 0, 0, 0), (7, 1, 5, 3), (3, 0, 5, 2)):
        for mu, nu in ((0, 1), (2, 1), (3, 0), (1, 3)):
            value = observables.plaquette_field(u, mu, nu)[site]
            assert value == pytest.approx(one_link_at_a_time(u, mu, nu, site).real / n, abs=1e-14)
    through = [fields.trace(u[..., mu, :, :] @ observables.staple(u, mu)) for mu in range(4)]
    # Every plaquette goes through four links.
    assert np.sum(through).real / n / 4 == pytest.approx(
        6 * np.prod(EXTENTS) * observables.plaquette(u).mean, abs=1e-9
    )


@pytest.mark.parametrize("group", GROUPS)
def test_staple_is_the_derivative_of_the_action(group: str, rng: np.random.Generator) -> None:
    u, beta = fields.random_field(EXTENTS, group, rng), 2.3
    n = u.shape[-1]
    other = u.copy()
    link = (5, 1, 0, 3, 2)
    other[link] = fields.random_su(n, (), rng)
    change = (other[link] - u[link]) @ observables.staple(u, 2)[link[:4]]
    difference = observables.action(other, beta) - observables.action(u, beta)
    assert difference == pytest.approx(-beta / n * np.trace(change).real, abs=1e-9)


# Loops


@pytest.mark.parametrize("group", GROUPS)
def test_small_wilson_loops_are_plaquettes(group: str, rng: np.random.Generator) -> None:
    u = fields.random_field(EXTENTS, group, rng)
    assert observables.mean_wilson_loop(u, "100", 1, 1) == pytest.approx(
        observables.plaquette(u).temporal, abs=1e-14
    )


def test_opposite_steps_give_the_same_loop(rng: np.random.Generator) -> None:
    u = fields.random_field(EXTENTS, "su3", rng)
    for step in ((1, 0, 0), (0, 1, -1), (2, 0, -1), (-1, 1, 1)):
        opposite = (-step[0], -step[1], -step[2])
        loop = observables.wilson_loop(u, step, 2, 1)
        assert loop == pytest.approx(observables.wilson_loop(u, opposite, 2, 1), abs=1e-14)
    for step, count in (((1, 0, 0), 6), ((1, 1, 0), 12), ((2, 1, 0), 24), ((1, 1, 1), 8)):
        assert len(observables.equivalent_steps(step)) == count


def test_polyakov_loop_by_hand(rng: np.random.Generator) -> None:
    u = fields.random_field((2, 4, 2, 6), "su3", rng)
    line = np.linalg.multi_dot([u[t, 1, 2, 0, 3] for t in range(6)])
    assert observables.polyakov_field(u)[1, 2, 0] == pytest.approx(np.trace(line) / 3, abs=1e-14)


@pytest.mark.parametrize("group", GROUPS)
def test_constant_abelian_field(group: str) -> None:
    """Loops of a constant field are cosines of the flux; spatial flux sums over paths."""
    extents = (6, 8, 4, 10)
    electric = {(0, 3): 2, (1, 3): -1, (2, 3): 3}
    u = fields.abelian_field(extents, group, {**electric, (0, 1): 1})
    assert is_special_unitary(u)
    q = np.array(CHARGES[group])
    magnetic = angle(extents, (0, 1), 1)
    assert np.allclose(observables.plaquette_field(u, 0, 1), np.cos(q * magnetic).mean())
    omega = [angle(extents, (mu, 3), electric[mu, 3]) for mu in range(3)]
    # Paths of a step differ by the flux between them: their average shrinks each eigenvalue.
    spread: dict[observables.Step, np.ndarray | float] = {
        (1, 0, 0): 1,
        (1, 1, 0): np.cos(q * magnetic / 2),
        (1, -1, 0): np.cos(q * magnetic / 2),
        (2, 1, 0): (1 + 2 * np.cos(q * magnetic)) / 3,
        (0, 2, 1): 1,
        (1, -1, 1): np.cos(q * magnetic / 2),
    }
    for step, factor in spread.items():
        for r, t in ((1, 1), (2, 3), (3, 5)):
            flux = r * t * sum(o * s for o, s in zip(omega, step, strict=True))
            exact = float(np.mean(np.cos(q * flux) * factor ** (2 * r)))
            assert observables.wilson_loop(u, step, r, t) == pytest.approx(exact, abs=1e-12)


def test_plane_averages_see_the_right_planes() -> None:
    u = fields.abelian_field((4, 4, 4, 4), "su2", {(0, 1): 1, (2, 3): 2})
    value = observables.plaquette(u)
    assert value.spatial == pytest.approx((2 + np.cos(np.pi / 8)) / 3)
    assert value.temporal == pytest.approx((2 + np.cos(np.pi / 4)) / 3)
    assert value.mean == pytest.approx((value.spatial + value.temporal) / 2)


# Smearing


def random_matrices(n: int, rng: np.random.Generator) -> Complex:
    return rng.normal(size=(200, n, n)) + 1j * rng.normal(size=(200, n, n))


@pytest.mark.slow
def test_maximal_projection_is_the_global_maximum(rng: np.random.Generator) -> None:
    """In the frame of the SVD only phases are left: maximise over those from many starts."""
    m = random_matrices(3, rng)[:20]
    p = smearing.project_maximal(m)
    assert is_special_unitary(p)
    for one, best in zip(m, p, strict=True):
        left, s, right = np.linalg.svd(one)
        det = np.angle(np.linalg.det(left @ right))

        def loss(phase: np.ndarray, s: np.ndarray = s, det: float = det) -> float:
            last = -det - phase.sum()
            return -float(s[:2] @ np.cos(phase) + s[2] * np.cos(last))

        starts = rng.uniform(-np.pi, np.pi, size=(10, 2))
        found = min(optimize.minimize(loss, start).fun for start in starts)
        assert np.trace(best @ one.conj().T).real == pytest.approx(-found, abs=1e-9)


@pytest.mark.parametrize("n", [2, 3])
def test_maximal_projection_is_stationary(n: int, rng: np.random.Generator) -> None:
    m = random_matrices(n, rng)
    w = smearing.project_maximal(m) @ dagger(m)
    force = w - dagger(w)
    force -= fields.trace(force)[..., None, None] / n * np.eye(n)
    assert abs(force).max() < 1e-13


def test_projections_of_quaternions_agree(rng: np.random.Generator) -> None:
    m = fields.random_su(2, (3, 50), rng).sum(axis=0)
    exact = m / np.sqrt(np.linalg.det(m))[..., None, None]
    assert np.allclose(smearing.project_maximal(m), exact, atol=1e-14)
    assert np.allclose(smearing.project_unitary(m), exact, atol=1e-14)


def test_unitary_projection_is_the_polar_factor(rng: np.random.Generator) -> None:
    m = random_matrices(3, rng)
    p = smearing.project_unitary(m)
    assert is_special_unitary(p)
    positive = dagger(p) @ m
    positive *= np.exp(-1j * np.angle(fields.trace(positive)))[..., None, None]
    assert np.allclose(positive, dagger(positive), atol=1e-12)
    assert np.linalg.eigvalsh(positive).min() > 0


@pytest.mark.parametrize("group", GROUPS)
def test_ape(group: str, rng: np.random.Generator) -> None:
    u = fields.random_field(EXTENTS, group, rng)
    smeared = smearing.ape(u, 0.2)
    assert is_special_unitary(smeared)
    assert np.array_equal(smeared[..., 3, :, :], u[..., 3, :, :])
    assert observables.plaquette(smeared).spatial > observables.plaquette(u).spatial + 0.1
    w = 0.2
    alpha = 4 * w / (1 + 4 * w)
    assert np.allclose(smearing.ape_alpha(u, alpha), smeared, atol=1e-13)
    every = range(4)
    alpha = 6 * w / (1 + 6 * w)
    assert np.allclose(smearing.ape_alpha(u, alpha, every), smearing.ape(u, w, every), atol=1e-13)
    # One link by hand: U_x at the origin, its staples in the (x, y) and (x, z) planes.
    total = u[0, 0, 0, 0, 0].copy()
    for nu in (1, 2):
        above, below, corner = [0] * 4, [0] * 4, [0, 0, 0, 1]
        above[3 - nu], below[3 - nu], corner[3 - nu] = 1, -1, -1
        total += w * u[0, 0, 0, 0, nu] @ u[(*above, 0)] @ dagger(u[0, 0, 0, 1, nu])
        total += w * dagger(u[(*below, nu)]) @ u[(*below, 0)] @ u[(*corner, nu)]
    assert np.allclose(smeared[0, 0, 0, 0, 0], smearing.project_maximal(total), atol=1e-13)


# Updates


@pytest.mark.parametrize("group", GROUPS)
def test_overrelaxation_keeps_the_action_and_moves(group: str, rng: np.random.Generator) -> None:
    u = fields.random_field(EXTENTS, group, rng)
    v = updates.overrelax(u)
    assert is_special_unitary(v)
    assert observables.plaquette(v).mean == pytest.approx(observables.plaquette(u).mean, abs=1e-13)
    assert abs(v - u).max(axis=(-1, -2)).min() > 1e-3
    half = updates.overrelax_half(u, 1, 1)
    moved = abs(half - u).max(axis=(-1, -2)) > 1e-10
    expected = np.zeros(moved.shape, dtype=bool)
    expected[..., 1] = fields.parity(EXTENTS) == 1
    assert np.array_equal(moved, expected)


def test_su2_overrelaxation_is_the_reflection(rng: np.random.Generator) -> None:
    u = fields.random_field(EXTENTS, "su2", rng)
    k, v = updates.norm_and_direction(observables.staple(u, 2))
    assert is_special_unitary(v)
    assert np.allclose(k[..., None, None] * v, observables.staple(u, 2), atol=1e-13)
    reflected = dagger(v) @ dagger(u[..., 2, :, :]) @ dagger(v)
    even = fields.parity(EXTENTS) == 0
    half = updates.overrelax_half(u, 2, 0)[..., 2, :, :]
    assert np.allclose(half[even], reflected[even], atol=1e-13)
    assert np.allclose(updates.overrelax_half(updates.overrelax_half(u, 2, 0), 2, 0), u, atol=1e-12)


def test_quaternions(rng: np.random.Generator) -> None:
    q = rng.normal(size=(2, 10, 4))
    assert np.allclose(updates.quaternion(updates.embed(q, 0, 2, 3), 0, 2), q)
    i, j, k = np.eye(4)[1:]
    # The matrices are i sigma_1, i sigma_2, i sigma_3, and i sigma_1 i sigma_2 = -i sigma_3.
    assert np.allclose(updates.multiply(i, j), -k)
    assert np.allclose(updates.embed(i), [[0, 1j], [1j, 0]])
    w = random_matrices(3, rng)[0]
    g = q[0] / np.linalg.norm(q[0], axis=-1, keepdims=True)
    first, last = (updates.embed(g, 1, 2, 3) @ w)[[0, -1]]
    difference = np.trace(first - last).real
    products = updates.multiply(g, updates.quaternion(w, 1, 2)[None])[..., 0]
    assert difference == pytest.approx(2 * (products[0] - products[-1]), abs=1e-13)


@pytest.mark.parametrize("group", GROUPS)
def test_heatbath_places_the_given_quaternion(group: str, rng: np.random.Generator) -> None:
    u = fields.random_field(EXTENTS, group, rng)
    n, shape = u.shape[-1], EXTENTS[::-1]
    subgroups = len(updates.SUBGROUPS[n])
    a0 = rng.uniform(-1, 1, size=(subgroups, *shape))
    unit = rng.normal(size=(subgroups, *shape, 3))
    unit /= np.linalg.norm(unit, axis=-1, keepdims=True)
    alphas = []
    given = updates.given(a0, unit)

    def draw(number: int, alpha: np.ndarray) -> np.ndarray:
        alphas.append(alpha)
        return given(number, alpha)

    beta = 2.4
    v = updates.heatbath_half(u, beta, 3, 0, draw)
    assert is_special_unitary(v)
    even = fields.parity(EXTENTS) == 0
    # The last subgroup's part of U A is now |.| a, and alpha its norm times 2 beta / N.
    w = v[..., 3, :, :] @ observables.staple(u, 3)
    q = updates.quaternion(w, *updates.SUBGROUPS[n][-1])[even]
    norm = np.linalg.norm(q, axis=-1)
    assert np.allclose(2 * beta / n * norm, alphas[-1][even])
    assert np.allclose(q / norm[:, None], given(subgroups - 1, alphas[-1])[even], atol=1e-10)


# Distributions


@pytest.mark.parametrize("alpha", [1e-6, 0.3, 5.0, 30.0, 1e3, 1e4])
def test_a0_distribution_function(alpha: float) -> None:
    def density(depth: float) -> float:
        return float(np.sqrt(depth * (2 - depth)) * np.exp(-alpha * depth))

    def integral(lower: float, upper: float) -> float:
        return float(integrate.quad(density, lower, upper, epsabs=0, epsrel=1e-13, limit=500)[0])

    end = min(2, 60 / alpha)
    for depth in np.array([0.02, 0.1, 0.3, 0.6, 0.95]) * min(2, 5 / alpha):
        exact = integral(depth, end) / integral(0, end)
        assert distributions.a0_cdf(1 - depth, alpha) == pytest.approx(exact, abs=1e-11)
    assert distributions.a0_cdf([-1, 1], alpha) == pytest.approx([0, 1], abs=1e-14)
    grid = 1 - np.linspace(0, end, 4001)
    mean = 1 - integrate.simpson(distributions.a0_cdf(grid, alpha)[::-1], x=grid[::-1])
    exact = distributions.su2_character_ratio(alpha)
    assert mean == pytest.approx(exact, abs=1e-5 * end)


def test_strong_coupling_series() -> None:
    """Taylor coefficients of the SU(2) plaquette (Balian, Drouffe, Itzykson)."""
    coefficients = [1 / 4, -1 / 96, 7 / 1536, -31 / 23040, 4451 / 8847360, -264883 / 1486356480]
    for beta in (0.1, 0.3, 0.5):
        series = sum(c * beta ** (2 * n + 1) for n, c in enumerate(coefficients))
        value = distributions.su2_strong_coupling_plaquette(beta)
        assert value == pytest.approx(series, abs=1e-4 * beta**13 + 1e-15)


# Random numbers


@pytest.mark.parametrize(
    ("counter", "key", "answer"),
    [
        ("00000000 " * 4, "00000000 " * 2, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ("ffffffff " * 4, "ffffffff " * 2, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        (
            "243f6a88 85a308d3 13198a2e 03707344",
            "a4093822 299f31d0",
            "d16cfe09 94fdcceb 5001e420 24126ea1",
        ),
    ],
)
def test_philox_known_answers(counter: str, key: str, answer: str) -> None:
    def words(text: str) -> np.ndarray:
        return np.array([int(word, 16) for word in text.split()], dtype=np.uint32)

    many = np.broadcast_to(words(counter), (3, 5, 4))
    assert np.array_equal(
        randoms.philox4x32(many, words(key)), np.broadcast_to(words(answer), (3, 5, 4))
    )


def test_lcg() -> None:
    start = randoms.lcg_start(4)
    assert start == [1, 16807, 282475249, 1622650073]
    assert randoms.lcg_next(1) == 1664525 + 1013904223
    assert randoms.lcg_next(282475249) == (1664525 * 282475249 + 1013904223) % (2**31 - 1)
    # Park and Miller's check of their generator: x_10000 from 1.
    assert randoms.lcg_start(10001)[10000] == 1043618065


def test_ranlux_known_answers() -> None:
    """The C++ standard's 10000th values, and the first ones that James printed."""
    assert next(islice(randoms.ranlux24_base(), 9999, None)) == 7937952
    assert next(islice(randoms.ranlux24(), 9999, None)) == 9901578
    first = np.array(list(islice(randoms.ranlux(), 5))) / 2**24
    assert np.allclose(
        first, [0.53981817, 0.76155043, 0.06029940, 0.79600263, 0.30631220], atol=1e-8
    )


def test_ranlux_luxury_only_skips() -> None:
    raw = list(islice(randoms.ranlux(p=24), 389 * 3))
    for p in (48, 97, 223, 389):
        assert list(islice(randoms.ranlux(p=p), 72)) == [
            raw[block * p + i] for block in range(3) for i in range(24)
        ]
