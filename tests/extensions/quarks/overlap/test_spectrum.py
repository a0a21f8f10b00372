"""The index and the lowest eigenvalues of the overlap operator, against dense matrices."""

import numpy as np
import pytest

import gauge_mc
from gauge_mc import open_device
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import UsageError
from gauge_mc.extensions.quarks import overlap as kept_modes
from gauge_mc.extensions.quarks.overlap import Overlap
from gauge_mc.extensions.quarks.overlap.spectrum import OverlapSpectrumObservable
from gauge_mc.files.table import read_table
from tests.extensions.quarks.links import field_of
from tests.extensions.quarks.reference import overlap as reference
from tests.reference.fields import flux_links, random_field

RHO = 1.4


def measured(field, **options):
    """The record by column, with the accuracy of the operator, and the rows of eigenvalues."""
    observable = OverlapSpectrumObservable.for_lattice(field.lattice, **options)
    records = observable.measurer(field)(field)
    record = dict(zip(observable.columns.names, records[0], strict=True))
    tables = {one.name: one for one in observable.secondary_tables}
    for name, rows in records.secondary.items():
        assert len(rows) == tables[name].records(observable)
    (operator,) = records.secondary["operator"]
    own = dict(zip(tables["operator"].columns.names, operator, strict=True))
    return {**own, **record}, np.array(records.secondary["eigenvalues"])


def same_results(one, other):
    """Whether records are the same but for rounding errors and numbers of applications."""
    left_out = ("approximation", "applications")
    values, others = ({n: x for n, x in a.items() if n not in left_out} for a in (one, other))
    return values == pytest.approx(others, rel=1e-9)


def check_dense(record, rows, links, phases, csw=0.0):
    colours = links.shape[-1]
    kernel = reference.kernel(links, RHO, phases, csw)
    massless = reference.overlap(kernel, RHO, colours)
    values = np.linalg.eigvals(massless)
    zeros = int((np.abs(values) < 1e-6).sum())
    five = reference.gamma5(len(massless), colours)
    index = round(0.5 * np.trace(five @ massless).real / RHO)
    assert record["index"] == index == record["zero_down"] - record["zero_up"]
    assert record["zero_down"] + record["zero_up"] == zeros
    pairs = values[(np.abs(values) > 1e-6) & (values.imag > 0)]
    pairs = pairs[np.argsort(np.abs(pairs))][: len(rows)]
    assert rows[:, 0].tolist() == [*range(1, len(rows) + 1)]
    assert np.abs(rows[:, 1] - np.abs(pairs)).max() < 10 * record["bound"]
    projected = pairs / (1 - pairs / (2 * RHO))  # an eigenvalue of D_c, on the imaginary axis
    assert np.abs(projected.real).max() < 1e-8
    assert np.abs(rows[:, 2] - projected.imag).max() < 20 * record["bound"]
    assert record["lowest"] == rows[0, 1]
    sizes = np.sort(np.abs(np.linalg.eigvalsh(kernel)))
    assert record["edge"] < sizes[record["modes"]] < 1.01 * record["edge"]
    assert sizes[-1] < record["norm"] < 1.1 * sizes[-1]
    assert 0 < record["squared"] <= 2.01 * record["bound"] / RHO
    assert 0 < record["relation"] <= 2.01 * record["bound"] / RHO


FLUXES = {"su2": ((1, -1), (1, -1)), "su3": ((1, -1, 0), (1, 0, -1))}
"""Quanta of flux through the planes xy and zt, of which the charges are 2 and 1."""


@pytest.mark.slow
@pytest.mark.parametrize("sign", [1, -1])
def test_dense_matrices_on_unequal_extents(sign, rng):
    """With two zero modes of one chirality or the other."""
    xy, zt = FLUXES["su2"]
    links = flux_links((2, 4, 2, 2), xy, tuple(sign * n for n in zt), 0.2, rng)
    field = field_of(links, open_device(threads=1))
    options = {"rho": RHO, "boundary": "0,0,0.5,1", "accuracy": 1e-3, "modes": 8}
    record, rows = measured(field, eigenvalues=2, approximation="polynomial", **options)
    check_dense(record, rows, links, [1, 1, 1j, -1])
    assert record["index"] == 2 * sign
    assert record["bound"] <= RHO * 1e-3
    assert record["size"] > 10


