"""Domain-wall operators against NumPy and dense matrices, and what they must fulfil."""

import numpy as np
import pytest
import scipy.linalg

from gauge_mc.devices.cpu.device import CpuDevice
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.extensions.quarks import domain_walls
from gauge_mc.extensions.quarks.domain_walls import PreparedProduct
from gauge_mc.extensions.quarks.hopping import ADDED, DIVIDED, EVEN, ODD, SOLVED, WHOLE
from gauge_mc.extensions.quarks.operators.domain_wall import DomainWall
from gauge_mc.extensions.quarks.solvers import SOLVERS
from gauge_mc.extensions.quarks.vectors import STORAGES, SpinorField, transport
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.updates.heatbath import heatbath
from tests.domain.conftest import GPUS
from tests.extensions.quarks.links import check_divisions, field_of, largest_difference
from tests.extensions.quarks.reference import dirac, walls
from tests.reference.fields import random_field

LATTICE = Lattice(4, 2, 2, 4)
PHASES = [np.exp(0.2j * np.pi), np.exp(-0.7j), 1, -1]
TOLERANCE = {"double": 2e-14, "single": 3e-6, "half": 3e-3}
"""As those of other operators; the matrices along the fifth direction have elements below 1."""

MASS, HEIGHT = 0.1, 1.7

KINDS = {
    "shamir": (4, {}),
    "moebius": (5, {"b": 1.5, "c": 0.5}),
    "borici": (6, {"b": 1.0, "c": 1.0}),
    "weights": (4, {"b": 1.4, "c": 0.9, "weights": [0.5, 1.2, 2.0, 0.8]}),
    "one site": (1, {}),
}


@pytest.fixture(params=KINDS)
def kind(request):
    """The extent of the fifth direction and the coefficients."""
    return KINDS[request.param]


def made(links, kind, device):
    extent, coefficients = kind
    field = field_of(links, device)
    return DomainWall(field, MASS, extent, HEIGHT, boundary=PHASES, **coefficients)


@pytest.mark.parametrize("storage", STORAGES)
def test_the_formula(group, kind, storage, best_device, rng):
    links, n = random_field(LATTICE.extents, group, rng), int(group[2])
    psi = np.stack([walls.random_spinor(LATTICE.extents, kind[0], n, rng) for _ in range(2)])
    operator = made(links, kind, best_device)
    found = operator.apply(psi, precision=storage)
    expected = [walls.domain_wall(links, x, MASS, HEIGHT, PHASES, **kind[1]) for x in psi]
    assert largest_difference(found, expected) < TOLERANCE[storage]


def test_elements_along_the_fifth_direction_and_bounds_of_their_norms(kind, best_device):
    extent, coefficients = kind
    links = np.broadcast_to(np.eye(3), (2, 2, 2, 2, 4, 3, 3)).astype(complex)
    operator = made(links, kind, best_device)
    exact = np.array(walls.diagonal(extent, MASS, HEIGHT, **coefficients))
    matrix = operator.diagonal_matrix
    assert np.abs(matrix.elements - exact).max() < 1e-14 * np.abs(exact).max()
    adjoint = matrix.with_directions_exchanged().elements
    assert np.abs(adjoint - exact.transpose(0, 2, 1)).max() < 1e-14 * np.abs(exact).max()
    values = np.linalg.svd(exact, compute_uv=False)
    largest, smallest = operator.sizes
    assert values.max() <= largest * (1 + 1e-14) < 3 * values.max()
    assert values.min() / 3 < smallest <= values.min() * (1 + 1e-14)


SHAPES = [(4, 4, 4, 4), (2, 2, 2, 2), (4, 6, 2, 8), (16, 4, 2, 6)]


@pytest.mark.longer
@pytest.mark.parametrize("extents", SHAPES, ids=str)
def test_other_lattices(extents, best_device, rng):
    kind = KINDS["weights"]
    links = random_field(extents, "su3", rng)
    psi = walls.random_spinor(extents, kind[0], 3, rng)
    found = made(links, kind, best_device).apply(psi)
    expected = walls.domain_wall(links, psi, MASS, HEIGHT, PHASES, **kind[1])
    assert largest_difference(found, expected) < TOLERANCE["double"]


