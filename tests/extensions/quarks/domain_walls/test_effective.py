"""Effective propagators of domain-wall quarks: dense matrices, free quarks and Ward identities."""

from itertools import pairwise, product

import numpy as np
import pytest

from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import UsageError
from gauge_mc.extensions.quarks.operators import domain_wall as effective
from gauge_mc.extensions.quarks.operators.domain_wall import (
    DomainWall,
    effective_propagator,
    midpoint_correlator,
    optimal_weights,
    residual_mass,
)
from gauge_mc.extensions.quarks.solvers import SolverParameters, solve
from gauge_mc.extensions.quarks.spectroscopy.contractions import meson, spin_tensor
from gauge_mc.extensions.quarks.vectors import SpinorField
from gauge_mc.extensions.quarks.vectors.basis import GAMMA, GAMMA_5
from gauge_mc.fields.field import Field
from tests.domain.conftest import GPUS
from tests.extensions.quarks.links import check_divisions, field_of
from tests.extensions.quarks.reference import dirac, walls
from tests.reference.fields import random_field

LATTICE = Lattice(2, 2, 2, 4)
LONG = Lattice(2, 2, 2, 6)
PHASES = [np.exp(0.2j * np.pi), np.exp(-0.7j), 1, -1]
HEIGHT = 1.7

KINDS = {
    "shamir": (4, {}),
    "moebius": (5, {"b": 1.5, "c": 0.5}),
    "borici": (6, {"b": 1.0, "c": 1.0}),
    "symmetric weights": (4, {"b": 1.4, "c": 0.9, "weights": [0.5, 1.2, 1.2, 0.5]}),
    "weights": (4, {"b": 1.4, "c": 0.9, "weights": [0.5, 1.2, 2.0, 0.8]}),
    "one site": (1, {"b": 1.5, "c": 0.5}),
}
EVEN_MOEBIUS = (6, {"b": 1.5, "c": 0.5})
SYMMETRIC = ["shamir", "borici", "symmetric weights"]


def operator_on(links, kind, mass, device):
    extent, coefficients = kind
    field = field_of(links, device)
    return DomainWall(field, mass, extent, HEIGHT, boundary=PHASES, **coefficients)


def solution(links, kind, mass, sources, device, tolerance=1e-14):
    """The effective propagator for some sources, in double precision."""
    operator = operator_on(links, kind, mass, device)
    b = SpinorField.from_numpy(operator.field, sources)
    return effective_propagator(operator, b, "cg", SolverParameters(tolerance, inner="double"))


def random_sources(count, rng, lattice=LATTICE):
    return np.stack([dirac.random_spinor(lattice.extents, 2, rng) for _ in range(count)])


@pytest.mark.longer
@pytest.mark.parametrize("name", KINDS)
def test_against_the_inverse_of_a_dense_matrix(name, best_device, rng):
    """Of the effective operator in four dimensions, at this extent of the fifth direction."""
    (extent, coefficients), mass = KINDS[name], 0.3
    links = random_field(LATTICE.extents, "su2", rng)
    sources = random_sources(2, rng)
    found = solution(links, KINDS[name], mass, sources, best_device)
    matrix, _, _ = walls.effective(links, extent, mass, HEIGHT, PHASES, **coefficients)
    inverse = np.linalg.inv(matrix)
    expected = (inverse - np.eye(len(matrix))) / (1 - mass) @ sources.reshape(2, -1).T
    error = np.linalg.norm(found.quark.columns.to_numpy().reshape(2, -1).T - expected)
    # The tolerance is that of the system with the fifth direction, whose condition number is more.
    assert error < 100 * 1e-14 * np.linalg.cond(matrix) * np.linalg.norm(expected)


