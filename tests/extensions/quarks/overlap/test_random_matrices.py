"""Random matrices against closed forms and a paper; ``fit overlap-spectrum`` on their spectra."""

import json
import math

import numpy as np
import pytest

import gauge_mc
from gauge_mc.analysis.timeseries import estimate
from gauge_mc.errors import GaugeError
from gauge_mc.extensions.quarks.overlap.random_matrices import (
    ORTHOGONAL,
    UNITARY,
    _kernel_eigenvalues,
    mean_eigenvalues,
)
from gauge_mc.extensions.quarks.overlap.spectrum import (
    COLUMNS,
    EIGENVALUE_COLUMNS,
    eigenvalue_table,
)
from gauge_mc.files.table import Table, read_table
from tests.analysis.synthetic_flow import synthetic_flow, write_flow


def test_closed_forms():
    """P(lambda_1 > s) is exp(-s^2/4) for the unitary class at nu = 0, and exp(-s/2 - s^2/8) and
    exp(-s^2/8) for the orthogonal one at nu = 0 and 1."""
    tail = math.sqrt(math.pi / 2) * math.erfc(math.sqrt(0.5))  # of exp(-x^2/2) from 1 on
    assert mean_eigenvalues(UNITARY, 0, 1)[0] == pytest.approx(math.sqrt(math.pi), rel=1e-12)
    found = mean_eigenvalues(ORTHOGONAL, 0, 1)[0]
    assert found == pytest.approx(2 * math.exp(0.5) * tail, rel=1e-12)
    assert mean_eigenvalues(ORTHOGONAL, 1, 1)[0] == pytest.approx(math.sqrt(2 * math.pi), rel=1e-12)


def test_published_ratios():
    """The ratios of sectors for SU(3) that hep-lat/0306022 compares with."""
    first = [mean_eigenvalues(UNITARY, nu, 1)[0] for nu in (0, 1, 2)]
    assert first[0] / first[1] == pytest.approx(0.5703, abs=5e-5)
    assert first[1] / first[2] == pytest.approx(0.7154, abs=5e-5)
    assert mean_eigenvalues(UNITARY, -2, 1) == mean_eigenvalues(UNITARY, 2, 1)


@pytest.mark.slow
@pytest.mark.parametrize("dyson", [UNITARY, ORTHOGONAL])
@pytest.mark.parametrize("nu", [0, 2])
def test_samples_of_matrices(dyson, nu, rng):
    """Singular values of random matrices of the size n, whose means differ by less than 1 %."""
    n, samples, number = 40, 1200, 3
    matrices = rng.normal(size=(samples, n, n + nu))
    if dyson == UNITARY:
        matrices = (matrices + 1j * rng.normal(size=matrices.shape)) / math.sqrt(2)
    squares = np.linalg.eigvalsh(matrices @ np.swapaxes(matrices.conj(), 1, 2))
    lowest = 2 * math.sqrt(n + nu / 2) * np.sqrt(np.abs(squares[:, :number]))
    errors = lowest.std(axis=0) / math.sqrt(samples)
    expected = np.array(mean_eigenvalues(dyson, nu, number))
    assert (np.abs(lowest.mean(axis=0) - expected) < 4 * errors + 0.01 * expected).all()


@pytest.mark.parametrize("s", [0.3, 2.0, 7.5, 31.0])
def test_bessel_functions_of_the_kernel(s):
    """The traces are halves of integrals: the series of J_3, and J_4 + J_6 = 10 J_5 / s."""
    traces = {nu: _kernel_eigenvalues(nu, s).sum() for nu in range(3, 8)}
    j4, j5, j6 = (traces[n - 1] - traces[n + 1] for n in (4, 5, 6))
    assert j4 + j6 == pytest.approx(10 * j5 / s, abs=1e-12)
    series = sum(
        (-1) ** k * (s / 2) ** (2 * k + 4) / (math.factorial(k) * math.factorial(k + 3) * (k + 2))
        for k in range(40)
    )
    assert s > 10 or traces[3] == pytest.approx(series / 2, rel=1e-11)


SIGMA, VOLUME, SIZE = 0.02, 4**4, 40
HEADER = {
    "observable": "overlap-spectrum", "group": "su2", "beta": "2.2", "lattice": "4x4x4x4",
    "action": "wilson", "rho": "1.4",
}  # fmt: skip


def lowest(nu, number, rng):
    """The lowest eigenvalues of a matrix of the orthogonal class, with the scale of Sigma."""
    matrix = rng.normal(size=(SIZE, SIZE + nu))
    sizes = np.sqrt(np.linalg.eigvalsh(matrix @ matrix.T))[:number]
    return 2 * np.sqrt(SIZE + nu / 2) * sizes / (SIGMA * VOLUME)


