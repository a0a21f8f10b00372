"""HiRep in detail. On odd extents NumPy reads and writes, and no kernel is needed."""

import struct

import numpy as np
import pytest

import gauge_mc
from gauge_mc.configurations.reading import open_configuration
from gauge_mc.configurations.writing import compare, write_configuration
from gauge_mc.domain.lattice import OddLattice
from gauge_mc.errors import DamagedError, UnsupportedError
from tests.calls import call
from tests.formats.format_samples import averages, hirep_bytes, nersc_bytes, random_links

EXTENTS = (3, 2, 4, 5)
GROUPS = ["su2", "su3", "su4"]


@pytest.mark.parametrize("group", GROUPS)
def test_bytes_as_written(tmp_path, group):
    links = random_links(group, extents=EXTENTS)
    path = tmp_path / "file"
    write_configuration(path, links, OddLattice(*EXTENTS), group, "double", "hirep")
    data, want = path.read_bytes(), hirep_bytes(links)
    assert (data[:20], data[28:]) == (want[:20], want[28:])
    (plaquette,) = struct.unpack(">d", data[20:28])
    assert plaquette == pytest.approx(averages(links)[0], abs=1e-15)


@pytest.mark.parametrize("group", GROUPS)
def test_files_are_read_exactly(tmp_path, group):
    links = random_links(group, extents=EXTENTS)
    path = tmp_path / "file"
    path.write_bytes(hirep_bytes(links))
    found = open_configuration(path)
    assert (found.header.format, found.header.group) == ("hirep", group)
    assert str(found.header.lattice) == "3x2x4x5"
    np.testing.assert_array_equal(found.to_numpy(), links)
    assert found.check().mean == pytest.approx(averages(links)[0], abs=1e-14)


@pytest.mark.slow
@pytest.mark.kernels
@pytest.mark.parametrize("group", GROUPS)
def test_kernels_read_and_write_the_same(tmp_path, group):
    links = random_links(group, extents=(4, 2, 6, 8))
    path = tmp_path / "file"
    path.write_bytes(hirep_bytes(links))
    field = gauge_mc.Field.load(path)
    held = field.to_numpy()  # whose last rows follow from the others
    np.testing.assert_allclose(held, links, rtol=0, atol=1e-14)
    field.save(tmp_path / "new", "hirep", "double")
    assert (tmp_path / "new").read_bytes()[28:] == hirep_bytes(held)[28:]


def test_matrices_of_su2(tmp_path):
    """Files of earlier versions, which the size tells; links are the same."""
    links = random_links("su2", extents=EXTENTS)
    for name, quaternions in (("new", True), ("old", False)):
        (tmp_path / name).write_bytes(hirep_bytes(links, quaternions=quaternions))
    new, old = (open_configuration(tmp_path / name) for name in ("new", "old"))
    np.testing.assert_array_equal(old.to_numpy(), links)
    assert compare(old, new).verdict == compare(new, old).verdict == "good"


def test_a_second_row_with_other_rounding_is_no_difference(tmp_path, monkeypatch):
    """It follows from the first one in a file that has quaternions."""
    monkeypatch.chdir(tmp_path)
    links = random_links("su2", extents=EXTENTS)
    links[..., 1, :] *= 1 + 2**-52
    (tmp_path / "in").write_bytes(nersc_bytes(links))
    shown, code = call("convert", "in", "out", "--to", "hirep", "--verify")
    assert ("good  out  plaquette" in shown, code) == (True, 0)


@pytest.mark.parametrize("group", ["su2", "su3"])
def test_a_changed_number_is_found_by_the_plaquette(tmp_path, group):
    data = bytearray(hirep_bytes(random_links(group, extents=EXTENTS)))
    data[28 + 8 * 11 + 3] ^= 1
    (tmp_path / "file").write_bytes(bytes(data))
    with pytest.raises(UnsupportedError, match=r"plaquette .* it has no checksum that decides"):
        open_configuration(tmp_path / "file").check()
    (tmp_path / "file").write_bytes(hirep_bytes(random_links(group, extents=EXTENTS), 0.25))
    with pytest.raises(UnsupportedError, match=r"its header says 0\.25"):
        open_configuration(tmp_path / "file").check()


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (lambda data: data[:-8], DamagedError, "truncated"),
        (lambda data: data + bytes(8), UnsupportedError, "too long"),
        (lambda data: data + bytes(16 * 120), UnsupportedError, "four-fermion"),
        (lambda data: data[: 28 + (len(data) - 28) // 2], UnsupportedError, "SO(N) or Sp(N)"),
        (lambda data: data[:28] + bytes(576) + data[604:], UnsupportedError, "Schrödinger"),
        (lambda data: struct.pack(">i", 9) + data[4:], UnsupportedError, "are 9×9 matrices"),
        (lambda data: struct.pack(">i", 1) + data[4:], UnsupportedError, "not a configuration"),
        (lambda data: data[:4] + struct.pack(">i", 5000) + data[8:], UnsupportedError, "not a con"),
        (lambda data: data[:20] + struct.pack(">d", np.nan) + data[28:], UnsupportedError, "not a"),
    ],
)
def test_what_is_refused(tmp_path, change, error, words):
    (tmp_path / "file").write_bytes(change(hirep_bytes(random_links("su3", extents=EXTENTS))))
    with pytest.raises(error, match=words.replace("(", r"\(").replace(")", r"\)")):
        open_configuration(tmp_path / "file")


def test_open_boundaries_are_named(tmp_path):
    links = random_links("su3", extents=EXTENTS)
    links[-1, ..., 3, :, :] = 0
    (tmp_path / "file").write_bytes(hirep_bytes(links))
    with pytest.raises(UnsupportedError, match="as those of open boundaries"):
        open_configuration(tmp_path / "file").check()
