"""Damaged files are said to be damaged; sound files of a kind that is not read are not."""

import bz2
import gzip
import lzma
import struct
import tarfile
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gauge_mc.configurations.reading import open_configuration
from gauge_mc.errors import GaugeError, UncheckedError, UnsupportedError
from gauge_mc.files.table import read_table
from tests.formats.format_samples import (
    hdf5_bytes,
    hirep_bytes,
    ildg_bytes,
    ildg_format,
    milc_bytes,
    nersc_bytes,
    openqcd_bytes,
    random_links,
    record,
    scidac_bytes,
)

pytestmark = pytest.mark.kernels

LINKS = random_links("su3", extents=(2, 2, 2, 4))
SINGLE = random_links("su3", "single", extents=(2, 2, 2, 4))
FORMAT = ildg_format((2, 2, 2, 4), "su3", "double")
GOOD = {
    "ildg": ildg_bytes(LINKS, "double"),
    "nersc": nersc_bytes(LINKS),
    "milc": milc_bytes(SINGLE, ">"),
    "openqcd": openqcd_bytes(LINKS),
    "hirep": hirep_bytes(LINKS),
    "hdf5": hdf5_bytes(LINKS),
}


def ildg(old, new):
    assert old in FORMAT
    return ildg_bytes(LINKS, "double", format_xml=FORMAT.replace(old, new))


def odd(*extents):
    """Return an openQCD file with odd extents, of the size that they imply."""
    count = 4 * 144
    for extent in extents:
        count *= extent
    return struct.pack("<4id", *extents, 1.0) + bytes(count)


UNSUPPORTED = {
    "ILDG file of another group": ildg(b"su3gauge", b"su1gauge"),
    "ILDG file of other numbers": ildg(b"> 64 <", b"> 128 <"),
    "LIME file without a configuration": record(b"notes", b"some text", begins=1, ends=1),
    "LIME file with two configurations": 2 * GOOD["ildg"],
    "NERSC file of another group": nersc_bytes(LINKS, DATATYPE="4D_SU1_GAUGE"),
    "NERSC file of Sp(4)": nersc_bytes(LINKS, DATATYPE="4D_SP4_GAUGE_4x4"),
    "NERSC file of other data": nersc_bytes(LINKS, DATATYPE="4D_U1_GAUGE"),
    "NERSC file of other numbers": nersc_bytes(LINKS, FLOATING_POINT="IEEE128BIG"),
    "ILDG file of the other precision": ildg_bytes(
        LINKS, "double", format_xml=ildg_format((2, 2, 2, 4), "su3", "single")
    ),
    "volume file of QIO": scidac_bytes(LINKS[:2], "double")
    .replace(b"<volfmt>0", b"<volfmt>1")
    .replace(b"2 2 2 2 <", b"2 2 2 4 <"),
    "MILC file in another order": milc_bytes(SINGLE, ">", site_order=1),
    "HDF5 file of another group": hdf5_bytes(random_links("su12", extents=(2, 2, 2, 2))),
    "HDF5 file without links": hdf5_bytes(LINKS[..., :3, :, :], checksum=False),
    "openQCD file with odd extents": odd(4, 3, 2, 2),
    **{f"{name} file with more at its end": data + b"more" for name, data in GOOD.items()},
    "ILDG file without a field": ildg(b"su3gauge", b""),
    "ILDG file without a precision": ildg(b"> 64 <", b"><"),
    "ILDG file without links": GOOD["ildg"].replace(b"ildg-binary-data", b"ildg-binary-dat_"),
    "ILDG file of another extent": ildg(b"<lx> 2 <", b"<lx> 3 <"),
    "ILDG file of no extent": ildg(b"<lx> 2 <", b"<lx> 0 <"),
    "HDF5 file with a broken average": hdf5_bytes(LINKS, attributes={"plaquette": 3.0}),
    "NERSC file without a type": nersc_bytes(LINKS, DATATYPE=None),
    "NERSC file with a broken type": nersc_bytes(LINKS, DATATYPE="4D_SU3_G@UGE"),
    "NERSC file with broken numbers": nersc_bytes(LINKS, FLOATING_POINT="IEE"),
    "NERSC file of the size of one without last rows": nersc_bytes(LINKS, DIMENSION_3=3),
    "NERSC file of no extent": nersc_bytes(LINKS, DIMENSION_3=0),
}

