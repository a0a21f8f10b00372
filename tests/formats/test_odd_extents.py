"""Lattices with odd extents are read, checked and converted, and loops measured on copies."""

from pathlib import Path

import numpy as np
import pytest

import gauge_mc
from gauge_mc.configurations.reading import open_configuration
from gauge_mc.configurations.writing import write_configuration
from gauge_mc.devices.cpu.device import CpuDevice
from gauge_mc.domain.lattice import PARALLELOGRAMS, PLAQUETTES, RECTANGLES, Lattice, OddLattice
from gauge_mc.errors import DamagedError, UnsupportedError, UsageError
from gauge_mc.fields.field import Field
from gauge_mc.observables import OBSERVABLES
from tests.calls import call
from tests.formats.format_samples import milc_bytes, random_links
from tests.reference.observables import mean_wilson_loop, transport
from tests.reference.smearing import ape

pytestmark = pytest.mark.kernels

SAMPLE = Path(__file__).parent / "of_others" / "odd_3x2x2x3.nersc"
EXTENTS = (5, 4, 6, 3)
KINDS = {"su2": "single", "su3": "double"}


def written(path, group="su3", format="nersc", extents=EXTENTS):
    """Write random links; return them."""
    links = random_links(group, KINDS[group], extents)
    write_configuration(path, links, OddLattice(*extents), group, KINDS[group], format)
    return links


def mean_loop(links, path):
    """The average of Re Tr / N of a closed path that begins at any site."""
    return np.trace(transport(links, path), axis1=-2, axis2=-1).real.mean() / links.shape[-1]


def test_a_sample_by_another_program():
    """Its header has the plaquette that NumPy alone gives, and the checksum."""
    found = open_configuration(SAMPLE)
    assert str(found.header.lattice) == "3x2x2x3"
    assert found.check().mean == pytest.approx(0.335549426971, abs=1e-12)
    assert found.header.plaquette == pytest.approx(0.335549426971, abs=1e-12)
    links = found.to_numpy()
    one = np.frombuffer(SAMPLE.read_bytes()[-9216:], ">c16").reshape(links.shape)
    np.testing.assert_array_equal(links, one)
    assert call("verify", SAMPLE)[1] == 0
    assert "3x2x2x3" in call("info", SAMPLE)[0]


@pytest.mark.parametrize("extents", [(5, 4, 5, 3), (4, 4, 4, 1), (1, 3, 2, 2)])
@pytest.mark.parametrize("format", ["ildg", "nersc", "hdf5", "scidac", "hirep"])
def test_all_formats_but_one_have_odd_extents(tmp_path, format, extents):
    path, group = tmp_path / "file", "su3"
    links = written(path, group, format, extents)
    found = open_configuration(path)
    np.testing.assert_array_equal(found.to_numpy(), links)
    expected = np.mean([mean_loop(links, one) for one in PLAQUETTES.paths])
    assert found.check().mean == pytest.approx(expected, abs=1e-13)
    with pytest.raises(UsageError, match="choose ildg, hdf5, hirep, nersc or scidac"):
        gauge_mc.convert(path, tmp_path / "other", "openqcd")
    assert not (tmp_path / "other").exists()
    other = gauge_mc.convert(path, tmp_path / "other", "ildg" if format == "nersc" else "nersc")
    np.testing.assert_array_equal(other.to_numpy(), links)


def test_files_of_milc(tmp_path):
    links = random_links("su3", "single", (3, 4, 5, 2))
    new = milc_bytes(links)
    (tmp_path / "new").write_bytes(new)
    old = (59354).to_bytes(4, "little") + new[4:20] + bytes(8) + new[96:]
    (tmp_path / "old").write_bytes(old)
    for name in ("new", "old"):
        np.testing.assert_array_equal(open_configuration(tmp_path / name).to_numpy(), links)


def test_files_for_milc(tmp_path):
    links = random_links("su3", "single", EXTENTS)
    kind = (OddLattice(*EXTENTS), "su3", "single", "milc")
    write_configuration(tmp_path / "file", links, *kind)
    assert (tmp_path / "file").read_bytes()[96:] == milc_bytes(links)[96:]
    np.testing.assert_array_equal(open_configuration(tmp_path / "file").to_numpy(), links)


