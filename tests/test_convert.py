"""``gauge-mc convert`` and ``info``: configuration files of any format, and what they hold."""

import json
import os
import shutil
import tracemalloc

import numpy as np
import pytest

from gauge_mc.formats import open_configuration, write_configuration
from gauge_mc.lattice import Lattice
from tests.calls import call, make_run
from tests.formats.format_samples import (
    HELD,
    averages,
    nersc_bytes,
    plaquettes,
    random_links,
    sample,
)

PLACES = [
    (source, to)
    for source in HELD
    for to in ("ildg", "nersc", "openqcd")
    if to != "openqcd" or source[1] == "su3"
]


def read(path):
    return np.stack(list(open_configuration(path).slices()))


@pytest.mark.parametrize(("source", "to"), PLACES, ids=lambda value: "-".join([*value][:3]))
def test_links_are_the_same_in_any_format(tmp_path, source, to):
    links, data = sample(*source)
    (tmp_path / "in").write_bytes(data)
    shown, code = call("convert", tmp_path / "in", tmp_path / "out", "--to", to)
    assert code == 0
    precision = "double" if to == "openqcd" else source[2]
    assert shown == f"{tmp_path}/out: {source[1]} on 4x2x6x8 in {precision} precision, {to}\n"
    header = open_configuration(tmp_path / "out").header
    assert (header.format, header.group, header.precision) == (to, source[1], precision)
    np.testing.assert_array_equal(read(tmp_path / "out"), links)
    assert call("verify", tmp_path / "out")[1] == 0


@pytest.mark.parametrize("to", ["ildg", "nersc"])
def test_precision_is_rounded_once(tmp_path, to):
    links, data = sample("nersc", "su3", "double")
    (tmp_path / "in").write_bytes(data)
    assert (
        call("convert", tmp_path / "in", "--to", to, "--precision", "single", tmp_path / "a")[1]
        == 0
    )
    np.testing.assert_array_equal(read(tmp_path / "a"), links.astype(np.complex64))


def test_provenance_goes_along(tmp_path):
    data = nersc_bytes(random_links("su3"), CREATOR="somebody else", BETA="5.7")
    (tmp_path / "a").write_bytes(data)
    for source, target, to in (("a", "b", "ildg"), ("b", "c", "nersc")):
        assert call("convert", tmp_path / source, tmp_path / target, "--to", to)[1] == 0
        found = open_configuration(tmp_path / target).header.provenance
        fields = ("creator", "beta", "ensemble_id", "sequence_number")
        assert [found[name] for name in fields] == ["somebody else", "5.7", "test", "7"]


@pytest.mark.parametrize(
    ("words", "sentence", "code"),
    [
        (["in", "out"], "--to", 2),
        (["in", "out", "--to", "hdf5"], "no format 'hdf5'", 2),
        (["in", "out", "--to", "milc"], "only read", 2),
        (["in", "out", "--to", "nersc", "--precision", "half"], "no precision 'half'", 2),
        (["in", "out", "--to", "openqcd", "--precision", "single"], "double precision", 2),
        (["su2", "out", "--to", "openqcd"], "not su2", 2),
        (["in", "in", "--to", "nersc"], "in exists", 2),
        (["in", "folder", "--to", "nersc"], "folder exists", 2),
        (["in", "none/out", "--to", "nersc"], "could not be written", 1),
        (["none", "out", "--to", "nersc"], "none cannot be read", 1),
        (["folder", "out", "--to", "nersc"], "folder is not a file", 1),
        (["damaged", "out", "--to", "nersc"], "damaged is damaged", 1),
    ],
)
def test_what_cannot_be_converted(tmp_path, monkeypatch, words, sentence, code):
    monkeypatch.chdir(tmp_path)
    data = sample("ildg", "su3", "double")[1]
    (tmp_path / "in").write_bytes(data)
    (tmp_path / "damaged").write_bytes(data[:-3000] + b"\x55" * 8 + data[-2992:])
    (tmp_path / "su2").write_bytes(sample("ildg", "su2", "double")[1])
    (tmp_path / "folder").mkdir()
    before = sorted(os.listdir(tmp_path))
    shown, found = call("convert", *words)
    assert (sentence in shown, found) == (True, code)
    assert sorted(os.listdir(tmp_path)) == before
    assert (tmp_path / "in").read_bytes() == data


