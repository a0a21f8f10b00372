"""Propagators in files of USQCD, and the folder of propagators that measurements keep."""

import struct
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import gauge_mc
from gauge_mc.devices.cpu.device import CpuDevice
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError
from gauge_mc.extensions.quarks.spectroscopy.observables import Mesons
from gauge_mc.extensions.quarks.spectroscopy.propagator_files import (
    PAIRS,
    STRICTLY,
    TWELVE_SINK,
    StoredPropagator,
    read_propagator,
)
from gauge_mc.extensions.quarks.vectors.basis import BASES, GAMMA_5, SIXTEEN, change_of_basis
from tests.calls import call
from tests.extensions.quarks.links import field_of
from tests.extensions.quarks.reference import dirac as reference
from tests.extensions.quarks.reference import hadrons
from tests.reference.fields import random_field

LATTICE = Lattice(4, 2, 6, 4)
SHAPE = LATTICE.extents[::-1]
PHASES = (1, 1, 1, -1)


def random_propagator(rng, colours=3, sources=None):
    shape = (*SHAPE, 4, colours, 4, colours)
    elements = rng.normal(size=shape) + 1j * rng.normal(size=shape)
    return StoredPropagator(elements, sources, {"kappa": "0.125", "note": "a < b & c"})


def point():
    sources = np.zeros(SHAPE, complex)
    sources[1, 3, 0, 2] = 1
    return sources


def records(content):
    """The records of a LIME file, as (type, data), by hand."""
    found, at = [], 0
    while at < len(content):
        magic, length, kind = struct.unpack(">I4xQ128s", content[at : at + 144])
        assert magic == 0x456789AB
        found.append((kind.split(b"\0")[0].decode(), content[at + 144 : at + 144 + length]))
        at += 144 + (length + 7) // 8 * 8
    return found


@pytest.mark.parametrize("colours", [2, 3])
def test_a_file_of_a_scalar_source(colours, rng, tmp_path):
    """The records, their order and the bytes of a spinor, read without our reader."""
    stored = random_propagator(rng, colours, point())
    stored.write(tmp_path / "s.lime")
    found = records((tmp_path / "s.lime").read_bytes())
    assert [kind for kind, _ in found[:2]] == ["scidac-private-file-xml", "scidac-file-xml"]
    assert b"<dims>4 2 6 4 </dims>" in found[0][1]
    assert f"<type>{TWELVE_SINK}</type>".encode() in found[1][1]
    fields = [found[n : n + 4] for n in range(2, len(found), 4)]
    assert len(fields) == 1 + 4 * colours
    for (private, _), (user, _), (data, _), (checksum, _) in fields:
        assert (private, user) == ("scidac-private-record-xml", "scidac-record-xml")
        assert (data, checksum) == ("scidac-binary-data", "scidac-checksum")
    np.testing.assert_array_equal(np.frombuffer(fields[0][2][1], ">c16").reshape(SHAPE), point())
    spin, colour = 2, 1
    private, user, data, checksum = (one for _, one in fields[1 + colours * spin + colour])
    assert f"<datatype>USQCD_D{colours}_DiracFermion</datatype>".encode() in private
    assert b"<usqcdPropInfo><version>1.0</version><spin>2</spin><color>1</color>" in user
    values = np.frombuffer(data, ">c16").reshape(*SHAPE, 4, colours)
    np.testing.assert_array_equal(values, stored.elements[..., spin, colour])
    words, size = [0, 0], 64 * colours
    for n in range(LATTICE.sites):
        crc = zlib.crc32(data[n * size : (n + 1) * size])
        for i, period in enumerate((29, 31)):
            turns = n % period
            words[i] ^= (crc << turns | crc >> (32 - turns)) % 2**32
    assert f"<suma>{words[0]:x}</suma><sumb>{words[1]:x}</sumb>".encode() in checksum


def test_what_is_written_is_read(rng, tmp_path):
    for sources in (point(), random_propagator(rng).elements):
        stored = random_propagator(rng, sources=sources)
        stored.write(tmp_path / "s.lime")
        found = read_propagator(tmp_path / "s.lime")
        np.testing.assert_array_equal(found.elements, stored.elements)
        np.testing.assert_array_equal(found.sources, sources)
        assert found.metadata == {**stored.metadata, "gamma basis": "degrand-rossi"}
    assert PAIRS.encode() in (tmp_path / "s.lime").read_bytes()


