"""Linear combinations and scalar products of spinor fields, against NumPy."""

import numpy as np
import pytest

from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.domain.lattice import Lattice
from gauge_mc.extensions.quarks.vectors import STORAGES, SpinorField, algebra
from gauge_mc.extensions.quarks.vectors.algebra import Advance, AdvanceDirection, Combine, Multiply
from gauge_mc.fields.field import Field
from tests.extensions.quarks.reference.dirac import random_spinor
from tests.reference.fields import parity

LATTICE = Lattice(4, 2, 8, 8)
COUNT = 2 * algebra.MOST_VECTORS + 3  # a launch does not treat all of them


@pytest.fixture(params=STORAGES)
def storage(request):
    return request.param


def drawn(devices, group, storage, rng, count, number, own=None):
    """Return spinor fields on one parity or all sites, and their values, rounded as stored."""
    field = Field.empty(LATTICE, group, "single", devices)
    made = []
    for _ in range(number):
        psi = [random_spinor(LATTICE.extents, int(group[2]), rng) for _ in range(count)]
        made.append(SpinorField.from_numpy(field, np.stack(psi), storage, own))
    return made, [one.to_numpy() for one in made]


def factors(rng, count, zeros=()):
    made = rng.normal(size=count) + 1j * rng.normal(size=count)
    made[list(zeros)] = 0
    return made


def times(factor, psi):
    return np.reshape(factor, (-1, 1, 1, 1, 1, 1, 1)) * psi


def assert_close(field, expected, storage):
    """Compare with what is stored: two roundings of single or fixed-point numbers."""
    parts = np.maximum(np.abs(expected.real), np.abs(expected.imag))
    largest = parts.max(axis=(-2, -1), keepdims=True)
    arithmetic = 1e-14 if storage == "double" else 3e-6
    allowed = (2 * STORAGES[storage].rounding + arithmetic) * largest
    assert (np.abs(field.to_numpy() - expected) <= 1.5 * allowed).all()


def assert_products(found, w, r, storage):
    rounding = 1e-13 if storage == "double" else 3e-6
    axes = tuple(range(1, r.ndim))
    norm2 = (np.abs(r) ** 2).sum(axis=axes)
    mixed, scale = np.zeros(len(r), complex), norm2
    if w is not None:
        mixed = (w.conj() * r).sum(axis=axes)
        scale = np.sqrt(norm2 * (np.abs(w) ** 2).sum(axis=axes))
    assert (np.abs(found.norm2 - norm2) <= rounding * norm2).all()
    assert (np.abs(found.mixed - mixed) <= rounding * scale).all()


@pytest.mark.longer
@pytest.mark.parametrize("count", [1, COUNT])
def test_combine(group, storage, count, device, rng):
    (p, r, v), (p0, r0, v0) = drawn(device, group, storage, rng, count, 3, 1)
    a, b, c = factors(rng, count, [0]), factors(rng, count), factors(rng, count, range(count // 2))
    Combine(p, r, v)(a, b, c)
    assert_close(p, times(a, p0) + times(b, r0) + times(c, v0), storage)
    assert np.array_equal(r.to_numpy(), r0)
    (w,), (w0,) = drawn(device, group, storage, rng, count, 1, 1)
    Combine(p, r, w=w)(0, b, 0, a)
    assert_close(p, times(b, r0) + times(a, w0), storage)
    Combine(v, r)(0, 2.0)
    assert_close(v, 2 * r0, storage)


def test_what_is_multiplied_by_zero_need_not_be_a_number(storage, best_device, rng):
    (p, r), (_, r0) = drawn(best_device, "su3", storage, rng, 3, 2)
    p.restore(np.full(r0.shape, np.nan, complex))
    for own in (0, 1):
        Combine(p, r, parity=own)(0, np.array([1.0, 0.0, 1.0]))
    assert_close(p, times([1, 0, 1], r0), storage)


@pytest.mark.longer
@pytest.mark.parametrize("count", [1, COUNT])
def test_advance(group, storage, count, device, rng):
    fields, (r0, t0, x0, p0, w0) = drawn(device, group, storage, rng, count, 5, 0)
    r, t, x, p, w = fields
    a, b, c = (factors(rng, count) for _ in range(3))
    step = Advance(r, t, x, p, w)
    step(c, a, b)
    assert_close(x, x0 + times(a, p0) + times(b, r0), storage)
    assert_close(r, r0 + times(c, t0), storage)
    # With fixed-point numbers the sums are those of the vectors before they are rounded.
    exact = r0 + times(c, t0) if storage == "half" else r.to_numpy()
    assert_products(step.products(), w0, exact, storage)


@pytest.mark.longer
@pytest.mark.parametrize("count", [1, COUNT])
def test_advance_direction(group, storage, count, device, rng):
    (x, p, s), (x0, p0, s0) = drawn(device, group, storage, rng, count, 3, own=1)
    a, b = factors(rng, count), factors(rng, count, zeros=[0])
    AdvanceDirection(x, p, s)(a, b)
    assert_close(x, x0 + times(a, p0), storage)
    assert_close(p, s0 + times(b, p0), storage)


def test_advance_without_a_solution(storage, best_device, rng):
    (r, t), (r0, t0) = drawn(best_device, "su3", storage, rng, 2, 2)
    for own in (0, 1):
        step = Advance(r, t, parity=own)
        step(-1)
        there = (parity(LATTICE.extents) == own)[..., None, None]
        expected = np.where(there, r0 - t0, 0)
        assert_products(step.products(), None, expected, storage)
    assert_close(r, r0 - t0, storage)


@pytest.mark.longer
@pytest.mark.parametrize("count", [1, COUNT])
def test_multiply(group, storage, count, device, rng):
    (r, w), (r0, w0) = drawn(device, group, storage, rng, count, 2)
    for own in (0, 1):
        there = (parity(LATTICE.extents) == own)[..., None, None]
        r1, w1 = np.where(there, r0, 0), np.where(there, w0, 0)
        assert_products(Multiply(r, w, parity=own)(), w1, r1, storage)
        assert_products(Multiply(r, parity=own)(), None, r1, storage)


def test_same_bytes_on_several_slabs_and_in_groups_of_any_size(
    storage, best_device, rng, monkeypatch
):
    seed, found = rng.integers(2**32), []
    for slabs, rows in ((1, 2**16), (2, 2**16), (4, 3 * LATTICE.z * LATTICE.t)):
        monkeypatch.setattr(algebra, "MOST_ROWS", rows)
        devices = DeviceGroup((best_device,) * slabs)
        fields, _ = drawn(devices, "su3", storage, np.random.default_rng(seed), 7, 5, 0)
        step = Advance(*fields)
        step(*(factors(np.random.default_rng(n), 7) for n in range(3)))
        products = step.products()
        found.append([*(one.to_numpy() for one in fields), products.mixed, products.norm2])
    for other in found[1:]:
        assert all(map(np.array_equal, found[0], other))
