"""HDF5 in detail."""

import io
import sys
import zlib

import h5py
import numpy as np
import pytest

from gauge_mc.configurations.reading import open_configuration
from gauge_mc.configurations.writing import write_configuration
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.formats import check_writable
from tests.calls import call
from tests.formats.format_samples import (
    PARTS,
    averages,
    hdf5_bytes,
    random_links,
    rotated,
    site_bytes,
)

pytestmark = pytest.mark.kernels

EXTENTS = (4, 2, 6, 8)
SMALL = random_links("su3", extents=(2, 2, 4, 2))


def read(path):
    return np.stack(list(open_configuration(path).slices()))


def made_by(function):
    """Return the bytes of the HDF5 file that a function fills."""
    file = io.BytesIO()
    with h5py.File(file, "w") as h5:
        function(h5)
    return file.getvalue()


@pytest.mark.parametrize(("group", "precision"), [("su3", "double"), ("su4", "single")])
def test_what_h5py_reads(tmp_path, group, precision):
    links = random_links(group, precision, EXTENTS)
    path = tmp_path / "links.h5"
    fields = {"beta": "6.0", "plaquette": "7", "remark": "é" * 3000}
    write_configuration(path, links, Lattice(*EXTENTS), group, precision, "hdf5", fields)
    crcs = [zlib.crc32(site) for site in site_bytes(links, "<" + PARTS[precision])]
    n = links.shape[-1]
    with h5py.File(path) as h5:
        data = h5["links"]
        assert list(h5) == ["links"]
        assert data.shape == (8, 6, 2, 4, 4)  # as QDP++ requires
        assert data.dtype == np.dtype(("<c16" if precision == "double" else "<c8", (n, n)))
        element = data.id.get_type().get_super()
        assert element.get_class() == h5py.h5t.COMPOUND
        assert [element.get_member_name(i) for i in range(2)] == [b"r", b"i"]
        np.testing.assert_array_equal(data[()], links)
        stated = dict(data.attrs)
    words = [int(word, 16) for word in stated.pop("checksum").decode().split()]
    assert words == rotated(crcs)
    rounding = 1e-14 if precision == "double" else 1e-7
    expected = averages(links)
    found = stated.pop("plaquette"), stated.pop("link_trace")
    assert found == pytest.approx(expected, abs=rounding)
    assert {name: text.decode() for name, text in stated.items()} == {
        "beta": "6.0",
        "remark": "é" * 3000,
    }
    assert open_configuration(path).header.provenance == {"beta": "6.0", "remark": "é" * 3000}


def test_arrays_that_h5py_writes(tmp_path):
    path = tmp_path / "file"
    for dtype in ("<c16", ">c16"):

        def fill(h5, dtype=dtype):
            h5["a/b"] = SMALL.astype(dtype)
            h5["a/b"].attrs["author"] = "somebody"  # of variable length, which is not read
            h5["other"] = np.arange(5)

        path.write_bytes(made_by(fill))
        header = open_configuration(path).header
        assert "no checksum" in header.warning
        assert header.provenance == {}
        np.testing.assert_array_equal(read(path), SMALL)


@pytest.mark.parametrize(
    ("fill", "words"),
    [
        (lambda h5: h5.create_dataset("a", data=SMALL, compression="gzip"), "h5repack"),
        (lambda h5: h5.update({"a": SMALL, "b": SMALL}), "2 data sets"),
        (lambda h5: h5.update({"a": SMALL.real}), "0 data sets"),
        (lambda h5: h5.update({"a": SMALL[..., :2]}), "0 data sets"),
        (lambda h5: h5.create_dataset("a", SMALL.shape, "<c16"), "h5repack"),
    ],
)
def test_files_that_are_not_supported(tmp_path, fill, words):
    path = tmp_path / "file"
    path.write_bytes(made_by(fill))
    with pytest.raises(GaugeError, match=f"file is not supported: .*{words}"):
        open_configuration(path)


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ({"checksum": np.bytes_("0")}, "not supported: .*not two hexadecimal words"),
        ({"checksum": np.bytes_("01234567 89abcdef")}, "damaged: .* SciDAC checksum .* 01234567"),
        ({"plaquette": 0.5}, "not supported: .* plaquette .* says 0.5, although its checksum is"),
        ({"link_trace": np.bytes_("0.5")}, "not supported: .*not an average"),
    ],
)
def test_attributes_that_are_wrong(tmp_path, attributes, words):
    path = tmp_path / "file"
    path.write_bytes(hdf5_bytes(SMALL, "double", True, "links", attributes))
    with pytest.raises(GaugeError, match=f"file is {words}"):
        read(path)


def test_it_needs_h5py(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(hdf5_bytes(SMALL))
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(GaugeError, match=r"h5py, which cannot be imported .*gauge-mc\[hdf5\]"):
        open_configuration(path)
    with pytest.raises(UsageError, match=r"HDF5 files need .*h5py.*: choose ildg, hirep"):
        check_writable("hdf5", "su3", "double")
    check_writable("ildg", "su3", "double")


@pytest.mark.slow
def test_a_run_that_goes_on_from_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = ["--lattice", "4x4x4x4", "--group", "su4", "--beta", "10.9", "--backend", "cpu"]
    options += ["--thermalize", "1", "--separation", "1", "--configs", "1"]
    shown, code = call("generate", *options, "--format", "hdf5", "--output", "one")
    assert code == 0, shown
    (path,) = (tmp_path / "one/configs").glob("*.h5")
    shown, code = call("generate", *options, "--start", path, "--output", "two")
    assert code == 0, shown
    assert call("verify", path, "one", "two")[1] == 0
    assert open_configuration(path).header.provenance["beta"] == "10.9"
