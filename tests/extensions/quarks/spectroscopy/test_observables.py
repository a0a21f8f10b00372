"""Hadrons and sums for residual masses, compared with those of dense propagators."""

import math
import re

import numpy as np
import pytest

from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import UsageError
from gauge_mc.extensions.quarks.operators.domain_wall import optimal_weights
from gauge_mc.extensions.quarks.sources import parse_source
from gauge_mc.extensions.quarks.spectroscopy import propagators
from gauge_mc.extensions.quarks.spectroscopy.observables import (
    SOLVES,
    USUAL_PAIRS,
    Baryons,
    Mesons,
    ResidualMassSums,
)
from gauge_mc.extensions.quarks.spectroscopy.quarks import QuarkMasses
from gauge_mc.extensions.quarks.vectors import SpinorField
from gauge_mc.extensions.quarks.vectors.basis import CONJUGATION, GAMMA_5, SIXTEEN
from gauge_mc.fields.field import Field
from tests.extensions.quarks.links import field_of
from tests.extensions.quarks.reference import hadrons as reference
from tests.extensions.quarks.reference import overlap, walls
from tests.extensions.quarks.reference.dirac import dense
from tests.reference.fields import random_field

LATTICE, SMALL = Lattice(2, 4, 2, 4), Lattice(2, 2, 2, 6)
KAPPAS = (0.1, 0.12)
PHASES = [1, 1, 1, -1]
HEIGHT, EXTENT = 1.7, 4
WALLS = f"domain-wall:LS={EXTENT},M5={HEIGHT},m=0.1,0.3"
OVERLAP = "overlap:rho=1.3,m=0.5,0.9,accuracy=1e-8,modes=6"
TOLERANCE = 1e-8


def propagator(field, links, kappa, text, sink=False, phases=PHASES, mu=0.0):
    """M^-1 times a source, [t, z, y, x, spin, colour, spin', colour']."""
    colours = links.shape[-1]
    source = parse_source(text, LATTICE)
    vectors = SpinorField.empty(field, "double", 4 * colours)
    source.fill(vectors, field)
    right = vectors.to_numpy()
    matrix = dense(links, kappa, phases, mu=mu)
    solution = np.linalg.solve(matrix, right.reshape(len(right), -1).T).T.reshape(right.shape)
    if sink:
        vectors.restore(solution)
        source.smear_sink(vectors, field)
        solution = vectors.to_numpy()
    split = solution.reshape(4, colours, *right.shape[1:])
    return np.moveaxis(split, (0, 1), (6, 7))


def links_on(group, rng, device=None, precision="double", lattice=LATTICE):
    links = random_field(lattice.extents, group, rng)
    return field_of(links, device, precision), links


def correlators(observable, field):
    """Correlators by the other columns of a record, which end in t, re and im."""
    found = {}
    for record in observable.measurer(field)(field):
        *labels, t, re, im = record
        found.setdefault(tuple(labels), {})[t] = complex(re, im)
    return {key: np.array([one[t] for t in range(len(one))]) for key, one in found.items()}


def sums(observable, field):
    """The columns of a table of sums, as arrays over t, by the mass and the source."""
    names, found = observable.columns.names, {}
    for record in observable.measurer(field)(field):
        row = dict(zip(names, record, strict=True))
        found.setdefault((row["m"], row["source"]), []).append(row)
    return {key: {n: np.array([row[n] for row in x]) for n in names} for key, x in found.items()}


def columns_at(matrix, place, colours):
    """S[t, z, y, x, spin, colour, spin, colour] from a place on the small lattice."""
    size, (x, y, z, t) = 4 * colours, place
    site = ((t * SMALL.z + z) * SMALL.y + y) * SMALL.x + x
    columns = matrix[:, size * site : size * (site + 1)]
    return columns.reshape(*SMALL.extents[::-1], 4, colours, 4, colours)


def wave(momentum, place):
    return reference.waves(LATTICE.extents, momentum, place)


