"""The chiral condensate, against dense propagators; its fit and plot on synthetic estimates."""

import json

import numpy as np
import pytest

import gauge_mc
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.extensions.quarks.condensate import COLUMNS, Condensate
from gauge_mc.extensions.quarks.condensate_fit import disconnected, pairs_of_sources
from gauge_mc.extensions.quarks.operators.domain_wall import optimal_weights
from gauge_mc.extensions.quarks.vectors import SpinorField
from gauge_mc.fields.sums import PLAQUETTE, lattice_sums
from gauge_mc.files.table import Table, read_table, write_table
from gauge_mc.observables.noise_reduction import digest_of
from gauge_mc.run.thermalisation import series_of
from tests.extensions.quarks.links import check_divisions, field_of
from tests.extensions.quarks.reference import dirac, overlap, walls
from tests.extensions.quarks.synthetic_hadrons import HEADER
from tests.reference.fields import random_field

LATTICE = Lattice(2, 2, 2, 4)
PHASES = [1, 1, 1, -1]
KAPPA, HEIGHT, EXTENT = 0.12, 1.7, 4


def wilson(links, kappa, mu=0.0, csw=0.0):
    """(D + m0)^-1."""
    return 2 * kappa * np.linalg.inv(dirac.dense(links, kappa, PHASES, mu, csw))


def wall(links, mass, **coefficients):
    d, _, _ = walls.effective(links, EXTENT, mass, HEIGHT, PHASES, **coefficients)
    return (np.linalg.inv(d) - np.eye(len(d))) / (1 - mass)


def overlap_quark(links, mass, rho=1.5):
    h = overlap.kernel(links, rho, PHASES)
    d, massless = (overlap.overlap(h, rho, links.shape[-1], m) for m in (mass, 0.0))
    return (np.eye(len(d)) - massless / (2 * rho)) @ np.linalg.inv(d)


def gamma5(size, colours):
    return overlap.gamma5(size, colours).diagonal()


def sources_of(observable, field):
    digest = digest_of(lattice_sums(field, PLAQUETTE, values=2))
    found = {}
    for source in observable._noise_sources(digest):
        vectors = SpinorField.empty(field, "double", len(source.parts))
        source.fill(vectors, field)
        found.setdefault(source.number, []).extend(vectors.to_numpy().reshape(vectors.count, -1))
    return {number: np.array(parts).T for number, parts in found.items()}


def estimates(s, eta, colours):
    five, sites = gamma5(len(s), colours), LATTICE.sites
    traces = [np.trace(eta.conj().T @ m @ eta) for m in (s, five[:, None] * s, s @ s)]
    pion = (np.abs(s @ eta) ** 2).sum()
    scalar, pseudoscalar, connected = traces
    numbers = scalar.real, scalar.imag, pseudoscalar.real, pseudoscalar.imag, connected.real, pion
    return np.array(numbers) / sites


def measured(observable, field):
    """The values of every row by the columns before them."""
    rows = observable.measurer(field)(field)
    tables = {one.name: one.records(observable) for one in observable.secondary_tables}
    for name, records in rows.secondary.items():
        assert len(records) == tables.get(name, 0)  # a run that is continued counts on it
    names = observable.columns.names
    first = len([one for one in observable.columns.indices if one in names])
    return {row[:first]: np.array(row[first:]) for row in rows}


def links_on(rng, device, group="su2"):
    links = random_field(LATTICE.extents, group, rng)
    return field_of(links, device), links


def check(options, propagators, field):
    """Compare all rows with those of dense propagators by the columns of the quark."""
    observable = Condensate.for_lattice(LATTICE, **options).for_group(field.group.name)
    found, vectors = measured(observable, field), sources_of(observable, field)
    assert len(found) == len(propagators) * len(vectors) == observable.records
    for eta in vectors.values():
        assert ((eta != 0).sum(axis=1) == 1).all()  # every component is in one part
    for (*quark, number), row in found.items():
        expected = estimates(propagators[tuple(quark)], vectors[number], field.group.colours)
        assert np.abs(row - expected).max() < 1e-7 * np.abs(expected).max()


@pytest.mark.longer
@pytest.mark.parametrize("noise", ["z4", pytest.param("gaussian", marks=pytest.mark.slow)])
def test_twisted_and_untwisted_wilson_quarks(noise, best_device, rng):
    field, links = links_on(rng, best_device)
    quarks = [(KAPPA, mu) for mu in (0.0, 0.2)]
    options = {"kappa": str(KAPPA), "mu": "0,0.2", "sources": 2, "noise": noise}
    check(options, {one: wilson(links, *one) for one in quarks}, field)


