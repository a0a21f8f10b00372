"""Dirac operators against NumPy, and what they must fulfil."""

from functools import partial

import numpy as np
import pytest

from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.extensions.quarks import hopping
from gauge_mc.extensions.quarks.diagonal import Clover, Twist
from gauge_mc.extensions.quarks.hopping import (
    ADDED,
    DIVIDED,
    EVEN,
    ODD,
    REFLECTED,
    SOLVED,
    WHOLE,
    PreconditionedOperator,
    norms_of,
)
from gauge_mc.extensions.quarks.operators import (
    DiracOperator,
    PlainWilson,
    TwistedMass,
    Wilson,
    WilsonClover,
)
from gauge_mc.extensions.quarks.vectors import STORAGES, SpinorField, transport
from gauge_mc.extensions.quarks.vectors.algebra import Combine, Multiply
from gauge_mc.extensions.quarks.vectors.transport import ALL_REALS, FEW_REALS, VectorsPerThread
from gauge_mc.fields.field import Field
from tests.domain.conftest import GPUS, open_group
from tests.extensions.quarks.links import check_divisions, field_of, largest_difference
from tests.extensions.quarks.reference import dirac as reference
from tests.reference.fields import (
    COLOURS,
    abelian_field,
    angle,
    gauge_transform,
    random_field,
    random_su,
)

LATTICE = Lattice(4, 6, 8, 4)
LATTICES = [LATTICE, Lattice(4, 6, 2, 8), Lattice(2, 2, 2, 2), Lattice(16, 4, 8, 6)]
PHASES = [np.exp(0.2j * np.pi), np.exp(-0.7j), 1, -1]
TOLERANCE = {"double": 2e-14, "single": 3e-6, "half": 3e-3}
KAPPA = 0.137


@pytest.mark.longer
@pytest.mark.parametrize(
    ("group", "lattice"),
    [
        ("su2", LATTICES[0]),
        *(pytest.param("su2", one, marks=pytest.mark.slow) for one in LATTICES[1:3]),
        ("su2", LATTICES[3]),
        *(("su3", one) for one in LATTICES),
    ],
    ids=str,
)
def test_wilson(lattice, group, precision, device, rng):
    links = random_field(lattice.extents, group, rng)
    psi = reference.random_spinor(lattice.extents, int(group[2]), rng)
    field = field_of(links, device, precision)
    found = PlainWilson(field, KAPPA, PHASES).apply(psi)
    expected = reference.wilson(links, psi, KAPPA, PHASES)
    assert largest_difference(found, expected) < TOLERANCE[precision]


@pytest.mark.parametrize(
    ("storage", "reals"),
    [
        pytest.param("double", FEW_REALS, marks=pytest.mark.slow),  # see test_wilson
        pytest.param("double", ALL_REALS, marks=pytest.mark.slow),
        ("single", FEW_REALS),
        ("single", ALL_REALS),
        ("half", FEW_REALS),
        pytest.param("half", ALL_REALS, marks=pytest.mark.slow),
    ],
    ids=lambda one: getattr(one, "cpp", one),
)
def test_all_types_of_storage(group, precision, storage, reals, device, rng):
    """Independently of the precision of the field of links."""
    links = random_field(LATTICE.extents, group, rng)
    psi = reference.random_spinor(LATTICE.extents, int(group[2]), rng)
    field = field_of(links, device, precision)
    found = PlainWilson(field, KAPPA, PHASES).apply(
        psi, precision=storage, reals=reals.numbers(field.group)
    )
    expected = reference.wilson(links, psi, KAPPA, PHASES)
    assert largest_difference(found, expected) < max(TOLERANCE[precision], TOLERANCE[storage])


def special_links(lattice, rng):
    """Links of SU(3) near the places where a form of 8 reals could be singular."""
    links = random_field(lattice.extents, "su3", rng)
    flat = links.reshape(-1, 3, 3)
    turned = np.roll(np.eye(3), 1, axis=0)
    for n, one in enumerate((
        np.eye(3), np.diag([-1, -1, 1]), np.diag([-1, 1, -1]), np.diag([1, -1, -1]),
        turned, turned.T, -np.fliplr(np.eye(3)), np.diag([1j, 1j, -1]), np.diag([-1, 1j, 1j]),
    )):  # fmt: skip
        for distance, place in ((0.0, 20), (1e-3, 21), (1e-7, 22), (1e-12, 23), (0.1, 24)):
            near = one + distance * rng.normal(size=(3, 3))
            q, r = np.linalg.qr(near)
            q = q * (np.diag(r) / abs(np.diag(r)))
            flat[place + 5 * n] = q / np.linalg.det(q) ** (1 / 3)
    return links