@pytest.mark.longer
@pytest.mark.parametrize(
    ("text", "label", "options"),
    [
        ("point:1,3,0,2", "point@1;3;0;2", {"p2_max": 1}),
        ("wall:1", "wall@1", {}),
        ("gauss:1,3,1,3,0,2", "gauss:1;3-smeared@1;3;0;2", {"smear_sink": True}),
    ],
)
def test_mesons_of_dense_propagators(text, label, options, best_device, rng):
    field, links = links_on("su3", rng, best_device)
    words = {"kappa": "0.1,0.12", "source": (text,), **options}
    observable = Mesons.for_lattice(LATTICE, **words)
    place = observable.quarks.sources[0].place
    quarks = {
        kappa: propagator(field, links, kappa, text, "smear_sink" in options) for kappa in KAPPAS
    }
    found = correlators(observable, field)
    momenta = observable.quarks.momenta
    assert len(momenta) == (7 if "p2_max" in options else 1)
    assert len(found) * LATTICE.t == observable.records == 3 * len(momenta) * 18 * LATTICE.t
    for first, second in [(0.1, 0.1), (0.1, 0.12), (0.12, 0.12)]:
        for p in (momenta[0], momenta[-1]):
            for begin, end in USUAL_PAIRS:
                parts = quarks[first], quarks[second], SIXTEEN[end], SIXTEEN[begin]
                whole = reference.meson(*parts, wave(p, place[:3]))
                expected = 4 * first * second * np.roll(whole, -place[3])
                values = found[first, second, 0, 0, label, begin, end, *p]
                assert np.abs(values - expected).max() < TOLERANCE * np.abs(expected).max() + 1e-9


@pytest.mark.longer
def test_twisted_masses_of_dense_propagators(best_device, rng):
    """The antiquark has the twisted mass with the opposite sign."""
    field, links = links_on("su3", rng, best_device)
    observable = Mesons.for_lattice(LATTICE, kappa="0.1,0.12", mu="0.2,-0.3")
    assert observable.header["mu"] == "-0.3,0.2"
    found = correlators(observable, field)
    assert len(found) * LATTICE.t == observable.records == 10 * 18 * LATTICE.t
    still = wave((0, 0, 0), (0, 0, 0))
    quarks = {
        (kappa, mu): propagator(field, links, kappa, "point", mu=mu)
        for kappa, mu in ((0.1, 0.2), (0.1, -0.3), (0.12, -0.3))
    }
    for one, other in [((0.1, -0.3), (0.1, 0.2)), ((0.1, 0.2), (0.12, -0.3))]:
        (kappa1, mu1), (kappa2, mu2) = one, other
        for begin, end in (("g5", "g5"), ("gx", "gx"), ("g5", "gtg5")):
            parts = quarks[one], quarks[other], SIXTEEN[end], SIXTEEN[begin], still
            expected = 4 * kappa1 * kappa2 * reference.meson(*parts)
            values = found[kappa1, kappa2, mu1, mu2, "point@0;0;0;0", begin, end, 0, 0, 0]
            assert np.abs(values - expected).max() < 1e-9


def test_all_pairs_of_matrices(rng):
    field, links = links_on("su3", rng)
    observable = Mesons.for_lattice(LATTICE, kappa="0.1", all_gammas=True)
    found = correlators(observable, field)
    assert len(found) == 256
    quark = propagator(field, links, 0.1, "point")
    for begin, end in [("gx", "gxgt"), ("gtg5", "g5"), ("gyg5", "unit")]:
        parts = SIXTEEN[end], SIXTEEN[begin], wave((0, 0, 0), (0, 0, 0))
        whole = reference.meson(quark, quark, *parts)
        values = found[0.1, 0.1, 0, 0, "point@0;0;0;0", begin, end, 0, 0, 0]
        assert np.abs(values - 0.04 * whole).max() < 1e-9


