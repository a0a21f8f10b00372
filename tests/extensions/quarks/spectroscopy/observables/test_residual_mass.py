"""Domain-wall quarks on the command line: sums for the residual mass, and hadrons."""

import numpy as np
import pytest

from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import UsageError
from gauge_mc.extensions.quarks.operators.domain_wall import optimal_weights
from gauge_mc.extensions.quarks.spectroscopy.observables import Baryons, Mesons, ResidualMassSums
from gauge_mc.extensions.quarks.spectroscopy.quarks import QuarkMasses
from gauge_mc.extensions.quarks.vectors.basis import SIXTEEN
from tests.extensions.quarks.links import field_of
from tests.extensions.quarks.reference import hadrons as reference
from tests.extensions.quarks.reference import walls
from tests.reference.fields import random_field

LATTICE = Lattice(2, 2, 2, 6)
PHASES = [1, 1, 1, -1]
HEIGHT, EXTENT = 1.7, 4
WORDS = f"domain-wall:LS={EXTENT},M5={HEIGHT},m=0.1,0.3"


def links_on(rng, device, group="su2"):
    links = random_field(LATTICE.extents, group, rng)
    return field_of(links, device), links


def dense_propagator(links, mass, place, **coefficients):
    """S[t, z, y, x, spin, colour, spin, colour] from a point, by the dense effective operator."""
    d, _, _ = walls.effective(links, EXTENT, mass, HEIGHT, PHASES, **coefficients)
    s = (np.linalg.inv(d) - np.eye(len(d))) / (1 - mass)
    size, (x, y, z, t) = 4 * links.shape[-1], place
    site = ((t * LATTICE.z + z) * LATTICE.y + y) * LATTICE.x + x
    columns = s[:, size * site : size * (site + 1)]
    return columns.reshape(*LATTICE.extents[::-1], 4, links.shape[-1], 4, links.shape[-1])


def rows(observable, field):
    """The records as arrays over t by the other indices."""
    names = observable.columns.names
    indices = [names.index(one) for one in observable.columns.indices[:-1]]
    found = {}
    for record in observable.measurer(field)(field):
        assert len(record) == len(names)
        key = tuple(record[i] for i in indices)
        found.setdefault(key, []).append(dict(zip(names, record, strict=True)))
    return found


def column(records, name):
    return np.array([one[name] for one in records])


@pytest.mark.longer
@pytest.mark.parametrize(
    "place", [(1, 0, 1, 4), pytest.param((0, 0, 0, 0), marks=pytest.mark.slow)]
)
def test_sums_of_dense_propagators(place, best_device, rng):
    field, links = links_on(rng, best_device)
    point = "point:" + ",".join(map(str, place))
    observable = ResidualMassSums.for_lattice(LATTICE, quark=WORDS, source=(point,))
    found = rows(observable, field)
    label = "point@" + ";".join(map(str, place))
    assert list(found) == [(0.1, label), (0.3, label)]
    for (mass, _), records in found.items():
        s = dense_propagator(links, mass, place)
        pion = np.roll((abs(s) ** 2).sum(axis=(1, 2, 3, 4, 5, 6, 7)), -place[3])
        assert np.abs(column(records, "pion") - pion).max() < 1e-8 * pion.max()
        x, y, z, t = place
        contact = np.trace(s[t, z, y, x].reshape(8, 8)).real * (np.arange(LATTICE.t) == 0)
        assert np.abs(column(records, "contact") - contact).max() < 1e-8 * abs(contact).max()
        middle, ratio = column(records, "midpoint"), column(records, "m_res")
        assert contact.sum() == pytest.approx(mass * pion.sum() + middle.sum(), rel=1e-8)
        np.testing.assert_allclose(ratio, middle / pion, rtol=1e-8)
        axial = column(records, "axial")
        change = (axial - np.roll(axial, 1))[1:]
        assert np.abs(change - 2 * (mass * pion + middle)[1:]).max() < 1e-8 * pion.max()
        kind = SIXTEEN["gtg5"], SIXTEEN["g5"], np.ones(LATTICE.extents[2::-1])
        local = np.roll(reference.meson(s, s, *kind).real, -t)
        assert np.abs(column(records, "local_axial") - local).max() < 1e-8 * abs(local).max()


@pytest.mark.slow
def test_optimal_weights_have_no_midpoint_but_a_residual_mass(best_device, rng):
    field, links = links_on(rng, best_device)
    words = f"domain-wall:LS={EXTENT}:M5={HEIGHT}:b=1:c=1:optimal=0.2,6:m=0.1"
    observable = ResidualMassSums.for_lattice(LATTICE, quark=words)
    assert "midpoint" not in observable.columns.names
    (records,) = rows(observable, field).values()
    w = optimal_weights(EXTENT, 0.2, 6)
    s = dense_propagator(links, 0.1, (0, 0, 0, 0), b=1, c=1, weights=w)
    pion = (abs(s) ** 2).sum(axis=(1, 2, 3, 4, 5, 6, 7))
    assert np.abs(column(records, "pion") - pion).max() < 1e-8 * pion.max()


