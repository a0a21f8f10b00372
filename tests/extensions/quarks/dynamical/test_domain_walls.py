"""Quarks on domain walls: action, force and weights, against dense matrices."""

import numpy as np
import pytest

from gauge_mc import open_device_group
from gauge_mc.domain.lattice import Lattice
from gauge_mc.extensions.quarks.dynamical.flavours import DynamicalQuarks, quark_terms
from gauge_mc.extensions.quarks.dynamical.monomials import RationalRatio
from gauge_mc.extensions.quarks.operators.domain_wall import optimal_weights
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.updates.terms import TermLinks
from tests.domain.conftest import GPUS
from tests.extensions.quarks.dynamical.weights import (
    QuarksOnLinks,
    check_rate,
    check_trajectories,
    check_weights,
    difference,
    direction,
    near_one,
)
from tests.extensions.quarks.links import check_divisions
from tests.extensions.quarks.reference import wall_actions as reference
from tests.reference.fields import dagger, random_field
from tests.reference.flow import algebra, exponential
from tests.reference.molecular_dynamics import derivative
from tests.updates.monomials.trajectories import OneChain

PHASES = (1, 1, np.exp(-0.4j * np.pi), -1)
HEIGHT = 1.7
EXACT = "inner=double:force_tolerance=1e-13:action_tolerance=1e-14"

KINDS = {
    "shamir": (3, {}),
    "moebius": (4, {"b": 1.5, "c": 0.5}),
    "borici": (2, {"b": 1.0, "c": 1.0}),
    "optimal": (4, {"b": 1.0, "c": 1.0, "optimal": "0.3,5.0"}),
}

TOLERANCE = 1e-10
"""Largest residual of forces, which iterations in single precision leave reversible to less."""

WEIGHTS = 100
"""Number of fields of pseudofermions over which weights are averaged."""


class Walls(QuarksOnLinks):
    """A monomial on random links, as a user asks for it, and its action in NumPy."""

    def __init__(self, links, device, kind, masses=(0.1, 1.0), solver=EXACT):
        extent, others = KINDS[kind]
        words = [f"domain-wall:ls={extent}", f"m5={HEIGHT}", f"m={masses[0]}", solver]
        words += [*(f"{name}={value}" for name, value in others.items()), "boundary=0,0,-0.4,1"]
        heavier = "/".join(f"m={one}" for one in masses[1:] if one < 1)
        words += [f"heavier={heavier}"] if heavier else []
        terms = quark_terms(DynamicalQuarks.several(":".join(words)), 1)
        super().__init__(links, device, terms[0].make)
        self.quarks = [reference_quark(kind, mass) for mass in masses]

    def draw(self):
        self.monomial.draw(self.random)
        term = self.monomial.term
        phi = (term.phi if isinstance(term, RationalRatio) else term._phi).to_numpy()[0]
        kept = np.zeros(phi.size, complex)
        where = reference.even_numbers(phi)
        kept[where] = phi.reshape(-1)[where]
        return kept.reshape(phi.shape)


def reference_quark(kind, mass):
    extent, others = KINDS[kind]
    others = dict(others)
    if ends := others.pop("optimal", None):
        others["weights"] = optimal_weights(extent, *map(float, ends.split(",")))
    return reference.WallQuark(mass, extent, HEIGHT, PHASES, others)


@pytest.mark.longer
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("masses", [(0.1, 1.0), (0.1, 0.4)], ids=["Pauli-Villars", "ratio"])
def test_the_force_is_the_derivative_of_the_action(masses, kind, rng, best_device):
    """In extended precision, for the determinant of D5 with kappa K^-1 and weights left out."""
    links = random_field((2, 4, 2, 2), "su2", rng)
    walls = Walls(links, best_device, kind, masses)
    phi = walls.draw()
    drawn = float(walls.monomial.drawn)
    assert drawn == pytest.approx(walls.action(), rel=1e-12)
    assert drawn == pytest.approx(float(reference.ratio(links, phi, *walls.quarks)), rel=1e-12)
    towards, wide = direction(links, rng), phi.astype(np.clongdouble)
    expected = derivative(lambda u: reference.ratio(u, wide, *walls.quarks), links, towards)
    check_rate(walls.kick()[1], towards, expected)