@pytest.mark.longer
def test_nucleons_of_dense_propagators(best_device, rng):
    field, links = links_on("su3", rng, best_device, "single")
    links = field.to_numpy()
    observable = Baryons.for_lattice(LATTICE, kappa="0.1,0.12", source=("point:1,3,0,2",))
    found = correlators(observable, field)
    assert len(found) * LATTICE.t == observable.for_group(field.group.name).records
    quarks = {kappa: propagator(field, links, kappa, "point:1,3,0,2") for kappa in KAPPAS}
    gamma = CONJUGATION @ GAMMA_5
    ahead = np.arange(LATTICE.t) < 2
    for up in KAPPAS:
        for down in KAPPAS:
            parts = quarks[up], quarks[down], gamma, gamma, wave((0, 0, 0), (1, 3, 0))
            whole = np.roll(reference.baryon(*parts), -2, axis=0)
            whole *= np.where(ahead, 1, -1)[:, None, None]
            for parity in (1, -1):
                expected = 8 * up**2 * down * reference.projected(whole, parity)
                values = found[up, down, 0, 0, "point@1;3;0;2", "nucleon", parity, 0, 0, 0]
                assert np.abs(values - expected).max() < 1e-7 * np.abs(expected).max()
    deltas = [key for key in found if key[5] == "delta"]
    assert [key[:2] for key in deltas] == [(k, k) for k in KAPPAS for _ in range(2)]


@pytest.mark.longer
def test_diquarks_are_degenerate_with_mesons(best_device, rng):
    lattice = Lattice(4, 4, 4, 4)
    field = field_of(random_field(lattice.extents, "su2", rng), best_device)
    options = {"kappa": "0.1,0.12", "source": ("point:1,3,0,2",), "p2_max": 1}
    mesons = correlators(Mesons.for_lattice(lattice, **options), field)
    observable = Baryons.for_lattice(lattice, **options)
    found = correlators(observable, field)
    assert len(found) * lattice.t == observable.for_group(field.group.name).records
    parities = {}
    for (*quarks, name, parity, px, py, pz), values in found.items():
        gamma = name.removeprefix("diquark-")
        parities[gamma] = parity
        meson = mesons[*quarks, gamma, gamma, px, py, pz]
        assert np.abs(values - meson).max() < TOLERANCE * np.abs(meson).max()
    assert (parities["g5"], parities["unit"], parities["gx"], parities["gxg5"]) == (1, -1, 1, -1)


@pytest.mark.slow
def test_deflated_solutions_are_the_same_in_fewer_iterations(best_device, rng, tmp_path):
    """Modes of every kappa are kept, and read by the next measurement, whose rows are the same."""
    field, _ = links_on("su3", rng, best_device)
    options = {"kappa": "0.2,0.22", "source": ("point", "wall:1")}

    def measured(**more):
        observable = Mesons.for_lattice(LATTICE, **options, **more)
        found = observable.measurer(field)(field)
        return np.array([row[-2:] for row in found]), list(found.secondary[SOLVES.name])

    plain, slow = measured(solver="cg")
    deflated, fast = measured(deflate=4, stored_modes=str(tmp_path))
    files = {one: one.read_bytes() for one in tmp_path.iterdir()}
    assert len(files) == 2
    assert np.abs(deflated - plain).max() < TOLERANCE * np.abs(plain).max()
    columns = [one.name for one in SOLVES.columns]
    iterations, residual = columns.index("iterations"), columns.index("residual")
    for one, before in zip(fast, slow, strict=True):
        assert one[iterations] < 0.9 * before[iterations]
        assert one[residual] <= 1e-10
    again, _ = measured(deflate=4, stored_modes=str(tmp_path))
    np.testing.assert_array_equal(again, deflated)
    assert {one: one.read_bytes() for one in tmp_path.iterdir()} == files


@pytest.mark.slow
def test_twisted_boundaries_of_free_quarks(best_device):
    """The pion that the tests of contractions know, from the command's options."""
    lattice = Lattice(4, 4, 4, 8)
    field = Field.cold(lattice, "su3", "double", best_device)
    observable = Mesons.for_lattice(lattice, kappa="0.1", boundary="0.2,0.4,0,0")
    found = [one[11] for one in observable.measurer(field)(field) if one[5:7] == ("g5", "g5")]
    known = [0.550448091581, 0.018777678858, 0.001913035711, 0.000304754974, 0.000111618742]
    np.testing.assert_allclose(found[:5], known, rtol=3e-7)