@pytest.mark.slow
@pytest.mark.parametrize("dilute", ["spin,colour", "even-odd,time"])
def test_diluted_sources_of_clover_quarks(dilute, best_device, rng):
    field, links = links_on(rng, best_device, "su3")
    options = {"kappa": str(KAPPA), "csw": 1.4, "sources": 2, "dilute": dilute}
    check(options, {(KAPPA, 0.0): wilson(links, KAPPA, csw=1.4)}, field)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "given"),
    [
        ("", {}),
        ("b=1.5,c=0.5,", {"b": 1.5, "c": 0.5}),
        ("b=1,c=1,", {"b": 1.0, "c": 1.0}),
        (
            "b=1,c=1,optimal=0.3,6,",
            {"b": 1.0, "c": 1.0, "weights": optimal_weights(EXTENT, 0.3, 6)},
        ),
    ],
    ids=["shamir", "moebius", "borici", "optimal"],
)
def test_domain_wall_quarks(words, given, best_device, rng):
    field, links = links_on(rng, best_device)
    kappa = 1 / (8 - 2 * HEIGHT)
    found = {(kappa, 0.0, m): wall(links, m, **given) for m in (0.1, 0.3)}
    quark = f"domain-wall:LS={EXTENT},M5={HEIGHT},{words}m=0.1,0.3"
    check({"quark": quark, "sources": 2}, found, field)


@pytest.mark.slow
def test_overlap_quarks_and_their_ward_identity(best_device, rng):
    """Errors of the sign function may be 2 rho / m times as large in propagators."""
    field, links = links_on(rng, best_device)
    options = {"quark": "overlap:rho=1.5,accuracy=1e-10,m=0.1,0.4", "sources": 2}
    found = {(1 / (8 - 3), 0.0, m): overlap_quark(links, m) for m in (0.1, 0.4)}
    check(options, found, field)
    observable = Condensate.for_lattice(LATTICE, **options).for_group("su2")
    for (_, _, mass, _), row in measured(observable, field).items():
        assert row[0] == pytest.approx(mass * row[-1], rel=1e-7)  # scalar = m pion, by every source


@pytest.mark.slow
def test_averages_over_sources_are_traces(best_device, rng):
    """Of 60 sources, within four errors, with and without dilution."""
    field, links = links_on(rng, best_device)
    s = wilson(links, KAPPA)
    exact = estimates(s, np.eye(len(s)), 2)
    spreads = []
    for dilute in ("none", "spin,colour,even-odd,time"):
        options = {"kappa": str(KAPPA), "sources": 60, "dilute": dilute}
        observable = Condensate.for_lattice(LATTICE, **options).for_group("su2")
        rows = np.array([*measured(observable, field).values()])
        error = rows.std(axis=0, ddof=1) / np.sqrt(len(rows))
        assert (np.abs(rows.mean(axis=0) - exact) < 4 * error + 1e-9).all()
        spreads.append(error[0])
    assert spreads[1] < spreads[0]


@pytest.mark.slow
def test_slabs_give_the_same_bytes(rng):
    links = random_field(LATTICE.extents, "su2", rng)
    options = {"kappa": str(KAPPA), "noise": "gaussian", "dilute": "time,colour"}
    observable = Condensate.for_lattice(LATTICE, **options).for_group("su2")

    def calculate(devices):
        field = field_of(links, devices)
        return observable.measurer(field)(field)

    check_divisions("cpu-16", [(4,), (2, 2)], calculate)


def test_headers_say_how_the_sources_are_made():
    options = {"kappa": "0.1", "dilute": "colour,spin", "noise_seed": 7}
    header = Condensate.for_lattice(LATTICE, **options).header
    assert header["sources"] == "4 of z4 noise, divided by chirality, spin, colour"
    assert header["noise_seed"] == "7"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dilute": "chiral"}, "--dilute is 'chiral', but sources are not divided by chiral; give"),
        ({"dilute": "none,spin"}, "leave out none, or all others"),
        ({"noise": "z5"}, "--noise: There is no noise 'z5'; did you mean 'z"),
        ({"sources": 0}, "--sources is 0; give a whole number from 1"),
        ({"source": ("point",)}, "--source is not an option of condensate"),
        ({"propagators": "here"}, "--propagators is not an option of condensate"),
    ],
)
def test_what_is_refused(options, message):
    with pytest.raises(UsageError, match=message):
        Condensate.for_lattice(LATTICE, **{"kappa": "0.1", **options})