@pytest.mark.longer
@pytest.mark.parametrize(
    "storage", ["double", pytest.param("single", marks=pytest.mark.slow), "half"]
)
def test_links_as_eight_reals(storage, best_device, rng):
    """No link is singular; the errors are those of the other forms."""
    links = special_links(LATTICE, rng)
    psi = reference.random_spinor(LATTICE.extents, 3, rng)
    field = field_of(links, best_device)
    expected = reference.wilson(links, psi, KAPPA, PHASES)
    found = PlainWilson(field, KAPPA, PHASES).apply(psi, precision=storage, reals=8)
    assert largest_difference(found, expected) < {**TOLERANCE, "half": 2e-4}[storage]


@pytest.mark.parametrize("kind", ["cpu-16", *GPUS])
def test_slabs_with_links_as_eight_reals(kind, rng):
    links = special_links(LATTICE, rng)
    psi = reference.random_spinor(LATTICE.extents, 3, rng)

    def calculate(devices):
        return PlainWilson(field_of(links, devices), KAPPA, PHASES).apply(
            psi, precision="half", reals=8
        )

    check_divisions(kind, [(4,), (2, 2)], calculate)


def test_twisted_mass(group, precision, best_device, rng):
    links = random_field(LATTICE.extents, group, rng)
    psi = reference.random_spinor(LATTICE.extents, int(group[2]), rng)
    field = field_of(links, best_device, precision)
    found = TwistedMass(field, KAPPA, 0.3).apply(psi)
    expected = reference.wilson(links, psi, KAPPA, [1, 1, 1, -1], mu=0.3)
    assert largest_difference(found, expected) < TOLERANCE[precision]


@pytest.mark.parametrize("mu", [0.0, 0.3])
@pytest.mark.parametrize("storage", STORAGES)
def test_clover(group, precision, storage, mu, device, rng):
    links = random_field(LATTICE.extents, group, rng)
    psi = reference.random_spinor(LATTICE.extents, int(group[2]), rng)
    field = field_of(links, device, precision)
    found = WilsonClover(field, KAPPA, 1.7, mu, PHASES).apply(psi, precision=storage)
    expected = reference.wilson(links, psi, KAPPA, PHASES, mu, 1.7)
    assert largest_difference(found, expected) < max(TOLERANCE[precision], TOLERANCE[storage])


@pytest.mark.longer
@pytest.mark.parametrize("clovers", [(1.7,), (0.9, 0.8)])
@pytest.mark.parametrize("twists", [(), (0.3,), (0.5, -0.2)])
def test_terms_are_composed(clovers, twists, best_device, rng):
    links = random_field(LATTICE.extents, "su2", rng)
    psi = reference.random_spinor(LATTICE.extents, 2, rng)
    field = field_of(links, best_device)
    terms = *(Clover(KAPPA, one) for one in clovers), *(Twist(KAPPA, one) for one in twists)
    operator = DiracOperator(field, KAPPA, PHASES, *terms[::-1])
    expected = reference.wilson(links, psi, KAPPA, PHASES, sum(twists), sum(clovers))
    assert largest_difference(operator.apply(psi), expected) < TOLERANCE["double"]
    solution = operator.solve(psi, 1e-12)
    again = reference.wilson(links, solution, KAPPA, PHASES, sum(twists), sum(clovers))
    assert np.linalg.norm(again - psi) < 2e-12 * np.linalg.norm(psi)


