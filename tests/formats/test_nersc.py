"""NERSC in detail."""

import numpy as np
import pytest

from gauge_mc.configurations.reading import open_configuration
from gauge_mc.configurations.writing import write_configuration
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError
from tests.formats.format_samples import averages, nersc_bytes, random_links, sites

pytestmark = pytest.mark.kernels

EXTENTS = (4, 2, 6, 2)
REALS = ("IEEE32BIG", "IEEE32LITTLE", "IEEE64BIG", "IEEE64LITTLE")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "lattice.10"


def read(path):
    return np.stack(list(open_configuration(path).slices()))


@pytest.mark.parametrize("group", ["su2", "su3", pytest.param("su4", marks=pytest.mark.slow)])
@pytest.mark.parametrize("real", REALS)
@pytest.mark.parametrize("full", [True, False])
def test_rows_and_reals(path, group, real, full):
    precision = "double" if "64" in real else "single"
    links = random_links(group, precision, EXTENTS)
    rows = links.shape[-1] - (not full)
    path.write_bytes(nersc_bytes(links, real, rows))
    found = read(path)
    np.testing.assert_array_equal(found[..., :rows, :], links[..., :rows, :])
    np.testing.assert_allclose(found, links, atol=1e-14 if precision == "double" else 1e-6)
    header = open_configuration(path).header
    assert (header.precision, header.provenance) == (
        precision,
        {"ensemble_id": "test", "sequence_number": "7"},
    )


@pytest.mark.parametrize("real", REALS)
@pytest.mark.parametrize("rows", [2, 3])
def test_byte_order_that_is_not_named(path, real, rows):
    links = random_links("su3", "single", EXTENTS)
    bare = real.removesuffix("BIG").removesuffix("LITTLE")
    path.write_bytes(nersc_bytes(links, real, rows, FLOATING_POINT=bare))
    np.testing.assert_array_equal(read(path)[..., :rows, :], links[..., :rows, :])


def test_header_as_written(path):
    links = random_links("su3", extents=EXTENTS)
    fields = {"ensemble_id": "test", "sequence_number": "12", "creation_date": "today", "beta": "6"}
    write_configuration(path, links, Lattice(*EXTENTS), "su3", "double", "nersc", fields)
    data = path.read_bytes()
    size = links.size * 16
    assert data[-size:] == np.ascontiguousarray(links).view(float).astype(">f8").tobytes()
    lines = data[:-size].decode().split("\n")
    assert (lines[0], lines[-2:]) == ("BEGIN_HEADER", ["END_HEADER", ""])
    header = dict(line.split(" = ") for line in lines[1:-2])
    plaquette, trace = averages(links)
    assert float(header.pop("PLAQUETTE")) == pytest.approx(plaquette, abs=1e-14)
    assert float(header.pop("LINK_TRACE")) == pytest.approx(trace, abs=1e-14)
    total = np.frombuffer(data[-size:], ">u4").sum(dtype=np.uint64) % 2**32
    assert int(header.pop("CHECKSUM"), 16) == total
    assert header == {
        "HDR_VERSION": "1.0",
        "DATATYPE": "4D_SU3_GAUGE_3x3",
        "STORAGE_FORMAT": "1.0",
        "DIMENSION_1": "4",
        "DIMENSION_2": "2",
        "DIMENSION_3": "6",
        "DIMENSION_4": "2",
        "BOUNDARY_1": "PERIODIC",
        "BOUNDARY_2": "PERIODIC",
        "BOUNDARY_3": "PERIODIC",
        "BOUNDARY_4": "PERIODIC",
        "ENSEMBLE_ID": "test",
        "ENSEMBLE_LABEL": "unknown",
        "SEQUENCE_NUMBER": "12",
        "CREATOR": "gauge-mc",
        "CREATOR_HARDWARE": "unknown",
        "CREATION_DATE": "today",
        "ARCHIVE_DATE": "unknown",
        "BETA": "6",
        "FLOATING_POINT": "IEEE64BIG",
    }


def test_averages_need_not_be_there_nor_long(path):
    links = random_links("su3", extents=EXTENTS)
    path.write_bytes(nersc_bytes(links, PLAQUETTE=None, LINK_TRACE=None))
    assert open_configuration(path).header.plaquette is None
    np.testing.assert_array_equal(read(path), links)
    plaquette, trace = averages(links)
    path.write_bytes(nersc_bytes(links, PLAQUETTE=f"{plaquette:.4f}", LINK_TRACE=f"{trace:.2e}"))
    np.testing.assert_array_equal(read(path), links)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"DATATYPE": "4D_SU9_GAUGE"}, "DATATYPE"),
        ({"DATATYPE": "4D_SU3_GAUGE"}, "too long"),
        ({"DATATYPE": "4D_SU2_GAUGE_2x2"}, "too long"),
        ({"DATATYPE": None}, "DATATYPE"),
        ({"FLOATING_POINT": "IEEE16"}, "FLOATING_POINT"),
        ({"FLOATING_POINT": "IEEE32BIG"}, "too long"),
        ({"FLOATING_POINT": "IEEE64LITTLE"}, "another byte order"),
        ({"DIMENSION_1": "1152921504606846976"}, "whole numbers"),
        ({"DIMENSION_1": "999999998", "DIMENSION_2": "999999998"}, "2^32"),
        ({"DIMENSION_1": "65536", "DIMENSION_2": "2"}, "truncated"),
        ({"DIMENSION_1": "-4"}, "whole numbers"),
        ({"DIMENSION_1": "0"}, "The extent in x is 0"),
        ({"DIMENSION_1": "5"}, "truncated"),
        ({"DIMENSION_3": None}, "whole numbers"),
        ({"CHECKSUM": "123456789"}, "CHECKSUM"),
        ({"CHECKSUM": None}, "CHECKSUM"),
        ({"CHECKSUM": "1"}, "checksum"),
        ({"PLAQUETTE": "0.25"}, "plaquette"),
        ({"PLAQUETTE": "nan"}, "PLAQUETTE"),
        ({"PLAQUETTE": "1e400"}, "PLAQUETTE"),
        ({"PLAQUETTE": "x" * 1000}, "PLAQUETTE"),
        ({"LINK_TRACE": "0.25"}, "link trace"),
        ({"LINK_TRACE": "inf"}, "LINK_TRACE"),
        ({"REMARK": "\nCHECKSUM = 0"}, "twice"),
        ({"REMARK": "x" * 70_000}, "END_HEADER"),
    ],
)
def test_header_that_lies(path, changes, words):
    path.write_bytes(nersc_bytes(random_links("su3", extents=EXTENTS), **changes))
    with pytest.raises(GaugeError) as error:
        read(path)
    text = str(error.value)
    assert words in text
    assert str(path) in text
    assert len(text) < 400
    assert text.endswith(".")


