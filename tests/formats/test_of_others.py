"""Files that other programs have written; see `of_others/README.md`."""

from pathlib import Path

import numpy as np
import pytest

from gauge_mc.configurations.reading import open_configuration
from gauge_mc.configurations.writing import write_configuration
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import DamagedError, GaugeError, UnsupportedError, UsageError
from gauge_mc.storage.scidac import checksum_words
from tests.calls import call
from tests.formats.format_samples import milc_bytes, random_links

pytestmark = pytest.mark.kernels

FILES = Path(__file__).parent / "of_others"
FIELD, OLD = FILES / "milc_l4444.scidac", FILES / "milc_inst_v4"
BARE, BROKEN = FILES / "lqjl_su2.ildg", FILES / "milc_l4448.foreign"


def plaquette_of(links):
    """The average of Re Tr / N over all plaquettes, from the definition; links[t, z, y, x, mu]."""
    axes, found = (3, 2, 1, 0), []
    for mu in range(4):
        for nu in range(mu):
            u, v = links[..., mu, :, :], links[..., nu, :, :]
            ahead, aside = np.roll(v, -1, axes[mu]), np.roll(u, -1, axes[nu])
            product = u @ ahead @ np.conj(np.swapaxes(v @ aside, -1, -2))
            found.append(np.trace(product, axis1=-2, axis2=-1).real.mean() / links.shape[-1])
    return np.mean(found)


def changed(path, target, place):
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    target.write_bytes(bytes(data))
    return target


def test_colour_matrices_of_scidac():
    """The checksum is that of the file, so that order and numbers are right."""
    found = open_configuration(FIELD)
    assert (found.header.group, found.header.precision) == ("su3", "single")
    assert found.header.checksum == "37affb9c 2fc07bbf" == checksum_words((0x37AFFB9C, 0x2FC07BBF))
    assert found.check().mean == pytest.approx(plaquette_of(found.to_numpy()), abs=1e-6)


def test_a_damaged_field_of_colour_matrices_is_refused(tmp_path):
    last = FIELD.stat().st_size // 16 * 8 + 3  # byte of the mantissa of a number
    with pytest.raises(DamagedError, match="SciDAC checksum"):
        open_configuration(changed(FIELD, tmp_path / "one", last)).check()
    (tmp_path / "two").write_bytes(FIELD.read_bytes()[:40000])
    with pytest.raises(DamagedError, match="goes beyond"):
        open_configuration(tmp_path / "two")


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (b"F3_Color", b"F3_Dirac", "its data are 4 of 'QDP_F3_Dirac"),
        (b"<datacount>4", b"<datacount>1", "its data are 1 of"),
        (b"<dims>4 4 4 4", b"<dims>4 4 4 x", "its extents are"),
        (b"QDP_F3", b"QDP_F9", "not four matrices of colour"),
    ],
)
def test_other_fields_are_named(tmp_path, before, after, words):
    assert before in FIELD.read_bytes()
    (tmp_path / "file").write_bytes(FIELD.read_bytes().replace(before, after))
    with pytest.raises(UnsupportedError, match=words):
        open_configuration(tmp_path / "file")


def test_milc_versions_1_to_4():
    """Plaquette and link trace are those that the MILC code prints for this instanton."""
    found = open_configuration(OLD)
    assert found.header.provenance == {"parameters": "6 0.0125"}
    assert "no checksum" in found.header.warning
    averages = found.check()
    assert 3 * averages.mean == pytest.approx(2.973028, abs=5e-7)
    assert averages.link_trace == pytest.approx(0.9916278, abs=1e-6)  # in single precision


@pytest.mark.parametrize("order", "<>")
def test_byte_orders_of_old_versions(tmp_path, order):
    links = random_links("su3", "single", (2, 4, 6, 2))
    new = milc_bytes(links, order)
    magic = (59354).to_bytes(4, "little" if order == "<" else "big")
    (tmp_path / "old").write_bytes(magic + new[4:20] + bytes(8) + new[96:])
    found = open_configuration(tmp_path / "old")
    np.testing.assert_array_equal(np.stack(list(found.slices())), links)
    (tmp_path / "short").write_bytes((tmp_path / "old").read_bytes()[:-4])
    with pytest.raises(DamagedError, match="truncated"):
        open_configuration(tmp_path / "short")


