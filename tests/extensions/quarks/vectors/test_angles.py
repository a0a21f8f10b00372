"""Boundary conditions, and the imaginary chemical potential that changes them."""

import numpy as np
import pytest

import gauge_mc
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import UsageError
from gauge_mc.extensions.quarks.condensate import Condensate
from gauge_mc.extensions.quarks.dynamical.flavours import DynamicalQuarks
from gauge_mc.extensions.quarks.operators import Wilson
from gauge_mc.extensions.quarks.spectroscopy.quarks import Quarks
from gauge_mc.extensions.quarks.vectors.basis import angles_of, phases_of
from gauge_mc.files.table import read_table
from tests.extensions.quarks.links import field_of
from tests.extensions.quarks.reference import dirac
from tests.reference.fields import random_field

LATTICE = Lattice(2, 2, 2, 4)


def turned(links, power):
    """Links times an element of the centre on one time slice."""
    found = links.copy()
    found[-1, ..., 3, :, :] *= np.exp(2j * np.pi * power / links.shape[-1])
    return found


def test_angles_grow_along_t():
    assert angles_of("antiperiodic") == (0, 0, 0, 1)
    assert angles_of("antiperiodic", 0.25) == (0, 0, 0, 1.25)
    assert angles_of("0.5,0,0,0", -0.25) == (0.5, 0, 0, -0.25)
    assert angles_of((0.0, 0.0, 0.0, 1.0), 1) == (0, 0, 0, 2)
    with pytest.raises(UsageError, match="--boundary is"):
        angles_of("antiperodic", 0.25)


def test_all_who_take_a_boundary_take_the_chemical_potential():
    words = "wilson:kappa=0.12:imaginary_mu=0.25"
    (quarks,) = DynamicalQuarks.several(words)
    assert quarks.angles == (0, 0, 0, 1.25)
    assert str(quarks) == words
    np.testing.assert_allclose(quarks.phases_if(strict=False), [1, 1, 1, -np.exp(0.25j * np.pi)])
    options = {"kappa": "0.12", "imaginary_mu": 1 / 3}
    for found in (
        Quarks.of_options(LATTICE, "mesons", options),
        Condensate.for_lattice(LATTICE, **options).quarks,
    ):
        assert found.angles == (0, 0, 0, 1 + 1 / 3)
        assert found.header["imaginary_mu"] == "0.333333333333"
        assert found.header["boundary"].startswith("0,0,0,1.33333 ")
    assert "imaginary_mu" not in Quarks.of_options(LATTICE, "mesons", {"kappa": "0.12"}).header


@pytest.mark.slow
def test_trajectories_have_the_symmetry_of_roberge_and_weiss(tmp_path, rng):
    """With the same random numbers they are the same, but for rounding, and an element of Z_3."""
    links = random_field((4, 4, 4, 4), "su3", rng)

    def run(name, links, imaginary_mu):
        start = tmp_path / f"{name}.lime"
        field_of(links).save(start)
        gauge_mc.generate(
            lattice="4x4x4x4", group="su3", beta=5.0, precision="double", start=str(start),
            algorithm="hmc", steps=10, quarks=f"wilson:kappa=0.11:imaginary_mu={imaginary_mu!r}",
            thermalize=0, configs=2, separation=1, output=tmp_path / name, backend="cpu",
        )  # fmt: skip
        tables = (read_table(tmp_path / name / f"{one}.csv") for one in ("plaquette", "polyakov"))
        plaquettes, loops = tables
        return plaquettes["plaquette"], loops["re"] + 1j * loops["im"]

    plaquettes, loops = run("here", links, 0.2)
    same, turned_loops = run("there", turned(links, 1), 0.2 - 2 / 3)
    np.testing.assert_allclose(same, plaquettes, rtol=1e-7)
    np.testing.assert_allclose(turned_loops, loops * np.exp(2j * np.pi / 3), atol=1e-7)
    other, _ = run("elsewhere", turned(links, 1), 0.2)
    assert np.abs(other - plaquettes).max() > 1e-5