def wall_propagator(links, mass, place, **coefficients):
    """The propagator from a point, by the dense effective operator."""
    d, _, _ = walls.effective(links, EXTENT, mass, HEIGHT, PHASES, **coefficients)
    return columns_at((np.linalg.inv(d) - np.eye(len(d))) / (1 - mass), place, links.shape[-1])


@pytest.mark.longer
@pytest.mark.parametrize(
    "place", [(1, 0, 1, 4), pytest.param((0, 0, 0, 0), marks=pytest.mark.slow)]
)
def test_sums_of_wall_propagators(place, best_device, rng):
    field, links = links_on("su2", rng, best_device, lattice=SMALL)
    point = "point:" + ",".join(map(str, place))
    observable = ResidualMassSums.for_lattice(SMALL, quark=WALLS, source=(point,))
    found = sums(observable, field)
    label = "point@" + ";".join(map(str, place))
    assert list(found) == [(0.1, label), (0.3, label)]
    for (mass, _), records in found.items():
        s = wall_propagator(links, mass, place)
        pion = np.roll((abs(s) ** 2).sum(axis=(1, 2, 3, 4, 5, 6, 7)), -place[3])
        assert np.abs(records["pion"] - pion).max() < 1e-8 * pion.max()
        x, y, z, t = place
        contact = np.trace(s[t, z, y, x].reshape(8, 8)).real * (np.arange(SMALL.t) == 0)
        assert np.abs(records["contact"] - contact).max() < 1e-8 * abs(contact).max()
        middle, ratio = records["midpoint"], records["m_res"]
        assert contact.sum() == pytest.approx(mass * pion.sum() + middle.sum(), rel=1e-8)
        np.testing.assert_allclose(ratio, middle / pion, rtol=1e-8)
        axial = records["axial"]
        change = (axial - np.roll(axial, 1))[1:]
        assert np.abs(change - 2 * (mass * pion + middle)[1:]).max() < 1e-8 * pion.max()
        kind = SIXTEEN["gtg5"], SIXTEEN["g5"], np.ones(SMALL.extents[2::-1])
        local = np.roll(reference.meson(s, s, *kind).real, -t)
        assert np.abs(records["local_axial"] - local).max() < 1e-8 * abs(local).max()


@pytest.mark.slow
def test_optimal_weights_have_no_midpoint_but_a_residual_mass(best_device, rng):
    field, links = links_on("su2", rng, best_device, lattice=SMALL)
    words = f"domain-wall:LS={EXTENT}:M5={HEIGHT}:b=1:c=1:optimal=0.2,6:m=0.1"
    observable = ResidualMassSums.for_lattice(SMALL, quark=words)
    assert "midpoint" not in observable.columns.names
    (records,) = sums(observable, field).values()
    w = optimal_weights(EXTENT, 0.2, 6)
    s = wall_propagator(links, 0.1, (0, 0, 0, 0), b=1, c=1, weights=w)
    pion = (abs(s) ** 2).sum(axis=(1, 2, 3, 4, 5, 6, 7))
    assert np.abs(records["pion"] - pion).max() < 1e-8 * pion.max()


@pytest.mark.slow
def test_mesons_and_baryons_of_wall_propagators(best_device, rng):
    """Also of two quarks with different masses."""
    field, links = links_on("su3", rng, best_device, lattice=SMALL)
    quark = QuarkMasses("domain-wall", ls=EXTENT, m5=HEIGHT, m=(0.1, 0.3))
    kappa = 1 / (8 - 2 * HEIGHT)
    mesons = correlators(Mesons.for_lattice(SMALL, quark=quark), field)
    s = {m: wall_propagator(links, m, (0, 0, 0, 0)) for m in (0.1, 0.3)}
    still = np.ones(SMALL.extents[2::-1])
    for one, other, gamma in ((0.1, 0.1, "g5"), (0.1, 0.3, "gx"), (0.3, 0.3, "gtg5")):
        expected = reference.meson(s[one], s[other], SIXTEEN[gamma], SIXTEEN[gamma], still)
        key = (kappa, kappa, 0, 0, one, other, "point@0;0;0;0", gamma, gamma, 0, 0, 0)
        assert np.abs(mesons[key] - expected).max() < 1e-8 * np.abs(expected).max()
    baryons = correlators(Baryons.for_lattice(SMALL, quark=quark).for_group("su3"), field)
    assert len(baryons) == 2 * (4 + 2)


