"""``gauge-mc convert FILES... --output FOLDER``: many configurations at once."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

import gauge_mc
from gauge_mc.configurations import writing
from gauge_mc.configurations.reading import open_configuration
from gauge_mc.configurations.writing import compare, write_configuration
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import UnsupportedError, UsageError
from gauge_mc.stored import conversions
from tests.calls import call, call_apart, make_run
from tests.formats.format_samples import (
    averages,
    ildg_bytes,
    nersc_bytes,
    openqcd_bytes,
    random_links,
    record,
)

pytestmark = pytest.mark.kernels

EXTENTS = (4, 2, 2, 4)
MANY = 5


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Configurations of others in double precision, ``in/cfg.0`` and so on."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    for number in range(MANY):
        (tmp_path / "in" / f"cfg.{number}").write_bytes(nersc_bytes(links_of(number)))
    return tmp_path


def links_of(number):
    return random_links("su3", extents=EXTENTS, seed=number)


def read(path):
    return np.stack(list(open_configuration(path).slices()))


def stamps(folder):
    return {one.name: (one.stat().st_mtime_ns, one.stat().st_ino) for one in folder.iterdir()}


@pytest.mark.parametrize("threads", [1, 2, 9])
@pytest.mark.parametrize("by", ["files", "folder"])
def test_all_files_are_converted(folder, threads, by):
    files = sorted((folder / "in").iterdir()) if by == "files" else ["in"]
    words = ("--to", "ildg", "--output", "new/out", "--threads", threads, "--verify")
    shown, code = call("convert", *files, *words)
    *verdicts, summary = shown.splitlines()
    assert (summary, code) == (f"new/out: {MANY} files converted to ildg", 0)
    files = [f"new/out/cfg.{number}.lime" for number in range(MANY)]
    assert [one.split("  ")[:2] for one in verdicts] == [["good", file] for file in files]
    assert sorted(os.listdir("new/out")) == [f"cfg.{number}.lime" for number in range(MANY)]
    for number in range(MANY):
        np.testing.assert_array_equal(read(f"new/out/cfg.{number}.lime"), links_of(number))


def test_the_ending_of_a_format_is_replaced_and_precision_is_rounded(folder):
    (folder / "a.lime").write_bytes(ildg_bytes(links_of(7), "double"))
    words = ("--to", "nersc", "--precision", "single", "--output", "out", "--verify")
    assert call("convert", "a.lime", "in/cfg.1", *words)[1] == 0
    assert sorted(os.listdir("out")) == ["a.nersc", "cfg.1.nersc"]
    np.testing.assert_array_equal(read("out/a.nersc"), links_of(7).astype(np.complex64))


@pytest.mark.parametrize("several", [False, True])
def test_verdicts_have_the_averages_of_both_files(folder, several):
    """Those of the file are of rounded links, those of the source of its own."""
    words = ["--output", "out"] if several else ["out.milc"]
    words = ("convert", "in/cfg.1", *words, "--to", "milc", "--verify")
    out, _, code = call_apart(*words, "--json")
    document = json.loads(out)
    found = (document["files"][0] if several else document)["comparison"]
    assert (found["verdict"], found["difference"], code) == ("good", "", 0)
    for key, rounding in (("averages", 1e-8), ("source_averages", 1e-15)):
        means = [found[key]["mean"], found[key]["link_trace"]]
        np.testing.assert_allclose(means, averages(links_of(1)), rtol=0, atol=rounding)
    assert found["averages"] != found["source_averages"]
    if several:
        shown, code = call(*words)
        here, there = (found[key]["mean"] for key in ("averages", "source_averages"))
        assert f"plaquette {here:.12g} (source {there:.12g}), link trace" in shown
        assert shown.endswith("0 files converted to milc, 1 converted before\n")
        assert code == 0


def test_a_run_is_converted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make_run(tmp_path / "run")
    assert call("convert", "run", "--to", "nersc", "--output", "out", "--quiet") == ("", 0)
    assert sorted(os.listdir("out")) == ["0000005.nersc", "0000008.nersc", "0000011.nersc"]
    (tmp_path / "empty").mkdir()
    shown, code = call("convert", "empty", "--to", "nersc", "--output", "out")
    assert (code, "no configurations in empty" in shown) == (1, True)


def test_a_repeated_command_converts_what_is_missing(folder):
    words = ("convert", "in", "--to", "openqcd", "--output", "out")
    assert call(*words)[1] == 0
    os.remove("out/cfg.2.openqcd")
    before = stamps(folder / "out")
    shown, code = call(*words)
    assert (shown, code) == ("out: 1 file converted to openqcd, 4 converted before\n", 0)
    after = stamps(folder / "out")
    assert after.items() > before.items()
    np.testing.assert_array_equal(read("out/cfg.2.openqcd"), links_of(2))


@pytest.mark.parametrize(
    ("content", "verdict", "reason"),
    [
        (openqcd_bytes(links_of(3)), "other", "at (x, y, z, t) = (0, 0, 0, 0) is another one"),
        (
            openqcd_bytes(random_links("su3", extents=(4, 2, 2, 2))),
            "other",
            "those of su3 on 4x2x2x2",
        ),
        (openqcd_bytes(links_of(2))[:-8], "damaged", "truncated"),
        (openqcd_bytes(links_of(2), plaquette=0.3), "other", "its links have the plaquette"),
        (nersc_bytes(links_of(2)), "other", "it is nersc in double precision"),
        (b"notes", "other", "is not a configuration"),
    ],
)
def test_what_is_there_is_told_by_its_links_and_never_replaced(folder, content, verdict, reason):
    """Whatever its name, time and size are."""
    (folder / "out").mkdir()
    place = folder / "out" / "cfg.2.openqcd"
    place.write_bytes(content)
    _, said, code = call_apart("convert", "in", "--to", "openqcd", "--output", "out")
    (first,) = said.splitlines()
    assert first.startswith(
        "gauge-mc: out/cfg.2.openqcd already exists and is not what in/cfg.2 becomes ("
    )
    assert reason in first
    assert first.endswith("; remove it, or choose another --output.")
    assert code == 1
    assert place.read_bytes() == content
    assert len(os.listdir("out")) == MANY
    words = ("convert", "in", "--to", "openqcd", "--output", "out", "--json", "--verify")
    out, _, code = call_apart(*words)
    found = [one["comparison"] for one in json.loads(out)["files"]]
    assert [one["verdict"] for one in found] == ["good", "good", verdict, "good", "good"]
    assert (reason in found[2]["difference"], found[2]["averages"], code) == (True, None, 1)


def test_a_file_in_another_precision_is_another_one(folder):
    words = ("convert", "in", "--to", "nersc", "--output", "out", "--precision")
    assert call(*words, "single")[1] == 0
    _, said, code = call_apart(*words, "double")
    assert (code, said.count("it is nersc in single precision")) == (1, MANY)


def test_files_that_fail_do_not_stop_the_others(folder):
    data = (folder / "in" / "cfg.1").read_bytes()
    (folder / "in" / "cfg.1").write_bytes(data[:-3000] + b"\x55" * 8 + data[-2992:])
    (folder / "in" / "cfg.3").unlink()
    files = [f"in/cfg.{number}" for number in range(MANY)]
    out, said, code = call_apart("convert", *files, "--to", "ildg", "--output", "out")
    assert (out, code) == ("out: 3 files converted to ildg, 2 failed\n", 1)
    lines = said.splitlines()
    assert [lines[0][:23], lines[1][:23]] == ["gauge-mc: in/cfg.1 is d", "gauge-mc: in/cfg.3 cann"]
    assert len(lines) == 2
    assert sorted(os.listdir("out")) == ["cfg.0.lime", "cfg.2.lime", "cfg.4.lime"]
    out, _, code = call_apart("convert", *files, "--to", "ildg", "--output", "out", "--json")
    found = json.loads(out)
    assert (found["converted"], found["there"], found["failed"], code) == (0, 3, 2, 1)
    assert [one["state"] for one in found["files"]][:2] == ["already there", "failed"]


def test_an_interrupted_conversion_leaves_whole_files_and_goes_on(folder, monkeypatch):
    true = conversions._FileConversions._watched

    def interrupted(self, source, blocks, total):
        for number, block in enumerate(true(self, source, blocks, total)):
            if source.name == "cfg.2" and number == 2:
                self.stop.set()
            yield block

    monkeypatch.setattr(conversions._FileConversions, "_watched", interrupted)
    words = ("convert", "in", "--to", "ildg", "--output", "out", "--threads", 1)
    _, said, code = call_apart(*words)
    assert (code, "the same command continues it" in said) == (75, True)
    assert sorted(os.listdir("out")) == ["cfg.0.lime", "cfg.1.lime"]
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    shown, code = call(*words)
    assert (shown, code) == ("out: 3 files converted to ildg, 2 converted before\n", 0)


@pytest.mark.parametrize("several", [False, True])
def test_what_is_read_back_wrongly_is_removed(folder, monkeypatch, several):
    """As if another link had been written, with the checksum of it."""
    true = writing.write

    def wrong(path, source, format, provenance=None, turn=None):
        true(path, source, format, provenance, turn)
        links = read(path)
        links[1, 1, 0, 2, 1] = links[0, 0, 0, 0, 0]
        kind = (Lattice(*EXTENTS), "su3", "double", format)
        monkeypatch.setattr(writing, "write", true)
        write_configuration(path, links, *kind)
        monkeypatch.setattr(writing, "write", wrong)

    monkeypatch.setattr(writing, "write", wrong)
    words = ["--output", "out"] if several else ["out.lime"]
    call("convert", "in/cfg.0", *words, "--to", "ildg")
    there = Path("out/cfg.0.lime") if several else Path("out.lime")
    assert there.exists()
    there.unlink()
    _, said, code = call_apart("convert", "in/cfg.0", *words, "--to", "ildg", "--verify")
    assert "(the link in direction y at (x, y, z, t) = (2, 0, 1, 1) is another one)" in said
    assert ("so that it was removed" in said, code) == (True, 1)
    assert not there.exists()
    if several:
        monkeypatch.setattr(writing, "write", wrong)
        (one,) = gauge_mc.convert_all("in/cfg.0", "out", "ildg", verify=True, progress=False)
        assert (one.state, one.comparison.verdict) == ("failed", "damaged")


@pytest.mark.parametrize(
    ("words", "sentence", "code"),
    [
        (["in/cfg.0", "a", "b", "--to", "ildg"], "and not 3 names; give --output FOLDER", 2),
        (["in", "--to", "json", "--output", "out"], "no format 'json'", 2),
        (["in", "--to", "ildg", "--output", "out", "--precision", "half"], "precision 'half'", 2),
        (["in", "--to", "ildg", "--output", "out", "--threads", "0"], "--threads is 0", 2),
        (["in", "--to", "ildg", "--output", "in/cfg.0/x"], "could not be written", 1),
    ],
)
def test_conversions_that_are_refused(folder, words, sentence, code):
    before = stamps(folder / "in")
    shown, found = call("convert", *words)
    assert (sentence in shown, found) == (True, code), shown
    assert not (folder / "out").exists()
    assert stamps(folder / "in") == before


def test_python_has_it_as_well(folder):
    found = gauge_mc.convert_all(["in/cfg.3", "in/cfg.0", "none"], "out", "hdf5", progress=False)
    assert [(one.source, one.file, one.state) for one in found] == [
        ("in/cfg.3", "out/cfg.3.h5", "converted"),
        ("in/cfg.0", "out/cfg.0.h5", "converted"),
        ("none", "out/none.h5", "failed"),
    ]
    assert [one.failure[:11] for one in found] == ["", "", "none cannot"]
    again = gauge_mc.convert_all("in", "out", "hdf5", progress=False, threads=1)
    assert [one.state for one in again].count("already there") == 2
    with pytest.raises(UsageError, match="nothing to convert"):
        gauge_mc.convert_all([], "out", "hdf5")
    with pytest.raises(UsageError, match="no format 'x'"):
        gauge_mc.convert_all("in", "out", "x")


def test_links_without_extents_are_converted_as_well(folder):
    data = b"".join(site.tobytes() for site in links_of(0).astype(">c16"))
    (folder / "bare").write_bytes(record(b"ildg-binary-data", data, begins=1, ends=1))
    words = ("convert", "bare", "--to", "nersc", "--output", "out", "--verify")
    assert call_apart(*words)[2] == 1
    out, said, code = call_apart(*words, "--lattice", "4x2x2x4", "--group", "su3")
    assert (out.endswith("out: 1 file converted to nersc\n"), code) == (True, 0)
    assert said.startswith("gauge-mc: bare: it has no SciDAC checksum, so its links were not ver")
    np.testing.assert_array_equal(read("out/bare.nersc"), links_of(0))


def test_the_first_difference_is_named(folder):
    """Files in other precisions are compared as rounded; a bit is a difference."""
    links = links_of(0)
    (folder / "single").write_bytes(nersc_bytes(links, "IEEE32BIG"))
    (folder / "rows").write_bytes(nersc_bytes(links, "IEEE32LITTLE", rows=2))
    whole, single, rows = map(open_configuration, ("in/cfg.0", "single", "rows"))
    assert compare(whole, single).verdict == compare(rows, single).verdict == "good"
    found = compare(single, whole)
    assert found.verdict == "other"
    assert "direction x at (x, y, z, t) = (0, 0, 0, 0) is another" in found.difference
    links[3, 1, 0, 2, 3, 0, 1] *= 1 + 2**-52
    (folder / "other").write_bytes(nersc_bytes(links))
    found = compare(whole, open_configuration("other"))
    assert (
        found.difference == "the link in direction t at (x, y, z, t) = (2, 0, 1, 3) is another one"
    )
    (folder / "in" / "cfg.0").write_bytes(nersc_bytes(links_of(0), PLAQUETTE="0.9"))
    with pytest.raises(UnsupportedError, match="plaquette"):
        compare(open_configuration("in/cfg.0"), single)