@pytest.mark.longer
def test_it_approaches_the_overlap_operator(best_device, rng):
    """As the sign function does, with b = c = 1 and weights that are all 1 or optimal."""
    links, mass = random_field(LATTICE.extents, "su2", rng), 0.2
    _, values, five = walls.effective(links, 1, mass, HEIGHT, PHASES, b=1.0, c=1.0)
    kappa = 1 / (8 - 2 * HEIGHT)
    hermitian = five @ dirac.dense(links, kappa, PHASES) / (2 * kappa)
    eigenvalues, vectors = np.linalg.eigh(hermitian)
    sign = (vectors * np.sign(eigenvalues)) @ vectors.conj().T
    overlap = (1 + mass) / 2 * np.eye(len(sign)) + (1 - mass) / 2 * five @ sign
    sources, errors = random_sources(1, rng), {}
    sizes = abs(values)
    for optimal in (False, True):
        for extent in (4, 8, 16):
            weights = optimal_weights(extent, sizes.min(), sizes.max()) if optimal else None
            kind = extent, {"b": 1.0, "c": 1.0, "weights": weights}
            q = solution(links, kind, mass, sources, best_device).quark.columns.to_numpy().ravel()
            x = (1 - mass) * q + sources.ravel()  # D^-1 times the source
            w = np.ones(extent) if weights is None else np.array(weights)
            t = np.prod([(1 - one * sizes) / (1 + one * sizes) for one in w], axis=0)
            bound = (1 - mass) / 2 * np.abs((1 - t) / (1 + t) - 1).max() * np.linalg.norm(x)
            rest = np.linalg.norm(overlap @ x - sources.ravel())
            assert rest < 1.001 * bound + 1e-11 * np.linalg.norm(sources)
            errors[optimal, extent] = rest / np.linalg.norm(sources)
    for optimal in (False, True):
        assert errors[optimal, 16] < 0.5 * errors[optimal, 8] < 0.3 * errors[optimal, 4]
    assert errors[True, 16] < 0.1 * errors[False, 16]


@pytest.mark.parametrize(
    ("extent", "least", "most"),
    [(1, 0.5, 2.0), (2, 0.1, 3.0), (7, 0.1, 6.0), (16, 0.02, 6.2), (16, 1e-4, 6.0)],
)
def test_optimal_weights(extent, least, most):
    """Chebyshev: the best approximation has L + 1 extrema of one size, with alternating signs."""
    w = optimal_weights(extent, least, most)
    x = np.geomspace(least, most, 200_001)
    t = np.prod([(1 - one * x) / (1 + one * x) for one in w], axis=0)
    deviation = (1 - t) / (1 + t) - 1
    steps = np.diff(deviation)
    places = [0, *(1 + np.flatnonzero(steps[1:] * steps[:-1] <= 0)), len(x) - 1]
    extrema = deviation[places]
    assert len(extrema) == extent + 1
    assert (extrema[1:] * extrema[:-1] < 0).all()
    assert np.ptp(abs(extrema)) < 1e-6 * abs(extrema).max()
    assert max(w) < 1 / least
    assert min(w) > 1 / most


def test_an_operator_with_optimal_weights(best_device):
    field = Field.cold(Lattice(2, 2, 2, 2), "su2", "double", best_device)
    operator = DomainWall(field, 0.1, 6, HEIGHT, b=1.0, c=1.0, optimal=(0.3, 6.3))
    assert np.array_equal(operator.weights, optimal_weights(6, 0.3, 6.3))


@pytest.mark.parametrize("values", [(0, 0.1, 1.0), (4, 0.0, 1.0), (4, 1.0, 0.5), (4, 1.0, np.inf)])
def test_weights_that_are_refused(values):
    with pytest.raises(UsageError, match="give"):
        optimal_weights(*values)


@pytest.mark.first_quick
@pytest.mark.parametrize("name", KINDS)
def test_the_mass_is_added(name, best_device, rng):
    """S(m1) - S(m2) = (m2 - m1) S(m1) S(m2), since the inverse of S is D_c + m."""
    links, (one, other) = random_field(LATTICE.extents, "su2", rng), (0.3, 0.7)
    sources = random_sources(1, rng)

    def multiply(mass, array):
        found = solution(links, KINDS[name], mass, array, best_device, 5e-15)
        return found.quark.columns.to_numpy()

    heavy = multiply(other, sources)
    left, right = multiply(one, sources) - heavy, (other - one) * multiply(one, heavy)
    assert np.linalg.norm(left - right) < 1e-13 * np.linalg.norm(sources)