@pytest.mark.parametrize("source", HELD, ids="-".join)
def test_info_of_a_file(tmp_path, source):
    links, data = sample(*source)
    path = tmp_path / "file"
    path.write_bytes(data)
    shown, code = call("info", path, "--json")
    assert code == 0
    facts = json.loads(shown)
    assert [
        facts[name] for name in ("file", "format", "bytes", "group", "lattice", "precision")
    ] == [
        str(path),
        source[0],
        len(data),
        source[1],
        "4x2x6x8",
        source[2],
    ]
    planes = plaquettes(links)
    assert facts["recomputed"] == pytest.approx(
        {
            "mean": np.mean(planes),
            "spatial": np.mean(planes[:3]),
            "temporal": np.mean(planes[3:]),
            "link_trace": averages(links)[1],
        },
        abs=1e-14,
    )
    if source[0] in ("nersc", "openqcd"):
        assert facts["stated"]["plaquette"] == pytest.approx(averages(links)[0], abs=1e-10)
    assert (facts["checksum"] is None) == (source[0] == "openqcd")
    shown, code = call("info", path)
    assert code == 0
    for word in (source[0], source[1], "4x2x6x8", f"{facts['recomputed']['mean']}"):
        assert word in shown


def test_info_shows_the_header_of_a_damaged_file_and_no_tricks(tmp_path):
    tricks = "\x1b[2Jcleared \r\x07"
    data = nersc_bytes(random_links("su2"), REMARK=tricks)
    path = tmp_path / "file"
    path.write_bytes(data[:-1] + b"\x55")
    shown, code = call("info", path)
    assert code == 1
    assert "4x2x6x8" in shown
    assert "its links have the checksum" in shown
    assert not set(shown) & set("\x1b\r\x07")
    path.write_bytes(nersc_bytes(random_links("su2"), DATATYPE=tricks))
    shown, code = call("info", path)
    assert code == 1
    assert not set(shown) & set("\x1b\r\x07")


def test_info_of_a_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "no runs in runs" in call("info")[0]
    make_run(tmp_path / "runs" / "a", seed=7)
    facts = json.loads(call("info", "--json")[0])
    assert facts["run"] == "runs/a"
    assert facts["parameters"]["seed"] == 7
    assert facts["configurations"] == 3
    assert facts["file"] == "runs/a/configs/0000011.lime"
    assert facts["provenance"]["sequence_number"] == "11"
    assert facts["tables"]["plaquette.csv"].startswith("9 rows: sweep, plaquette")
    assert len(facts["sessions"]) == 1
    shown, code = call("info", "runs/a")
    assert code == 0
    assert "0000011.lime" in shown
    shutil.rmtree("runs/a/configs")
    assert "file" not in json.loads(call("info", "--json")[0])
    assert call("info", tmp_path)[1] == 2
    assert "cannot be read" in call("info", "none")[0]


@pytest.mark.parametrize("to", ["ildg", "nersc", "openqcd"])
def test_memory_does_not_grow_with_time(tmp_path, to):
    """Peaks are in time slices of complex128; tracemalloc counts all arrays of NumPy."""

    def peaks(extent):
        lattice = Lattice(8, 8, 8, extent)
        one = np.broadcast_to(np.eye(3, dtype=complex), (8, 8, 8, 4, 3, 3)).copy()
        path = tmp_path / str(extent)
        write_configuration(path, (one for _ in range(extent)), lattice, "su3", "double")
        found = []
        for words in (["info", path], ["convert", path, f"{path}.{to}", "--to", to]):
            tracemalloc.start()
            assert call(*words)[1] == 0
            found.append(tracemalloc.get_traced_memory()[1] / one.nbytes)
            tracemalloc.stop()
        return found

    peaks(4)
    for short, long in zip(peaks(8), peaks(32), strict=True):
        assert long < 9
        assert long < 1.1 * short