@pytest.mark.slow
def test_mesons_and_baryons_of_dense_propagators(best_device, rng):
    """Also of two quarks with different masses."""
    field, links = links_on(rng, best_device, "su3")
    quark = QuarkMasses("domain-wall", ls=EXTENT, m5=HEIGHT, m=(0.1, 0.3))
    kappa = 1 / (8 - 2 * HEIGHT)
    mesons = rows(Mesons.for_lattice(LATTICE, quark=quark), field)
    s = {m: dense_propagator(links, m, (0, 0, 0, 0)) for m in (0.1, 0.3)}
    still = np.ones(LATTICE.extents[2::-1])
    for one, other, gamma in ((0.1, 0.1, "g5"), (0.1, 0.3, "gx"), (0.3, 0.3, "gtg5")):
        expected = reference.meson(s[one], s[other], SIXTEEN[gamma], SIXTEEN[gamma], still)
        key = (kappa, kappa, 0, 0, one, other, "point@0;0;0;0", gamma, gamma, 0, 0, 0)
        values = column(mesons[key], "re")
        assert np.abs(values - expected.real).max() < 1e-8 * np.abs(expected).max()
    baryons = rows(Baryons.for_lattice(LATTICE, quark=quark).for_group("su3"), field)
    assert len(baryons) == 2 * (4 + 2)


@pytest.mark.longer
def test_the_interval_is_measured(best_device, rng):
    """The ends of the spectrum of H_w of these links, against all eigenvalues."""
    field, links = links_on(rng, best_device)
    quark = QuarkMasses.parse(f"domain-wall:LS=6,M5={HEIGHT},b=1,c=1,optimal=measured,m=0.1")
    operator = quark.made(field, 0.1, PHASES)
    _, values, _ = walls.effective(links, EXTENT, 0.1, HEIGHT, PHASES, b=1, c=1)
    low, high = operator.measured_interval(1.0)
    assert 0.98 * abs(values).min() < low <= abs(values).min() * (1 + 1e-9)
    assert 1.01 * abs(values).max() > high >= abs(values).max() * (1 - 1e-9)
    assert np.array_equal(operator.weights, optimal_weights(6, low, high))


def test_headers_state_both_normalisations_of_the_mass():
    header = Mesons.for_lattice(LATTICE, quark=WORDS).header
    assert header["m"] == "0.1,0.3"
    assert header["m_q = 2 M5 m"] == "0.34,1.02"
    assert header["operator"] == "domain-wall:ls=4:m5=1.7:b=1.0:c=0.0"
    assert "S = (D_c + m)^-1" in header["normalisation"]
    assert "kappa M^-1" not in header["normalisation"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"quark": WORDS, "kappa": "0.1"}, "--quark has all parameters of the quarks"),
        ({"quark": WORDS, "propagators": "folder"}, "with a hopping parameter alone"),
        ({"quark": "domain-wall:LS=4"}, "The masses m of the quarks are missing"),
        ({"quark": "domain-wall:m=-0.1"}, "m of --quark domain-wall is -0.1"),
        ({"quark": "domain-wall:M5=2,m=0.1"}, "domain-wall is 2; give a number between 0 and 2"),
        ({"quark": "domain-wall:optimal=measured,m=0.1"}, "measured for b = c alone"),
        ({"quark": "domain-wall:optimal=abc,m=0.1"}, "give two numbers, or measured"),
        ({"quark": "domain-wall:optimal=5,1,m=0.1"}, "the smaller one first"),
        ({"quark": "domain-wall:optimal=5,m=0.1"}, "optimal has 1 number; give two"),
        ({"quark": "domain-wall:LS=100000,m=0.1"}, "LS of --quark domain-wall is 100000; give a"),
        ({"quark": "domain-wall:m=0.1,domain-wall:m=0.2"}, "has 2 operators; give one"),
    ],
)
def test_what_is_refused(options, message):
    with pytest.raises(UsageError, match=message):
        assert Mesons.for_lattice(LATTICE, **options).records


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "--quark is missing"),
        ({"quark": WORDS, "smear_sink": True, "source": ("gauss:1,3",)}, "is for local sinks"),
    ],
)
def test_residual_masses_that_are_refused(options, message):
    with pytest.raises(UsageError, match=message):
        assert ResidualMassSums.for_lattice(LATTICE, **options).records