@pytest.mark.longer
def test_the_interval_is_measured(best_device, rng):
    """The ends of the spectrum of H_w of these links, against all eigenvalues."""
    field, links = links_on("su2", rng, best_device, lattice=SMALL)
    quark = QuarkMasses.parse(f"domain-wall:LS=6,M5={HEIGHT},b=1,c=1,optimal=measured,m=0.1")
    operator = quark.made(field, 0.1, PHASES)
    _, values, _ = walls.effective(links, EXTENT, 0.1, HEIGHT, PHASES, b=1, c=1)
    low, high = operator.measured_interval(1.0)
    assert 0.98 * abs(values).min() < low <= abs(values).min() * (1 + 1e-9)
    assert 1.01 * abs(values).max() > high >= abs(values).max() * (1 - 1e-9)
    assert np.array_equal(operator.weights, optimal_weights(6, low, high))


def test_headers_state_both_normalisations_of_the_mass():
    header = Mesons.for_lattice(SMALL, quark=WALLS).header
    assert header["m"] == "0.1,0.3"
    assert header["m_q = 2 M5 m"] == "0.34,1.02"
    assert header["operator"] == "domain-wall:ls=4:m5=1.7:b=1.0:c=0.0"
    assert "S = (D_c + m)^-1" in header["normalisation"]
    assert "kappa M^-1" not in header["normalisation"]


def overlap_propagator(links, mass, place, rho=1.3):
    """The propagator from a point, without the contact term."""
    colours = links.shape[-1]
    d = overlap.overlap(overlap.kernel(links, rho, PHASES), rho, colours, mass)
    s = (2 * rho * np.linalg.inv(d) - np.eye(len(d))) / (2 * rho - mass)
    return columns_at(s, place, colours)


@pytest.mark.longer
@pytest.mark.parametrize("words", [OVERLAP, OVERLAP + ",deflated=3"])
def test_mesons_of_dense_overlap_propagators(words, best_device, rng):
    """Also of two quarks with different masses, whose solutions are found together."""
    field, links = links_on("su2", rng, best_device, lattice=SMALL)
    options = {"source": ("point:1,0,1,2",), "tolerance": 1e-7}
    found = correlators(Mesons.for_lattice(SMALL, quark=words, **options), field)
    s = {m: overlap_propagator(links, m, (1, 0, 1, 2)) for m in (0.5, 0.9)}
    still, kappa = np.ones(SMALL.extents[2::-1]), 1 / (8 - 2 * 1.3)
    for one, other, gamma in ((0.5, 0.5, "g5"), (0.5, 0.9, "gx"), (0.9, 0.9, "gtg5")):
        exact = reference.meson(s[one], s[other], SIXTEEN[gamma], SIXTEEN[gamma], still)
        key = (kappa, kappa, 0, 0, one, other, "point@1;0;1;2", gamma, gamma, 0, 0, 0)
        difference = found[key] - np.roll(exact, -2)
        assert np.abs(difference).max() < 1e-6 * np.abs(exact).max()


@pytest.mark.slow
def test_baryons_share_the_operator_and_the_propagators(best_device, rng):
    """Modes are looked for once, and every mass is solved for once."""
    field, _ = links_on("su3", rng, best_device, lattice=SMALL)
    quark = QuarkMasses("overlap", rho=1.4, m=(0.3, 0.6), accuracy=1e-4, modes=4)
    observables = [
        Mesons.for_lattice(SMALL, quark=quark, tolerance=1e-3),
        Baryons.for_lattice(SMALL, quark=quark, tolerance=1e-3).for_group("su3"),
    ]
    with field.devices.measuring():
        mesons, baryons = (one.measurer(field)(field) for one in observables)
    assert [len(one) for one in (mesons, baryons)] == [one.records for one in observables]
    for table in ("solves", "operator"):
        assert mesons.secondary[table] == baryons.secondary[table]  # with the times
    assert len(mesons.secondary["solves"]) == 2
    assert [one[2] for one in mesons.secondary["solves"]] == [0.3, 0.6]


