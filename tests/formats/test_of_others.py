"""Files that other programs have written; see `of_others/README.md`."""

import re
from pathlib import Path

import numpy as np
import pytest

import gauge_mc
from gauge_mc.configurations.reading import LastSlice, open_configuration
from gauge_mc.configurations.writing import write_configuration
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import CautionWarning, DamagedError, GaugeError, UnsupportedError, UsageError
from gauge_mc.files.table import read_table
from gauge_mc.groups import GROUPS
from gauge_mc.storage import links as host_links
from gauge_mc.storage.links import StoredLinks, checksum_words
from tests.calls import call
from tests.formats.format_samples import (
    SAMPLES,
    milc_bytes,
    nersc_bytes,
    openqcd_bytes,
    random_links,
)

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
    header = found.header
    assert (header.format, header.group, header.precision) == ("scidac", "su3", "single")
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
    words = ("--to", "ildg", "--lattice", "4x4x4x4", "--group", "su2", "--json")
    assert call("convert", BARE, tmp_path / "links.lime", *words)[1] == 0
    written = open_configuration(tmp_path / "links.lime")
    np.testing.assert_array_equal(written.to_numpy(), found.to_numpy())
    for lattice, group, sentence in (
        ("4x4x4x6", "su2", r"not those of SU\(2\) on 4x4x4x6"),
        ("4x4x4x4", None, "belong together"),
        ("4x4x4x4", "su9", "no group 'su9'"),
    ):
        with pytest.raises(UsageError, match=sentence):
            open_configuration(BARE, lattice, group)
    with pytest.raises(UsageError, match="leave --lattice and --group out"):
        open_configuration(OLD, "4x4x4x4", "su3")


