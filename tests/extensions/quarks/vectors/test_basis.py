"""Bases of vectors, gamma matrices, and the kind of NumPy's arithmetic that kernels repeat."""

from dataclasses import replace

import numpy as np
import pytest

from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.domain.lattice import Lattice
from gauge_mc.extensions.quarks.modes.chirality import (
    CombineChiralities,
    HermitianOperator,
    SquaredOperator,
)
from gauge_mc.extensions.quarks.operators import Wilson
from gauge_mc.extensions.quarks.vectors import SpinorField
from gauge_mc.extensions.quarks.vectors import basis as module
from gauge_mc.extensions.quarks.vectors.basis import (
    GAMMA,
    GAMMA_5,
    MOST_COMBINED,
    SIXTEEN,
    STRICT,
    USUAL,
    BasisProducts,
    CombineBasis,
    Projection,
    adjoint,
    in_kernels,
)
from gauge_mc.fields.field import Field
from tests.extensions.quarks.links import field_of
from tests.extensions.quarks.reference import dirac as reference
from tests.reference.fields import random_field

LATTICE = Lattice(4, 2, 8, 4)
PHASES = [1, np.exp(0.4j), 1, -1]


def drawn(devices, group, rng, count, storage="double"):
    field = Field.empty(LATTICE, group, "double", devices)
    n = int(group[2])
    psi = np.stack([reference.random_spinor(LATTICE.extents, n, rng) for _ in range(count)])
    made = SpinorField.from_numpy(field, psi, storage)
    return made, made.to_numpy()


@pytest.mark.parametrize("storage", ["double", "single"])
def test_combinations_with_gamma_5(group, storage, device, rng):
    (p, p0), (r, r0) = (drawn(device, group, rng, 3, storage) for _ in range(2))
    a, b, c, d = rng.normal(size=4)
    five = [reference.spin(reference.GAMMA5, one) for one in (p0, r0)]
    CombineChiralities(p, r)(a, b, c, d)
    expected = a * p0 + b * five[0] + c * r0 + d * five[1]
    rounding = 1e-14 if storage == "double" else 3e-6
    assert np.abs(p.to_numpy() - expected).max() < rounding * np.abs(expected).max()


def test_what_is_multiplied_by_zero_need_not_be_a_number(best_device, rng):
    (p, _), (r, r0) = (drawn(best_device, "su2", rng, 1) for _ in range(2))
    p.restore(np.full(r0.shape, np.nan, complex))
    CombineChiralities(p, r)(0, 0, 0.5, 0.5)
    assert np.array_equal(p.to_numpy()[..., :2, :], r0[..., :2, :])
    assert not p.to_numpy()[..., 2:, :].any()
    basis, _ = drawn(best_device, "su2", rng, 2)
    p.restore(np.full(r0.shape, np.nan, complex))
    CombineBasis(p, 0, basis)(np.ones(2, complex), 0.0)
    assert np.isfinite(p.to_numpy()).all()


@pytest.mark.longer
def test_products_and_combinations_of_a_basis(group, device, rng):
    """Combinations of more vectors than a launch treats, and of some of them."""
    count = MOST_COMBINED + 3
    (basis, v), (w, w0) = drawn(device, group, rng, count), drawn(device, group, rng, 2)
    for used in (1, count - 1):
        expected = np.array([np.vdot(one, w0[1]) for one in v[:used]])
        products = BasisProducts(basis, w, 1, used)
        found = products()
        assert found.shape == (used,)
        assert products.norm2 == pytest.approx(np.vdot(w0[1], w0[1]).real, rel=1e-13)
        assert np.abs(found - expected).max() < 1e-12 * w0[1].size
    c = rng.normal(size=count) + 1j * rng.normal(size=count)
    CombineBasis(w, 1, basis)(c[:-1], 0.5)
    expected = 0.5 * w0[1] + np.tensordot(c[:-1], v[:-1], 1)
    assert np.abs(w.to_numpy()[1] - expected).max() < 1e-13 * np.abs(expected).max()
    assert np.array_equal(w.to_numpy()[0], w0[0])
    with pytest.raises(ValueError, match="no vectors"):
        CombineBasis(w, 1, basis)(c[:0], 0.5)


def test_projections(best_device, rng):
    (vectors, v), (w, w0) = drawn(best_device, "su2", rng, 3), drawn(best_device, "su2", rng, 2)
    q, _ = np.linalg.qr(v.reshape(3, -1).T)
    vectors.restore(q.T.reshape(v.shape))
    projection = Projection(vectors, w)
    inside = projection.remove()
    assert np.abs(inside - w0.reshape(2, -1) @ q.conj()).max() < 1e-12
    assert np.abs(w.to_numpy().reshape(2, -1) @ q.conj()).max() < 1e-12
    projection.add(inside)
    assert np.abs(w.to_numpy() - w0).max() < 1e-12