@pytest.mark.parametrize("mu", [0.0, 0.3])
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("dagger", [False, True])
def test_the_forms_of_a_hop(group, storage, mu, dagger, best_device, rng):
    """The inverse of the diagonal part, against that of dense matrices of the whole operator."""
    lattice, n = Lattice(4, 4, 4, 4), int(group[2])
    links = random_field(lattice.extents, group, rng)
    psi, u = (reference.random_spinor(lattice.extents, n, rng) for _ in range(2))
    field = field_of(links, best_device)
    operator = WilsonClover(field, KAPPA, 1.2, mu, PHASES).prepared(storage)
    source, other = (SpinorField.from_numpy(field, one, storage) for one in (psi, u))

    def diagonal(x):
        full = reference.wilson(links, x, KAPPA, PHASES, -mu if dagger else mu, 1.2)
        return full + KAPPA * reference.hopping(links, x, PHASES)

    five = partial(reference.spin, reference.GAMMA5)
    d = reference.hopping(links, five(psi) if dagger else psi, PHASES)
    d, target, tolerance = five(d) if dagger else d, source.like(), TOLERANCE[storage]
    found = {}
    for form in (DIVIDED, ADDED, WHOLE, SOLVED, REFLECTED):
        for own in (0, 1):
            operator.prepare(target, source, own, form, other, dagger)(-0.7)
        found[form] = target.to_numpy()[0]
    whole, solved = diagonal(u) - 0.7 * d, u - 0.7 * d
    assert largest_difference(found[WHOLE], whole) < tolerance
    assert largest_difference(found[REFLECTED], five(whole)) < tolerance
    assert largest_difference(diagonal(found[SOLVED]), solved) < 3 * tolerance
    assert largest_difference(diagonal(found[DIVIDED]), d) < 3 * tolerance
    assert largest_difference(diagonal((u - found[ADDED]) / 0.7), d) < 3 * tolerance


def test_the_sign_of_the_clover_term():
    """In a constant abelian field (gamma . D)^2 = D^2 + gamma_mu gamma_nu F_mu_nu / 2.

    So the Wilson operator with c_SW = 1 has no errors of order a: M / 2 kappa - m0 is
    gamma . D - (gamma . D)^2 / 2 up to order a^2, whose eigenvalues are i x + x^2 / 2. Without the
    term, or with the other sign, their real parts differ by the order of the field strength.
    """
    extents, kappa = (6, 6, 1, 1), 1 / 8
    links = abelian_field(extents, "su2", {(0, 1): 1})
    f = angle(extents, (0, 1), 1)
    deviations = {}
    for csw in (1.0, 0.0, -1.0):
        matrix = reference.dense(links, kappa, [1, 1, 1, 1], csw=csw)
        values = np.linalg.eigvals(matrix[::2, ::2] / (2 * kappa))  # of one colour
        lowest = values[np.argsort(abs(values))[:4]]
        deviations[csw] = np.abs(lowest.real - lowest.imag**2 / 2).max() / f
    assert deviations[1.0] < 0.1
    assert deviations[0.0] > 0.4
    assert deviations[-1.0] > 0.9


@pytest.mark.parametrize("mu", [0.0, 0.3])
def test_the_adjoint(group, precision, best_device, rng, mu):
    links = random_field(LATTICE.extents, group, rng)
    psi, chi = (reference.random_spinor(LATTICE.extents, int(group[2]), rng) for _ in range(2))
    field = field_of(links, best_device, precision)
    operator = WilsonClover(field, KAPPA, 1.0, mu, PHASES)
    left = np.vdot(chi, operator.apply(psi))
    right = np.vdot(operator.apply(chi, dagger=True), psi)
    assert abs(left - right) < TOLERANCE[precision] * np.linalg.norm(psi) * np.linalg.norm(chi)


def test_several_vectors(best_device, rng):
    links = random_field(LATTICE.extents, "su3", rng)
    psi = np.stack([reference.random_spinor(LATTICE.extents, 3, rng) for _ in range(5)])
    operator = PlainWilson(field_of(links, best_device), 0.12)
    together = operator.apply(psi)
    assert np.array_equal(together, [operator.apply(one) for one in psi])


@pytest.mark.gpu
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("vectors", [1, 2])
def test_the_division_of_vectors_among_threads_changes_no_byte(
    vectors, storage, gpu, rng, monkeypatch
):
    """One thread for a site, threads that take several parts, and several blocks for each site."""
    links = random_field(LATTICE.extents, "su2", rng)
    psi = np.stack([reference.random_spinor(LATTICE.extents, 2, rng) for _ in range(12)])
    field = field_of(links, gpu)
    source, found = SpinorField.from_numpy(field, psi, storage), []
    for threads, least in ((1, 1), (2, 1), (6, 10**9), (3, 2 * LATTICE.sites), (2, 10**9)):
        several = VectorsPerThread(vectors, (128, 2), threads)
        monkeypatch.setitem(hopping.SEVERAL, storage, several)
        monkeypatch.setattr(transport, "LEAST_THREADS", least)
        target = source.like()
        for parity in range(2):
            PlainWilson(field, KAPPA, PHASES).prepared(storage).prepare(target, source, parity)()
        found.append(target.to_numpy())
    expected = np.stack([reference.hopping(links, one, PHASES) for one in psi])
    assert all(largest_difference(one, expected) < TOLERANCE[storage] for one in found)
    assert all(np.array_equal(found[1], one) for one in found[2:])