@pytest.mark.slow
def test_the_tables_beside_that_of_the_correlators(best_device, rng):
    field, _ = links_on("su2", rng, best_device, lattice=SMALL)
    words = "overlap:m=1,1.5,accuracy=1e-2,modes=4,approximation=zolotarev"
    sources = ("point:0,0,0,0", "wall:1")
    mesons = Mesons.for_lattice(SMALL, quark=words, tolerance=0.1, source=sources)
    assert [one.name for one in mesons.secondary_tables] == ["solves", "operator"]
    found = mesons.measurer(field)(field).secondary
    assert [(one[2], one[3]) for one in found["solves"]] == [
        (mass, label) for label in ("point@0;0;0;0", "wall@1") for mass in (1, 1.5)
    ]
    assert max(one[-2] for one in found["solves"]) <= 0.1
    (operator,) = found["operator"]
    named = dict(zip(mesons.secondary_tables[1].columns.names, operator, strict=True))
    assert named["approximation"] == "zolotarev"
    assert 0 < named["bound"] <= 1e-2
    assert 0 < named["modes"] <= 4


@pytest.mark.longer
@pytest.mark.parametrize(("options", "columns"), [({}, 4), ({"together": 3}, 3)])
def test_lines_about_the_columns_that_are_solved_for(
    options, columns, best_device, rng, monkeypatch, capsys
):
    """They are only there if work takes long; by default four columns of SU(2) have a chirality."""
    field, _ = links_on("su2", rng, best_device, lattice=SMALL)
    words = "overlap:rho=1.3,m=0.9,accuracy=1e-3,modes=6"
    mesons = Mesons.for_lattice(SMALL, quark=words, tolerance=1e-2, **options)
    monkeypatch.setattr(propagators, "SILENCE", math.inf)  # no work takes so long
    correlators(mesons, field)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(propagators, "SILENCE", 0.0)
    correlators(Mesons.for_lattice(SMALL, quark=words, tolerance=1e-2, **options), field)
    prepared, first, *_, last = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"gauge-mc: operator: overlap, prepared in \d+\.\d s", prepared)
    assert f": {columns} of 8 columns, the last {columns} with " in first
    assert ": 8 of 8 columns, the last " in last