@pytest.mark.parametrize(
    ("size", "first", "second", "words"),
    [
        (8, 2, 3, "the link in direction x at (x, y, z, t) = (0, 0, 0, 0) is not in SU(3)"),
        (4, 4, 6, "the link in direction x at (x, y, z, t) = (0, 0, 0, 0) is not in SU(3)"),
        (144, 0, 7, "its links have the plaquette"),
    ],
    ids=["reals", "high words", "links"],
)
def test_exchanges_that_leave_the_checksum_right(path, size, first, second, words):
    """The checksum is a sum, which does not depend on the order of the words."""
    data = nersc_bytes(random_links("su3", extents=EXTENTS))
    begin = data.index(b"END_HEADER\n") + len(b"END_HEADER\n")
    changed = bytearray(data)
    one, other = (slice(begin + size * n, begin + size * (n + 1)) for n in (first, second))
    changed[one], changed[other] = changed[other], changed[one]
    assert changed != data
    path.write_bytes(changed)
    with pytest.raises(GaugeError) as error:
        read(path)
    assert words in str(error.value)


def test_lines_of_other_programs(path):
    links = random_links("su2", extents=EXTENTS)
    data = nersc_bytes(links, REMARK="a = b").replace(b"STORAGE", b"\n  # \xff text\nSTORAGE")
    data = data.replace(b"END_HEADER\n", b"END_HEADER \r\n")
    path.write_bytes(data)
    np.testing.assert_array_equal(read(path), links)
    assert open_configuration(path).header.provenance["remark"] == "a = b"


def few_reals(matrix):
    """The N² - 1 reals of a matrix in the program GLU."""
    if len(matrix) == 2:
        return [np.angle(matrix[0, 0]), matrix[0, 1].real, matrix[0, 1].imag]
    parts = [
        part for one in (matrix[0, 1], matrix[0, 2], matrix[1, 0]) for part in (one.real, one.imag)
    ]
    return [*parts, np.angle(matrix[0, 0]), np.angle(matrix[2, 0])]


def small_bytes(links, real="IEEE64BIG", **changes):
    """Return a file of GLU with few reals, from the header of one with all rows."""
    n = links.shape[-1]
    kind = (">" if "BIG" in real else "<") + ("f8" if "64" in real else "f4")
    reals = [few_reals(one) for site in sites(links) for one in links[site]]
    data = np.array(reals, kind).tobytes()
    total = int(np.frombuffer(data, f"{kind[0]}u4").sum(dtype=np.uint64)) & 0xFFFFFFFF
    words = {"DATATYPE": f"4D_SU{n}_GAUGE_SMALL", "CHECKSUM": f"{total:x}"} | changes
    head = nersc_bytes(links, real, **words)
    return head[: head.index(b"END_HEADER\n") + 11] + data


@pytest.mark.parametrize("group", ["su2", "su3"])
@pytest.mark.parametrize("real", ["IEEE64BIG", "IEEE64LITTLE", "IEEE32LITTLE"])
def test_few_reals_of_glu(tmp_path, group, real):
    """On odd extents NumPy reads them."""
    precision, rounding = ("double", 1e-12) if "64" in real else ("single", 2e-5)
    links = random_links(group, precision, (3, 2, 2, 4))
    path = tmp_path / "file"
    path.write_bytes(small_bytes(links, real))
    found = open_configuration(path)
    assert (found.header.group, found.header.precision) == (group, precision)
    np.testing.assert_allclose(found.to_numpy(), links, rtol=0, atol=rounding)
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(GaugeError, match="checksum"):
        open_configuration(path).check()
    path.write_bytes(bytes(data[:-8]))
    with pytest.raises(GaugeError, match="truncated"):
        open_configuration(path)


def test_few_reals_of_cold_links_and_of_other_groups(tmp_path):
    cold = np.broadcast_to(np.eye(3, dtype=complex), (2, 2, 1, 3, 4, 3, 3)).copy()
    path = tmp_path / "file"
    path.write_bytes(small_bytes(cold))
    np.testing.assert_array_equal(open_configuration(path).to_numpy(), cold)
    path.write_bytes(nersc_bytes(cold, DATATYPE="4D_SU4_GAUGE_SMALL"))
    with pytest.raises(GaugeError, match=r"only SU\(2\) and SU\(3\) have"):
        open_configuration(path)
