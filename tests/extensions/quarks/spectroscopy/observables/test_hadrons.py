"""Correlators of mesons and baryons, compared with those of dense matrices that are inverted."""

import numpy as np
import pytest

from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import UsageError
from gauge_mc.extensions.quarks.sources import parse_source
from gauge_mc.extensions.quarks.spectroscopy.observables import SOLVES, USUAL_PAIRS, Baryons, Mesons
from gauge_mc.extensions.quarks.vectors import SpinorField
from gauge_mc.extensions.quarks.vectors.basis import CONJUGATION, GAMMA_5, SIXTEEN
from gauge_mc.fields.field import Field
from tests.extensions.quarks.links import field_of
from tests.extensions.quarks.reference import hadrons as reference
from tests.extensions.quarks.reference.dirac import dense
from tests.reference.fields import random_field

LATTICE = Lattice(2, 4, 2, 4)
KAPPAS = (0.1, 0.12)
PHASES = (1, 1, 1, -1)
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


def links_on(group, rng, device=None, precision="double"):
    links = random_field(LATTICE.extents, group, rng)
    return field_of(links, device, precision), links


def rows(observable, field):
    """Correlators by the other columns of a record, which end in t, re and im."""
    found = {}
    for record in observable.measurer(field)(field):
        *labels, t, re, im = record
        found.setdefault(tuple(labels), {})[t] = complex(re, im)
    return {key: np.array([one[t] for t in range(LATTICE.t)]) for key, one in found.items()}


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
    found = rows(observable, field)
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
    found = rows(observable, field)
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
    found = rows(observable, field)
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
    found = rows(observable, field)
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
    mesons = rows(Mesons.for_lattice(lattice, **options), field)
    observable = Baryons.for_lattice(lattice, **options)
    found = rows(observable, field)
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


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "--kappa is missing; give the hopping parameters"),
        ({"kappa": "-0.1"}, "--kappa is -0.1; give a number from 1e-06 to 1000000"),
        ({"kappa": "0.1", "mu": "0,inf"}, "--mu is '0,inf'; give one number, or several"),
        ({"kappa": "nan"}, "--kappa is 'nan'; give one number, or several"),
        ({"kappa": "0.1", "boundary": "twice"}, "--boundary is 'twice'; give antiperiodic or peri"),
        ({"kappa": "0.1", "boundary": "1,2,3"}, "or four angles in units of pi, such as 0,0,0,1"),
        ({"kappa": "0.1", "smear_sink": True}, "--smear-sink needs a source that is smeared"),
        ({"kappa": "0.1", "p2_max": -1}, "--p2-max is -1; give a whole number from 0 to 100"),
        ({"kappa": "0.1", "p2_max": 9}, "--p2-max is 9, but n and n - L are the same momentum on"),
        ({"kappa": "0.1", "deflate": 0}, "--deflate is 0; give a whole number from 1 to 500"),
        ({"quark": "domain-wall:m=0.1", "deflate": 2}, "--deflate is for quarks with a hopping"),
        ({"kappa": "0.1", "deflate": 2, "solver": "bicgstab"}, "--deflate is for solvers that use"),
        ({"kappa": "0.1", "stored_modes": "f"}, "--stored-modes keeps the low modes of --deflate"),
    ],
)
@pytest.mark.parametrize("kind", [Mesons, Baryons])
def test_what_is_refused(kind, options, sentence):
    with pytest.raises(UsageError, match=sentence):
        _ = kind.for_lattice(LATTICE, **options).records