@pytest.mark.longer
@pytest.mark.parametrize("name", SYMMETRIC)
def test_the_ward_identity_of_a_sum_over_all_sites(name, best_device, rng):
    """Re <b, S b> = m |S b|^2 + |midpoint|^2, at any extent of the fifth direction."""
    links, mass = random_field(LATTICE.extents, "su2", rng), 0.1
    sources = random_sources(2, rng)
    found = solution(links, KINDS[name], mass, sources, best_device)
    vectors = found.quark.columns.to_numpy(), found.midpoint.columns.to_numpy()
    for b, q, middle in zip(sources, *vectors, strict=True):
        right = mass * np.linalg.norm(q) ** 2 + np.linalg.norm(middle) ** 2
        assert abs(np.vdot(b, q).real / right - 1) < 1e-11


@pytest.mark.longer
@pytest.mark.parametrize("name", ["shamir", "borici", "even moebius"])
@pytest.mark.parametrize("place", [0, 4])
def test_the_ward_identities_of_every_time_slice(name, place, best_device, rng):
    """A(t) - A(t - 1) = 2 m P(t) + 2 J_5q(t), and V(t) does not depend on t, off the source.

    D_w spreads the source to the next time slices unless c is 0.
    """
    kind, mass, lattice = {**KINDS, "even moebius": EVEN_MOEBIUS}[name], 0.1, LONG
    links = random_field(lattice.extents, "su2", rng)
    sources = random_sources(2, rng, lattice)
    sources[:, np.arange(lattice.t) != place] = 0
    operator = operator_on(links, kind, mass, best_device)
    request = SolverParameters(1e-14, inner="double")
    b = SpinorField.from_numpy(operator.field, sources)
    found = effective_propagator(operator, b, "cg", request, (0, 0, 0, place))
    pion, middle = (
        np.roll((np.abs(one.columns.to_numpy()) ** 2).sum(axis=(0, 2, 3, 4, 5, 6)), -place)
        for one in (found.quark, found.midpoint)
    )
    left = found.axial - np.roll(found.axial, 1)
    off = slice(2, -1) if kind[1] else slice(1, None)
    rest = left - 2 * mass * pion - 2 * middle
    assert np.abs(rest[off]).max() < 1e-11 * np.abs(left).max()
    assert np.abs((found.vector - np.roll(found.vector, 1))[off]).max() < 1e-11 * np.abs(left).max()
    assert np.abs(found.vector).max() > 1e-3 * np.abs(left).max()
    assert np.abs(left).min() > 1e-3 * np.abs(left).max()


@pytest.mark.slow
def test_the_axial_current_of_free_quarks(best_device):
    """At rest the kernel D_w is ip - M5, and gamma_5 S(H) is ip / M5 - 1 up to order p^2.

    So the inverse of the propagator with b = c is m + ip / (2 M5), and the local current is 2 M5
    times the conserved one, up to the square of the quark mass 2 M5 m.
    """
    lattice, mass = Lattice(2, 2, 2, 24), 0.02
    field = Field.cold(lattice, "su2", "double", best_device)
    operator = DomainWall(field, mass, 12, HEIGHT, b=1.0, c=1.0)
    sources = np.zeros((8, 24, 2, 2, 2, 4, 2), complex)
    sources[:, 0] = np.eye(8).reshape(8, 1, 1, 1, 4, 2)
    b = SpinorField.from_numpy(field, sources)
    found = effective_propagator(operator, b, "cg", SolverParameters(1e-12, inner="double"))
    local = meson(spin_tensor(found.quark, found.quark), GAMMA[3] @ GAMMA_5, GAMMA_5).real
    here, before = found.axial[1:-1], found.axial[:-2]  # from t to t + 1, and from t - 1 to t
    ratios = (before + here) / (4 * local[1:-1]) + here / (local[1:-1] + local[2:])
    ratios *= 2 * HEIGHT
    assert abs(ratios[5:10] - 1).max() < (2 * HEIGHT * mass) ** 2
    odd = solution(field.to_numpy(), KINDS["moebius"], 0.1, sources, best_device)
    assert odd.axial is None


