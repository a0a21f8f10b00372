"""Tables of the gradient flow, and lattice artefacts of its curves at tree level."""

import dataclasses

import numpy as np
import pytest
from scipy.special import ive

from gauge_mc.analysis.timeseries import caution_spacing
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.table import write_table
from gauge_mc.flows import FLOWS
from gauge_mc.quantities.flow.curves import ENERGIES, FLOW_COLUMNS, read_flow, tree_level
from tests.analysis.synthetic_flow import HEADER, rows_of, synthetic_flow, write_flow

T = np.array([0.0, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0])


@pytest.fixture
def flow():
    return synthetic_flow(np.random.default_rng(1), 12, T)


@pytest.mark.parametrize("slices", [0, 3])
def test_what_was_written_is_read(tmp_path, flow, slices):
    found = read_flow(write_flow(tmp_path / "flow.csv", flow, slices))
    assert (found.ensemble, found.lattice) == (flow.ensemble, flow.lattice)
    assert (found.updates, found.kind) == (10, "wilson")
    np.testing.assert_array_equal(found.sweeps, flow.sweeps)
    np.testing.assert_array_equal(found.t, T)
    for name in FLOW_COLUMNS[3:]:
        np.testing.assert_array_equal(found.columns[name], flow.columns[name])


def test_slices_may_be_written_as_floats(tmp_path, flow):
    rows = [(row[0], row[1], -1.0, *row[3:]) for row in rows_of(flow)]
    write_table(tmp_path / "flow.csv", HEADER, FLOW_COLUMNS, rows)
    np.testing.assert_array_equal(read_flow(tmp_path / "flow.csv").t, T)


def test_the_improved_energy(flow):
    plaquette, clover, improved = map(flow.energy, ("plaquette", "clover", "improved"))
    np.testing.assert_allclose(improved, (4 * plaquette - clover) / 3)
    with pytest.raises(UsageError, match="--energy is 'cubic'; choose clover, plaquette or impr"):
        flow.energy("cubic")
    with pytest.raises(UsageError, match="--charge is 'cubic'; choose clover or improved"):
        flow.charge("cubic")


def test_configurations_that_are_not_equally_spaced(flow):
    sweeps = flow.sweeps.copy()
    sweeps[-1] += 5
    uneven = dataclasses.replace(flow, sweeps=sweeps)
    assert uneven.updates is None
    assert "not equally spaced" in caution_spacing(uneven.sweeps)[0]
    assert caution_spacing(flow.sweeps) == []


def without_lattice(rows):
    return {key: value for key, value in HEADER.items() if key != "lattice"}, rows


def replaced(position, value, row=3):
    def change(rows):
        new = list(rows[row])
        new[position] = value
        return HEADER, [*rows[:row], tuple(new), *rows[row + 1 :]]

    return change


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            lambda rows: (HEADER, []),
            "has no rows of the gradient flow of the whole lattice; measure",
        ),
        (lambda rows: (HEADER, rows[: 9 * T.size]), "has 9 configurations, and at least 10"),
        (lambda rows: (HEADER, rows[:-1]), "configuration 120 does not have the same rows"),
        (lambda rows: (HEADER, rows[1:]), "configuration 10 does not have the same rows"),
        (replaced(1, 0.3), "configuration 10 does not have the same rows"),
        (lambda rows: (HEADER, [rows[1], rows[0], *rows[2:]]), "its flow times are not ascending"),
        (replaced(3, "inf"), "column 'energy_plaquette' contains a value that is not a number"),
        (replaced(0, 10.5), "column 'sweep' contains a value that is not a number"),
        (without_lattice, "does not state its lattice; measure the gradient flow"),
        (
            lambda rows: ({**HEADER, "lattice": "4x4"}, rows),
            "does not state its lattice; measure the gradient flow",
        ),
        (
            lambda rows: (HEADER, [(*row[:2], 0, *row[3:]) for row in rows]),
            "no rows of the gradient flow of the whole lattice; measure",
        ),
    ],
)
def test_damaged_tables(tmp_path, flow, change, sentence):
    header, rows = change(list(rows_of(flow)))
    path = tmp_path / "flow.csv"
    write_table(path, header, FLOW_COLUMNS, rows)
    with pytest.raises(GaugeError, match=sentence):
        read_flow(path)


def test_other_tables(tmp_path):
    write_table(tmp_path / "plaquette.csv", {}, ("sweep", "plaquette"), [(1, 0.5)])
    with pytest.raises(GaugeError, match="has no column 't': it is not a table of the gradient"):
        read_flow(tmp_path / "plaquette.csv")


