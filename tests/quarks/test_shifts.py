"""Conjugate gradients for several shifts, compared with inverses of dense matrices."""

import numpy as np
import pytest
from scipy.linalg import solve

from gauge_mc.devices.cpu.device import CpuDevice
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.fields.field import Field
from gauge_mc.quarks.operators import Wilson
from gauge_mc.quarks.shifts import solve_shifted, solve_twisted
from tests.domain.conftest import open_group
from tests.reference import dirac as reference
from tests.reference.fields import random_field

LATTICE = Lattice(4, 4, 4, 2)
PHASES = [1, 1, 1, -1]
KAPPA = 0.13
SHIFTS = (0.3, 0.001, 0.0, 12.0)


def field_and_source(group, rng, device=None, precision="double"):
    links = random_field(LATTICE.extents, group, rng)
    field = Field.from_slices(LATTICE, group, links, precision, device or CpuDevice(1))
    source = [reference.random_spinor(LATTICE.extents, int(group[2]), rng) for _ in range(3)]
    source[1] *= 0
    return field, np.stack(source)


def inverted(matrix, source, kind="general"):
    columns = source.reshape(len(source), -1).T
    return solve(matrix, columns, assume_a=kind).T.reshape(source.shape)


@pytest.mark.longer
@pytest.mark.parametrize(
    ("name", "csw", "precision"),
    [
        ("su2", 0.0, "double"),
        *(
            pytest.param(name, *one, marks=pytest.mark.slow)
            for name in ("su2", "su3")
            for one in ((0.0, "single"), (1.3, "double"))
        ),
    ],
)
def test_shifts_of_dense_matrices(name, csw, precision, best_device, rng):
    field, source = field_and_source(name, rng, best_device, precision)
    found = solve_shifted(Wilson(field, KAPPA, csw), source, SHIFTS, 1e-11)
    matrix = reference.dense(field.to_numpy(), KAPPA, PHASES, csw=csw)
    square = matrix @ matrix.conj().T
    for shift, y in zip(SHIFTS, found, strict=True):
        whole = square + shift * np.eye(len(matrix))
        for one, right in zip(y, source, strict=True):
            rest = right.ravel() - whole @ one.ravel()
            assert np.linalg.norm(rest) <= 1.001e-11 * np.linalg.norm(right)
        assert np.abs(y - inverted(whole, source, "positive definite")).max() < 1e-8
    assert not found[:, 1].any()


@pytest.mark.longer
@pytest.mark.parametrize("csw", [1.3])
def test_twisted_masses_of_dense_matrices(group, csw, best_device, rng):
    field, source = field_and_source(group, rng, best_device)
    mus, phases = (0.4, -0.05, 0.0), [1j, 1, 1, -1]
    found = solve_twisted(field, KAPPA, mus, source, csw, phases, 1e-11)
    for mu, x in zip(mus, found, strict=True):
        matrix = reference.dense(field.to_numpy(), KAPPA, phases, csw=csw, mu=mu)
        for one, right in zip(x, source, strict=True):
            rest = right.ravel() - matrix @ one.ravel()
            assert np.linalg.norm(rest) <= 1.1e-11 * np.linalg.norm(right)
        assert np.abs(x - inverted(matrix, source)).max() < 1e-8


@pytest.mark.slow
def test_slabs_give_the_same_bytes(rng):
    lattice = Lattice(4, 4, 4, 10)
    links = random_field(lattice.extents, "su3", rng)
    source = reference.random_spinor(lattice.extents, 3, rng)
    found = []
    for slices in [(10,), (2, 3, 5)]:
        devices = open_group("cpu-16", slices)
        field = Field.from_slices(lattice, "su3", links, "double", devices)
        found.append(solve_twisted(field, 0.11, (0.1, 0.3), source, csw=0.5))
        devices.close()
    assert np.array_equal(*found)


def test_what_is_refused(rng):
    field, source = field_and_source("su2", rng)
    operator = Wilson(field, KAPPA)
    for shifts in ((), (0.1, -0.1), (float("nan"),)):
        with pytest.raises(UsageError, match=r"The shifts are .*; give numbers that are not neg"):
            solve_shifted(operator, source, shifts)
    with pytest.raises(GaugeError, match="within 3 iterations: allow more"):
        solve_shifted(operator, source, (0.1,), iterations=3)
    with pytest.raises(GaugeError, match=r"does not become smaller|within \d+ iterations"):
        solve_shifted(operator, source, (0.0,), 2.3e-16, iterations=3000)
    with pytest.raises(GaugeError, match="The spinors have the shape"):
        solve_shifted(operator, source[..., :1], (0.1,))
