"""All formats through the public functions: what is written is read back, whole or not at all."""

import errno
import os
import resource

import numpy as np
import pytest

from gauge_mc.configurations.reading import open_configuration
from gauge_mc.configurations.writing import write_configuration
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files import atomic
from tests.formats.format_samples import (
    EXTENTS,
    HELD,
    WITHOUT_CHECKSUM,
    averages,
    random_links,
    sample,
)

pytestmark = pytest.mark.kernels

LATTICE = Lattice(*EXTENTS)


def read(path):
    return np.stack(list(open_configuration(path).slices()))


def one_sentence(error, path):
    text = str(error.value)
    return "\n" not in text and text.endswith(".") and str(path) in text


@pytest.mark.parametrize(("format", "group", "precision"), HELD)
def test_hand_made_file_reads_exactly(tmp_path, format, group, precision):
    links, data = sample(format, group, precision)
    path = tmp_path / "file"
    path.write_bytes(data)
    header = open_configuration(path).header
    assert (header.format, header.lattice) == (format, LATTICE)
    assert (header.group, header.precision) == (group, precision)
    np.testing.assert_array_equal(read(path), links)


@pytest.mark.parametrize(("format", "group", "precision"), HELD)
def test_round_trip_is_exact(tmp_path, format, group, precision):
    links = random_links(group, precision)
    path = tmp_path / "file"
    write_configuration(path, iter(links), LATTICE, group, precision, format, {"beta": "6.0"})
    header = open_configuration(path).header
    assert (header.format, header.lattice) == (format, LATTICE)
    assert (header.group, header.precision) == (group, precision)
    # The last rows are computed from the others, which were rounded.
    rounding = 1e-14 if precision == "double" else 1e-8
    assert format == "milc" or header.plaquette == pytest.approx(averages(links)[0], abs=rounding)
    assert format in ("milc", *WITHOUT_CHECKSUM) or header.provenance["beta"] == "6.0"
    np.testing.assert_array_equal(read(path), links)
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("format", ["ildg", "nersc", "openqcd", "hdf5", "scidac"])
def test_same_arguments_same_bytes(tmp_path, format):
    links = random_links("su3")
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        write_configuration(tmp_path / folder / "1", links, LATTICE, "su3", "double", format)
    assert (tmp_path / "a/1").read_bytes() == (tmp_path / "b/1").read_bytes()


@pytest.mark.parametrize("format", ["ildg", "nersc", "hdf5", "scidac"])
@pytest.mark.parametrize(
    "text", ["a < b & c > d ]]>", "two\nlines", "é € 𝛽", "\0\x1b\ud800", "x" * 3000, "", "0"]
)
def test_any_provenance_leaves_a_good_file(tmp_path, format, text):
    links = random_links("su2", extents=(2, 2, 2, 2))
    path = tmp_path / "file"
    fields = {"remark": text, text: "key", "CHECKSUM": "0", "sequence_number": text}
    write_configuration(path, links, Lattice(2, 2, 2, 2), "su2", "double", format, fields)
    np.testing.assert_array_equal(read(path), links)
    if format == "nersc":
        assert int(open_configuration(path).header.provenance["sequence_number"]) > 0
    elif format == "ildg" and text.startswith("a <"):
        assert open_configuration(path).header.provenance["remark"] == text


@pytest.mark.parametrize("format", ["ildg", "nersc", "openqcd"])
@pytest.mark.parametrize("fault", ["short", "long", "shape", "nan", "not unitary", "determinant"])
def test_bad_links_are_not_written(tmp_path, format, fault):
    links = list(random_links("su3"))
    if fault == "short":
        links.pop()
    elif fault == "long":
        links.append(links[0])
    elif fault == "shape":
        links[3] = links[3][..., :2, :2]
    elif fault == "nan":
        links[7][5, 1, 3, 2, 0, 0] = np.nan
    elif fault == "not unitary":
        links[7][5, 1, 3, 2] *= 1.01
    else:
        links[7][5, 1, 3, 2] *= -1
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(GaugeError) as error:
        write_configuration(path, links, LATTICE, "su3", "double", format)
    assert one_sentence(error, path)
    if links and fault in ("nan", "not unitary", "determinant"):
        assert "direction z at (x, y, z, t) = (3, 1, 5, 7)" in str(error.value)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]


def test_failing_source_leaves_nothing(tmp_path):
    def source():
        yield random_links("su2")[0]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_configuration(tmp_path / "file", source(), LATTICE, "su2", "double")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("format", ["ildg", "nersc", "openqcd", "hdf5"])
def test_write_that_stops_half_way(tmp_path, format):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (70_000, hard))
    try:
        with pytest.raises(GaugeError) as error:
            write_configuration(
                tmp_path / "file", random_links("su3"), LATTICE, "su3", "double", format
            )
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert one_sentence(error, tmp_path / "file")
    assert os.listdir(tmp_path) == []


def test_places_that_cannot_be_written(tmp_path):
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "none" / "file", tmp_path / "folder", tmp_path / ("x" * 300)):
        with pytest.raises(GaugeError) as error:
            write_configuration(path, random_links("su2"), LATTICE, "su2", "double")
        assert one_sentence(error, path)
    assert os.listdir(tmp_path) == ["folder"]


@pytest.mark.parametrize(
    ("format", "group", "precision"),
    [
        ("milc", "su3", "double"),
        ("milc", "su2", "single"),
        ("json", "su3", "double"),
        ("ildg", "zu8", "double"),
        ("ildg", "su3", "half"),
        ("openqcd", "su2", "double"),
        ("openqcd", "su3", "single"),
        ("hirep", "su3", "single"),
    ],
)
def test_what_cannot_be_written(tmp_path, format, group, precision):
    with pytest.raises(UsageError, match=r"[.?]$"):
        write_configuration(tmp_path / "file", [], LATTICE, group, precision, format)


def test_files_that_are_no_configurations(tmp_path):
    (tmp_path / "empty").touch()
    (tmp_path / "text").write_text("beta,plaquette\n" * 100)
    (tmp_path / "zeros").write_bytes(bytes(5000))
    os.mkfifo(tmp_path / "pipe")
    for name in ("empty", "text", "zeros", "pipe", "none", ".", "a\0b"):
        path = tmp_path / name
        with pytest.raises(GaugeError) as error:
            open_configuration(path)
        assert one_sentence(error, path)


def test_file_that_changes_after_opening(tmp_path):
    path = tmp_path / "file"
    write_configuration(path, random_links("su2"), LATTICE, "su2", "double")
    configuration = open_configuration(path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(GaugeError, match="truncated"):
        next(configuration.slices())
    path.unlink()
    with pytest.raises(GaugeError, match="cannot be read"):
        next(configuration.slices())


@pytest.mark.parametrize("format", ["ildg", "nersc"])
def test_single_precision_rounds_once(tmp_path, format):
    links = random_links("su3")
    path = tmp_path / "file"
    write_configuration(path, links, LATTICE, "su3", "single", format)
    np.testing.assert_array_equal(read(path), links.astype(np.complex64))


def test_disk_full(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_text("old")

    def full(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(atomic.os, "fsync", full)
    with pytest.raises(GaugeError, match="free some space") as error:
        write_configuration(path, random_links("su2"), LATTICE, "su2", "double")
    assert one_sentence(error, path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]
