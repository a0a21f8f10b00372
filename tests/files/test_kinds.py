"""Commands replace files of their own kind, and nothing else."""

import os
import shutil
from pathlib import Path

import pytest

from gauge_mc.benchmarks.over import SAVED
from gauge_mc.errors import UsageError
from gauge_mc.files.table import Table, read_table
from tests.calls import call
from tests.test_pins import PINS

RUN = PINS / "v0_2" / "finished"

WRITING = {
    "out.json": ("fit", "creutz", "{run}", "--output", "{out}"),
    "out.h5": ("export", "{run}", "{out}"),
    "out.json.gz": ("export", "{run}", "{out}"),
    "out.pdf": ("plot", "history", "{run}", "--output", "{out}"),
    "out.png": ("plot", "history", "{run}", "--output", "{out}"),
    "out.svg": ("plot", "history", "{run}", "--output", "{out}"),
}
"""Commands that write one file, by the name of the file."""


@pytest.fixture(scope="module")
def configuration(tmp_path_factory):
    """A configuration in HDF5, whose name ends as that of an export."""
    path = tmp_path_factory.mktemp("configuration") / "0000003.h5"
    assert call("convert", RUN / "configs" / "0000003.nersc", path, "--to", "hdf5")[1] == 0
    return path


@pytest.fixture
def written(tmp_path, sketched):
    """Return a function that lets a command write a file, and returns its words and exit code."""
    run = shutil.copytree(RUN, tmp_path / "run")

    def write(out):
        words = [word.format(run=run, out=out) for word in WRITING[out.name]]
        return call(*words)

    return write


@pytest.mark.first_quick
@pytest.mark.parametrize("name", WRITING)
def test_a_file_of_the_same_kind_is_replaced(written, tmp_path, name):
    out = tmp_path / name
    out.write_bytes(b"")  # as mktemp makes it
    for _ in range(2):
        assert written(out)[1] == 0
        assert out.stat().st_size > 100
        before = out.stat().st_ino
    assert written(out)[1] == 0
    assert out.stat().st_ino != before


@pytest.mark.parametrize("name", WRITING)
def test_anything_else_is_left(written, configuration, tmp_path, name):
    out = tmp_path / name
    victims = [RUN / "run.toml", RUN / "plaquette.csv", RUN / "checkpoint" / "latest"]
    victims += [configuration, PINS / "expected.json"]
    for victim in victims:
        shutil.copy(victim, out)
        shown, code = written(out)
        assert code == 2
        assert f"{out} is another file, which" in shown
        assert out.read_bytes() == victim.read_bytes()
    out.unlink()
    for make, what in (
        (Path.mkdir, "a folder"),
        (os.mkfifo, "not a file"),
        (lambda path: path.symlink_to("/dev/null"), "a link"),
        (lambda path: path.symlink_to(RUN / "run.toml"), "a link"),
    ):
        make(out)
        before = out.lstat()
        shown, code = written(out)
        assert (code, f"{out} is {what}, which" in shown) == (2, True)
        assert os.path.samestat(out.lstat(), before)
        (Path.rmdir if out.is_dir() and not out.is_symlink() else Path.unlink)(out)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["run"]


def test_a_result_of_bench_is_refused_before_anything_is_timed(tmp_path):
    other = tmp_path / "run.toml"
    shutil.copy(RUN / "run.toml", other)
    shown, code = call("bench", "--backend", "cpu", "--save", other)
    assert (code, "which a result of bench must not replace" in shown) == (2, True)
    assert other.read_bytes() == (RUN / "run.toml").read_bytes()
    saved = tmp_path / "saved.json"
    saved.write_text('{"device": "CPU", "group": "su2", "lattice": "4x4x4x4", "kernels": []}')
    SAVED.check(saved)


def test_samples_of_a_fit_do_not_replace_a_configuration(configuration, tmp_path):
    """They are beside the result, under its name."""
    from gauge_mc.quantities.potential.fit import SAMPLES_FILE

    with pytest.raises(UsageError, match=r"which samples of V\(R\) must not replace"):
        SAMPLES_FILE.check(configuration)


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_tables_are_not_appended_through_links(tmp_path, link):
    elsewhere, table = tmp_path / "elsewhere.csv", tmp_path / "table.csv"
    with Table(elsewhere, {}, ("sweep", "value")) as own:
        own.append([(1, 0.5)])
    before = elsewhere.read_bytes()
    link(elsewhere, table)
    with pytest.raises(UsageError, match=r"table\.csv is a link, and nothing is added"):
        Table(table, {}, ("sweep", "value"))
    assert elsewhere.read_bytes() == before
    assert len(read_table(table)) == 1  # reading is another matter


@pytest.mark.slow
@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_neither_generate_nor_measure_writes_through_links(tmp_path, link):
    run = shutil.copytree(RUN, tmp_path / "run")
    for name in ("plaquette.csv", "plaquette_configs.csv"):
        (run / name).rename(tmp_path / name)
        link(tmp_path / name, run / name)
    before = {path: path.read_bytes() for path in tmp_path.glob("*.csv")}
    cpu = ("--backend", "cpu", "--quiet")
    for words in (("generate", "--output", run, "--configs", 4), ("measure", "plaquette", run)):
        shown, code = call(*words, *cpu)
        assert (code, "is a link, and nothing is added" in shown) == (2, True)
    assert {path: path.read_bytes() for path in before} == before
    assert call("verify", run)[1] == 0


def test_a_table_that_leads_nowhere_is_not_begun(tmp_path):
    table = tmp_path / "table.csv"
    table.symlink_to(tmp_path / "nowhere.csv")
    with pytest.raises(UsageError, match="is a link"):
        Table(table, {}, ("sweep",))
    assert not (tmp_path / "nowhere.csv").exists()
