"""Fields of SciDAC without records of ILDG, in detail."""

import re
import zlib

import numpy as np
import pytest

import gauge_mc
from gauge_mc.configurations.reading import open_configuration
from gauge_mc.configurations.writing import write_configuration
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import DamagedError, GaugeError, UnsupportedError, UsageError
from gauge_mc.files.input import InputFile
from gauge_mc.formats import is_configuration
from gauge_mc.storage.scidac import read_records
from tests.calls import call, make_run
from tests.formats.format_samples import (
    averages,
    ildg_bytes,
    lime_records,
    random_links,
    record,
    scidac_bytes,
)

pytestmark = pytest.mark.kernels

EXTENTS = (2, 4, 6, 2)
CASES = [("su3", "single"), ("su3", "double"), ("su2", "double"), ("su4", "single")]


def elements(xml):
    """The elements of a flat XML document."""
    return dict(re.findall(r"<(\w+)>([^<]*)</\1>", xml.decode()))


def read_by_hand(data):
    """Read a file with nothing but NumPy, struct and zlib; return links and checksums."""
    found = lime_records(data)
    assert [flags for flags, *_ in found] == [2, 1, 2, 0, 0, 1]
    content = {kind: text for _, kind, text in found}
    assert [*content] == [
        "scidac-private-file-xml",
        "scidac-file-xml",
        "scidac-private-record-xml",
        "scidac-record-xml",
        "scidac-binary-data",
        "scidac-checksum",
    ]
    about = elements(content["scidac-private-file-xml"])
    assert (about["spacetime"], about["volfmt"]) == ("4", "0")
    x, y, z, t = map(int, about["dims"].split())
    kind = elements(content["scidac-private-record-xml"])
    letter, n = re.fullmatch("QDP_([FD])([0-9])_ColorMatrix", kind["datatype"]).groups()
    assert (kind["precision"], kind["colors"], kind["datacount"]) == (letter, n, "4")
    assert int(kind["typesize"]) == int(n) ** 2 * {"F": 8, "D": 16}[letter]
    links = np.frombuffer(content["scidac-binary-data"], {"F": ">c8", "D": ">c16"}[letter])
    links = links.reshape(t, z, y, x, 4, int(n), int(n))
    sums = [0, 0]
    for number, site in enumerate(links.reshape(t * z * y * x, -1)):
        word = zlib.crc32(site.tobytes())
        for which, period in enumerate((29, 31)):
            turns = number % period
            sums[which] ^= (word << turns | word >> (32 - turns)) & 0xFFFFFFFF
    stated = elements(content["scidac-checksum"])
    return links, [int(stated["suma"], 16), int(stated["sumb"], 16)], sums, content


@pytest.mark.parametrize(("group", "precision"), CASES)
def test_written_files_are_read_by_hand(tmp_path, group, precision):
    given = random_links(group, precision, EXTENTS)
    path, fields = tmp_path / "file", {"beta": "6.0", "creation_date": "2003-01-02"}
    write_configuration(path, given, Lattice(*EXTENTS), group, precision, "scidac", fields)
    links, stated, found, content = read_by_hand(path.read_bytes())
    np.testing.assert_array_equal(links, given)
    assert stated == found
    assert elements(content["scidac-private-record-xml"])["date"] == "2003-01-02"
    assert elements(content["scidac-file-xml"])["beta"] == "6.0"
    means = elements(content["scidac-record-xml"])
    assert [float(means[key]) for key in ("plaq", "linktr")] == pytest.approx(
        averages(given), abs=1e-14 if precision == "double" else 1e-7
    )
    header = open_configuration(path).header
    assert (header.format, header.group, header.precision) == ("scidac", group, precision)
    assert header.provenance == fields
    assert call("verify", path)[1] == 0


def test_the_data_and_the_checksum_are_those_of_an_ildg_file(tmp_path):
    given = random_links("su3", "single", EXTENTS)
    (tmp_path / "ildg").write_bytes(ildg_bytes(given, "single"))
    gauge_mc.convert(tmp_path / "ildg", tmp_path / "scidac", "scidac", verify=True)
    gauge_mc.convert(tmp_path / "scidac", tmp_path / "back", "ildg", verify=True)
    headers = [open_configuration(tmp_path / name).header for name in ("ildg", "scidac", "back")]
    assert [one.format for one in headers] == ["ildg", "scidac", "ildg"]
    assert len({one.checksum for one in headers}) == 1
    names = [one.provenance["ildg-data-lfn"] for one in headers]
    assert names == ["lfn://test/1"] * 3


def test_a_damaged_file_is_of_some_format(tmp_path):
    """Which of the two formats it has is seen from all of its records."""
    good = scidac_bytes(random_links("su3", "single", EXTENTS), "single")
    for size in (100, 1000, len(good) - 100):
        (tmp_path / "file").write_bytes(good[:size])
        assert is_configuration(tmp_path / "file")
        with pytest.raises(DamagedError):
            open_configuration(tmp_path / "file")
    for more, error, words in (
        (record(b"scidac-binary-data", b"1234"), UnsupportedError, "it has 0 ildg-format records"),
        (record(b"ildg-format", b"<ildgFormat/>"), UnsupportedError, "does not state a field"),
    ):
        (tmp_path / "file").write_bytes(good + more)
        assert is_configuration(tmp_path / "file")
        with pytest.raises(error, match=words):
            open_configuration(tmp_path / "file")


def test_it_states_its_lattice_and_group(tmp_path):
    (tmp_path / "file").write_bytes(scidac_bytes(random_links("su2", extents=EXTENTS), "double"))
    with pytest.raises(UsageError, match="leave --lattice and --group out"):
        open_configuration(tmp_path / "file", "2x4x6x2", "su2")


def test_a_run_writes_them(tmp_path):
    run = make_run(tmp_path / "run", format="scidac")
    assert call("verify", run)[1] == 0
    path = run / "configs" / "0000005.scidac"
    _, stated, found, _ = read_by_hand(path.read_bytes())
    assert stated == found
    assert open_configuration(path).header.provenance["sequence_number"] == "5"


CONTENT = ((b"one", b"12345678", 1, 0), (b"two", b"", 0, 0), (b"three", b"123", 0, 1))
"""Type, data, and whether a message begins and ends, of each record."""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "file.lime"


def read(path):
    with InputFile(path) as file:
        found = read_records(file)
        return [(one.type, file.read(one.offset, one.length).tobytes()) for one in found]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (b"\0", "no LIME record begins at byte 448"),
        (record(b"end", b"")[:9], "truncated"),
        (bytes(144), "no LIME record begins at byte 448"),
        (record(b"end", b"12", length=9), "goes beyond"),
        (record(b"end", b"", length=2**64 - 1), "goes beyond"),
        (record(b"end", b"") * 998, "more than 1000"),
        (record(b"\x01", b""), "no readable type"),
    ],
)
def test_damage_is_named(path, more, words):
    good = b"".join(
        record(kind, data, begins=begins, ends=ends) for kind, data, begins, ends in CONTENT
    )
    assert len(good) == 448
    path.write_bytes(good + more)
    with pytest.raises(GaugeError, match=words) as error:
        read(path)
    assert str(path) in str(error.value)