def printed(path, quark, propagator, volume):
    """The result of the fit to a table whose sources all give the exact traces of a propagator."""
    five = gamma5(len(propagator), 2) * np.diagonal(propagator)
    traces = np.array([np.trace(propagator), five.sum()]) / volume
    row = (*quark, 0, *traces.view(float), 0.0, 0.0)
    header = HEADER | {"group": "su2", "lattice": str(LATTICE), "operator": "overlap"}
    with Table(path, header, ("sweep", *COLUMNS.complete().names)) as table:
        table.append((n + 1, *row) for n in range(20))
    return gauge_mc.fit("condensate", path).found.quarks[0]


@pytest.mark.longer
def test_printed_condensates_are_derivatives_of_the_determinant(tmp_path, rng):
    """By the mass, and by the twisted mass: −⟨ψ̄ψ⟩ and −⟨iψ̄γ₅τ₃ψ⟩ per flavour and site."""
    links = random_field(LATTICE.extents, "su2", rng)
    operators = {
        "wilson": lambda m, mu: dirac.dense(links, 1 / (2 * m + 8), PHASES, mu, 0.0) * (m + 4),
        "wall": lambda m, mu: walls.effective(links, EXTENT, m, HEIGHT, PHASES)[0],
        "overlap": lambda m, mu: overlap.overlap(overlap.kernel(links, 1.5, PHASES), 1.5, 2, m),
    }
    propagators = {
        "wilson": lambda m, mu: wilson(links, 1 / (2 * m + 8), mu),
        "wall": lambda m, mu: wall(links, m),
        "overlap": lambda m, mu: overlap_quark(links, m),
    }
    step, volume = 1e-4, LATTICE.sites
    for name, mass, mu in (("wilson", 0.1, 0.2), ("wall", 0.2, 0.0), ("overlap", 0.2, 0.0)):

        def log(mass, mu, operator=operators[name]):
            return np.linalg.slogdet(operator(mass, mu))[1]

        found = printed(tmp_path / name, (0.1, mu, mass), propagators[name](mass, mu), volume)
        by_mass = (log(mass + step, mu) - log(mass - step, mu)) / (2 * step * volume)
        assert found.condensate.value == pytest.approx(by_mass, rel=1e-6)
        if mu:  # ln |det M| is even in mu
            by_mu = (log(mass, mu + step) - log(mass, mu - step)) / (2 * step * volume)
            assert found.twisted.value == pytest.approx(by_mu, rel=1e-6)


VOLUME = 16**3 * 32
SAMPLES, SOURCES = 60, 5
MASSES = (0.02, 0.04, 0.06)
GAUGE, NOISE = 2e-3, 4e-3
"""Standard deviations of Tr S / V from one configuration to the next, and of one estimate."""


def scalar(mass):
    return 0.1 + 2.5 * mass


def write_condensates(path, rng, sources=SOURCES, noise=NOISE):
    """Write a table of three masses; the same links and sources belong to all of them."""
    with Table(path, {**HEADER, "operator": "overlap"}, ("sweep", *COLUMNS.complete().names)) as t:
        for n in range(SAMPLES):
            common, each = GAUGE * rng.normal(), noise * rng.normal(size=sources)
            t.append(
                (
                    *(10 * (n + 1), 0.2, 0.0, m, source, scalar(m) + common + each[source], 0.0),
                    *(0.01 * rng.normal(), 0.0, -2.5 + 0.01 * rng.normal(), scalar(m) / m),
                )
                for m in MASSES
                for source in range(sources)
            )
    return path


def test_averages_noise_and_lines(tmp_path, rng):
    found = gauge_mc.fit("condensate", write_condensates(tmp_path / "condensate.csv", rng)).found
    noise = NOISE / np.sqrt(SOURCES * SAMPLES)
    gauge = GAUGE / np.sqrt(SAMPLES)
    for one, chi in zip(found.quarks, found.susceptibilities, strict=True):
        assert abs(one.condensate.value - scalar(one.m)) < 4 * one.condensate.error
        assert one.noise_error == pytest.approx(noise, rel=0.25)
        assert one.link_error == pytest.approx(gauge, rel=0.6)
        both = np.hypot(one.noise_error, one.link_error)
        assert both == pytest.approx(one.condensate.error)
        assert abs(chi.disconnected.value - VOLUME * GAUGE**2) < 4 * chi.disconnected.error
        assert abs(chi.connected.value - 2.5) < 4 * chi.connected.error
        total = 4 * chi.disconnected.value + 2 * chi.connected.value
        assert chi.total.value == pytest.approx(total)
        assert chi.total.error >= 4 * chi.disconnected.error
    (line,) = found.lines
    assert abs(line.intercept.value - 0.1) < 4 * line.intercept.error
    assert line.slope.value == pytest.approx(2.5)