KAPPA = 0.13


def spread(links, imaginary_mu):
    """Links along t times exp(i a mu_I), as the chemical potential is introduced."""
    found = links.copy()
    found[..., 3, :, :] *= np.exp(1j * np.pi * imaginary_mu / len(links))
    return found


def log_determinant(links, imaginary_mu):
    """ln det M with the phase at the boundary."""
    phases = phases_of(angles_of("antiperiodic", imaginary_mu))
    return np.linalg.slogdet(dirac.dense(links, KAPPA, phases))


def test_the_phase_at_the_boundary_is_a_chemical_potential(rng):
    """A redefinition of the quark moves exp(i a mu_I) from all links to the boundary."""
    links = random_field(LATTICE.extents, "su3", rng)
    sign, size = np.linalg.slogdet(dirac.dense(spread(links, 0.3), KAPPA, [1, 1, 1, -1]))
    found = log_determinant(links, 0.3)
    assert found[1] == pytest.approx(size, abs=1e-10)
    assert found[0] == pytest.approx(sign, abs=1e-10)
    assert abs(found[1] - log_determinant(links, 0)[1]) > 1e-6


def test_determinants_have_the_symmetry_of_roberge_and_weiss(rng):
    links = random_field(LATTICE.extents, "su3", rng)
    for mu in (0.0, 0.2):
        sign, size = log_determinant(links, mu)
        assert abs(sign.imag) < 1e-10  # gamma_5 M gamma_5 is the adjoint
        for power in (1, 2):
            other = log_determinant(turned(links, power), mu - 2 * power / 3)
            assert other[1] == pytest.approx(size, abs=1e-9)
        assert log_determinant(links, mu + 2)[1] == pytest.approx(size, abs=1e-9)
        assert log_determinant(links.conj(), -mu)[1] == pytest.approx(size, abs=1e-9)
    assert abs(log_determinant(links, 2 / 3)[1] - log_determinant(links, 0)[1]) > 1e-6


@pytest.mark.longer
def test_operators_have_the_symmetry_of_roberge_and_weiss(best_device, rng):
    links = random_field(LATTICE.extents, "su3", rng)
    psi = dirac.random_spinor(LATTICE.extents, 3, rng)

    def product(links, imaginary_mu):
        field = field_of(links, best_device)
        return Wilson(field, KAPPA, boundary=phases_of(angles_of("periodic", imaginary_mu))).apply(
            psi
        )

    found = product(links, 0.2)
    np.testing.assert_allclose(product(turned(links, 1), 0.2 - 2 / 3), found, atol=1e-12)
    np.testing.assert_allclose(product(links, 2.2), found, atol=1e-12)
    assert np.abs(product(links, 0.2 - 2 / 3) - found).max() > 1e-3


@pytest.mark.slow
def test_condensates_are_periodic(best_device, rng):
    """With all sources; the noise knows the plaquettes, which the centre leaves unchanged."""
    links = random_field(LATTICE.extents, "su2", rng)

    def trace(links, imaginary_mu):
        field = field_of(links, best_device)
        options = {"kappa": str(KAPPA), "imaginary_mu": imaginary_mu, "sources": 12}
        options["dilute"] = "spin,colour"
        observable = Condensate.for_lattice(LATTICE, **options).for_group("su2")
        rows = np.array(observable.measurer(field)(field))[:, 3:]
        return rows.mean(axis=0), rows.std(axis=0, ddof=1) / np.sqrt(len(rows))

    there, _ = trace(links, 0.3)
    np.testing.assert_allclose(trace(links, 2.3)[0], there, atol=1e-9)
    for other in (trace(turned(links, 1), -0.7), trace(links, -0.3)):  # SU(2): also C
        assert (np.abs(other[0] - there) < 5 * other[1] + 1e-9).all()