def test_commands_and_functions_take_what_links_alone_do_not_say(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words, kind = ("--lattice", "4x4x4x4", "--group", "su2"), {"lattice": "4x4x4x4", "group": "su2"}
    for command in (("info",), ("verify",), ("measure", "plaquette")):
        assert call(*command, BARE)[1] in (1, 69)
        shown, code = call(*command, BARE, *words)
        assert code == 0
        assert "0.4761" in shown
    assert call("measure", "plaquette", BARE, *words)[1] == 0  # the links of the table are compared
    table = gauge_mc.measure(BARE, "plaquette", output="other.csv", progress=False, **kind)
    assert table["plaquette"] == pytest.approx([0.476138110632], abs=1e-12)
    assert gauge_mc.info(BARE, **kind).recomputed.mean == pytest.approx(0.476138110632, abs=1e-12)
    assert [one.sound for one in gauge_mc.verify(BARE, **kind)] == [True]
    links = gauge_mc.Field.load(BARE, **kind).to_numpy()
    assert plaquette_of(links) == pytest.approx(0.476138110632, abs=1e-12)


def test_what_states_its_links_takes_no_others(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = "run", "--lattice", "4x4x4x4"
    assert call("generate", "--output", *run, "--configs", "1", "--thermalize", "0")[1] == 0
    words, kind = ("--lattice", "4x4x4x4", "--group", "su2"), {"lattice": "4x4x4x4", "group": "su2"}
    for command in (("info",), ("verify",), ("measure", "plaquette")):
        for path in ("run", OLD) if command != ("verify",) else ("run", "run/plaquette.csv"):
            assert call(*command, path, *words)[1] == 2
        assert call(*command, BARE, *words[:2])[1] in (2, 69)
    assert gauge_mc.verify(OLD, **kind)[0].sound is None
    for refused in (
        lambda: gauge_mc.info("run", **kind),
        lambda: gauge_mc.measure("run", "plaquette", at=1, **kind),
        lambda: gauge_mc.measure(gauge_mc.Field.load(OLD), "plaquette", **kind),
        lambda: gauge_mc.Field.load(OLD, **kind),
    ):
        with pytest.raises(UsageError, match="leave --lattice and --group out"):
            refused()


@pytest.mark.parametrize("lattice", ["4x4x4x8", "4x4x4x9"])
def test_a_wrong_lattice_or_group_is_doubted_before_the_links(tmp_path, lattice):
    """Numbers of bytes can be those of other links, in the other precision or of another group."""
    path, group, n = tmp_path / "bare", "su2", 3 if lattice[-1] == "9" else 2
    links = random_links(f"su{n}", "double", (4, 4, 4, 4))
    write_configuration(path, links, Lattice(4, 4, 4, 4), f"su{n}", "double", "ildg")
    data = path.read_bytes().replace(b"ildg-format", b"other-words")
    path.write_bytes(data.replace(b"scidac-checksum", b"nothing-of-them"))
    words = rf"may have links of another group or on another lattice than SU\(2\) on {lattice}"
    with pytest.raises(UsageError, match=words):
        open_configuration(path, lattice, group).check()
    assert gauge_mc.verify(path, lattice=lattice, group=group)[0].sound is None
    path.write_bytes(data)  # whose checksum is that of other sites
    with pytest.raises(UsageError, match=words):
        open_configuration(path, lattice, group).check()


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


def scaled(path, format, factor, group="su3", rows=None, directions=(3,), t=3):
    """Write a file whose links of a time slice, the last one, are scaled; return what is there."""
    extents, n = (4, 4, 4, 4), int(group[2:])
    links = random_links(group, "double", extents)
    write_configuration(path, links, Lattice(*extents), group, "double", format)
    found, data = open_configuration(path), bytearray(path.read_bytes())
    stored, offset = found.stored, found._reader.offset
    numbers = stored.order.numbers(extents[:3], t % 2)[..., directions].ravel()
    size = 16 * n**2
    for number in numbers.tolist():  # of that slice; those beyond a block are in the next
        place = offset + (t * stored.block_bytes + number * size) % stored.nbytes
        reals = factor * np.frombuffer(data[place : place + size], stored.dtype)
        data[place : place + size] = reals.astype(stored.dtype).tobytes()
    if format == "ildg":  # without its checksum
        data = data.replace(b"scidac-checksum", b"nothing-of-them")
    if format == "nersc":
        full = np.frombuffer(bytes(data[offset:]), stored.dtype).reshape(-1, n, 2 * n)
        body = full[:, :rows].tobytes()
        words = np.frombuffer(body, ">u4").sum(dtype=np.uint64) & 0xFFFFFFFF
        head = re.sub(rb"CHECKSUM = \w+", b"CHECKSUM = %08x" % words, bytes(data[:offset]))
        data = head.replace(b"_3x3", b"" if rows else b"_3x3") + body
    path.write_bytes(bytes(data))
    return open_configuration(path)


PHASES = r"along t of the last time slice 3 are -1 times those of SU.3., as with antiperiodic"
OPEN = "along t of the last time slice 3 are 0, as those of open boundaries"


@pytest.mark.parametrize("format", ["ildg", "openqcd", "nersc"])
@pytest.mark.parametrize(("factor", "words"), [(0, OPEN), (-1, PHASES)])
def test_boundaries_in_the_links_are_named(tmp_path, format, factor, words):
    """A file is not damaged because its last links along t are 0, or have a phase."""
    path = tmp_path / "file"
    found = scaled(path, format, factor)
    for check in (found.check, found.load):
        with pytest.raises(UnsupportedError, match=words):
            check()
    data, offset = bytearray(path.read_bytes()), found._reader.offset
    last = 3 * found.stored.block_bytes + 50
    for place in (0, last) if format == "ildg" else (0,) * (format == "nersc"):
        other = bytearray(data)
        other[offset + place] ^= 64  # another link is not in the group
        path.write_bytes(bytes(other))
        with pytest.raises(DamagedError, match=r"in direction x at .* is not in SU\(3\)"):
            open_configuration(path).check()


@pytest.mark.parametrize("directions", [(2, 3), (0,)])
def test_signs_of_other_links_are_no_boundary(tmp_path, directions):
    with pytest.raises(DamagedError, match=r"direction . at .* 3\) is not in SU\(3\)"):
        scaled(tmp_path / "file", "ildg", -1, directions=directions).check()


def test_signs_that_the_group_contains_cannot_be_seen(tmp_path):
    """Matrices of SU(2) with a sign are in SU(2), and all plaquettes are the same."""
    path = tmp_path / "file"
    for check in (scaled(path, "nersc", -1, "su2").check, open_configuration(path).load):
        with pytest.raises(
            UnsupportedError, match="averages in its header are those of links without"
        ):
            check()
    scaled(path, "ildg", -1, "su2")
    path.write_bytes(path.read_bytes().replace(b"usqcdInfo", b"otherInfo"))  # states no averages
    expected = random_links("su2", "double", (4, 4, 4, 4))
    expected[3, ..., 3, :, :] *= -1
    np.testing.assert_array_equal(open_configuration(path).to_numpy(), expected)


def test_one_damaged_link_of_the_last_slice_is_damage(tmp_path):
    """It is not taken for a boundary, in a group that contains -1 least of all."""
    path, extents = tmp_path / "file", (4, 4, 4, 4)
    links = random_links("su2", "double", extents)
    write_configuration(path, links, Lattice(*extents), "su2", "double", "ildg")
    found, good = open_configuration(path), path.read_bytes()
    for mu in range(4):
        data = bytearray(good)
        data[found._reader.offset + 3 * found.stored.block_bytes + 64 * mu] ^= 64
        path.write_bytes(bytes(data))
        words = rf"in direction {'xyzt'[mu]} at .* 3\) is not in SU\(2\), and its links have the "
        for check in (found.check, found.load):
            with pytest.raises(DamagedError, match=words + "SciDAC checksum"):
                check()


def test_signs_in_files_without_the_last_rows_are_named(tmp_path):
    """The row that follows from the others has another sign, and the plaquette shows it."""
    path = tmp_path / "file"
    found = scaled(path, "nersc", -1, rows=2)
    for check in (found.check, found.load):
        with pytest.raises(
            UnsupportedError, match="averages in its header are those of links without"
        ):
            check()
    other = re.sub(rb"PLAQUETTE = \S{6}", b"PLAQUETTE = 0.1234", path.read_bytes(), count=1)
    path.write_bytes(other)
    with pytest.raises(UnsupportedError, match=r"plaquette .* although its checksum is right"):
        open_configuration(path).check()
    scaled(path, "nersc", 1, rows=2).check()
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(DamagedError, match="its links have the checksum"):
        open_configuration(path).check()


@pytest.mark.parametrize("t", [0, 3])
def test_links_with_the_right_checksum_are_not_damaged(tmp_path, t):
    """A file with a wrong checksum is, whatever its links are."""
    path = tmp_path / "file"
    found = scaled(path, "nersc", 0.5, directions=(0,), t=t)
    for check in (found.check, found.load, lambda: found.load("single")):
        with pytest.raises(UnsupportedError, match=r"in SU\(3\), although its checksum is right"):
            check()
    path.write_bytes(path.read_bytes().replace(b"CHECKSUM = ", b"CHECKSUM = 0x"))
    changed = bytearray(path.read_bytes())
    changed[-1] ^= 1
    path.write_bytes(bytes(changed))
    with pytest.raises(DamagedError, match=r"not in SU\(3\), and its links have the checksum"):
        open_configuration(path).check()


@pytest.mark.parametrize("apart", [1e-5, 1e-7])
@pytest.mark.parametrize("format", ["openqcd", "ildg"])
def test_links_that_are_nearly_in_the_group_are_read_with_a_caution(tmp_path, format, apart):
    """As those that were evolved in single precision: the plaquette is that of all entries."""
    path, extents = tmp_path / "file", (4, 4, 4, 4)
    links = random_links("su3", extents=extents)
    exact = links.copy()
    links += apart / 10 * np.random.default_rng(2).normal(size=links.shape)
    path.write_bytes(SAMPLES[format](links, "double"))
    found, said = (
        open_configuration(path),
        r"its links are in SU.3. to \de-0\d only; `gauge-mc conv",
    )
    assert found.check().mean == pytest.approx(plaquette_of(exact), abs=apart)
    assert [bool(re.match(said, words)) for words in found.cautions] == [True] * (apart > 1e-6)
    shown, code = call("verify", path)
    assert (shown.startswith("good"), code, bool(re.search(said, shown))) == (True, 0, apart > 1e-6)
    if apart > 1e-6:
        assert gauge_mc.info(path).cautions == found.cautions
        for read in (found.load, found.to_numpy):
            with pytest.warns(CautionWarning, match=said):
                read()
    target = tmp_path / "out"
    shown, code = call("convert", path, target, "--to", "nersc", "--project", "--verify")
    moved = float(re.search(r"entries of links moved by up to (\de-0\d)\n", shown)[1])
    assert (code, apart / 10 < moved < apart) == (0, True)
    nearest = open_configuration(target).to_numpy()
    assert host_links.deviations(nearest.reshape(-1, 3, 3)).max() < 1e-14
    assert np.abs(nearest - links).max() == pytest.approx(moved, rel=0.5)
    assert np.abs(np.linalg.det(nearest) - 1).max() < 1e-14
    if format == "openqcd":
        path.write_bytes(openqcd_bytes(links, 3 * plaquette_of(links) + 1e-8))
        with pytest.raises(UnsupportedError, match="and it has no checksum that decides"):
            open_configuration(path).check()


def test_the_folder_of_a_run_of_grid(tmp_path, monkeypatch):
    """States of random numbers lie beside its configurations."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "grid").mkdir()
    for number in (1000, 1010):
        links = random_links("su3", extents=(4, 4, 4, 4), seed=number)
        data = nersc_bytes(links, SEQUENCE_NUMBER=1)
        (tmp_path / "grid" / f"ckpoint_lat.{number}").write_bytes(data)
        state = {"DATATYPE": "SITMO", "FLOATING_POINT": "UINT64"}
        state = nersc_bytes(links[:1, :1, :1, :1], **state)
        (tmp_path / "grid" / f"ckpoint_rng.{number}").write_bytes(state)
    shown, code = call("measure", "plaquette", "grid", "--output", "t.csv", "--quiet")
    assert (read_table(tmp_path / "t.csv")["sweep"].tolist(), code) == ([1000, 1010], 0)
    shown, code = call("verify", "grid")
    assert ("All 2 files are good." in shown, code) == (True, 0)
    shown, code = call("info", "grid")
    assert (bool(re.search(r"configurations +2\n", shown)), code) == (True, 0)
    assert "not configurations: ckpoint_rng.1000 and ckpoint_rng.1010" in shown
    assert (
        call("convert", "grid", "--to", "ildg", "--output", "out", "--project", "--quiet")[1] == 0
    )
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        f"ckpoint_lat.{number}.lime" for number in (1000, 1010)
    ]
    shown, code = call("verify", "grid/ckpoint_rng.1000")
    assert ("is damaged" in shown, code) == (False, 69)


def test_samples_are_good_or_say_why_not():
    assert call("verify", FIELD, OLD)[1] == 0
    with pytest.raises(GaugeError):
        open_configuration(Path(__file__))


def test_good_links_have_no_boundary():
    for group in ("su2", "su3"):
        stored = StoredLinks(Lattice(4, 4, 4, 4), GROUPS[group], "<f8")
        n = GROUPS[group].colours
        first, *_, last = random_links(group, "double", (4, 4, 4, 4)).reshape(4, -1, n, n)
        assert LastSlice(stored, last, first).misfit() == ""