def test_single_precision_is_read(rng, tmp_path):
    stored = random_propagator(rng, sources=point())
    stored.write(tmp_path / "s.lime")
    parts = []
    for kind, data in records((tmp_path / "s.lime").read_bytes()):
        if kind == "scidac-binary-data":
            data = np.frombuffer(data, ">f8").astype(">f4").tobytes()
        data = data.replace(b"<precision>D<", b"<precision>F<")
        if kind != "scidac-checksum":  # a file of others may have none
            parts += [struct.pack(">IHHQ128s", 0x456789AB, 1, 0, len(data), kind.encode()), data]
            parts += [bytes(-len(data) % 8)]
    (tmp_path / "f.lime").write_bytes(b"".join(parts))
    found = read_propagator(tmp_path / "f.lime")
    np.testing.assert_array_equal(found.elements, stored.elements.astype(np.complex64))


@pytest.mark.parametrize("old", BASES)
@pytest.mark.parametrize("new", BASES)
def test_changes_of_basis(old, new):
    q = change_of_basis(old, new)
    np.testing.assert_allclose(q @ q.conj().T, np.eye(4), atol=1e-15)
    for one, other in zip(BASES[old], BASES[new], strict=True):
        np.testing.assert_allclose(q @ one @ q.conj().T, other, atol=1e-15)
        np.testing.assert_allclose(other, other.conj().T)


def test_a_propagator_in_another_basis(rng, tmp_path):
    """Traces do not depend on the basis, if the matrices are those of the basis."""
    stored = random_propagator(rng, sources=random_propagator(rng).elements)
    turned = stored.in_basis("dirac-pauli")
    gamma = BASES["dirac-pauli"]
    g5 = gamma[0] @ gamma[1] @ gamma[2] @ gamma[3]
    for one, g in ((stored, GAMMA_5), (turned, g5)):
        loop = np.einsum("ij,tzyxjaia->tzyx", g, one.elements)
        np.testing.assert_allclose(
            loop, np.einsum("ij,tzyxjaia->tzyx", GAMMA_5, stored.elements), atol=1e-12
        )
    turned.write(tmp_path / "t.lime")
    again = read_propagator(tmp_path / "t.lime")
    np.testing.assert_allclose(again.elements, stored.elements, atol=1e-13)


def test_the_command_changes_the_basis(rng, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    stored = random_propagator(rng, sources=point())
    stored.write("one.lime")
    shown, code = call("convert", "one.lime", "two.lime", "--basis", "dirac-pauli")
    assert (code, shown.strip()) == (0, "two.lime: a propagator in the basis dirac-pauli")
    two = read_propagator("two.lime", None)
    assert (two.basis, two.metadata["kappa"]) == ("dirac-pauli", "0.125")
    np.testing.assert_array_equal(two.elements, stored.in_basis("dirac-pauli").elements)
    foreign = replace(stored, metadata={"gamma basis": ""})
    foreign.write("foreign.lime")
    content = Path("foreign.lime").read_bytes()
    Path("foreign.lime").write_bytes(content.replace(b"gamma basis", b"other basis"))
    _, code = call("convert", "foreign.lime", "3", "--from-basis", "weyl", "--basis", "dirac-pauli")
    assert code == 0
    expected = replace(stored, metadata={"gamma basis": "weyl"}).in_basis("dirac-pauli")
    np.testing.assert_array_equal(read_propagator("3", None).elements, expected.elements)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("one new", "--to is missing; choose ildg"),
        ("one new --from-basis weyl", "--basis is for propagators; give it alone"),
        ("one new --basis weyl --to ildg", "give it alone or with"),
        ("one new --basis wyl", "no basis 'wyl' of gamma matrices; did you mean"),
        ("one one --basis weyl", "one already exists; choose another file"),
        ("two new --from-basis weyl --basis weyl", "two has the basis"),
        ("none new --basis weyl", "none cannot be read"),
    ],
)
def test_changes_of_basis_that_are_refused(rng, tmp_path, monkeypatch, words, sentence):
    monkeypatch.chdir(tmp_path)
    random_propagator(rng, sources=point()).write("one")
    random_propagator(rng, sources=point()).in_basis("dirac-pauli").write("two")
    shown, code = call("convert", *words.split())
    assert (sentence in shown, code) == (True, 2)
    assert not Path("new").exists()


def test_damage_is_refused(rng, tmp_path):
    path = tmp_path / "s.lime"
    random_propagator(rng, sources=point()).write(path)
    whole = path.read_bytes()
    place = whole.index(b"scidac-binary-data", 40000) + 3000
    cases = {
        "has the SciDAC checksum": whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :],
        "it is truncated": whole[:-200],
        "it has 11 of the 12 fields": whole[: whole.rindex(b"\x45\x67\x89\xab\0\1\x80")],
        "twice": whole.replace(b"<color>2<", b"<color>1<"),
        "is of the type": whole.replace(b"_TwelveSink", b"_ElevenSink"),
        "which are not those of spinors on 4x2x6x8": whole.replace(
            b"<dims>4 2 6 4", b"<dims>4 2 6 8"
        ),
        "does not state four extents": whole.replace(b"<dims>4 2 6 4", b"<dims>4 2 6 x"),
        "neither F nor D": whole.replace(b"<precision>D", b"<precision>Q"),
        "no LIME record begins": b"nothing" * 100,
    }
    for sentence, content in cases.items():
        path.write_bytes(content)
        with pytest.raises(GaugeError, match=sentence) as error:
            read_propagator(path)
        assert str(error.value).startswith(str(path))