@pytest.mark.parametrize("kind", ["cpu-16", *GPUS])
@pytest.mark.parametrize("storage", ["double", "half"])
def test_slabs_give_the_same_bytes(storage, kind, rng):
    lattice = Lattice(4, 6, 8, 10)
    links = random_field(lattice.extents, "su3", rng)
    psi = np.stack([reference.random_spinor(lattice.extents, 3, rng) for _ in range(2)])

    def calculate(devices):
        operator = WilsonClover(field_of(links, devices), KAPPA, 1.0, 0.1, PHASES)
        return operator.apply(psi, precision=storage)

    check_divisions(kind, [(10,), (4, 6), (2, 3, 5)], calculate)


def test_free_quarks_in_momentum_space(group, best_device):
    """M has the symbol 2 kappa (W + i gamma . s), s = sin p, W = m0 + sum of 1 - cos p."""
    lattice, n = Lattice(4, 6, 8, 10), int(group[2])
    operator = PlainWilson(Field.cold(lattice, group, "double", best_device), KAPPA, PHASES)
    angles = np.angle(PHASES)
    modes = (1, -2, 3, 4)
    p = [
        (2 * np.pi * k + a) / length
        for k, a, length in zip(modes, angles, lattice.extents, strict=True)
    ]
    t, z, y, x = np.indices(lattice.extents[::-1])
    wave = np.exp(1j * (p[0] * x + p[1] * y + p[2] * z + p[3] * t))
    spinor = np.arange(4 * n).reshape(4, n) + 1j
    found = operator.apply(wave[..., None, None] * spinor)
    mass = 1 / (2 * KAPPA) - 4
    w = mass + sum(1 - np.cos(q) for q in p)
    symbol = w * np.eye(4) + 1j * np.einsum("m,mij->ij", np.sin(p), reference.GAMMA)
    expected = wave[..., None, None] * (2 * KAPPA * symbol @ spinor)
    assert largest_difference(found, expected) < 1e-14


@pytest.mark.parametrize("group", ["su2", "su3"])
def test_the_reference_is_the_dense_matrix(group, rng):
    extents = (2, 4, 2, 2)
    links = random_field(extents, group, rng)
    psi = reference.random_spinor(extents, int(group[2]), rng)
    found = reference.wilson(links, psi, KAPPA, PHASES, 0.3, 1.7)
    m = reference.dense(links, KAPPA, PHASES, 0.3, 1.7)
    assert np.abs(m @ psi.ravel() - found.ravel()).max() < 1e-13
    five = np.kron(np.eye(32), np.kron(reference.GAMMA5, np.eye(int(group[2]))))
    opposite = reference.dense(links, KAPPA, PHASES, -0.3, 1.7)
    assert np.abs(five @ m @ five - opposite.conj().T).max() < 1e-14


def test_what_is_refused(rng):
    field = Field.cold(Lattice(2, 2, 2, 2), "su2", "double")
    with pytest.raises(UsageError, match="kappa is nan"):
        PlainWilson(field, float("nan"))
    with pytest.raises(UsageError, match="mu of the twisted mass is inf"):
        TwistedMass(field, 0.1, float("inf"))
    for boundary in (0.5, [1, 1, -1], [1, 1, 1, 2j]):
        with pytest.raises(UsageError, match=r"boundary condition is .* all of modulus 1"):
            PlainWilson(field, 0.1, boundary)
    with pytest.raises(GaugeError, match="The spinors have the shape"):
        PlainWilson(field, 0.1).apply(np.zeros((2, 2, 2, 2, 4, 3)))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["su4", pytest.param("su5", marks=pytest.mark.every)])
def test_clover_quarks_of_more_colours(name, best_device, rng):
    links = random_field((4, 4, 4, 4), name, rng)
    psi = reference.random_spinor((4, 4, 4, 4), COLOURS[name], rng)
    found = WilsonClover(field_of(links, best_device), 0.12, 1.2).apply(psi)
    expected = reference.wilson(links, psi, 0.12, [1, 1, 1, -1], 0.0, 1.2)
    assert np.abs(found - expected).max() < 1e-14