@pytest.mark.slow
def test_dense_matrices_of_su3_with_the_clover_term(rng):
    links = flux_links((4, 2, 2, 2), *FLUXES["su3"], 0.2, rng)
    field = field_of(links, open_device(threads=1))
    record, rows = measured(field, csw=1.1, accuracy=1e-5, modes=6, eigenvalues=2)
    check_dense(record, rows, links, [1, 1, 1, -1], 1.1)
    assert record["index"] == 1


@pytest.mark.slow
def test_the_index_by_the_command(tmp_path, rng):
    """The spectrum of stored links is that of dense matrices."""
    links = flux_links((2, 4, 2, 2), *FLUXES["su2"], 0.2, rng)
    file = tmp_path / "fluxes.lime"
    field_of(links).save(file)
    words = {"accuracy": 1e-3, "modes": 6, "eigenvalues": 2, "threads": 1}
    table = tmp_path / "spectrum.csv"
    gauge_mc.measure(file, "overlap-spectrum", output=table, progress=False, **words)
    beside = read_table(tmp_path / "spectrum_eigenvalues.csv")
    tables = (read_table(tmp_path / "spectrum_operator.csv"), read_table(table))
    record = {name: one[0] for each in tables for name, one in each.columns.items()}
    names = ("k", "size", "projected", "residual")
    rows = np.stack([beside[name] for name in names], axis=1)
    check_dense(record, rows, links, [1, 1, 1, -1])
    assert record["index"] == 2


@pytest.mark.slow
def test_a_run_measures_it_along_the_way(tmp_path):
    run = gauge_mc.generate(
        beta=1.0, lattice="2x4x2x2", thermalize=2, configs=2, separation=2, threads=1,
        measure="overlap-spectrum:2:accuracy=0.01:eigenvalues=1:modes=2", output=tmp_path / "run",
        format="none", progress=False,
    )  # fmt: skip
    assert len(run["overlap-spectrum"]["index"]) == 2
    assert "index of D" in run.averages
    beside = read_table(tmp_path / "run" / "overlap_spectrum_eigenvalues.csv")
    assert beside["k"].tolist() == [1, 1]


@pytest.mark.slow
def test_modes_are_stored_and_used_again(tmp_path, rng, capsys, monkeypatch):
    """Damaged files, and those of other modes, are replaced by the same bytes."""
    field, other = (
        field_of(random_field((2, 2, 2, 2), "su2", rng), open_device(threads=1)) for _ in range(2)
    )
    options = {"accuracy": 1e-2, "modes": 4, "eigenvalues": 1, "stored_modes": str(tmp_path)}
    first, rows = measured(field, **options)
    files = {one: one.read_bytes() for one in tmp_path.glob("*.lime")}
    assert sum(one.name.startswith("kernel_") for one in files) == 1
    assert len(files) >= 3
    again, same = measured(field, **options)
    assert capsys.readouterr().err == ""
    assert same_results(again, first)
    np.testing.assert_allclose(same, rows, rtol=1e-6, atol=1e-9)
    with monkeypatch.context() as patch:
        patch.setattr(kept_modes, "kernel_modes", None)  # modes are not looked for again
        whole = Overlap(field, accuracy=1e-2, modes=4, folder=tmp_path)
        assert whole.kernel_modes.applications > 0
    for n, (path, content) in enumerate(files.items()):
        damaged = (content[:-9], content[:5000] + b"!" + content[5001:], b"nothing")[n % 3]
        path.write_bytes(damaged)
    repaired, _ = measured(field, **options)
    assert capsys.readouterr().err.count("computed again") == len(files)
    assert same_results(repaired, first)
    assert {path: path.read_bytes() for path in files} == files
    measured(other, **options)
    assert len(list(tmp_path.glob("*.lime"))) >= 2 * len(files)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rho": 0.0}, "--rho is 0"),
        ({"rho": 2.0}, "--rho is 2"),
        ({"accuracy": 0.9}, "--accuracy is 0.9"),
        ({"accuracy": 1e-20}, "--accuracy is 1e-20"),
        ({"eigenvalues": 0}, "--eigenvalues is 0"),
        ({"boundary": "1,2"}, "--boundary"),
        ({"approximation": "pade"}, "There is no approximation 'pade' of the sign"),
    ],
)
def test_refusals(options, message):
    with pytest.raises(UsageError, match=message):
        OverlapSpectrumObservable.for_lattice(Lattice(4, 4, 4, 4), **options)