CUBES = Lattice(4, 4, 4, 2)
"""A small lattice on which kernels have as many lanes as on large ones."""


@pytest.fixture
def field(rng):
    return field_of(random_field(CUBES.extents, "su3", rng), CpuDevice(1))


@pytest.mark.slow
def test_the_propagator_in_python(field):
    found = gauge_mc.propagator(field, 0.11, "point:2,0,3,1", csw=1.2)
    matrix = reference.dense(field.to_numpy(), 0.11, PHASES, csw=1.2)
    shape, sources = (*CUBES.extents[::-1], 4, 3), ((0, 0), (3, 2))
    right = np.zeros((*shape, 2), complex)
    for number, one in enumerate(sources):
        right[1, 3, 0, 2, *one, number] = 1
    expected = np.linalg.solve(matrix, right.reshape(-1, 2)).reshape(right.shape)
    for number, (spin, colour) in enumerate(sources):
        assert np.abs(found[..., spin, colour] - expected[..., number]).max() < 1e-9
    correlators = gauge_mc.meson_correlators(found)
    assert set(correlators) == set(SIXTEEN)
    waves = hadrons.waves(CUBES.extents, (0, 0, 0), (0, 0, 0))
    for name in ("g5", "gx", "gtg5"):
        whole = hadrons.meson(found, found, SIXTEEN[name], SIXTEEN[name], waves)
        np.testing.assert_allclose(correlators[name], whole, rtol=1e-10, atol=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize("source", ["point:2,0,3,1", "gauss:1,2"])
def test_propagators_are_kept(source, field, tmp_path):
    folder = tmp_path / "kept"
    options = {"kappa": "0.1,0.11", "source": (source,), "propagators": str(folder)}
    observable = Mesons.for_lattice(CUBES, **options)
    first = observable.measurer(field)(field)
    files = sorted(folder.iterdir())
    assert [one.name.split("_")[0] for one in files] == ["k0.11", "k0.1"]
    bytes_before = [one.read_bytes() for one in files]
    again = observable.measurer(field)(field)
    assert again == first
    assert [one[4:7] for one in again.secondary["solves"]] == 2 * [("file", "double", 0)]
    assert max(one[8] for one in again.secondary["solves"]) <= 1e-10
    assert [one.read_bytes() for one in files] == bytes_before
    files[0].write_bytes(bytes_before[1])
    with pytest.raises(GaugeError, match="is not a solution on these links: its residual is"):
        observable.measurer(field)(field)
    other = Mesons.for_lattice(CUBES, **{**options, "boundary": "periodic"})
    other.measurer(field)(field)
    assert len(list(folder.iterdir())) == 4
    files[0].write_bytes(bytes_before[0])
    Mesons.for_lattice(CUBES, **options, mu="0,0.1").measurer(field)(field)
    assert len(list(folder.iterdir())) == 6  # those without a twisted mass were there


@pytest.mark.slow
def test_strict_propagators_are_kept_for_strict_measurements_alone(field, tmp_path):
    """A file serves those that would compute its bits, and must say so."""
    folder, source = tmp_path / "kept", "gauss:1,2"
    options = {"kappa": "0.1", "source": (source,), "propagators": str(folder)}

    def measured(**more):
        observable = Mesons.for_lattice(CUBES, **{**options, **more})
        return observable.measurer(field)(field)

    measured()
    field.devices.compute(strict=True)
    (usual,) = folder.iterdir()
    first = measured()
    assert measured() == first
    assert measured(propagators=str(tmp_path / "fresh")) == first
    (strict,) = {*folder.iterdir()} - {usual}
    others = ({"inner": "double"}, {"tolerance": 2e-10}, {"solver": "cg"}, {"reduction": 0.01})
    others += ({"csw": 1.0}, {"csw": 1 + 1e-12})
    for number, more in enumerate(others, 3):
        measured(**more)
        assert len(list(folder.iterdir())) == number
    stored = read_propagator(strict)
    assert STRICTLY not in stored.in_basis("dirac-pauli").metadata
    sources = stored.sources * (1 + 1e-15)
    how = {**stored.metadata, STRICTLY: stored.metadata[STRICTLY].replace("single", "double")}
    for wrong in (replace(stored, metadata=how), replace(stored, sources=sources)):
        strict.unlink()
        wrong.write(strict)
        with pytest.raises(GaugeError, match="does not say that a strict measurement has"):
            measured()
