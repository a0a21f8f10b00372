"""``gauge-mc measure`` as a user meets it."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from gauge_mc.cli import app
from gauge_mc.configurations.reading import open_configuration
from gauge_mc.configurations.writing import write_configuration
from gauge_mc.devices.cpu.device import CpuDevice
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.fields.field import Field
from gauge_mc.files.table import SEAL, read_table
from gauge_mc.quantities.potential.loop_tables import read_loops, select_matrices
from gauge_mc.quantities.potential.loops import LoopMeasurer
from gauge_mc.quantities.potential.observables import WilsonLoops
from gauge_mc.smearing.kinds import Ape
from gauge_mc.stored.measurement_table import number_in_name

LOOPS = ("--iterations", "0,2", "--off-axis")
FEW = ("--iterations", "1", "--r-max", "1", "--t-max", "2")


def call(*words):
    """Run a command in this process; its errors come through."""
    on_cpu = ("--backend", "cpu", "--threads", "1") if words[0] in ("generate", "measure") else ()
    app([str(word) for word in (*words, *on_cpu)], standalone_mode=False)


def generate(path, configs=4, lattice="4x4x4x6", group="su2", *words):
    call(
        "generate", "--output", path, "--lattice", lattice, "--group", group, "--configs", configs,
        "--thermalize", 4, "--separation", 2, "--quiet", *words,
    )  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    generate(folder / "runs" / "one")
    generate(folder / "runs" / "other", configs=1, lattice="4x4x4x4")
    return folder


@pytest.fixture
def folder(made, tmp_path, monkeypatch):
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(folder):
    return folder / "runs" / "one"


@pytest.mark.slow
def test_a_table_of_loops(run, capsys):
    call("measure", "wilson-loops", run, *LOOPS)
    table = read_table(run / "wilson_loops.csv")
    assert table.header["smearing"].startswith("APE")
    assert "w = 0.2 (alpha = 0.444444)" in table.header["smearing"]
    assert (table.header["r_max"], table.header["t_max"]) == ("2", "3")  # half the lattice
    assert (table.header["beta"], table.header["group"]) == ("2.5", "su2")
    columns = {name: column.tolist() for name, column in table.columns.items()}
    rows = list(zip(*columns.values(), strict=True))
    assert len(rows) == 4 * 2 * 3 * (2 + 2 + 1 + 2)
    field = Field.load(run / "configs" / "0000008.lime", device=CpuDevice(1))
    paths = ("100", "110", "210", "111")
    loops = WilsonLoops(field.lattice, 2, 3, paths, Ape(0.2), (0, 2))
    expected = [
        (8, *levels, path, r + 1, t + 1, loop)
        for levels, path, values in LoopMeasurer(loops, field)(field)
        for (r, t), loop in np.ndenumerate(values)
    ]
    assert [row for row in rows if row[0] == 8] == expected
    assert "4 configurations" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("more", [(), ("--correlations", "--orderings", "blocks")])
def test_measuring_goes_on_where_it_stopped(run, capsys, more):
    words = (*LOOPS, *more)
    call("measure", "wilson-loops", run, *words, "--quiet")
    path = run / "wilson_loops.csv"
    whole = path.read_bytes()
    call("measure", "wilson-loops", run, *words)
    assert "4 already measured" in capsys.readouterr().out
    assert path.read_bytes() == whole
    begin, end = whole.index(b"\n8,"), whole.index(SEAL)
    origin = whole.index(b"# configuration 8: 0000008.lime, SciDAC checksum ")
    for cut in (
        origin,
        origin + 20,
        begin,
        begin + 1,
        begin + 30,
        begin + 400,
        len(whole) // 2,
        end - 3,
        len(whole) - 3,
    ):
        path.write_bytes(whole[:cut])
        call("measure", "wilson-loops", run, *words, "--quiet")
        assert path.read_bytes() == whole
    generate(run, configs=5)
    call("measure", "wilson-loops", run, *words, "--quiet")
    assert path.read_bytes().startswith(whole[:end])
    assert set(read_table(path).columns["sweep"]) == {6, 8, 10, 12, 14}
    assert [item.name for item in run.glob(".*")] == []


@pytest.mark.slow
def test_loops_measured_along_the_way_are_those_of_the_configurations(folder, capsys):
    """In double precision, as which links come back from files with no bit lost."""
    run, how = (
        folder / "along",
        ("--measure", "wilson-loops:2:iterations=25,plaquette", "--precision", "double"),
    )
    for configs in (2, 4):
        generate(run, configs, "4x4x4x6", "su3", *how)
    along = read_table(run / "wilson_loops.csv")
    assert set(along.columns["sweep"]) == {6, 8, 10, 12}
    assert (along.header["r_max"], along.header["t_max"], along.header["iterations"]) == (
        "2", "3", "25",
    )  # fmt: skip
    call("measure", "wilson-loops", run, "--iterations", "25", "--quiet")
    files = read_table(run / "wilson_loops_configs.csv")
    assert along.columns.keys() == files.columns.keys()
    for name, column in along.columns.items():
        assert np.array_equal(files.columns[name], column) or name == "loop"
    np.testing.assert_allclose(files.columns["loop"], along.columns["loop"], rtol=1e-12)
    call("verify", run)
    lines = (run / "wilson_loops.csv").read_text().splitlines(keepends=True)
    for left, damage in (
        (lines[:-2] + lines[-1:], "wilson_loops.csv is damaged: its checksum is not that"),
        (lines[:-2], "wilson_loops.csv is damaged: it ends after 23 of 24 rows"),
    ):
        (run / "wilson_loops.csv").write_text("".join(left))
        with pytest.raises(GaugeError, match=r"1 of 9 files, .*wilson_loops.csv"):
            call("verify", run)
        assert damage in capsys.readouterr().out


@pytest.mark.slow
def test_any_number_of_devices_makes_the_same_table(run, capsys):
    tables = {}
    for devices in ("cpu:1", "cpu:2", "cpu:3"):
        for what in (("wilson-loops", *LOOPS), ("polyakov",)):
            output = run / f"{what[0]}_{devices[-1]}.csv"
            call("measure", *what, run, "--devices", devices, "--output", output)
            tables.setdefault(what[0], set()).add(output.read_bytes())
            call("measure", *what, run, "--devices", devices, "--split", "--output", f"{output}.2")
            tables[what[0]].add(Path(f"{output}.2").read_bytes())
    assert [len(tables[what]) for what in tables] == [1, 1]
    shown = capsys.readouterr().out
    assert ", on 2 x " in shown
    whole = output.read_bytes()
    output.write_bytes(whole[: whole.index(b"\n8,") + 20])
    call("measure", "polyakov", run, "--devices", "cpu:2", "--output", output)
    assert "1 already measured" in capsys.readouterr().out
    assert output.read_bytes() == whole


@pytest.mark.gpu
def test_any_number_of_gpus_makes_the_same_table(run, gpu, no_lost_memory):
    gpu.close()
    tables = set()
    for devices in (["--devices", "1"], ["--devices", "0,"], []):  # all, if nothing is said
        output = run / "gpus.csv"
        words = ["measure", "wilson-loops", run, *FEW, "--output", output, "--backend", gpu.backend]
        app([str(word) for word in (*words, *devices, "--quiet")], standalone_mode=False)
        tables.add(output.read_bytes())
        output.unlink()
    damage(run / "configs" / "0000010.lime")
    with pytest.raises(GaugeError, match=r"0000010.lime is damaged"):
        app([str(word) for word in (*words, "--quiet")], standalone_mode=False)
    assert len(tables) == 1
    assert tables.pop().startswith(output.read_bytes())


@pytest.mark.first_quick
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--r-max", "2"), "has r_max = 1, not 2; choose another --output"),
        (("--weight", "0.3"), "has smearing = APE"),
        (("--iterations", "2"), "has iterations = 1, not 2"),
        (("--off-axis", "--r-max", "2"), "paths = 100, not 100,110,210,111"),
        (("--iterations", "0,1", "--correlations"), "correlations = none, not all pairs of levels"),
        pytest.param(
            ("--precision", "double"),
            "measured in = single precision, not double precision",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_other_parameters_are_refused_by_name(run, words, sentence):
    call("measure", "wilson-loops", run, *FEW, "--quiet")
    before = (run / "wilson_loops.csv").read_bytes()
    with pytest.raises(UsageError, match=sentence):
        call("measure", "wilson-loops", run, *FEW, *words)
    assert (run / "wilson_loops.csv").read_bytes() == before
    call("measure", "wilson-loops", run, *FEW, *words, "--output", "other.csv", "--quiet")
    assert Path("other.csv").exists()


@pytest.mark.slow
def test_loops_between_levels_along_the_way(folder):
    """They are those of the configurations, and their table tells a fit and verify all it needs."""
    run = folder / "along"
    how = "wilson-loops:2:iterations=0,1,3:correlations:off-axis"
    for configs in (2, 4):
        generate(run, configs, "4x4x4x6", "su2", "--measure", how, "--precision", "double")
    along = read_table(run / "wilson_loops.csv")
    assert list(along.columns)[1:3] == ["smearing", "smearing2"]
    call("verify", run)
    words = ("--iterations", "0,1,3", "--correlations", "--off-axis", "--quiet")
    call("measure", "wilson-loops", run, *words)
    files = read_table(run / "wilson_loops_configs.csv")
    for name, column in along.columns.items():
        assert np.array_equal(files.columns[name], column) or name == "loop"
    np.testing.assert_allclose(files.columns["loop"], along.columns["loop"], rtol=1e-11)
    series = WilsonLoops.series(along, "table")
    assert len(series) == 6 * (2 + 2 + 1 + 2)
    one = series["smearing=0,smearing2=3,path=111,r=2"]
    loops = read_loops([run / "wilson_loops.csv"])
    matrices = select_matrices(loops, "111", (0, 1, 3))
    assert np.array_equal(matrices.values[:, 1, :, 0, 2], one.samples)
    assert np.array_equal(matrices.values, matrices.values.swapaxes(-1, -2))


def test_averages_are_those_that_generate_measures(run, capsys):
    for observable in ("plaquette", "polyakov"):
        call("measure", observable, run)
        again = read_table(run / f"{observable}_configs.csv").columns
        first = read_table(run / f"{observable}.csv").columns
        rows = np.isin(first["sweep"], again["sweep"])
        assert {name: column[rows].tolist() for name, column in first.items()} == {
            name: column.tolist() for name, column in again.items()
        }
    assert "temporal" in capsys.readouterr().out
    generate(run, configs=5)  # the tables of the run are its own


@pytest.mark.slow
def test_files_of_any_format(run, folder):
    call("measure", "wilson-loops", run, *FEW, "--quiet")
    files = []
    for number in (6, 8):
        files.append(folder / f"ckpoint_lat.{number}")
        call("convert", run / "configs" / f"{number:07d}.lime", files[-1], "--to", "nersc")
    files.append(run / "configs" / "0000010.lime")
    call("measure", "wilson-loops", *reversed(files), *FEW, "--quiet")
    found = read_table(folder / "wilson_loops.csv").columns
    expected = read_table(run / "wilson_loops.csv").columns
    assert found["sweep"].tolist() == [6, 6, 8, 8, 10, 10]
    assert np.abs(found["loop"] - expected["loop"][:6]).max() < 1e-7
    call("measure", "wilson-loops", files[1], *FEW, "--output", "late.csv", "--quiet")
    with pytest.raises(UsageError, match="so that configuration 6 cannot be appended"):
        call("measure", "wilson-loops", files[0], files[1], *FEW, "--output", "late.csv")


def damage(path):
    data = bytearray(path.read_bytes())
    data[-3000] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("devices", ["cpu:1", "cpu:2", "cpu:4"])
def test_a_damaged_configuration_stops_the_work_and_keeps_what_was_done(run, devices):
    damage(run / "configs" / "0000010.lime")
    damage(run / "configs" / "0000012.lime")
    with pytest.raises(GaugeError, match=r"0000010.lime is damaged"):
        call("measure", "wilson-loops", run, *FEW, "--quiet", "--devices", devices)
    assert set(read_table(run / "wilson_loops.csv").columns["sweep"]) == {6, 8}


def test_a_configuration_of_another_lattice(run, folder):
    foreign = folder / "runs" / "other" / "configs" / "0000006.lime"
    with pytest.raises(GaugeError, match=r"su2 on 4x4x4x4, but .* contains su2 on 4x4x4x6"):
        call("measure", "plaquette", run / "configs" / "0000008.lime", foreign)
    shutil.copy(foreign, run / "configs" / "0000009.lime")
    with pytest.raises(GaugeError, match=r"0000009.lime contains su2 on 4x4x4x4, but the others"):
        call("measure", "plaquette", run)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("wilson-loops", "no"), "no cannot be read"),
        (("wilson-loops", "runs/one/none"), "none cannot be read"),
        (("wilson-loops", "."), "There is no run in"),
        (("wilson-loops", "runs/one", "--t-max", "4"), "between 1 and 3, half the lattice"),
        (("wilson-loops", "runs/one", "--temporal", "hyb2"), "did you mean 'hyp2'"),
        (("wilson-loops", "runs/one", "--weight", "-1"), "--weight is -1; give a number from 0 to"),
        (("wilson-loops", "runs/one", "--output", "runs/one/plaquette.csv"), "has observable"),
        (
            ("plaquette", "runs/one", "--t-max", "4"),
            "--t-max is not an option of .*measure plaquette, but of",
        ),
        (("energy",), "no observable 'energy'; (--help lists all|choose)"),
    ],
)
def test_what_cannot_be_measured(folder, words, sentence):
    with pytest.raises(GaugeError, match=sentence):
        call("measure", *words)


def test_a_run_without_configurations(run):
    for path in run.glob("configs/*"):
        path.unlink()
    with pytest.raises(GaugeError, match="has no configurations yet"):
        call("measure", "wilson-loops", run)


def unrecorded(path):
    """Remove from a table what versions before did not write: origins and the seal."""
    lines = path.read_text().splitlines(keepends=True)
    kept = [line for line in lines if not line.startswith(("# configuration", SEAL.decode()))]
    assert len(kept) < len(lines) - 1
    path.write_text("".join(kept))


def test_other_links_under_the_same_number_are_not_taken_for_measured(run, folder, capsys):
    other = folder / "other"
    generate(other, 1, "4x4x4x6", "su2", "--seed", "9")
    mine, theirs = (one / "configs" / "0000006.lime" for one in (run, other))
    call("measure", "plaquette", mine, "--quiet")
    table = folder / "plaquette.csv"
    before = table.read_bytes()
    call("measure", "plaquette", shutil.copy(mine, folder / "another_name_0000006"))
    assert "1 already measured" in capsys.readouterr().out
    with pytest.raises(UsageError, match=r"6, which the table .* has of other links"):
        call("measure", "plaquette", theirs)
    assert table.read_bytes() == before
    call("measure", "plaquette", theirs, "--output", "b.csv", "--quiet")
    found, expected = read_table("b.csv"), read_table(other / "plaquette.csv")
    assert found["plaquette"].tolist() == [expected["plaquette"][expected["sweep"] == 6][0]]
    assert found.origins[6].name == "0000006.lime"
    assert found.origins[6].digest != read_table(table).origins[6].digest


def test_a_configuration_that_was_replaced_in_a_run_is_not_taken_for_measured(run, folder, capsys):
    call("measure", "plaquette", run, "--quiet")
    path, before = run / "configs" / "0000008.lime", (run / "plaquette_configs.csv").read_bytes()
    shutil.copy(shutil.copy(path, "copy"), path)
    call("measure", "plaquette", run)
    assert "4 already measured" in capsys.readouterr().out
    shutil.copy(run / "configs" / "0000010.lime", path)
    with pytest.raises(UsageError, match=r"0000008.lime has the number 8, which .* of other links"):
        call("measure", "plaquette", run)
    assert (run / "plaquette_configs.csv").read_bytes() == before


@pytest.mark.slow
@pytest.mark.parametrize("format", ["nersc", "openqcd", "ildg", "hdf5"])
def test_shifted_links_are_other_links(folder, format, capsys):
    """All averages and the sum of the words, which is the checksum of NERSC, are the same."""
    lattice = Lattice(4, 4, 4, 4)
    links = Field.hot(lattice, "su3", "double", CpuDevice(1), 3).to_numpy()
    for name, shift in (("a", 0), ("b", 1), ("c", 0)):
        (folder / name).mkdir()
        moved = np.roll(links, shift, axis=3)
        write_configuration(folder / name / "config.5", moved, lattice, "su3", "double", format)
    headers = [open_configuration(folder / name / "config.5").header for name in "ab"]
    assert headers[0].plaquette == pytest.approx(headers[1].plaquette, abs=1e-14)
    if format == "nersc":
        assert headers[0].checksum == headers[1].checksum
    call("measure", "plaquette", folder / "a" / "config.5", "--quiet")
    call("measure", "plaquette", folder / "c" / "config.5")
    assert "1 already measured" in capsys.readouterr().out
    with pytest.raises(UsageError, match="of other links"):
        call("measure", "plaquette", folder / "b" / "config.5")


def test_the_number_in_the_header_counts(run, folder):
    source = run / "configs" / "0000008.lime"
    call("convert", source, folder / "start_3.nersc", "--to", "nersc")
    call("measure", "plaquette", folder / "start_3.nersc", "--quiet")
    assert read_table("plaquette.csv")["sweep"].tolist() == [8]
    text = (folder / "start_3.nersc").read_bytes()
    uncounted = text.replace(b"SEQUENCE_NUMBER = 8", b"SEQUENCE_NUMBER = 1")
    for name, number in (("start_3.nersc", 3), ("x.4000", 4000), ("start", 1)):
        (folder / name).write_bytes(uncounted)
        call("measure", "plaquette", folder / name, "--output", f"{name}.csv", "--quiet")
        assert read_table(f"{name}.csv")["sweep"].tolist() == [number]
    shutil.copy(source, folder / "0000008.h5")
    assert number_in_name(folder / "0000008.h5") == 8


def test_tables_that_do_not_say_what_was_measured_are_continued(run, folder, capsys):
    """Those of earlier versions, which knew configurations by the numbers in their names."""
    files = [run / "configs" / f"{number:07d}.lime" for number in (6, 8)]
    call("measure", "plaquette", *files, "--quiet")
    table = folder / "plaquette.csv"
    whole = table.read_text()
    unrecorded(table)
    assert read_table(table).origins == {}
    capsys.readouterr()
    call("measure", "plaquette", *files, run / "configs" / "0000010.lime")
    shown = " ".join(capsys.readouterr().out.split())
    assert "2 of them by an earlier version, which did not record their links" in shown
    found = read_table(table)
    assert (found["sweep"].tolist(), list(found.origins)) == ([6, 8, 10], [10])
    assert [line for line in whole.splitlines() if line[0] in "68"] == [
        line for line in table.read_text().splitlines() if line[0] in "68"
    ]
    call("convert", run / "configs" / "0000012.lime", folder / "late_8", "--to", "nersc")
    with pytest.raises(UsageError, match="the number 12 in its header and 8 in its name"):
        call("measure", "plaquette", folder / "late_8")


def test_configurations_must_have_different_numbers(run, folder):
    shutil.copy(run / "configs" / "0000006.lime", "b6")
    with pytest.raises(UsageError, match="both have the number 6"):
        call("measure", "plaquette", run / "configs" / "0000006.lime", "b6")