@pytest.mark.first_quick
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("dagger", [False, True])
def test_the_forms_of_a_hop(kind, storage, dagger, best_device, rng):
    """The inverse in closed form, against dense matrices along the fifth direction."""
    extent, coefficients = kind
    links = random_field(LATTICE.extents, "su3", rng)
    operator = made(links, kind, best_device).prepared(storage)
    psi, u = (walls.random_spinor(LATTICE.extents, extent, 3, rng) for _ in range(2))
    up, down = walls.diagonal(extent, MASS, HEIGHT, **coefficients)
    a = [up.T, down.T] if dagger else [up, down]
    inverse = [np.linalg.inv(one) for one in a]
    five = [dirac.spin(dirac.GAMMA5, one) if dagger else one for one in psi]
    d = np.stack([dirac.hopping(links, one, PHASES) for one in five])
    d = dirac.spin(dirac.GAMMA5, d) if dagger else d
    expected = {
        DIVIDED: walls.along(inverse, d),
        ADDED: u - 0.7 * walls.along(inverse, d),
        WHOLE: walls.along(a, u) - 0.7 * d,
        SOLVED: walls.along(inverse, u - 0.7 * d),
    }
    source, other = (
        SpinorField.from_numpy(operator.operator.field, one, storage, fifth=extent)
        for one in (psi, u)
    )
    target = source.like()
    for form, exact in expected.items():
        for own in (EVEN, ODD):
            operator.prepare(target, source, own, form, other, dagger)(-0.7)
        assert largest_difference(target.to_numpy()[0], exact) < TOLERANCE[storage]
        again = SpinorField.from_numpy(operator.operator.field, u, storage, fifth=extent)
        if form == ADDED and storage == "half":
            continue
        for own in (EVEN, ODD):
            operator.prepare(again, source, own, form, again, dagger)(-0.7)
        assert np.array_equal(again.to_numpy(), target.to_numpy()) or form == ADDED
        assert largest_difference(again.to_numpy()[0], exact) < TOLERANCE[storage]


@pytest.mark.parametrize("group", ["su2", "su3"])
def test_the_reference_is_the_dense_matrix(group, kind, rng):
    extent, coefficients = kind
    links = random_field((2, 2, 2, 2), group, rng)
    psi = walls.random_spinor((2, 2, 2, 2), extent, int(group[2]), rng)
    matrix = walls.dense(links, extent, MASS, HEIGHT, PHASES, **coefficients)
    expected = walls.domain_wall(links, psi, MASS, HEIGHT, PHASES, **coefficients)
    assert largest_difference(matrix @ psi.ravel(), expected.ravel()) < 1e-13


@pytest.mark.longer
def test_against_the_inverse_of_a_dense_matrix(kind, best_device, rng):
    extent, coefficients = kind
    lattice = Lattice(2, 2, 2, 4)
    links = random_field(lattice.extents, "su2", rng)
    psi = walls.random_spinor(lattice.extents, extent, 2, rng)
    matrix = walls.dense(links, extent, MASS, HEIGHT, PHASES, **coefficients)
    expected, condition = solution(matrix, psi.ravel())
    for solver in SOLVERS:
        found = made(links, kind, best_device).solve(psi, 1e-12, solver)
        error = np.linalg.norm(found.ravel() - expected)
        assert error < 1e-12 * condition * np.linalg.norm(expected)


def solution(matrix, psi):
    """The solution of a dense matrix by its decomposition, and its condition number (norm 1)."""
    decomposed = scipy.linalg.lu_factor(matrix)
    inverse, _ = scipy.linalg.lapack.zgecon(decomposed[0], np.linalg.norm(matrix, 1))
    return scipy.linalg.lu_solve(decomposed, psi), 1 / inverse