def write_spectra(path, rng, samples=400, number=2, spread=1.2, indices=None, header=None):
    """Write tables of independent configurations with normally distributed indices."""
    drawn = np.rint(rng.normal(scale=spread, size=samples)).astype(int)
    indices = (drawn if indices is None else indices).tolist()
    beside, header = eigenvalue_table(path), {**HEADER, **(header or {})}
    for old in (path, beside):
        old.unlink(missing_ok=True)
    with (
        Table(path, header, ("sweep", *COLUMNS.names)) as table,
        Table(
            beside, {**header, "observable": "eigenvalues"}, ("sweep", *EIGENVALUE_COLUMNS.names)
        ) as more,
    ):
        for n, index in enumerate(indices):
            sizes = lowest(abs(index), number, rng).tolist()
            sweep = 10 * (n + 1)
            up, down = max(-index, 0), max(index, 0)
            table.append([(sweep, index, up, down, sizes[0], 1e-8)])
            more.append([(sweep, k, size, size, 1e-9) for k, size in enumerate(sizes, 1)])
    return np.array(indices)


@pytest.mark.slow
def test_moments_and_ratios_of_known_matrices(tmp_path, rng):
    table = tmp_path / "overlap_spectrum.csv"
    indices = write_spectra(table, rng)
    found = gauge_mc.fit("overlap-spectrum", table).found
    assert found.configurations == len(indices)
    assert found.flow is None
    assert found.square.value == pytest.approx(np.mean(indices**2))
    assert found.susceptibility.value == pytest.approx(np.mean(indices**2) / VOLUME)
    assert found.square.error == pytest.approx(np.std(indices**2) / 20, rel=0.3)
    assert found.histogram["0"] == (indices == 0).sum()
    assert found.matrices == "chiral orthogonal"
    assert len(found.sectors) == 2 * len({one.nu for one in found.sectors}) >= 4
    for one in found.sectors:
        assert one.predicted == mean_eigenvalues(1, one.nu, 2)[one.k - 1]
        assert abs(one.sigma.value - SIGMA) < 4 * one.sigma.error + 0.01 * SIGMA
        assert 0 < one.sigma.error < 0.2 * SIGMA
    for ratio in found.ratios:
        assert abs(ratio.ratio.value - ratio.predicted) < 4 * ratio.ratio.error + 0.01
        own = (ratio.ratio.value - ratio.predicted) / ratio.ratio.error
        assert ratio.deviation == pytest.approx(own)
    one = found.sectors[0]
    sizes = np.loadtxt(eigenvalue_table(table), delimiter=",", comments=("#", "s"))[::2, 2]
    own = sizes[indices == 0]
    assert one.mean.value == pytest.approx(own.mean())
    assert one.mean.error == pytest.approx(own.std() / np.sqrt(own.size), rel=0.4)
    other_class = mean_eigenvalues(2, 0, 2)[0] / mean_eigenvalues(2, 1, 2)[0]
    assert abs(found.ratios[0].predicted - other_class) > 0.04


@pytest.mark.slow
def test_the_charge_of_the_flow_is_beside_it(sketched, tmp_path, rng):
    """The charges are the indices, but for those of two configurations."""
    table, samples = tmp_path / "overlap_spectrum.csv", 50
    indices = write_spectra(table, rng, samples)
    charges = indices.astype(float)
    charges[[3, 7]] += 2
    flow = synthetic_flow(rng, samples, charges=charges, smear=0.01)
    write_flow(tmp_path / "flow.csv", flow)
    found = gauge_mc.fit("overlap-spectrum", table).found.flow
    assert found.configurations == samples
    assert found.different == pytest.approx(2 / samples)
    assert found.square_rounded.value == pytest.approx(np.mean(charges**2))
    assert found.index_square.value == pytest.approx(np.mean(indices**2))
    assert found.correlation == pytest.approx(np.corrcoef(indices, charges)[0, 1], abs=0.02)
    gauge_mc.plot("overlap-spectrum", tmp_path, output=tmp_path / "figure.png")


def test_file_report_and_plot(sketched, tmp_path, rng):
    write_spectra(tmp_path / "overlap_spectrum.csv", rng, 60)
    result = gauge_mc.fit("overlap-spectrum", tmp_path / "overlap_spectrum.csv")
    written = json.loads((tmp_path / "overlap-spectrum.json").read_text())
    assert written["square"]["value"] == result.found.square.value
    assert len(result.report()) == 3
    gauge_mc.plot("overlap-spectrum", tmp_path, output=tmp_path / "figure.png")


def test_refusals(tmp_path, rng):
    table = tmp_path / "overlap_spectrum.csv"
    write_spectra(table, rng, 9)
    with pytest.raises(GaugeError, match="has 9 configurations, and at least 10 are needed"):
        gauge_mc.fit("overlap-spectrum", table)
    table.unlink()
    eigenvalue_table(table).unlink()
    write_spectra(table, rng, 12)
    eigenvalue_table(table).unlink()
    with pytest.raises(GaugeError, match="There is no table"):
        gauge_mc.fit("overlap-spectrum", table)