DAMAGED = {
    **{f"{name} file cut short": data[: len(data) * 3 // 4] for name, data in GOOD.items()},
    "ILDG file of too large an extent": ildg(b"<lx> 2 <", b"<lx> 999999998 <"),
    "NERSC file of another extent": nersc_bytes(LINKS, DIMENSION_3=7),
    "NERSC file of too large an extent": nersc_bytes(LINKS, DIMENSION_3=99999998, DIMENSION_2=64),
}


def refusal(path, data):
    """Return the sentence in which a file is refused."""
    path.write_bytes(data)
    with pytest.raises(GaugeError) as error:
        for _ in open_configuration(path).slices():
            pass
    return str(error.value)


@pytest.mark.parametrize("kind", UNSUPPORTED)
def test_what_is_not_supported_is_not_called_damaged(tmp_path, kind):
    sentence = refusal(tmp_path / "file", UNSUPPORTED[kind])
    assert sentence.startswith(f"{tmp_path / 'file'} is not supported: ")
    assert sentence.endswith(".")
    assert "damaged" not in sentence
    assert {"volume file of QIO": "it is one part of several"}.get(kind, "") in sentence


@pytest.mark.parametrize("kind", DAMAGED)
def test_what_is_damaged_is_called_so(tmp_path, kind):
    sentence = refusal(tmp_path / "file", DAMAGED[kind])
    assert sentence.startswith(f"{tmp_path / 'file'} is damaged: ")
    assert sentence.endswith("; restore it from a copy or write it again.")


LEGAL = st.one_of(
    st.tuples(
        st.permutations((2, 2, 2, 4)) | st.sampled_from([(2, 2, 2, 2), (1, 1, 3, 4), (2, 3, 2, 2)]),
        st.just((3, "double")),
        st.none(),
    ),
    st.tuples(
        st.just((2, 2, 2, 4)),
        st.tuples(st.integers(2, 8), st.sampled_from(["single", "double"])),
        st.none() | st.floats(-1, 1),
    ),
)
"""Extents that do not need more bytes, number of colours and precision, plaquette."""

NERSC = [
    {},
    *({"FLOATING_POINT": f"IEEE{real}"} for real in ("32BIG", "32LITTLE", "64", "64LITTLE")),
    *({"DATATYPE": f"4D_{kind}"} for kind in ("SU3_GAUGE", "SU2_GAUGE_2x2", "SU3_GAUGE_SMALL")),
    {"BOUNDARY_4": "ANTIPERIODIC"},
    {"CHECKSUM": None},
]


def stated(name, extents, kind, plaquette, choice):
    """Return a good file with another header of its format, whose checksum is as before."""
    (x, y, z, t), (n, precision), value = extents, kind, plaquette or 0.25
    if name == "ildg":
        changed = ildg_format(extents, f"su{n}", precision)
        return ildg_bytes(LINKS, "double", plaquette is None, format_xml=changed)
    if name == "scidac":
        datatype = f"QDP_{'FD'[precision == 'double']}{n}_ColorMatrix"
        data = scidac_bytes(LINKS, "double", plaquette is None, datatype=datatype)
        return data.replace(b"2 2 2 4 <", f"{x} {y} {z} {t} <".encode())
    if name == "nersc":
        dimensions = {f"DIMENSION_{i}": extent for i, extent in enumerate(extents, 1)}
        others = {"PLAQUETTE": value, "DATATYPE": f"4D_SU{n}_GAUGE_{n}x{n}"} | NERSC[choice]
        return nersc_bytes(LINKS, **dimensions, **others)
    if name == "hdf5":
        links = LINKS.reshape(t, z, y, x, 4, 3, 3) if x * y * z * t == 32 else LINKS[:, ::-1]
        return hdf5_bytes(links, attributes={"plaquette": value})
    head = {
        "milc": struct.pack(">5i", 20103, *extents),
        "openqcd": struct.pack("<4id", t, x, y, z, 3 * value),
        "hirep": struct.pack(">5id", n, t, x, y, z, value),
    }[name]
    return head + GOOD[name][len(head) :]


@pytest.mark.parametrize("name", [*GOOD, "scidac"])
@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(change=LEGAL, choice=st.integers(0, len(NERSC) - 1))
def test_a_legal_header_never_makes_a_file_damaged(tmp_path, name, change, choice):
    """It is read, or not supported; a header that needs more bytes is another matter."""
    (tmp_path / "file").write_bytes(stated(name, *change, choice))
    with suppress(UnsupportedError, UncheckedError):
        open_configuration(tmp_path / "file").check()


@pytest.mark.parametrize(
    ("pack", "kind"),
    [
        (gzip.compress, "compressed with gzip"),
        (bz2.compress, "compressed with bzip2"),
        (lzma.compress, "compressed with xz"),
        (lambda data: b"\x28\xb5\x2f\xfd" + data, "compressed with zstd"),
        (lambda data: b"PK\x03\x04" + data, "an archive"),
        (lambda data: tarfile.TarInfo("links").tobuf(tarfile.USTAR_FORMAT) + data, "an archive"),
    ],
)
def test_packed_files_are_named(tmp_path, pack, kind):
    for read in (open_configuration, read_table):
        (tmp_path / "file").write_bytes(pack(GOOD["ildg"]))
        with pytest.raises(UnsupportedError) as error:
            read(tmp_path / "file")
        assert (
            str(error.value).removeprefix("The table ")
            == f"{tmp_path / 'file'} is {kind}: unpack it first."
        )
