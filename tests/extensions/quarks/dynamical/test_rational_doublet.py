"""A doublet of different masses: its action, its force and its weights, against dense matrices."""

import numpy as np
import pytest

from gauge_mc import open_device_group
from gauge_mc.domain.lattice import Lattice
from gauge_mc.extensions.quarks.dynamical.flavours import doublet_on
from gauge_mc.extensions.quarks.dynamical.monomials import Rational
from gauge_mc.extensions.quarks.dynamical.normal_systems import QuarkSolver
from gauge_mc.fields.field import Field
from tests.domain.conftest import GPUS
from tests.extensions.quarks.dynamical.weights import (
    QuarksOnLinks,
    check_rate,
    check_weights,
    difference,
    direction,
)
from tests.extensions.quarks.links import check_divisions
from tests.extensions.quarks.reference import doublet as reference
from tests.extensions.quarks.reference.pseudofermions import even_sites
from tests.reference.fields import random_field
from tests.reference.flow import exponential

PHASES = (1, np.exp(0.4j), 1, -1)
KAPPA = 0.12
MUS = 0.5, 0.35
"""The twisted mass and the splitting."""
ENDS = (0.01, 6.0)
EXACT = QuarkSolver(inner="double", force_tolerance=1e-13, action_tolerance=1e-14)
LATTICE = Lattice(2, 4, 2, 2)

WEIGHTS = 40
"""Number of fields of pseudofermions over which weights are averaged."""


class Doublet(QuarksOnLinks):
    """The monomial on some links."""

    def __init__(self, links, device, solver=EXACT, ends=ENDS, mus=MUS):
        def make(on):
            return Rational(doublet_on(on, KAPPA, *mus, PHASES), solver, 0, ends=ends)

        super().__init__(links, device, make)

    def draw(self):
        """Draw pseudofermions, and return them as a vector on the even sites."""
        self.monomial.draw(self.random)
        return self.monomial.term.phi.to_numpy().reshape(-1)[chosen(self.field.to_numpy())]


def chosen(links):
    """Which components of a vector of two flavours are on even sites."""
    return np.tile(even_sites(links), 2)


def normal_matrix(links, mus=MUS):
    """Mh Mh^dagger on the even sites, for flavours that are rotated as on devices."""
    whole = reference.dense(links, KAPPA, PHASES, *mus)
    turn = np.repeat(np.diag(reference.ROTATION), len(whole) // 2)
    whole = turn[:, None] * whole * turn.conj()
    keep = chosen(links)
    mh = np.linalg.inv(np.linalg.inv(whole)[np.ix_(keep, keep)])
    return mh @ mh.conj().T


def root_action(links, phi):
    """phi^dagger (Mh Mh^dagger)^(-1/2) phi, from eigenvectors."""
    values, vectors = np.linalg.eigh(normal_matrix(links))
    return float((values**-0.5 * np.abs(vectors.conj().T @ phi) ** 2).sum())


@pytest.mark.longer
@pytest.mark.parametrize("colours", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_action_and_force_of_the_root_of_a_dense_matrix(colours, best_device, rng):
    links = random_field(LATTICE.extents, f"su{colours}", rng)
    quarks = Doublet(links, best_device)
    phi = quarks.draw()
    value = root_action(links, phi)
    assert float(quarks.monomial.drawn) == pytest.approx(value, rel=1e-10)
    assert quarks.action() == pytest.approx(value, rel=1e-10)

    towards = direction(links, rng)
    expected = difference(lambda u: root_action(u, phi), links, towards)
    check_rate(quarks.kick()[1], towards, expected)


@pytest.mark.slow
def test_weights_are_determinants_of_both_flavours(best_device, rng):
    """<exp(S(U) - S(U'))> over fields phi drawn for U is det M(U') / det M(U)."""
    lattice = Lattice(2, 2, 2, 2)
    links = random_field(lattice.extents, "su2", rng)
    moved = exponential(0.12 * direction(links, rng)) @ links
    quarks = Doublet(links, best_device, QuarkSolver())
    dense = [reference.dense(u, KAPPA, PHASES, *MUS) for u in (links, moved)]
    logs = [np.linalg.slogdet(one)[1] for one in dense]
    check_weights(quarks, moved, logs, 2 * 4 * 2 * lattice.sites // 2, WEIGHTS)


@pytest.mark.longer
@pytest.mark.parametrize("mus", [MUS, (1.5, 3.0)])
def test_the_default_range_contains_the_spectrum(mus, best_device):
    """Also on links of 1, where the hopping term is largest, and if A is far from 1."""
    links = np.broadcast_to(np.eye(2), (2, 2, 2, 2, 4, 2, 2)).astype(complex)
    quarks = Doublet(links, best_device, ends=None, mus=mus)
    lower, upper = quarks.monomial.term.powers.ends
    values = np.linalg.eigvalsh(normal_matrix(links, mus))
    assert lower < values[0]
    assert values[-1] < upper < 9 * values[-1]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["cpu-16", *GPUS])
def test_slabs_give_the_same_bytes(kind, rng):
    links = random_field((4, 2, 2, 6), "su2", rng)

    def calculate(devices):
        quarks = Doublet(links, devices, QuarkSolver(force_tolerance=1e-5))
        return [*quarks.short_trajectory(), str(quarks.monomial.term.powers.spectra[0])]

    check_divisions(kind, [(6,), (2, 4)], calculate)


@pytest.mark.slow
def test_the_two_flavours_draw_different_numbers():
    field = Field.cold(Lattice(2, 2, 2, 4), "su2", "double", open_device_group("cpu:1"))
    quarks = Doublet(field.to_numpy(), field.devices)
    quarks.draw()
    eta = quarks.monomial.term._eta.to_numpy()[0]
    assert not np.isclose(eta[0], eta[1]).all()