def test_headers():
    header = Mesons.for_lattice(SMALL, quark=OVERLAP).header
    assert header["operator"] == "overlap:rho=1.3:modes=6:accuracy=1e-08"
    assert header["m"] == "0.5,0.9"
    assert "S = (1 - D(0) / (2 rho)) D(m)^-1" in header["normalisation"]
    deflated = Mesons.for_lattice(SMALL, quark="overlap:m=0.1,deflated=4").header["operator"]
    assert deflated == "overlap:deflated=4:rho=1.4:accuracy=1e-08:modes=20"


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ({"kappa": "0.11,0.12"}, {"kappa": [0.12, 0.11]}),
        ({"kappa": "0.1", "mu": "1"}, {"kappa": 0.1, "mu": 1}),
        ({"kappa": "0.1", "boundary": "0,0.5,0,1"}, {"kappa": 0.1, "boundary": (0, 0.5, 0, 1)}),
    ],
)
def test_options_take_numbers_as_well_as_text(text, typed):
    first, second = (Mesons.for_lattice(LATTICE, **one) for one in (text, typed))
    assert first.header == second.header
    assert first.records == second.records
    usual = Mesons.for_lattice(LATTICE, kappa=0.1)
    assert (usual.header, usual.records) != (second.header, second.records)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "--kappa is missing; give the hopping parameters"),
        ({"kappa": "-0.1"}, "--kappa is -0.1; give a number from 1e-06 to 1000000"),
        ({"kappa": "0.1", "mu": "0,inf"}, "--mu is '0,inf'; give one number, or several"),
        ({"kappa": "nan"}, "--kappa is 'nan'; give one number, or several"),
        ({"kappa": [0.1, float("nan")]}, "--kappa is nan; give a number"),
        ({"kappa": -0.1}, "--kappa is -0.1; give a number"),
        ({"kappa": 0.1, "boundary": (0, 1)}, "give antiperiodic or periodic, or four"),
        ({"kappa": "0.1", "boundary": "twice"}, "--boundary is 'twice'; give antiperiodic or peri"),
        ({"kappa": "0.1", "boundary": "1,2,3"}, "or four angles in units of pi, such as 0,0,0,1"),
        ({"kappa": "0.1", "smear_sink": True}, "--smear-sink needs a source that is smeared"),
        ({"kappa": "0.1", "p2_max": -1}, "--p2-max is -1; give a whole number from 0 to 100"),
        ({"kappa": "0.1", "p2_max": 9}, "--p2-max is 9, but n and n - L are the same momentum on"),
        ({"kappa": "0.1", "deflate": 0}, "--deflate is 0; give a whole number from 1 to 500"),
        ({"quark": "domain-wall:m=0.1", "deflate": 2}, "--deflate is for quarks with a hopping"),
        ({"kappa": "0.1", "deflate": 2, "solver": "bicgstab"}, "--deflate is for solvers that use"),
        ({"kappa": "0.1", "stored_modes": "f"}, "--stored-modes keeps the low modes of --deflate"),
        ({"quark": WALLS, "kappa": "0.1"}, "--quark has all parameters of the quarks"),
        ({"quark": WALLS, "propagators": "folder"}, "only propagators of quarks with a hopping"),
        ({"quark": "domain-wall:LS=4"}, "The masses m of the quarks are missing"),
        ({"quark": "domain-wall:m=-0.1"}, "m of --quark domain-wall is -0.1"),
        ({"quark": "domain-wall:M5=2,m=0.1"}, "domain-wall is 2; give a number between 0 and 2"),
        ({"quark": "domain-wall:optimal=measured,m=0.1"}, "measured only for b = c"),
        ({"quark": "domain-wall:optimal=abc,m=0.1"}, "give two numbers, or measured"),
        ({"quark": "domain-wall:optimal=5,1,m=0.1"}, "the smaller one first"),
        ({"quark": "domain-wall:optimal=5,m=0.1"}, "optimal has 1 number; give two"),
        ({"quark": "domain-wall:LS=100000,m=0.1"}, "LS of --quark domain-wall is 100000; give a"),
        ({"quark": "domain-wall:m=0.1,domain-wall:m=0.2"}, "has 2 operators; give one"),
        ({"quark": "overlap:rho=2,m=0.1"}, "rho of --quark overlap is 2; give a number between 0"),
        ({"quark": "overlap:rho=1,m=0.1,2"}, "give numbers from 0 to below 2 rho, which is 2"),
        ({"quark": "overlap:m=-0.1"}, "m of --quark overlap is -0.1"),
        ({"quark": "overlap:m=0.1,accuracy=0"}, "accuracy"),
        ({"quark": "overlap:m=0.1,approximation=pade"}, "There is no approximation 'pade' of the"),
        ({"quark": "overlap:LS=4,m=0.1"}, "The operator overlap has no parameter ls"),
        ({"quark": "overlap:m=0.1", "solver": "bicgstab"}, "are solved for by cg, not by bicgstab"),
        ({"quark": "overlap:m=0.1", "inner": "single"}, "--inner has no effect"),
        ({"quark": "overlap:m=0.1", "reduction": 0.1}, "--reduction has no effect"),
        ({"quark": "overlap:m=0.1", "links": 18}, "--links has no effect"),
    ],
)
@pytest.mark.parametrize("kind", [Mesons, Baryons])
def test_what_is_refused(kind, options, sentence):
    with pytest.raises(UsageError, match=sentence):
        _ = kind.for_lattice(LATTICE, **options).records


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "--quark is missing"),
        ({"quark": WALLS, "smear_sink": True, "source": ("gauss:1,3",)}, "is for local sinks"),
    ],
)
def test_residual_masses_that_are_refused(options, message):
    with pytest.raises(UsageError, match=message):
        assert ResidualMassSums.for_lattice(SMALL, **options).records
