"""Damaged files are refused in one sentence, or give the right links."""

import io
import struct
import tracemalloc
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gauge_mc.configurations.reading import open_configuration
from gauge_mc.errors import GaugeError
from gauge_mc.files.input import InputFile
from tests.formats.format_samples import HELD, WITHOUT_CHECKSUM, ildg_format, record, sample

pytestmark = pytest.mark.kernels

SMALL = (2, 2, 2, 2)
GOOD = {case: sample(*case, SMALL) for case in HELD}
quick = settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def outcome(path: Path, data: bytes):
    """Return the links, or None if the file was refused, which must take one sentence."""
    path.write_bytes(data)
    try:
        return np.stack(list(open_configuration(path).slices()))
    except GaugeError as error:
        text = str(error)
        assert str(path) in text
        assert text.endswith(".")
        assert "\n" not in text
        return None


@pytest.mark.first_quick
@pytest.mark.parametrize("case", [case for case in HELD if case[0] not in WITHOUT_CHECKSUM])
@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_every_flipped_bit_of_a_link_is_found(tmp_path, case, every):
    links, good = GOOD[case]
    reals = 2 * links.shape[-1] ** 2
    width = 8 if case[2] == "double" else 4
    size = links.size * 2 * width
    # The links of NERSC and MILC end with the file, those of ILDG with their record.
    first = len(good) - size
    if case[0] in ("ildg", "scidac"):
        first = good.index(f"{case[0]}-binary-data".encode()) + 128
    elif case[0] == "hdf5":
        first = good.index(links.astype("<c16" if width == 8 else "<c8").tobytes())
    rng = np.random.default_rng(3)
    for number in range(0, reals * width, every):
        # Bytes of the matrices, of a random link each; a random bit of each. Every fifth one is
        # each byte of a real.
        link = int(rng.integers(links[..., 0, 0].size))
        data = bytearray(good)
        data[first + link * reals * width + number] ^= 1 << int(rng.integers(8))
        assert outcome(tmp_path / "file", bytes(data)) is None


@quick
@given(case=st.sampled_from(HELD), where=st.floats(0, 1, exclude_max=True))
def test_truncated(tmp_path, case, where):
    links, good = GOOD[case]
    found = outcome(tmp_path / "file", good[: int(where * len(good))])
    # An ILDG file may end with any record after the links.
    assert found is None or (case[0] in ("ildg", "scidac") and np.array_equal(found, links))


def test_an_ildg_file_cut_between_records_has_its_links_or_none(tmp_path):
    case = ("ildg", "su3", "single")
    links, good = GOOD[case]
    cuts = [n for n in range(8, len(good), 8) if good[n : n + 4] == good[:4]]
    found = [outcome(tmp_path / "file", good[:cut]) for cut in cuts]
    assert [one is None for one in found] == [True, False, False]
    assert all(np.array_equal(one, links) for one in found[1:])


@quick
@given(case=st.sampled_from(HELD), more=st.binary(min_size=1, max_size=300))
def test_too_long(tmp_path, case, more):
    assert outcome(tmp_path / "file", GOOD[case][1] + more) is None


@quick
@given(
    head=st.sampled_from([good[:n] for _, good in GOOD.values() for n in (4, 16, 144)]),
    rest=st.binary(max_size=2000),
)
def test_noise(tmp_path, head, rest):
    assert outcome(tmp_path / "file", head + rest) is None


def hdf5_claim(case, shape):
    """Return the head of an HDF5 file of larger links, whose data set has a place in the file."""
    n = int(case[1][2])
    file = io.BytesIO()
    with h5py.File(file, "w") as h5:
        kind = "<c16" if case[2] == "double" else "<c8"
        data = h5.create_dataset("links", (2, 2, 2, 2, 4), np.dtype((kind, (n, n))))
        data[...] = np.ones((2, 2, 2, 2, 4, n, n), kind)
    small, large = (struct.pack("<5Q", *extents) for extents in ((2, 2, 2, 2, 4), shape))
    assert small in file.getvalue()
    return file.getvalue().replace(small, large)


@pytest.mark.parametrize("case", HELD)
def test_nothing_is_allocated_for_a_claim(tmp_path, case):
    # Cut off files: their claims of 2^31 bytes and more must not be believed.
    extents = (256, 256, 256, 250)
    x, y, z, t = extents
    head = {
        "ildg": record(b"ildg-format", ildg_format(extents, case[1], case[2]))
        + record(b"ildg-binary-data", b"", length=2**40),
        "nersc": GOOD[case][1][:2000].replace(b"= 2\n", b"= 256\n"),
        "milc": struct.pack("<i4i", 20103, *extents) + GOOD[case][1][20:],
        "openqcd": struct.pack("<4i", t, x, y, z) + GOOD[case][1][16:],
        "hirep": GOOD[case][1][:4] + struct.pack(">4i", t, x, y, z) + GOOD[case][1][20:],
        "hdf5": hdf5_claim(case, (t, z, y, x, 4)),
        "scidac": GOOD[case][1][:600].replace(b"2 2 2 2 ", b"256 256 256 250 "),
    }[case[0]]
    tracemalloc.start()
    try:
        assert outcome(tmp_path / "file", head) is None
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


def test_slices_larger_than_memory(tmp_path):
    path = tmp_path / "file"
    extents = (1024, 1024, 1024, 2)
    with open(path, "wb") as file:
        file.write(struct.pack("<i4i64siII", 20103, *extents, b"", 0, 0, 0))
        file.truncate(96 + 2**31 * 288)
    with pytest.raises(GaugeError, match="do not fit into memory"):
        open_configuration(path)


@pytest.mark.parametrize("call", ["check", "load", "slices"])
def test_slices_that_exceed_the_memory_while_they_are_read(tmp_path, monkeypatch, call):
    path = tmp_path / "file"
    path.write_bytes(sample("nersc", "su3", "double")[1])
    found = open_configuration(path)

    def full(*arguments):
        raise MemoryError

    monkeypatch.setattr(InputFile, "read", full)
    with pytest.raises(GaugeError, match="do not fit into memory"):
        list(found.slices()) if call == "slices" else getattr(found, call)()


@pytest.mark.slow
@quick
@given(case=st.sampled_from(HELD), where=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_flipped_bit(tmp_path, case, where, bit):
    links, good = GOOD[case]
    data = bytearray(good)
    place = int(where * len(data))
    data[place] ^= 1 << bit
    found = outcome(tmp_path / "file", bytes(data))
    if found is not None and case[0] in WITHOUT_CHECKSUM:
        assert np.abs(found - links).max() < 1e-4
    elif found is not None:
        np.testing.assert_array_equal(found, links)


@pytest.mark.slow
@quick
@given(
    case=st.sampled_from(HELD),
    where=st.integers(0, 600),
    text=st.one_of(st.binary(max_size=40), st.text(max_size=20).map(str.encode)),
    cut=st.integers(0, 40),
)
def test_header_overwritten(tmp_path, case, where, text, cut):
    links, good = GOOD[case]
    found = outcome(tmp_path / "file", good[:where] + text + good[where + cut :])
    assert found is None or found.shape == links.shape