LARGER = {
    # lattice, group, and kind: of the extent of the fifth direction depends the size of the matrix
    "SU(3) on 4x2^3": (Lattice(4, 2, 2, 2), "su3", KINDS["weights"]),
    "SU(2) on 4^4": (Lattice(4, 4, 4, 4), "su2", (2, {"b": 1.5, "c": 0.5, "weights": [0.7, 1.3]})),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["SU(3) on 4x2^3", pytest.param("SU(2) on 4^4", marks=pytest.mark.every)]
)
def test_larger_dense_matrices_and_their_inverses(name, best_device, rng):
    """The product with every element of the matrix, and a solution by its decomposition."""
    lattice, group, (extent, coefficients) = LARGER[name]
    links, n = random_field(lattice.extents, group, rng), int(group[2])
    psi = walls.random_spinor(lattice.extents, extent, n, rng)
    operator = made(links, (extent, coefficients), best_device)
    matrix = walls.dense(links, extent, MASS, HEIGHT, PHASES, **coefficients)
    assert largest_difference(operator.apply(psi).ravel(), matrix @ psi.ravel()) < 1e-13
    expected, condition = solution(matrix, psi.ravel())
    found = operator.solve(psi, 1e-12, "cg").ravel()
    error = np.linalg.norm(found - expected) / np.linalg.norm(expected)
    assert error < 1e-12 * condition
    assert condition < 1e4


@pytest.mark.first_quick
@pytest.mark.parametrize("inner", STORAGES)
@pytest.mark.parametrize("solver", SOLVERS)
def test_the_true_residual(solver, inner, kind, best_device, rng):
    """Of several right-hand sides together, one of which is 0; in units of the weights."""
    extent, coefficients = kind
    links = random_field(LATTICE.extents, "su3", rng)
    operator = made(links, kind, best_device)
    source = np.stack([walls.random_spinor(LATTICE.extents, extent, 3, rng) for _ in range(3)])
    source[1] = 0
    found = operator.solve(source, 1e-10, solver, inner=inner)
    root = np.sqrt(coefficients.get("weights", np.ones(extent))).reshape(-1, *(1,) * 6)
    for x, b in zip(found, source, strict=True):
        rest = b - walls.domain_wall(links, x, MASS, HEIGHT, PHASES, **coefficients)
        assert np.linalg.norm(rest / root) <= 1.001e-10 * np.linalg.norm(b / root)
    assert not found[1].any()


@pytest.mark.parametrize("reduced", [False, True])
def test_the_adjoint(reduced, kind, best_device, rng):
    """Of the operator that solvers see, on all sites and on the even ones."""
    extent, _ = kind
    links = random_field(LATTICE.extents, "su3", rng)
    operator = made(links, kind, best_device)
    seen = operator.reduced(True) if reduced else operator.prepared()
    vectors = [walls.random_spinor(LATTICE.extents, extent, 3, rng) for _ in range(2)]
    parity = EVEN if reduced else None
    chi, psi = (
        SpinorField.from_numpy(operator.field, one, parity=parity, fifth=extent) for one in vectors
    )
    left, right = psi.like(), psi.like()
    seen.apply(left, psi)()
    seen.apply(right, chi, dagger=True)()
    products = (np.vdot(chi.to_numpy(), left.to_numpy()), np.vdot(right.to_numpy(), psi.to_numpy()))
    sizes = np.linalg.norm(chi.to_numpy()) * np.linalg.norm(psi.to_numpy())
    assert abs(products[0] - products[1]) < 1e-14 * sizes


def test_the_adjoint_of_the_operator_itself(kind, best_device, rng):
    links = random_field(LATTICE.extents, "su3", rng)
    chi, psi = (walls.random_spinor(LATTICE.extents, kind[0], 3, rng) for _ in range(2))
    operator = made(links, kind, best_device)
    left = np.vdot(chi, operator.apply(psi))
    right = np.vdot(operator.apply(chi, dagger=True), psi)
    assert abs(left - right) < 1e-14 * np.linalg.norm(psi) * np.linalg.norm(chi)