def test_links_alone_need_lattice_and_group(tmp_path):
    with pytest.raises(UnsupportedError, match="states neither their group nor their extents"):
        open_configuration(BARE)
    found = open_configuration(BARE, "4x4x4x4", "su2")
    assert found.check().mean == pytest.approx(0.476138110632, abs=1e-12)
    words = ("--to", "ildg", "--lattice", "4x4x4x4", "--group", "su2")
    assert call("convert", BARE, tmp_path / "links.lime", *words)[1] == 0
    written = open_configuration(tmp_path / "links.lime")
    np.testing.assert_array_equal(written.to_numpy(), found.to_numpy())
    for lattice, group, sentence in (
        ("4x4x4x6", "su2", r"none of SU\(2\) on 4x4x4x6"),
        ("4x4x4x4", None, "belong together"),
        ("4x4x4x4", "su9", "no group 'su9'"),
    ):
        with pytest.raises(UsageError, match=sentence):
            open_configuration(BARE, lattice, group)
    with pytest.raises(UsageError, match="leave --lattice and --group out"):
        open_configuration(OLD, "4x4x4x4", "su3")


def test_broken_xml_of_others_is_named_with_what_can_be_read():
    with pytest.raises(
        UnsupportedError, match=r"line 1, column 194\), of which .*lt = 8 can be read"
    ):
        open_configuration(BROKEN)
    assert call("verify", BROKEN)[1] == 69


def test_nersc_files_keep_what_they_say_of_boundaries(tmp_path):
    links = random_links("su3", "double", (4, 4, 4, 4))
    write_configuration(tmp_path / "one", links, Lattice(4, 4, 4, 4), "su3", "double", "nersc")
    text = (tmp_path / "one").read_bytes()
    assert b"BOUNDARY_4 = PERIODIC" in text
    (tmp_path / "two").write_bytes(text.replace(b"BOUNDARY_4 = PERIODIC", b"BOUNDARY_4 = ANTI", 1))
    assert open_configuration(tmp_path / "one").header.warning == ""
    found = open_configuration(tmp_path / "two")
    assert found.header.warning == "its BOUNDARY_4 is ANTI; its links are taken as they are"
    assert found.check() == open_configuration(tmp_path / "one").check()


@pytest.mark.parametrize("format", ["ildg", "openqcd"])
@pytest.mark.parametrize(
    ("factor", "words"),
    [(0, "are 0, as those of open boundaries"), (-1, "is -1 times one of SU.3., as with anti")],
)
def test_boundaries_in_the_links_are_named(tmp_path, format, factor, words):
    """A file is not damaged because its last links along t are 0, or have a phase."""
    path, extents = tmp_path / "file", (4, 4, 4, 4)
    links = random_links("su3", "double", extents)
    write_configuration(path, links, Lattice(*extents), "su3", "double", format)
    found, data = open_configuration(path), bytearray(path.read_bytes())
    stored, offset = found.stored, found._reader.offset
    numbers = stored.order.numbers(extents[:3], 1)[..., 3].ravel()
    for number in numbers.tolist():  # of the last slice; those beyond a block are in the first
        place = offset + (3 * stored.block_bytes + number * 144) % stored.nbytes
        reals = factor * np.frombuffer(data[place : place + 144], stored.dtype)
        data[place : place + 144] = reals.astype(stored.dtype).tobytes()
    path.write_bytes(bytes(data))
    with pytest.raises(UnsupportedError, match=words):
        open_configuration(path).check()
    if format == "openqcd":  # whose first slice is looked at last
        return
    data[offset + 50] ^= 64  # another link is not in the group
    path.write_bytes(bytes(data))
    with pytest.raises(DamagedError, match=r"in direction . at .* is not in SU\(3\)"):
        open_configuration(path).check()


def test_samples_are_good_or_say_why_not():
    assert call("verify", FIELD, OLD)[1] == 0
    with pytest.raises(GaugeError):
        open_configuration(Path(__file__))