@pytest.mark.longer
@pytest.mark.parametrize("kind", ["shamir", pytest.param("optimal", marks=pytest.mark.slow)])
def test_the_force_of_one_flavour_is_the_derivative_of_its_action(kind, rng, best_device):
    """With roots of dense matrices in double precision."""
    links = random_field((2, 2, 2, 2), "su2", rng)
    walls = Walls(links, best_device, kind, solver=f"{EXACT}:flavours=1")
    phi = walls.draw()
    value = reference.root_ratio(links, phi, *walls.quarks)
    assert float(walls.monomial.drawn) == pytest.approx(value, rel=1e-10)
    assert walls.action() == pytest.approx(value, rel=1e-10)
    towards = direction(links, rng)
    expected = difference(lambda u: reference.root_ratio(u, phi, *walls.quarks), links, towards)
    check_rate(walls.kick()[1], towards, expected, 1e-10)


@pytest.mark.longer
@pytest.mark.parametrize(
    ("kind", "flavours"), [("shamir", 2), pytest.param("shamir", 1, marks=pytest.mark.slow)]
)
def test_weights_of_pseudofermions_are_determinants(kind, flavours, rng, best_device):
    """<exp(S(U) - S(U'))> over phi drawn for U is the ratio of |det D5(m) / det D5(1)|^N_f."""
    links = random_field((2, 2, 2, 2), "su2", rng)
    walls = Walls(links, best_device, kind, solver=f"flavours={flavours}")
    moved = exponential(0.04 * algebra(dagger(links))) @ links  # towards 1
    logs = []
    for u in (links, moved):
        (_, light), (_, heavy) = (one.log_determinant(u) for one in walls.quarks)
        logs.append(flavours * (light - heavy))
    check_weights(walls, moved, logs, walls.quarks[0].extent * 4 * 2 * 16 // 2, WEIGHTS)


@pytest.mark.longer
@pytest.mark.parametrize("kind", ["moebius", "optimal"])
def test_trajectories_are_reversible_and_of_second_order(kind, rng, best_device):
    links = near_one(Lattice(4, 2, 2, 4), 2, rng)
    walls = Walls(links, best_device, kind, solver=f"force_tolerance={TOLERANCE}")
    assert check_trajectories(walls, links, 12, TOLERANCE) < TOLERANCE


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["cpu-16", *GPUS])
@pytest.mark.parametrize("flavours", [1, 2])
def test_slabs_give_the_same_bytes(flavours, kind, rng):
    links = random_field((4, 2, 2, 6), "su2", rng)
    words = f"force_tolerance=1e-5:flavours={flavours}"

    def calculate(devices):
        return Walls(links, devices, "optimal", solver=words).short_trajectory()

    check_divisions(kind, [(6,), (2, 4)], calculate)


@pytest.mark.slow
def test_all_terms_and_slices_draw_different_numbers():
    """Also those of quarks that follow."""
    field = Field.cold(Lattice(2, 2, 2, 4), "su2", "double", open_device_group("cpu:1"))
    links, random, drawn = TermLinks(field), Random.for_field(field, seed=3), []
    text = "domain-wall:ls=2:m=0.1:heavier=m=0.4,domain-wall:ls=2:m=0.3,kappa=0.1"
    for term in quark_terms(DynamicalQuarks.several(text), 1):
        made = term.make(links)
        OneChain(made).draw(random)
        drawn += list(made._eta.to_numpy().reshape(term.extent, -1))
    values = np.array([one[np.abs(one) > 0][:100] for one in drawn])
    assert values.shape == (7, 100)
    assert len({one.tobytes() for one in values}) == 7


@pytest.mark.longer
@pytest.mark.parametrize("kind", KINDS)
def test_determinants_are_those_of_the_operators_but_for_constants(kind, rng):
    """Those of D5 are positive if its extent is even, because gamma_5 R D5 is then hermitian."""
    quarks = [reference_quark(kind, mass) for mass in (0.1, 1.0)]
    found = []
    for _ in range(2):
        links = random_field((2, 2, 2, 2), "su2", rng)
        (phase, light), (other, heavy) = (one.log_determinant(links) for one in quarks)
        if quarks[0].extent % 2 == 0:
            assert abs(phase - 1) + abs(other - 1) < 1e-10
        reduced = [np.linalg.slogdet(one.matrix(links))[1] for one in quarks]
        found.append((light - heavy, reduced[0] - reduced[1]))
    (first, reduced), (second, again) = found
    assert abs(second - first) > 0.01
    assert again - reduced == pytest.approx(second - first, abs=1e-10)