@pytest.mark.parametrize("weights", [None, [0.5, 1.2, 1.2, 0.5]])
@pytest.mark.parametrize(("b", "c"), [(1.0, 0.0), (1.5, 0.5), (1.0, 1.0)])
def test_gamma_5_and_reflection(b, c, weights, best_device, rng):
    """gamma_5 R M gamma_5 R = M^dagger if the weights are those of the reflected direction."""
    links = random_field(LATTICE.extents, "su3", rng)
    kind = 4, {"b": b, "c": c, "weights": weights}
    operator = made(links, kind, best_device).prepared()
    psi = walls.random_spinor(LATTICE.extents, 4, 3, rng)

    def product(array, dagger=False):
        source = SpinorField.from_numpy(operator.operator.field, array, fifth=4)
        target = source.like()
        operator.apply(target, source, dagger)()
        return target.to_numpy()[0]

    reflected = walls.gamma5(product(walls.gamma5(psi)))
    assert largest_difference(reflected, product(psi, dagger=True)) < 1e-14


@pytest.mark.slow
@pytest.mark.parametrize("kind_of_device", ["cpu-16", *GPUS])
@pytest.mark.parametrize("solver", SOLVERS)
def test_slabs_give_the_same_bytes(solver, kind_of_device, rng):
    lattice, extent = Lattice(4, 2, 2, 10), 4
    links = random_field(lattice.extents, "su3", rng)
    source = np.stack([walls.random_spinor(lattice.extents, extent, 3, rng) for _ in range(2)])

    def calculate(devices):
        return made(links, KINDS["weights"], devices).solve(source, 1e-8, solver, inner="half")

    check_divisions(kind_of_device, [(10,), (4, 6), (2, 3, 5)], calculate)


def test_conjugate_gradients_are_the_usual_solver(best_device, rng):
    links = random_field(LATTICE.extents, "su3", rng)
    operator = made(links, KINDS["shamir"], best_device)
    source = walls.random_spinor(LATTICE.extents, 4, 3, rng)
    assert np.array_equal(operator.solve(source), operator.solve(source, solver="cg"))


@pytest.mark.slow
def test_threads_give_the_same_bytes(rng):
    links = random_field(LATTICE.extents, "su3", rng)
    source = walls.random_spinor(LATTICE.extents, 4, 3, rng)
    one, two = (
        made(links, KINDS["weights"], CpuDevice(threads)).solve(source, inner="single")
        for threads in (1, 2)
    )
    assert np.array_equal(one, two)


def test_right_hand_sides_do_not_mix(best_device, rng):
    links = random_field(LATTICE.extents, "su3", rng)
    operator = made(links, KINDS["moebius"], best_device)
    psi = np.stack([walls.random_spinor(LATTICE.extents, 5, 3, rng) for _ in range(3)])
    assert np.array_equal(operator.apply(psi), [operator.apply(one) for one in psi])