@pytest.mark.longer
def test_correlators_at_the_midpoint(best_device, rng):
    """Those of the pion and of the midpoint are sums of squares, and m_res is their ratio."""
    links = random_field(LATTICE.extents, "su2", rng)
    sources = np.zeros((8, 4, 2, 2, 2, 4, 2), complex)
    sources[:, 0, 0, 0, 0] = np.eye(8).reshape(8, 4, 2)
    found = solution(links, KINDS["shamir"], 0.1, sources, best_device)
    pion, middle = (
        (np.abs(one.columns.to_numpy()) ** 2).sum(axis=(0, 2, 3, 4, 5, 6))
        for one in (found.quark, found.midpoint)
    )
    np.testing.assert_allclose(midpoint_correlator(found), middle, rtol=1e-12)
    np.testing.assert_allclose(residual_mass(found), middle / pion, rtol=1e-12)
    assert found.iterations > 8
    assert found.residual <= 1e-14


@pytest.mark.longer
@pytest.mark.parametrize("name", ["shamir", "even moebius"])
@pytest.mark.parametrize(
    "together", [3, *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 7))]
)
def test_columns_that_are_solved_together(together, name, best_device, rng, monkeypatch):
    """They are those solved one by one, with as many solves as are needed, and sums of all."""
    links = random_field(LATTICE.extents, "su2", rng)
    operator = operator_on(links, {**KINDS, "even moebius": EVEN_MOEBIUS}[name], 0.1, best_device)
    sources, solves = SpinorField.from_numpy(operator.field, random_sources(7, rng)), []

    def counted(operator, source, *others):
        solves.append(source.count)
        return solve(operator, source, *others)

    monkeypatch.setattr(effective, "solve", counted)
    request = SolverParameters(1e-14, inner="double")
    alone, several = (
        effective_propagator(operator, sources, "cg", request, together=count)
        for count in (1, together)
    )
    full, rest = divmod(7, together)
    assert solves == 7 * [1] + full * [together] + [rest] * (rest > 0)
    assert several.iterations < alone.iterations
    assert several.residual <= 1e-14
    for kind in ("quark", "midpoint"):
        one, other = (getattr(found, kind).columns.to_numpy() for found in (alone, several))
        assert np.abs(one - other).max() < 1e-11 * np.abs(one).max()
    for kind in ("axial", "vector"):
        one, other = (getattr(found, kind) for found in (alone, several))
        assert np.abs(one - other).max() < 1e-11 * np.abs(several.axial).max()


@pytest.mark.parametrize("name", ["moebius", "weights", "one site"])
def test_without_a_midpoint(name, best_device, rng):
    links = random_field(LATTICE.extents, "su2", rng)
    found = solution(links, KINDS[name], 0.1, random_sources(1, rng), best_device)
    with pytest.raises(UsageError, match="The midpoint needs an even number of slices"):
        residual_mass(found)


def sign_over_h(square, extent, weights=None):
    """S(h) / h as a function of h^2, which may be negative."""
    w = np.ones(extent) if weights is None else np.array(weights)
    h = np.sqrt(complex(square))
    t = np.prod((1 - w * h) / (1 + w * h))
    return ((1 - t) / (1 + t) / h).real


def ratios(d, b=1.0, c=0.0):
    """(b + c) D_w / (2 + (b - c) D_w)."""
    return (b + c) * d / (2 + (b - c) * d)


