"""Reading tables of the gradient flow."""

import dataclasses

import numpy as np
import pytest

from gauge_mc.analysis.timeseries import caution_spacing
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.table import write_table
from gauge_mc.quantities.flow.curves import FLOW_COLUMNS, read_flow
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