def test_gauge_covariance(group, best_device, rng):
    links = random_field(LATTICE.extents, group, rng)
    psi = reference.random_spinor(LATTICE.extents, int(group[2]), rng)
    g = random_su(int(group[2]), links.shape[:4], rng)
    fields = [field_of(u, best_device) for u in (links, gauge_transform(links, g))]
    rotated = np.einsum("...ab,...sb->...sa", g, psi)
    before = WilsonClover(fields[0], KAPPA, 1.0).apply(psi)
    after = WilsonClover(fields[1], KAPPA, 1.0).apply(rotated)
    assert largest_difference(after, np.einsum("...ab,...sb->...sa", g, before)) < 2e-14


def test_constant_abelian_links_shift_the_momentum(best_device):
    """Links exp(i q a_mu) have for colour q the operator of boundary phases exp(i q a_mu L_mu)."""
    lattice, a = LATTICE, np.array([0.1, -0.2, 0.3, 0.4])
    links = np.zeros((*lattice.extents[::-1], 4, 3, 3), complex)
    for colour, charge in enumerate((1, 2, -3)):
        links[..., colour, colour] = np.exp(1j * charge * a)
    t, z, y, x = np.indices(lattice.extents[::-1])
    psi = reference.random_spinor(lattice.extents, 3, np.random.default_rng(5))
    field = field_of(links, best_device)
    found = PlainWilson(field, KAPPA, 1).apply(psi)
    cold = Field.cold(lattice, "su3", "double", best_device)
    for colour, charge in enumerate((1, 2, -3)):
        phases = np.exp(1j * charge * a * lattice.extents)
        wave = np.exp(1j * charge * (a[0] * x + a[1] * y + a[2] * z + a[3] * t))[..., None]
        one = np.zeros_like(psi)
        one[..., colour] = psi[..., colour] * wave
        shifted = PlainWilson(cold, KAPPA, phases).apply(one)[..., colour] / wave
        assert np.abs(shifted - found[..., colour]).max() < 1e-13


def operator_on(field):
    return Wilson(field, KAPPA, 1.1, 0.2, PHASES)


@pytest.mark.slow
@pytest.mark.parametrize("slices", [(4,), (2, 2)], ids=str)
@pytest.mark.parametrize("storage", STORAGES)
def test_a_refreshed_operator_is_that_of_the_new_links(storage, slices, rng):
    """In what is prepared already as well, with bits as of an operator that is made anew."""
    devices = open_group("cpu-16", slices)
    field, other = (field_of(random_field(LATTICE.extents, "su3", rng), devices) for _ in range(2))
    operator = operator_on(field)
    prepared = operator.prepared(storage, 18)
    psi = np.stack([reference.random_spinor(LATTICE.extents, 3, rng) for _ in range(2)])
    v = SpinorField.from_numpy(field, psi, storage)
    image = v.like()
    call = prepared.apply(image, v)
    call()
    before = image.to_numpy()
    expected = image.like()
    operator_on(other).prepared(storage, 18).apply(expected, v)()
    field.copy(other)
    field.exchange_halo(None)
    operator.refresh()
    call()
    assert np.array_equal(image.to_numpy(), expected.to_numpy())
    assert not np.array_equal(image.to_numpy(), before)
    devices.close()


def vectors(field, parities, rng, storage="double"):
    """Two random vectors on the sites of one or both parities."""
    psi = np.stack([reference.random_spinor(LATTICE.extents, 3, rng) for _ in range(2)])
    whole = SpinorField.from_numpy(field, psi, storage)
    if parities == (EVEN, ODD):
        return whole
    part = whole.like(parity=EVEN)
    Combine(part, whole, parity=EVEN)(0, 1)
    return part


@pytest.fixture
def linear(best_device, rng):
    """Both linear operators of a Dirac operator."""
    links = random_field(LATTICE.extents, "su3", rng)
    prepared = operator_on(field_of(links, best_device)).prepared()
    return prepared, PreconditionedOperator(prepared, with_adjoint=True)


def test_adjoints(linear, rng):
    """<w, A v> = <A^dagger w, v> on the sites on which an operator acts."""
    field = linear[0].operator.field
    for one in linear:
        v, w = (vectors(field, one.parities, rng) for _ in range(2))
        image, back = v.like(), w.like()
        one.apply(image, v)()
        one.apply(back, w, dagger=True)()

        def product(a, b, parities=one.parities):
            return sum(Multiply(b, a, parity=parity)().mixed for parity in parities)

        scale = norms_of(v) * norms_of(w)
        assert (np.abs(product(w, image) - product(back, v)) < 1e-13 * scale).all()