@np.errstate(divide="ignore", invalid="ignore")  # where the effective operator is infinite
def poles(extent, mass, weights=None, **coefficients):
    """The energies E < 1 of free quarks at rest: S^-1 is 0 at p_t = i E or pi + i E.

    D_w is 1 -+ cosh E - M5 - s sinh E with s = 1 and -1 for the two values of gamma_t. H^2 is the
    product of both X = (b + c) D_w / (2 + (b - c) D_w), so that the effective operator is that of
    gamma_5 H S(H) / H with gamma_5 H = X.
    """

    def inverse(energy, sign, side):
        d = [1 - side * np.cosh(energy) - HEIGHT - s * np.sinh(energy) for s in (sign, -sign)]
        x = [ratios(one, **coefficients) for one in d]
        return (1 + mass) + (1 - mass) * x[0] * sign_over_h(x[0] * x[1], extent, weights)

    found = []
    for sides in product((1, -1), repeat=2):
        for low, high in pairwise(np.linspace(1.234e-4, 1, 1000)):
            if inverse(low, *sides) * inverse(high, *sides) < 0:
                for _ in range(50):
                    middle = (low + high) / 2
                    left = inverse(middle, *sides) * inverse(low, *sides) <= 0
                    low, high = (low, middle) if left else (middle, high)
                if abs(inverse(low, *sides)) < 1e-6:  # or else it is infinite there
                    found.append(low)
    return sorted(found)


FREE = {**KINDS, "optimal": (6, {"b": 1.0, "c": 1.0, "weights": optimal_weights(6, 0.3, 6.3)})}


@pytest.mark.longer
@pytest.mark.parametrize("name", FREE)
def test_free_quarks(name, best_device):
    """The propagator at rest is a sum over p_t, and falls with the energy of the nearest pole."""
    (extent, coefficients), mass, lattice = FREE[name], 0.2, Lattice(2, 2, 2, 64)
    field = Field.cold(lattice, "su2", "double", best_device)
    operator = DomainWall(field, mass, extent, HEIGHT, **coefficients)
    source = np.zeros((1, 64, 2, 2, 2, 4, 2), complex)
    source[0, 0, ..., 0, 0] = 1
    b = SpinorField.from_numpy(field, source)
    q = effective_propagator(operator, b, "cg", SolverParameters(1e-14, inner="double")).quark
    at_rest = q.columns.to_numpy()[0].mean(axis=(1, 2, 3))[..., 0]
    weights = coefficients.get("weights")
    moebius = {name: value for name, value in coefficients.items() if name != "weights"}
    expected = np.zeros((64, 4), complex)
    for p in np.pi * (2 * np.arange(64) + 1) / 64:
        d = (1 - np.cos(p) - HEIGHT) * np.eye(4) + 1j * np.sin(p) * dirac.GAMMA[3]
        x = (
            (moebius.get("b", 1) + moebius.get("c", 0))
            * d
            @ np.linalg.inv(2 * np.eye(4) + (moebius.get("b", 1) - moebius.get("c", 0)) * d)
        )
        square = (dirac.GAMMA5 @ x @ dirac.GAMMA5 @ x)[0, 0].real
        matrix = (1 + mass) / 2 * np.eye(4)
        matrix = matrix + (1 - mass) / 2 * x * sign_over_h(square, extent, weights)
        s = (np.linalg.inv(matrix) - np.eye(4)) / (1 - mass)
        expected += np.exp(1j * p * np.arange(64))[:, None] * s[:, 0] / 64
    assert np.abs(at_rest - expected).max() < 1e-12 * np.abs(expected).max()
    if name == "one site":
        return  # there is no light quark
    energies = poles(extent, mass, weights, **moebius)
    size = np.linalg.norm(at_rest, axis=1)
    others = np.exp(-20 * (energies[1] - energies[0])) if len(energies) > 1 else 0
    assert abs(np.log(size[20] / size[21]) - energies[0]) < 10 * others + 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("kind_of_device", ["cpu-16", *GPUS])
def test_slabs_give_the_same_bytes(kind_of_device, rng):
    lattice = Lattice(4, 2, 2, 10)
    links, sources = random_field(lattice.extents, "su2", rng), random_sources(1, rng, lattice)

    def calculate(devices):
        one = solution(links, KINDS["borici"], 0.1, sources, devices, 1e-8)
        fields = one.quark.columns.to_numpy(), one.midpoint.columns.to_numpy()
        return *fields, one.axial, one.vector

    check_divisions(kind_of_device, [(10,), (4, 6), (2, 3, 5)], calculate)