def test_products_of_different_sources_have_no_square_of_the_noise(rng):
    """On 4000 short series, of which each has a mean of its own; the plain variance is wrong."""
    found, plain = [], []
    for _ in range(4000):
        values = GAUGE * rng.normal(size=(12, 1)) + NOISE * rng.normal(size=(12, 3))
        values += 0.3
        found.append(disconnected(values[:5], values[5:], volume=1)[0].value)
        plain.append(values.mean(axis=1).var(ddof=1))
    error = np.std(found) / np.sqrt(len(found))
    # The error of the mean is estimated with its autocorrelation, which makes it a bit too large.
    assert abs(np.mean(found) - GAUGE**2) < 4 * error + 0.1 * GAUGE**2
    assert np.mean(plain) > 1.5 * GAUGE**2
    values = np.array([[1.0, 2.0, 4.0]])
    assert pairs_of_sources(values) == pytest.approx([(2 + 4 + 8) / 3])


def test_with_one_source_the_disconnected_part_is_unknown(tmp_path, rng):
    path = write_condensates(tmp_path / "condensate.csv", rng, sources=1)
    result = gauge_mc.fit("condensate", path)
    assert all(one.disconnected is one.total is None for one in result.found.susceptibilities)
    assert all(one.noise_error is None for one in result.found.quarks)
    assert "measure with more --sources" in result.found.cautions[-1]
    assert [one.name for one in result.result] == ["−⟨ψ̄ψ⟩ (m = 0.02)"]


def test_noise_that_dominates_is_cautioned_of(tmp_path, rng):
    path = write_condensates(tmp_path / "condensate.csv", rng, noise=0.05)
    assert (
        "or divide them by more with --dilute"
        in gauge_mc.fit("condensate", path).found.cautions[-1]
    )
    quiet = write_condensates(tmp_path / "other.csv", rng, noise=1e-4)
    assert not any("--dilute" in one for one in gauge_mc.fit("condensate", quiet).found.cautions)


def test_the_file_has_what_was_found(tmp_path, rng):
    result = gauge_mc.fit("condensate", write_condensates(tmp_path / "condensate.csv", rng))
    values = json.loads((tmp_path / "condensate.json").read_text())
    assert values["quarks"][0]["m"] == MASSES[0]
    assert values["quarks"][0]["mu"] is None
    assert values["sources"] == SOURCES
    assert values["lines"][0]["chi2"] is not None
    assert values["result"][0]["value"] == result.found.quarks[0].condensate.value


def test_hopping_parameters_have_lines_if_the_critical_one_is_known(tmp_path, rng):
    path = tmp_path / "condensate.csv"
    with Table(path, HEADER, ("sweep", *COLUMNS.names)) as table:
        for n in range(SAMPLES):
            common = GAUGE * rng.normal()
            table.append(
                (n + 1, kappa, 0.0, s, 2 - 0.5 * (0.5 / kappa - 3.0) + common, *[0.0] * 5)
                for kappa in (0.14, 0.15)
                for s in range(2)
            )
    found = gauge_mc.fit("condensate", path)
    assert not found.found.lines
    assert found.quoted()[0].name == "−⟨ψ̄ψ⟩ (κ = 0.15)"  # of the lightest quark
    (line,) = gauge_mc.fit("condensate", path, kappa_c=1 / 6).found.lines
    assert line.slope.value == pytest.approx(-0.5)
    assert abs(line.intercept.value - 2) < 4 * line.intercept.error
    assert line.chi2 is None


def test_incomplete_tables_are_refused(tmp_path, rng):
    path = write_condensates(tmp_path / "condensate.csv", rng)
    rows = [one for one in path.read_text().splitlines() if "sha256" not in one]
    path.write_text("\n".join(rows[:-1]) + "\n")
    with pytest.raises(GaugeError, match="does not have the same rows of condensates"):
        gauge_mc.fit("condensate", path)


def test_columns_of_rounding_do_not_count(tmp_path):
    """Those that are 0 in exact arithmetic have a transient as often as not."""
    rows = [(n, 0.1, 0.0, source, *[1.0] * 6) for n in range(5) for source in range(2)]
    names = ("sweep", *(one.name for one in COLUMNS if not one.optional))
    write_table(tmp_path / "condensate.csv", {"observable": "condensate"}, names, rows)
    found = series_of(read_table(tmp_path / "condensate.csv"))
    judged = {name.removeprefix("mean ").partition(",")[0] for name, *_ in found}
    assert judged == {"scalar", "pseudoscalar", "connected", "pion"}