TIMES = np.array([0.1, 0.5, 1.0, 3.0, 10.0])
FLOW_TERM = {"wilson": 0.0, "symanzik": -1 / 6, "zeuthen": -1 / 6 + 1 / 24}
"""Contribution of the flow to the coefficient C2 of a²/t in C."""
ENERGY_TERM = {"plaquette": 1 / 8, "clover": -1 / 24, "improved": 13 / 72}
"""C2 for the Wilson action and the Wilson flow."""


@pytest.mark.slow
def test_wilson_flow_of_the_plaquette_is_a_product_of_bessel_functions():
    exact = 64 * np.pi**2 * TIMES**2 * ive(0, 4 * TIMES) ** 4
    np.testing.assert_allclose(
        tree_level(TIMES, 0.0, "wilson", ENERGIES["plaquette"]), exact, rtol=1e-9
    )


@pytest.mark.slow
@pytest.mark.parametrize("energy", ENERGIES)
@pytest.mark.parametrize("flow", FLOWS)
@pytest.mark.parametrize("rectangle", [pytest.param(0.0, marks=pytest.mark.slow), -1 / 12])
def test_leading_artefacts(rectangle, flow, energy):
    """arXiv:1406.0827: C2 = 2 c_f + 2/3 c_g - 2/3 c_e + 1/8, and -1/24 for the clover.

    The coefficients c are those of rectangles. For E of the plaquettes c_e is 0; the improved
    combination has the classical expansion of c_e = -1/12. The additional factor of the Zeuthen
    flow contributes 1/24, so that all effects cancel for the improved action and the improved E.
    """
    t = np.array([10.0, 20.0])
    found = (tree_level(t, rectangle, flow, ENERGIES[energy]) - 1) * t
    limit = 2 * found[1] - found[0]  # without the next term, a⁴/t²
    expected = FLOW_TERM[flow] + 2 / 3 * rectangle + ENERGY_TERM[energy]
    assert limit == pytest.approx(expected, abs=2e-3)
    if (flow, energy, rectangle) == ("zeuthen", "improved", -1 / 12):
        assert expected == pytest.approx(0, abs=1e-15)


@pytest.mark.parametrize("flow", FLOWS)
def test_the_fastest_modes_are_those_of_the_flow(flow):
    """The largest eigenvalue of the kernel, which bounds the step."""
    p = np.pi * np.stack(np.meshgrid(*[np.linspace(0, 1, 7)] * 4, indexing="ij"), -1).reshape(-1, 4)
    hat, kind = 2 * np.sin(p / 2), FLOWS[flow]
    root = np.sqrt(1 - hat**2 / 12) if kind.corrected else np.ones_like(hat)
    planes = 1 - kind.rectangle * (hat[:, :, None] ** 2 + hat[:, None, :] ** 2)
    kernel = -planes * hat[:, :, None] * hat[:, None, :]
    for mu in range(4):
        others = [nu for nu in range(4) if nu != mu]
        kernel[:, mu, mu] = (planes[:, mu] * hat**2)[:, others].sum(axis=1)
    rates = np.linalg.eigvalsh(root[:, :, None] * kernel * root[:, None, :])
    assert rates.max() == pytest.approx(kind.fastest, rel=1e-12)


@pytest.mark.slow
def test_the_gauge_does_not_matter():
    for flow in FLOWS:
        usual, other = (
            tree_level(TIMES[:2], -1 / 12, flow, ENERGIES["clover"], alpha) for alpha in (1.0, 3.0)
        )
        np.testing.assert_allclose(usual, other, rtol=1e-10)


def lattice_sum(size, t):
    """The plain sum over the momenta of size⁴; the zero mode is the limit of the integrand, 3."""
    p = 2 * np.pi * np.arange(size) / size
    grid = np.stack(np.meshgrid(p, p, p, p, indexing="ij"), axis=-1).reshape(-1, 4)[1:]
    hat, sine, cosine = 2 * np.sin(grid / 2), np.sin(grid), np.cos(grid / 2) ** 2
    total = (hat**2).sum(axis=1)
    trace = (((sine**2).sum(axis=1)[:, None] - sine**2) * cosine).sum(axis=1)
    plain = 3 + (np.exp(-2 * t * total) * trace / total).sum()
    return plain * 64 * np.pi**2 * t**2 / (3 * size**4)


@pytest.mark.slow
def test_the_sum_over_lattices_tends_to_the_integral():
    """The kernel at p = 0 depends on the direction in order p², so the difference is 1/size⁶."""
    small, large = (lattice_sum(size, 1.0) for size in (12, 24))
    limit = large + (large - small) / (2**6 - 1)
    found = tree_level(np.array([1.0]), 0.0, "wilson", ENERGIES["clover"])[0]
    assert found == pytest.approx(limit, rel=3e-6)


def test_other_flows_are_refused():
    with pytest.raises(GaugeError, match=r"flow 'stout' is not known.*leave --tree-level out"):
        tree_level(TIMES, 0.0, "stout", ENERGIES["clover"])