@pytest.mark.first_quick
@pytest.mark.parametrize("slices", [1, 2])
@pytest.mark.parametrize("csw", [0.0, 1.3])
def test_the_hermitian_operator(csw, slices, group, best_device, rng):
    """Gamma_5 M and its square, on one slab and on several."""
    links = random_field(LATTICE.extents, group, rng)
    devices = DeviceGroup((best_device,) * slices)
    field = field_of(links, devices)
    q = HermitianOperator(Wilson(field, 0.17, csw, 0.0, PHASES).prepared())
    n = int(group[2])
    psi = np.stack([reference.random_spinor(LATTICE.extents, n, rng) for _ in range(2)])

    def product(x):
        m = reference.wilson(links, x, 0.17, PHASES, 0.0, csw)
        return reference.spin(reference.GAMMA5, m)

    v = SpinorField.from_numpy(field, psi)
    image, square = v.like(), v.like()
    q.apply(image, v)()
    SquaredOperator(q).apply(square, v)()
    expected = np.stack([product(x) for x in psi])
    assert np.abs(image.to_numpy() - expected).max() < 1e-13 * np.abs(expected).max()
    expected = np.stack([product(x) for x in expected])
    assert np.abs(square.to_numpy() - expected).max() < 1e-13 * np.abs(expected).max()
    target, constant = (v.like() for _ in range(2))
    others = [np.stack([reference.random_spinor(LATTICE.extents, n, rng) for _ in range(2)])] * 2
    others[1] = others[1][::-1]
    for one, array in zip((target, constant), others, strict=True):
        one.copy(SpinorField.from_numpy(field, array))
    step = SquaredOperator(q).recurrence(target, v, target, constant)
    step(-0.8, 0.6, -2.3, 1.7)  # the result takes the place of the older vectors
    expected = -0.8 * others[0] + 0.6 * (expected - 2.3 * psi) + 1.7 * others[1]
    assert np.abs(target.to_numpy() - expected).max() < 1e-13 * np.abs(expected).max()


def test_vectors_with_the_factor_0_are_not_read(best_device, rng):
    """So that memory which has not been written may stand there."""
    links = random_field(LATTICE.extents, "su2", rng)
    field = field_of(links, best_device)
    square = SquaredOperator(HermitianOperator(Wilson(field, 0.17).prepared()))
    v = SpinorField.from_numpy(field, reference.random_spinor(LATTICE.extents, 2, rng))
    target, expected, empty = (v.like() for _ in range(3))
    nothing = SpinorField.from_numpy(field, np.full((1, *LATTICE.extents[::-1], 4, 2), np.nan))
    empty.copy(nothing)
    square.apply(expected, v)()
    square.recurrence(target, v, empty, empty)(0, 1, 0, 0)
    found = target.to_numpy()
    assert np.abs(found - expected.to_numpy()).max() < 1e-13 * np.abs(found).max()


def test_the_basis_is_that_of_degrand_and_rossi():
    """Its formulas with Pauli matrices: gamma_i = -sigma_2 x sigma_i for i = x, z, and so on."""
    s = [np.array(m) for m in ([[0, 1], [1, 0]], [[0, -1j], [1j, 0]], [[1, 0], [0, -1]])]
    off = np.array([[0, 1j], [-1j, 0]])
    np.testing.assert_array_equal(GAMMA[0], np.kron(off, s[0]))
    np.testing.assert_array_equal(GAMMA[1], -np.kron(off, s[1]))
    np.testing.assert_array_equal(GAMMA[2], np.kron(off, s[2]))
    np.testing.assert_array_equal(GAMMA[3], np.kron(s[0], np.eye(2)))


def test_the_sixteen_are_a_basis_and_spell_their_products():
    matrices = [one.ravel() for one in SIXTEEN.values()]
    assert len(matrices) == 16
    overlaps = np.array([[a.conj() @ b for b in matrices] for a in matrices])
    np.testing.assert_array_equal(np.abs(overlaps), 4 * np.eye(16))
    letters = {**dict(zip("xyzt", GAMMA, strict=True)), "5": GAMMA_5}
    for name, one in SIXTEEN.items():
        product = np.eye(4)
        for letter in name.replace("unit", "").replace("g", ""):
            product = product @ letters[letter]
        np.testing.assert_array_equal(one, product)


def test_adjoint(rng):
    """(q̄ Gamma q')^dagger with q̄ = q^dagger gamma_t, for numbers in place of fields."""
    q, other = rng.normal(size=(2, 4)) + 1j * rng.normal(size=(2, 4))
    for one in SIXTEEN.values():
        product = q.conj() @ GAMMA[3] @ one @ other
        assert other.conj() @ GAMMA[3] @ adjoint(one) @ q == pytest.approx(product.conj())


def fused(a, b):
    """The product of complex numbers, with one rounding of a product and a sum."""
    return np.array([module._fused(x, y) for x, y in zip(a.tolist(), b.tolist(), strict=True)])


@pytest.mark.parametrize(
    ("multiply", "kind"),
    [(STRICT.multiply, "SMITH"), (fused, "SMITH_FUSED"), (lambda a, b: a * b * 1.5, None)],
)
def test_products_tell_the_kind(multiply, kind):
    assert in_kernels(replace(USUAL, multiply=multiply)) == kind
    assert in_kernels(STRICT) == "PLAIN"


def test_quotients_that_are_unknown_have_no_kind():
    assert in_kernels(replace(USUAL, divide=STRICT.divide)) is None


def test_numpy_is_known():
    """On the processors on which the tests run."""
    assert in_kernels(USUAL) in ("SMITH", "SMITH_FUSED")