def test_damage_is_found(tmp_path):
    path = tmp_path / "file"
    written(path, format="ildg")
    good = path.read_bytes()
    offset = open_configuration(path)._reader.offset
    for bit, words in ((1, "its links have the SciDAC checksum"), (64, r"is not in SU\(3\), and")):
        data = bytearray(good)
        data[offset + (7 if bit == 1 else 0)] ^= bit
        path.write_bytes(bytes(data))
        with pytest.raises(DamagedError, match=words):
            open_configuration(path).check()
    path.write_bytes(good[: len(good) // 2])
    with pytest.raises(DamagedError, match="goes beyond"):
        open_configuration(path)


def test_fields_have_arrays_and_files_and_refuse_the_rest(tmp_path):
    links = written(tmp_path / "file")
    field = Field.load(tmp_path / "file")
    np.testing.assert_allclose(field.to_numpy(), links, atol=1e-14)
    field.save(tmp_path / "copy", "nersc")
    np.testing.assert_array_equal(
        open_configuration(tmp_path / "copy").to_numpy(), field.to_numpy()
    )
    words = "5x4x6x3 has odd extents, on which updates"
    for refused in (
        lambda: gauge_mc.measure(field, "plaquette"),
        lambda: gauge_mc.action_density(field, 6.0),
        lambda: Field.load(tmp_path / "file", device=CpuDevice(threads=1)),
        lambda: Field.cold(field.lattice, "su3"),
    ):
        with pytest.raises(UnsupportedError, match=words):
            refused()
    _, code = call("generate", "--start", tmp_path / "file", "--output", tmp_path / "run")
    assert code == 2
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
@pytest.mark.parametrize("group", KINDS)
def test_averages_over_loops_are_those_of_the_small_lattice(tmp_path, group, monkeypatch):
    monkeypatch.chdir(tmp_path)
    links = written(tmp_path / "file", group)
    near = {"abs": 1e-6 if group == "su2" else 1e-12}
    for loops in (PLAQUETTES, RECTANGLES, PARALLELOGRAMS):
        name, paths = loops.kernel.name, loops.paths
        table = gauge_mc.measure(tmp_path / "file", name, progress=False)
        first = table.columns[OBSERVABLES[name].columns.names[0]]
        assert first[0] == pytest.approx(np.mean([mean_loop(links, one) for one in paths]), **near)
        assert table.header["lattice"] == "5x4x6x3"
        assert table.header["measured on"] == "periodic copies, 10x4x6x6"
    table = gauge_mc.measure(tmp_path / "file", "wilson-loops", iterations="0,2", off_axis=True)
    smeared = {0: links, 2: ape(ape(links, 0.2), 0.2)}
    assert set(zip(table["r"], table["t"], strict=True)) == {(1, 1), (2, 1)}  # half the small one
    for level, path, r, t, loop in zip(*list(table.columns.values())[1:], strict=True):
        space = smeared[level]
        assert loop == pytest.approx(mean_wilson_loop(space, path, int(r), int(t)), **near)


def test_what_is_not_the_same_on_copies_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "file")
    safe = {name for name, one in OBSERVABLES.items() if one.on_copies}
    assert safe >= {"plaquette", "rectangles", "parallelograms", "planar-loops", "wilson-loops"}
    for name in OBSERVABLES.keys() - safe:
        with pytest.raises(UsageError, match=r"copies, 10x4x6x6, .* choose parallelograms, "):
            gauge_mc.measure(tmp_path / "file", name, progress=False)
    with pytest.raises(UsageError, match="copies"):
        gauge_mc.measure(tmp_path / "file", lambda field: 1.0, progress=False)
    with pytest.raises(UsageError, match="are for even extents"):
        gauge_mc.measure(tmp_path / "file", "wilson-loops", multilevel="1,2", progress=False)
    with pytest.raises(UsageError, match="--r-max is 3; on 5x4x6x3 choose it between 1 and 2"):
        gauge_mc.measure(tmp_path / "file", "wilson-loops", r_max=3, progress=False)


@pytest.mark.slow
def test_observables_that_say_so_are_the_same_on_copies(tmp_path):
    """Those of a lattice with even extents are those of two copies of it along every direction."""
    links = random_links("su3", "double", (4, 4, 4, 4))
    once = Field.from_slices(Lattice(4, 4, 4, 4), "su3", links)
    twice = Field.from_slices(Lattice(8, 8, 8, 8), "su3", np.tile(links, (2, 2, 2, 2, 1, 1, 1)))
    for kind in filter(lambda one: one.on_copies, OBSERVABLES.values()):
        observable = kind.for_lattice(once.lattice)
        one, two = (np.array(observable.measurer(field)(field), object) for field in (once, twice))
        numbers = np.array([isinstance(value, float) for value in one[0]])
        np.testing.assert_allclose(
            one[:, numbers].astype(float), two[:, numbers].astype(float), atol=1e-6
        )


def test_bare_links_on_odd_extents(tmp_path):
    written(tmp_path / "file", "su2", "ildg")
    bare = tmp_path / "bare"
    bare.write_bytes((tmp_path / "file").read_bytes().replace(b"ildg-format", b"other-words"))
    found = open_configuration(bare, "5x4x6x3", "su2")
    np.testing.assert_array_equal(
        found.to_numpy(), open_configuration(tmp_path / "file").to_numpy()
    )