@pytest.mark.gpu
@pytest.mark.parametrize("storage", STORAGES)
def test_the_division_among_threads_changes_no_byte(storage, gpu, rng, monkeypatch):
    """Threads that work on all parts of a site one after the other, on some, or on one."""
    links = random_field(LATTICE.extents, "su3", rng)
    psi = np.stack([walls.random_spinor(LATTICE.extents, 5, 3, rng) for _ in range(2)])
    found = []
    solved = []
    for threads_at_least, most in ((1, 2), (3 * LATTICE.sites // 2, 5), (10**9, 10)):
        monkeypatch.setattr(transport, "LEAST_THREADS", threads_at_least)
        monkeypatch.setattr(domain_walls, "MOST_THREADS", most)
        operator = made(links, KINDS["moebius"], gpu)
        found.append(operator.apply(psi, precision=storage))
        prepared = operator.prepared(storage)
        source = SpinorField.from_numpy(operator.field, psi, storage, fifth=5)
        target = source.like(parity=EVEN)
        prepared.prepare(target, source, EVEN)()
        solved.append(target.to_numpy())
    expected = [walls.domain_wall(links, x, MASS, HEIGHT, PHASES, b=1.5, c=0.5) for x in psi]
    assert largest_difference(found[0], expected) < TOLERANCE[storage]
    assert all(np.array_equal(found[0], one) for one in found[1:])
    assert all(np.array_equal(solved[0], one) for one in solved[1:])


@pytest.mark.gpu
@pytest.mark.parametrize("storage", STORAGES)
def test_slices_that_threads_keep_or_read_again(storage, gpu, rng, monkeypatch):
    """The inverse after a hop, and alone, with all slices in registers and without."""
    links = random_field(LATTICE.extents, "su3", rng)
    psi = walls.random_spinor(LATTICE.extents, 5, 3, rng)
    up, down = walls.diagonal(5, MASS, HEIGHT, **KINDS["moebius"][1])
    inverse = [np.linalg.inv(one) for one in (up, down)]
    d = np.stack([dirac.hopping(links, one, PHASES) for one in psi])
    for most, kept in ((domain_walls.COLUMN_BYTES, 5), (0, 0)):
        monkeypatch.setattr(domain_walls, "COLUMN_BYTES", most)
        prepared = made(links, KINDS["moebius"], gpu).prepared(storage)
        source = SpinorField.from_numpy(prepared.operator.field, psi, storage, fifth=5)
        target = source.like()
        assert domain_walls.kept_extent(source.field, source.storage, 5, together=True) == kept
        PreparedProduct(prepared.diagonals[True, False], target, source, (EVEN, ODD))()
        exact = walls.along(inverse, psi)
        assert largest_difference(target.to_numpy()[0], exact) < TOLERANCE[storage]
        for parity in (EVEN, ODD):
            prepared.prepare(target, source, parity)()
        exact = walls.along(inverse, d)
        assert largest_difference(target.to_numpy()[0], exact) < TOLERANCE[storage]


@pytest.mark.longer
def test_the_links_may_change(best_device, rng):
    links = random_field(LATTICE.extents, "su3", rng)
    operator = made(links, KINDS["shamir"], best_device)
    psi = walls.random_spinor(LATTICE.extents, 4, 3, rng)
    operator.apply(psi, precision="single")
    heatbath(operator.field, 5.7, Random.for_field(operator.field), 1)
    operator.refresh()
    found = operator.apply(psi, precision="single")
    expected = walls.domain_wall(operator.field.to_numpy(), psi, MASS, HEIGHT, PHASES)
    assert largest_difference(found, expected) < TOLERANCE["single"]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"m5": 2.0}, "M5 of the operator domain-wall is 2; give a number between 0 and 2"),
        ({"ls": 0}, "LS of the operator domain-wall is 0; give a whole number from 1 to 1000"),
        ({"b": 0.0}, "b is 0 and c is 0; give b above 0, and c from 0 to b"),
        ({"b": 0.5, "c": 1.0}, r"b is 0\.5 and c is 1; give b above 0"),
        ({"weights": [1.0, 2.0]}, "Give 4 weights, one for each s, all of them above 0"),
        ({"weights": [1.0, 2.0, -1.0, 1.0]}, "Give 4 weights"),
        ({"mass": float("nan")}, "The mass of the quark is nan; give a number"),
        ({"mass": 1.0, "ls": 3, "b": 1.0, "c": 1.0}, "has no inverse for m = 1 and 3 sites"),
    ],
)
def test_what_is_refused(values, message):
    field = Field.cold(Lattice(2, 2, 2, 2), "su2", "double", CpuDevice(1))
    with pytest.raises(UsageError, match=message):
        DomainWall(field, **{"mass": 0.1, "ls": 4, **values})


def test_arrays_of_another_extent_are_refused():
    field = Field.cold(Lattice(2, 2, 2, 2), "su2", "double", CpuDevice(1))
    with pytest.raises(GaugeError, match=r"must have the shape \(4, 2, 2.* \[s, t, z, y, x, "):
        DomainWall(field, 0.1, ls=4).apply(np.zeros((3, 2, 2, 2, 2, 4, 2)))
