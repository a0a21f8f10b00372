"""``gauge-mc convert``: a configuration in another format or precision."""

import os
import tracemalloc
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

from gauge_mc.configurations.reading import open_configuration
from gauge_mc.configurations.writing import write_configuration
from gauge_mc.domain.lattice import Lattice
from tests.calls import call, make_run
from tests.formats.format_params import param
from tests.formats.format_samples import HELD, ildg_bytes, nersc_bytes, random_links, sample

pytestmark = pytest.mark.kernels

PLACES = [
    param(source[1], source, to)
    for source in HELD
    for to in ("ildg", "nersc", "openqcd", "hdf5", "scidac")
    if to != "openqcd" or source[1] == "su3"
]


def read(path):
    return np.stack(list(open_configuration(path).slices()))


@pytest.mark.first_quick
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
        (["su2", "out", "--to", "milc"], "in single precision, not SU(2)", 2),
        (["in", "out", "--to", "openqcd", "--precision", "single"], "double precision", 2),
        (["su2", "out", "--to", "openqcd"], "in double precision, not SU(2)", 2),
        (["in", "in", "--to", "nersc"], "in already exists", 2),
        (["in", "folder", "--to", "nersc"], "folder already exists", 2),
        (["in", "none/out", "--to", "nersc"], "could not be written", 1),
        (["none", "out", "--to", "nersc"], "none cannot be read", 2),
        (["folder", "out", "--to", "nersc"], "folder is a directory", 2),
        (["damaged", "out", "--to", "nersc"], "damaged is damaged", 1),
    ],
)
def test_conversions_that_are_refused(tmp_path, monkeypatch, words, sentence, code):
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


def memory_peaks(folder, to, extents):
    """Return the largest memory of two commands for each extent, in time slices of complex128.

    tracemalloc counts all arrays of NumPy.
    """

    def measured(extent):
        lattice = Lattice(8, 8, 8, extent)
        one = np.broadcast_to(np.eye(3, dtype=complex), (8, 8, 8, 4, 3, 3)).copy()
        path = folder / str(extent)
        write_configuration(path, (one for _ in range(extent)), lattice, "su3", "double")
        found = []
        for words in (["info", path], ["convert", path, f"{path}.{to}", "--to", to]):
            tracemalloc.start()
            assert call(*words)[1] == 0
            found.append(tracemalloc.get_traced_memory()[1] / one.nbytes)
            tracemalloc.stop()
        return found

    return [measured(extent) for extent in extents]


@pytest.mark.slow
@pytest.mark.parametrize("to", ["ildg", "nersc", "openqcd", "hdf5"])
def test_memory_does_not_grow_with_time(tmp_path, to):
    # In a process of its own, since what threads of other tests allocate would be counted as well.
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        _, *peaks = process.submit(memory_peaks, tmp_path, to, (4, 8, 32)).result()
    for short, long in zip(*peaks, strict=True):
        assert long < 9
        assert long < 1.1 * short


SAID = "it has no SciDAC checksum, so its links were not verified with one"


@pytest.mark.parametrize("checksum", [True, False])
def test_it_is_said_when_it_is_measured_or_started_from(tmp_path, checksum):
    path = tmp_path / "in.lime"
    links = random_links("su2", extents=(4, 4, 4, 4))
    path.write_bytes(ildg_bytes(links, "double", checksum=checksum))
    tiny = ("--lattice", 4, "--precision", "double", "--thermalize", 0, "--configs", 0)
    for words in (
        ("measure", "plaquette", path, "--output", tmp_path / "table.csv", "--backend", "cpu"),
        ("generate", "--start", path, *tiny, "--output", tmp_path / "run", "--backend", "cpu"),
    ):
        shown, code = call(*words)
        assert code == 0
        assert (f"{path}: {SAID}" in shown) != checksum


@pytest.mark.parametrize("key", ["CHECKSUM", "FLOATING_POINT"])
@pytest.mark.parametrize("precision", ["single", "double"])
def test_a_nersc_header_without_a_key_is_absent_not_damaged(tmp_path, monkeypatch, key, precision):
    """It is refused, unless that is on purpose; then it is said once."""
    run = make_run(tmp_path / "run", format="nersc", configs=1, precision=precision)
    (path,) = (run / "configs").iterdir()
    good = call("measure", "plaquette", path, "--output", tmp_path / "good.csv", "--quiet")
    head, end, links = path.read_bytes().partition(b"END_HEADER\n")
    lines = [line for line in head.split(b"\n") if not line.startswith(key.encode())]
    path.write_bytes(b"\n".join(lines) + end + links)
    words = ("measure", "plaquette", path, "--output", tmp_path / "table.csv")
    said, code = call(*words)
    assert f"{path} states no {key}, so that" in said
    assert (code, "GAUGE_MC_UNCHECKED=1" in said) == (69, True), said
    monkeypatch.setenv("GAUGE_MC_UNCHECKED", "1")
    said, code = call(*words)
    assert code == good[1] == 0
    assert said.count(f"states no {key}") == 1
    values = [
        (tmp_path / name).read_text().split("\n")[-4:-2] for name in ("good.csv", "table.csv")
    ]
    assert values[0] == values[1]
    path.write_bytes(b"\n".join(lines) + end + links[:-8])
    assert "is truncated" in call("info", path)[0]
