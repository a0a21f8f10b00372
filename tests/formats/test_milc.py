"""MILC in detail."""

import struct

import numpy as np
import pytest

import gauge_mc
from gauge_mc.configurations.reading import open_configuration
from gauge_mc.configurations.writing import write_configuration
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError, UsageError
from tests.calls import call, make_run
from tests.formats.format_samples import milc_bytes, random_links

pytestmark = pytest.mark.kernels

LINKS = random_links("su3", "single", (2, 4, 6, 2))


@pytest.mark.parametrize("order", "<>")
def test_byte_orders(tmp_path, order):
    path = tmp_path / "milc"
    path.write_bytes(milc_bytes(LINKS, order))
    configuration = open_configuration(path)
    assert configuration.header.provenance == {"time_stamp": "Thu Jan  2 03:04:05 2003"}
    np.testing.assert_array_equal(np.stack(list(configuration.slices())), LINKS)


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"site_order": 1}, "serial format"),
        ({"extents": (2, 4, 6, -2)}, "The extent in t is -2"),
        ({"extents": (2, 3, 6, 2)}, "too long"),
        ({"extents": (2**31 - 2,) * 4}, "2^32"),
        ({"extents": (2, 4, 6, 2**24)}, "truncated"),
        ({"extents": (2, 4, 2, 2)}, "too long"),
        ({"extents": (6, 4, 2, 2)}, None),
    ],
)
def test_header_that_lies(tmp_path, order, changes, words):
    path = tmp_path / "milc"
    path.write_bytes(milc_bytes(LINKS, order, **changes))
    if words is None:
        # The same sites in another shape: nothing in the file tells that this is wrong.
        assert len(list(open_configuration(path).slices())) == 2
        return
    with pytest.raises(GaugeError) as error:
        open_configuration(path)
    assert words in str(error.value)
    assert str(path) in str(error.value)


def test_links_outside_the_group(tmp_path):
    path = tmp_path / "milc"
    bad = LINKS.copy()
    bad[1, 2, 3, 0, 1] *= 1.001
    path.write_bytes(milc_bytes(bad))
    slices = open_configuration(path).slices()
    np.testing.assert_array_equal(next(slices), LINKS[0])
    with pytest.raises(GaugeError, match=r"direction y at .* \(0, 3, 2, 1\) is not in SU\(3\)"):
        next(slices)


def read_by_hand(data):
    """Read a MILC file of a little-endian machine with nothing but NumPy and struct.

    Return the extents, the time stamp, the links, and the checksums stated and found. The sums are
    those of the MILC code: 32-bit words, rotated left by their number modulo 29 and 31.
    """
    magic, *extents = struct.unpack_from("<i4i", data)
    assert magic == 20103
    stamp = data[20:84]
    site_order, *stated = struct.unpack_from("<iII", data, 84)
    assert site_order == 0
    x, y, z, t = extents
    assert len(data) == 96 + 4 * x * y * z * t * 18 * 4
    found = [0, 0]
    for number, word in enumerate(np.frombuffer(data, "<u4", offset=96).tolist()):
        for which, period in enumerate((29, 31)):
            turns = number % period
            found[which] ^= (word << turns | word >> (32 - turns)) & 0xFFFFFFFF
    links = np.frombuffer(data, "<c8", offset=96).reshape(t, z, y, x, 4, 3, 3)
    return extents, stamp, links, stated, found


@pytest.mark.parametrize(
    ("fields", "stamp"),
    [
        ({}, b""),
        ({"time_stamp": "Thu Jan  2 03:04:05 2003"}, b"Thu Jan 2 03:04:05 2003"),
        ({"creation_date": "2003-01-02", "beta": "6.0"}, b"2003-01-02"),
        ({"creation_date": "é\n\0" + "x" * 100}, b"? ?" + b"x" * 60),
    ],
)
def test_written_files_are_read_by_hand(tmp_path, fields, stamp):
    kind = (Lattice(2, 4, 6, 2), "su3", "single", "milc")
    write_configuration(tmp_path / "file", LINKS, *kind, fields)
    extents, found, links, *sums = read_by_hand((tmp_path / "file").read_bytes())
    assert extents == [2, 4, 6, 2]
    assert found == stamp.ljust(64, b"\0")
    assert sums[0] == sums[1] != [0, 0]
    np.testing.assert_array_equal(links, LINKS)
    assert open_configuration(tmp_path / "file").check().mean == pytest.approx(0, abs=0.1)
    assert call("verify", tmp_path / "file")[1] == 0


def test_a_written_file_is_the_one_that_milc_would_have_written(tmp_path):
    """Byte by byte, if the time stamp goes along."""
    good = milc_bytes(LINKS).replace(b"Jan  2", b"Jan 22")
    (tmp_path / "in").write_bytes(good)
    gauge_mc.convert(tmp_path / "in", tmp_path / "out", "milc")
    assert (tmp_path / "out").read_bytes() == good


@pytest.mark.parametrize(
    ("group", "precision", "words"),
    [
        ("su3", "double", r"MILC files store SU\(3\) in single precision, not SU\(3\) in double"),
        ("su2", "single", r"MILC files store SU\(3\) in single precision, not SU\(2\) in single"),
        ("su4", "single", r"not SU\(4\) in single precision: choose ildg, hdf5, nersc or scidac"),
    ],
)
def test_other_groups_and_precisions_are_not_written(tmp_path, group, precision, words):
    with pytest.raises(UsageError, match=words):
        write_configuration(tmp_path / "a", [], Lattice(2, 4, 6, 2), group, precision, "milc")


def test_a_run_writes_them_and_is_continued(tmp_path):
    kind = {"group": "su3", "lattice": "4x4x4x4", "precision": "single", "format": "milc"}
    run = make_run(tmp_path / "run", configs=1, **kind)
    assert call("generate", "--output", run, "--configs", 2, "--quiet", "--threads", 1)[1] == 0
    whole = make_run(tmp_path / "whole", configs=2, **kind)
    names = ["0000005.milc", "0000008.milc"]
    for name in names:
        one, other = (folder / "configs" / name for folder in (run, whole))
        assert one.read_bytes() == other.read_bytes()
        *_, stated, found = read_by_hand(one.read_bytes())
        assert stated == found
    assert call("verify", run)[1] == 0
    assert "on 2 configurations" in call("measure", "plaquette", run, "--backend", "cpu")[0]