def test_an_index_that_stays_has_no_error(tmp_path, rng):
    write_spectra(tmp_path / "overlap_spectrum.csv", rng, 30, spread=0.01)
    found = gauge_mc.fit("overlap-spectrum", tmp_path / "overlap_spectrum.csv").found
    assert np.isnan(found.square.error)
    assert any("too rarely" in one for one in found.cautions)


def write_chains(folder, rng, lengths):
    """Write the tables of several chains, with a flow whose charges are the indices."""
    indices = []
    for n, length in enumerate(lengths):
        run = folder / f"run_chain{n + 1}"
        run.mkdir(parents=True)
        indices.append(write_spectra(run / "overlap_spectrum.csv", rng, length))
        flow = synthetic_flow(rng, length, charges=indices[-1].astype(float), smear=0.01)
        write_flow(run / "flow.csv", flow)
    return indices


@pytest.mark.slow
def test_chains_of_one_ensemble_are_averaged(sketched, tmp_path, rng):
    """All moments are those of all configurations, and no update of two chains is taken for one."""
    indices = np.concatenate(write_chains(tmp_path, rng, (200, 120, 77, 3)))
    found = gauge_mc.fit("overlap-spectrum", tmp_path).found
    assert (found.chains, found.configurations) == (4, 400)
    assert found.square.value == pytest.approx(np.mean(indices**2))
    assert found.square.error == pytest.approx(np.std(indices**2) / 20, rel=0.3)
    assert found.histogram["0"] == (indices == 0).sum()
    assert sum(one.configurations for one in found.sectors if one.k == 1) == sum(
        (np.abs(indices) == nu).sum() for nu in {one.nu for one in found.sectors}
    )
    assert found.flow.configurations == 400
    assert found.flow.different == 0
    assert found.flow.index_square.value == found.square.value
    written = json.loads((tmp_path / "overlap-spectrum.json").read_text())
    assert written["chains"] == 4
    gauge_mc.plot("overlap-spectrum", tmp_path, output=tmp_path / "figure.png")


def test_the_error_knows_where_a_chain_ends(tmp_path, rng):
    """Two chains, each of which stays in one sector for long, are not two halves of one series."""
    long, short = np.repeat([0, 2, 1, 2] * 5, 10), np.repeat([1, 0, 1, 2, 0, 1], 10)
    for name, index in (("a", long), ("b", short)):
        (tmp_path / name).mkdir()
        write_spectra(tmp_path / name / "overlap_spectrum.csv", rng, index.size, indices=index)
    found = gauge_mc.fit("overlap-spectrum", tmp_path).found
    assert found.changes == 24
    own = estimate(long**2, short**2)
    assert found.square.error == pytest.approx(own.error)
    assert own.error != pytest.approx(estimate(np.concatenate([long, short]) ** 2).error)


def test_chains_without_a_flow_or_of_other_ensembles(tmp_path, rng):
    write_chains(tmp_path, rng, (60, 60))
    (tmp_path / "run_chain2" / "flow.csv").unlink()
    assert gauge_mc.fit("overlap-spectrum", tmp_path).found.flow is None
    other = tmp_path / "run_chain3"
    other.mkdir()
    write_spectra(other / "overlap_spectrum.csv", rng, 20, number=1)
    with pytest.raises(GaugeError, match="differ in the rows of eigenvalues"):
        gauge_mc.fit("overlap-spectrum", tmp_path)
    write_spectra(other / "overlap_spectrum.csv", rng, 20, header={"beta": "2.4"})
    with pytest.raises(GaugeError, match="consists of 2 runs or ensembles"):
        gauge_mc.fit("overlap-spectrum", tmp_path)


@pytest.mark.slow
def test_every_chain_loses_its_own_transient(sketched, tmp_path, rng):
    write_chains(tmp_path, rng, (200, 200))
    spoilt = tmp_path / "run_chain2"
    index = np.where(np.arange(200) < 30, 9, rng.integers(-1, 2, 200))
    write_spectra(spoilt / "overlap_spectrum.csv", rng, 200, indices=index)
    flow = synthetic_flow(rng, 200, charges=index.astype(float), smear=0.01)
    write_flow(spoilt / "flow.csv", flow)
    auto = gauge_mc.fit("overlap-spectrum", tmp_path, skip="auto")
    runs = [str(tmp_path / "run_chain1"), str(spoilt)]
    assert [one.run for one in auto.thermalisation] == runs
    steps = read_table(spoilt / "overlap_spectrum.csv")["sweep"]
    first, second = (one.update for one in auto.thermalisation)
    assert second >= steps[29] > first
    assert auto.found.skip == second
    own = read_table(tmp_path / "run_chain1" / "overlap_spectrum.csv")["sweep"]
    assert auto.found.configurations == (own > first).sum() + (steps > second).sum()
    gauge_mc.plot("overlap-spectrum", tmp_path, output=tmp_path / "figure.png", skip="auto")
