import numpy as np
import pytest

from gauge_mc.analysis.timeseries import estimate, phase_of_mean, susceptibility, thermalisation
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError
from gauge_mc.files.table import Table, read_table, write_table
from gauge_mc.quantities.plaquette import Plaquette
from gauge_mc.quantities.polyakov.observables import Polyakov
from gauge_mc.run.parameters import Parameters
from gauge_mc.run.thermalisation import AUTO
from gauge_mc.scans.averages import NOTES, ScanAverages, average
from gauge_mc.scans.carry_out import _draw
from gauge_mc.scans.grid import Grid
from gauge_mc.scans.scan import Member, Scan
from tests.analysis.synthetic_loops import autoregressive

LATTICE = Lattice(4, 6, 2, 8)


def polyakov_table(path, re, im):
    columns = ("sweep", "re", "im", "abs")
    with Table(path, {"observable": "polyakov"}, columns) as table:
        rows = zip(7 * np.arange(1, len(re) + 1), re, im, np.hypot(re, im), strict=True)
        table.append(rows)
    return path


def test_averages_of_two_chains(tmp_path):
    dice = np.random.default_rng(1)
    chains = [autoregressive(dice, samples, 2, 0.6) for samples in (300, 120)]
    paths = [polyakov_table(tmp_path / f"{i}.csv", *one.T) for i, one in enumerate(chains)]
    found = average(Polyakov, [read_table(one) for one in paths], paths, 7, LATTICE)
    moduli = [np.hypot(*one.T) for one in chains]
    for name, parts in (("re", [one[:, 0] for one in chains]), ("abs", moduli)):
        expected = estimate(*parts)
        assert found[f"polyakov_{name}"] == np.concatenate(parts).mean()
        assert found[f"polyakov_{name}_error"] == expected.error
        assert found[f"polyakov_{name}_tau_int"] == 7 * expected.tau_int
    pooled = np.concatenate(moduli)
    volume = 4 * 6 * 2
    lost = 2 * estimate(*moduli).tau_int / pooled.size  # of the variance, by its own mean
    expected = volume * (np.mean(pooled**2) - pooled.mean() ** 2) / (1 - lost)
    assert found["polyakov_susceptibility"] == pytest.approx(expected, rel=1e-12)
    assert found["polyakov_susceptibility_error"] == susceptibility(*moduli, volume=volume)[1]
    kurtosis = np.mean(pooled**4) / np.mean(pooled**2) ** 2
    assert found["polyakov_kurtosis"] == pytest.approx(kurtosis, rel=1e-12)
    assert found["polyakov_binder"] == pytest.approx(1 - kurtosis / 3, rel=1e-12)
    error = found["polyakov_binder_error"]
    assert found["polyakov_kurtosis_error"] == pytest.approx(3 * error)
    assert error > 0
    mean = np.concatenate([one @ [1, 1j] for one in chains]).mean()
    assert found["polyakov_phase"] == pytest.approx(np.angle(mean) / np.pi)
    assert found["polyakov_phase_error"] == phase_of_mean(*(one @ [1, 1j] for one in chains))[1]
    assert len(found) == 3 * 3 + 4 * 2


def test_a_plaquette_is_named_as_such(tmp_path):
    path, columns = tmp_path / "plaquette.csv", ("sweep", *Plaquette.columns.names)
    write_table(path, {}, columns, [(1, 0.5, 0.25, 0.75), (2, 0.75, 0.25, 1.25)])
    found = average(Plaquette, [read_table(path)], [path], 1, LATTICE)
    assert (found["plaquette"], found["plaquette_spatial"]) == (0.625, 0.25)
    assert (found["plaquette_spatial_error"], found["plaquette_spatial_tau_int"]) == (0.0, 0.5)
    assert found["plaquette_temporal"] == 1.0
    other = tmp_path / "other.csv"
    write_table(other, {}, ("sweep", "plaquette"), [(1, 0.5)])
    with pytest.raises(GaugeError, match="no numbers for spatial"):
        average(Plaquette, [read_table(one) for one in (path, other)], [path, other], 1, LATTICE)


def test_a_scan_without_complete_runs_has_an_empty_table(tmp_path):
    parameters = Parameters(group="su3", measure="plaquette,polyakov")
    averages = ScanAverages(Scan(tmp_path, parameters, (Grid((2.2, 2.4), (LATTICE,)),)))
    averages.write()
    table = read_table(tmp_path / "scan.csv", text=("lattice",))
    assert {name: len(column) for name, column in table.columns.items()} == {
        "beta": 0,
        "lattice": 0,
    }
    assert table.header["group"] == "su3"
    assert table.header.items() >= NOTES.items()
    assert "|L|" in table.header["polyakov_susceptibility"]
    assert not table.header.keys() & {"beta", "lattice"}
    assert not _draw(averages)
    assert not averages.failures


def plaquettes_of_scan(folder, series):
    """Write a scan of one point with complete chains of given plaquettes."""
    parameters = Parameters(
        group="su3", measure="plaquette", thermalize=0, configs=len(series[0]), separation=1
    )
    scan = Scan(folder, parameters, (Grid((6.0,), (LATTICE,), len(series)),))
    scan.make()
    scan.write()
    for member, values in zip(scan.members(), series, strict=True):
        member.run.path.mkdir()
        rows = [(n, v, v, v) for n, v in enumerate(values.tolist(), 1)]
        columns = ("sweep", *Plaquette.columns.names)
        write_table(member.run.table("plaquette"), {"observable": "plaquette"}, columns, rows)
    return scan


def test_each_chain_loses_its_own_transient(tmp_path, monkeypatch):
    monkeypatch.setattr(Member, "complete", lambda self: True)
    monkeypatch.setattr(Member, "sweep", lambda self: 600)
    chains = autoregressive(np.random.default_rng(2), 600, 2, 0.5).T
    chains[1] += 20 * np.exp(-np.arange(600) / 20)
    scan = plaquettes_of_scan(tmp_path / "s", chains)
    averages = ScanAverages(scan, AUTO)
    (row,) = averages.sorted_rows()
    cuts = [thermalisation(one) for one in chains]
    assert cuts[0] == 0
    assert 60 < cuts[1] < 200
    expected = estimate(chains[0], chains[1][cuts[1] :])
    assert (row["skip"], row["sweeps"]) == (cuts[1], 1200 - cuts[1])
    assert row["plaquette"] == pytest.approx(expected.value, rel=1e-12)
    assert row["plaquette_error"] == pytest.approx(expected.error, rel=1e-12)
    assert averages.cautions == []
    averages.write()
    assert read_table(scan.table, text=("lattice",)).header["skip"] == "auto"
    assert "skip" not in ScanAverages(scan, cuts[1]).sorted_rows()[0]


def test_short_chains_of_a_scan_have_a_caution(tmp_path, monkeypatch):
    monkeypatch.setattr(Member, "complete", lambda self: True)
    monkeypatch.setattr(Member, "sweep", lambda self: 300)
    chains = autoregressive(np.random.default_rng(3), 300, 1, 39 / 41).T  # tau_int = 20
    (sentence,) = ScanAverages(plaquettes_of_scan(tmp_path / "s", chains)).cautions
    assert sentence.startswith("At 1 of 1 points, such as beta = 6 on 4x6x2x8: The series is only")
    assert "50 τ_int are needed" in sentence
    chains = autoregressive(np.random.default_rng(3), 300, 1, 0.0).T
    assert ScanAverages(plaquettes_of_scan(tmp_path / "t", chains)).cautions == []
