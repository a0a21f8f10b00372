"""SU(N): smearing, the gradient flow, loops and files against NumPy."""

from functools import cache

import numpy as np
import pytest

from gauge_mc.domain.lattice import Lattice
from gauge_mc.fields.field import Field
from gauge_mc.fields.gradient_flow import GradientFlow, field_strength
from gauge_mc.flows import FLOWS
from gauge_mc.quantities.plaquette import plaquette
from gauge_mc.quantities.polyakov.observables import polyakov_loop
from gauge_mc.smearing.kinds import Ape, Hyp, Stout
from tests.domain.conftest import open_group
from tests.quantities.potential.observables.test_wilson_loops import measured
from tests.reference import flow as reference
from tests.reference import observables, smearing
from tests.reference.fields import random_field
from tests.updates.links import unitarity_violation

LATTICE = Lattice(4, 2, 6, 4)
SLOW = pytest.mark.slow
kinds = pytest.mark.parametrize(
    ("name", "real"),
    [
        ("su4", "double"),
        pytest.param("su4", "single", marks=SLOW),
        pytest.param("su5", "single", marks=SLOW),
        pytest.param("su7", "double", marks=SLOW),
        pytest.param("su8", "double", marks=pytest.mark.every),
    ],
)
TOLERANCE = {"single": 2e-5, "double": 1e-11}
"""Sums of random links may be nearly singular, which magnifies rounding."""


@pytest.fixture(params=["cpu-16", pytest.param("cuda", marks=pytest.mark.gpu)])
def pair(request):
    """Two devices that divide the lattice."""
    return open_group(request.param, (2, 2))


@cache
def random_links(name):
    return random_field(LATTICE.extents, name, np.random.default_rng(7))


def field_of(name, real, devices):
    return Field.from_slices(LATTICE, name, random_links(name), real, devices)


def smeared(field, how):
    target = Field.empty(LATTICE, field.group.name, field.precision, field.devices)
    how(field, target)
    return target.to_numpy()


@pytest.mark.slow
@kinds
@pytest.mark.parametrize("projection", ["maximal", "polar"])
def test_ape(name, real, projection, pair):
    project = {"maximal": smearing.project_maximal, "polar": smearing.project_unitary}[projection]
    found = smeared(field_of(name, real, pair), Ape(0.2, 3, projection))
    assert unitarity_violation(found) < (3e-6 if real == "single" else 2e-14)
    expected = smearing.ape(random_links(name), 0.2, project=project)
    assert np.abs(found - expected).max() < TOLERANCE[real]


@SLOW
@kinds
def test_hyp(name, real, pair):
    found = smeared(field_of(name, real, pair), Hyp(0.75, 0.6, 0.3, "none", "polar"))
    expected = smearing.hyp(random_links(name), project=smearing.project_unitary)
    # Projections of projections magnify rounding more than once.
    assert np.quantile(np.abs(found - expected), 0.99) < TOLERANCE[real]


@pytest.mark.slow
@kinds
@pytest.mark.parametrize("rho", [0.1, 0.9])
def test_stout(name, real, rho, pair):
    found = smeared(field_of(name, real, pair), Stout(rho))
    difference = np.abs(found - smearing.stout(random_links(name), rho)).max()
    assert difference < (4e-6 if real == "single" else 4e-14)


@pytest.mark.slow
@kinds
@pytest.mark.parametrize("kind", ["wilson", pytest.param("zeuthen", marks=SLOW)])
def test_flow(name, real, kind, pair):
    flow = GradientFlow(FLOWS[kind], field_of(name, real, pair))
    flow.start(field_of(name, real, pair))
    flow.advance(0.05, 0.05)
    expected = reference.rk3_step(random_links(name), 0.05, kind)
    difference = np.abs(flow.field.to_numpy() - expected).max()
    assert difference < (4e-6 if real == "single" else 1e-13)


@pytest.mark.slow
@kinds
def test_energy_and_charge(name, real, pair):
    found = field_strength(field_of(name, real, pair))
    links = random_links(name)
    rounding = 1e-5 if real == "single" else 1e-12
    assert found.clover.sum() == pytest.approx(reference.energy_clover(links).sum(), rel=rounding)
    size = np.abs(reference.charge(links)).sum()
    assert found.charge.sum() == pytest.approx(reference.charge(links).sum(), abs=rounding * size)


@pytest.mark.slow
@kinds
def test_loops(name, real, pair):
    field, links = field_of(name, real, pair), random_links(name)
    rounding = 1e-6 if real == "single" else 1e-14
    assert plaquette(field) == pytest.approx(observables.plaquette(links).mean, abs=rounding)
    assert polyakov_loop(field) == pytest.approx(observables.polyakov_loop(links), abs=rounding)
    if (name, real) == ("su4", "single"):
        for (_, path, r, t), loop in measured(field, paths=["100", "110"]).items():
            expected = observables.mean_wilson_loop(links, path, r, t)
            assert loop == pytest.approx(expected, abs=rounding)
