"""ILDG and LIME in detail."""

import zlib
from itertools import pairwise

import numpy as np
import pytest

from gauge_mc.cli.files import convert
from gauge_mc.configurations.reading import open_configuration
from gauge_mc.configurations.writing import write_configuration
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError
from gauge_mc.inspection.contents import configuration_info
from gauge_mc.inspection.verify import verify
from gauge_mc.storage import scidac
from tests.formats.format_samples import (
    averages,
    ildg_bytes,
    ildg_format,
    lime_records,
    random_links,
    record,
    rotated,
)

pytestmark = pytest.mark.kernels

EXTENTS = (2, 4, 2, 6)
FORMAT = ildg_format(EXTENTS, "su3", "double")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "file.lime"


def refused(path, data, words):
    path.write_bytes(data)
    with pytest.raises(GaugeError) as error:
        list(open_configuration(path).slices())
    text = str(error.value)
    assert words in text
    assert str(path) in text
    assert text.endswith(".")


@pytest.mark.parametrize(("group", "letter"), [("su2", "F"), ("su3", "D")])
def test_records_as_written(path, group, letter):
    precision = "single" if letter == "F" else "double"
    n = int(group[2])
    links = random_links(group, precision, EXTENTS)
    fields = {"beta": "2.5", "creation_date": "today", "ildg-data-lfn": "lfn://x/y"}
    write_configuration(path, links, Lattice(*EXTENTS), group, precision, "ildg", fields)
    found = lime_records(path.read_bytes())
    kinds = "private-file-xml", "file-xml", "private-record-xml", "record-xml"
    names = [f"scidac-{one}" for one in kinds]
    names += ["ildg-format", "ildg-data-lfn", "ildg-binary-data", "scidac-checksum"]
    assert [one[:2] for one in found] == list(zip((2, 1, 2, 0, 0, 0, 0, 1), names, strict=True))
    texts = {name: data.decode() for _, name, data in found if "binary" not in name}
    data = found[6][2]
    real = ">f4" if precision == "single" else ">f8"
    want = np.ascontiguousarray(links).view(float).astype(real)
    assert data == want.tobytes()
    size = len(data) // (2 * 4 * 2 * 6)
    a, b = rotated([zlib.crc32(data[i : i + size]) for i in range(0, len(data), size)])
    assert f"<suma>{a:x}</suma><sumb>{b:x}</sumb>" in texts["scidac-checksum"]
    assert f"<field>{group}gauge</field>" in texts["ildg-format"]
    assert 'xmlns="http://www.lqcd.org/ildg"' in texts["ildg-format"]
    assert "<lx>2</lx><ly>4</ly><lz>2</lz><lt>6</lt>" in texts["ildg-format"]
    assert texts["ildg-data-lfn"] == "lfn://x/y"
    assert (
        f"<datatype>USQCD_{letter}{n}_ColorMatrix</datatype>" in texts["scidac-private-record-xml"]
    )
    assert (
        f"<colors>{n}</colors><typesize>{size // 4}</typesize><datacount>4</datacount>"
        in texts["scidac-private-record-xml"]
    )
    plaquette, trace = averages(links)
    info = texts["scidac-record-xml"]
    assert float(info.split("<plaq>")[1].split("<")[0]) == pytest.approx(plaquette, abs=1e-14)
    assert float(info.split("<linktr>")[1].split("<")[0]) == pytest.approx(trace, abs=1e-14)
    header = open_configuration(path).header
    assert header.provenance == fields
    assert header.checksum == f"{a:08x} {b:08x}"


def test_name_of_the_file_is_its_logical_name(path):
    links = random_links("su2", extents=EXTENTS)
    write_configuration(path, links, Lattice(*EXTENTS), "su2", "double")
    assert open_configuration(path).header.provenance == {"ildg-data-lfn": "file.lime"}


def test_records_of_other_programs(path):
    links = random_links("su3", extents=EXTENTS)
    plaquette = f"{averages(links)[0]:.6f}".encode()
    info = b"<usqcdInfo><version>1.0</version><plaq>%s</plaq><linktr>oops</linktr><info>run 7"
    more = record(b"xlf-info", b"plaquette = 0.25\n beta = 6.0\0", begins=1, ends=1)
    more += record(b"scidac-record-xml", info % plaquette + b"</info></usqcdInfo>\0")
    more += record(b"some-other-xml", b"<!DOCTYPE")
    path.write_bytes(ildg_bytes(links, "double", more=more))
    configuration = open_configuration(path)
    np.testing.assert_array_equal(np.stack(list(configuration.slices())), links)
    header = configuration.header
    assert header.provenance["xlf-info"] == "plaquette = 0.25\n beta = 6.0"
    assert header.provenance["info"] == "run 7"
    assert (header.plaquette, header.link_trace) == (float(plaquette), None)
    assert header.warning.startswith("its link trace 'oops' is not an average of Re Tr / N")


@pytest.mark.parametrize(
    ("plaquette", "trace", "words"),
    [
        ("0.25", None, "have the plaquette .*, its header says 0.25"),
        (None, "0.25", "have the link trace .*, its header says 0.25"),
        ("5e-1", None, "have the plaquette .*, its header says 0.5"),
        ("1e-999", None, "not an average"),
        ("nan", None, "not an average"),
        ("inf", None, "not an average"),
        (None, "1_0", "not an average"),
        (None, "", "not an average"),
        (None, 5000 * "9", "not an average"),
    ],
)
def test_averages_that_are_stated_are_compared(path, plaquette, trace, words):
    """With a tolerance that the header cannot widen."""
    links = random_links("su3", extents=EXTENTS)
    found = averages(links)
    stated = [f"{found[0]:.8f}" if plaquette is None else plaquette]
    stated.append(f"{found[1]:.8f}" if trace is None else trace)
    xml = f"<usqcdInfo><plaq>{stated[0]}</plaq><linktr>{stated[1]}</linktr><info>gauge-mc</info>"
    more = record(b"scidac-record-xml", xml.encode() + b"</usqcdInfo>")
    path.write_bytes(ildg_bytes(links, "double", more=more))
    with pytest.raises(GaugeError, match=words):
        list(open_configuration(path).slices())


@pytest.mark.parametrize("first", "xyz")
@pytest.mark.parametrize("second", "xyzt")
def test_exchanged_extents_are_noticed(path, first, second):
    """The checksum does not depend on them."""
    links = random_links("su3", extents=EXTENTS)
    write_configuration(path, links, Lattice(*EXTENTS), "su3", "double")
    data = path.read_bytes()
    extent = dict(zip("xyzt", EXTENTS, strict=True))
    if extent[first] == extent[second]:
        return
    for here, there in ((first, second), (second, first)):
        old = f"<l{here}>{extent[here]}<".encode()
        assert data.count(old) == 1
        data = data.replace(old, f"<l{here}>#{extent[there]}<".encode())
    for axis in (first, second):
        data = data.replace(f"<l{axis}>#".encode(), f"<l{axis}>".encode())
    path.write_bytes(data)
    with pytest.raises(GaugeError, match=r"its extents are .* in one record"):
        open_configuration(path)
    swapped = dict(extent) | {first: extent[second], second: extent[first]}
    dims = " ".join(map(str, EXTENTS)), " ".join(map(str, swapped.values()))
    path.write_bytes(data.replace(f"<dims>{dims[0]} <".encode(), f"<dims>{dims[1]} <".encode()))
    with pytest.raises(GaugeError, match=r"have the plaquette .*, its header says"):
        list(open_configuration(path).slices())


@pytest.mark.slow
def test_much_text_is_refused_before_it_takes_time(path, monkeypatch):
    """The time of the parser grows with it; usual records have some thousand bytes."""
    parsed, usual = [], scidac.text_of
    monkeypatch.setattr(scidac, "text_of", lambda *of: parsed.append(of[1].length) or usual(*of))
    links = random_links("su2", extents=(2, 2, 2, 2))
    text = b"<provenance>" + b"<a/>" * 16_000 + b"</provenance>"
    more = record(b"scidac-file-xml", text) * 990
    path.write_bytes(ildg_bytes(links, "double", more=more))
    with pytest.raises(GaugeError, match="more than 262144 bytes of text"):
        open_configuration(path)
    # Each is read twice: to see what it is, and to be parsed.
    assert len(text) <= sum(parsed) <= 2 * 262144


def test_a_file_without_a_checksum_is_read_with_a_warning(path):
    links = random_links("su3", extents=EXTENTS)
    path.write_bytes(ildg_bytes(links, "double", checksum=False))
    configuration = open_configuration(path)
    assert configuration.header.checksum == ""
    assert "no SciDAC checksum" in configuration.header.warning
    np.testing.assert_array_equal(np.stack(list(configuration.slices())), links)
    path.write_bytes(ildg_bytes(links, "double"))
    assert open_configuration(path).header.warning == ""


@pytest.mark.slow
def test_a_file_that_ends_after_its_links_is_accepted_only_with_a_warning(path, capsys):
    links = random_links("su2", extents=EXTENTS)
    write_configuration(path, links, Lattice(*EXTENTS), "su2", "double")
    whole = path.read_bytes()
    end = whole.rindex(bytes.fromhex("456789ab0001"))
    assert whole[end:].rstrip(b"\0").endswith(b"</scidacChecksum>")
    out = path.with_name("out.nersc")
    for content, warned in ((whole, False), (whole[:end], True)):
        path.write_bytes(content)
        (verdict,) = verify(path)
        assert verdict.sound
        assert ("no SciDAC checksum" in verdict.words) == warned
        stated, _ = configuration_info(path)
        assert ("no SciDAC checksum" in (stated["warning"] or "")) == warned
        convert([path, out], "nersc")
        assert (f"{path}: it has no SciDAC checksum" in capsys.readouterr().err) == warned
        np.testing.assert_array_equal(np.stack(list(open_configuration(out).slices())), links)
        out.unlink()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (b"su3gauge", b"su1gauge", "su2gauge, su3gauge"),
        (b"su3gauge", b"su2gauge", "bytes of links"),
        (b"> 64 <", b"> 32 <", "bytes of links"),
        (b"> 64 <", b"> 16 <", "32 or 64"),
        (b"<lx> 2 <", b"<lx> 3 <", "bytes of links"),
        (b"<lx> 2 <", b"<lx> 0 <", "The extent in x is 0"),
        (b"<lx> 2 <", b"<lx> 999999998 <", "2^32"),
        (b"<ly> 4 <", b"<ly> 1000000000000000000000000 <", "four extents"),
        (b"<lt> 6 <", b"<lt> -6 <", "four extents"),
        (b"<lt> 6 <", b"<lt>< <", "broken"),
        (b"<lt> 6 </lt>", b"", "four extents"),
        (b"ildgFormat", b"gridFormat", "not a ildgFormat"),
        (b"</ildgFormat>", b"", "broken"),
        (b"?>", b'?><!DOCTYPE a [<!ENTITY b "ccc">]>', "declares"),
        (b'encoding="UTF-8"', b'encoding="UTF-16"', None),
        (b'encoding="UTF-8"', b'encoding="nonsense"', None),
    ],
)
def test_format_record_that_lies(path, old, new, words):
    assert old in FORMAT
    links = random_links("su3", extents=EXTENTS)
    data = ildg_bytes(links, "double", format_xml=FORMAT.replace(old, new))
    if words is None:
        # The encoding that the text claims does not matter, as it is decoded before.
        path.write_bytes(data)
        np.testing.assert_array_equal(np.stack(list(open_configuration(path).slices())), links)
    else:
        refused(path, data, words)


def test_bombs_in_xml(path):
    links = random_links("su2", extents=(2, 2, 2, 2))
    names = "abcdefghijkl"
    entities = '<!ENTITY a "aaaaaaaaaa">' + "".join(
        f'<!ENTITY {name} "{f"&{before};" * 10}">' for before, name in pairwise(names)
    )
    bomb = f"<!doctype x [{entities}]><ildgFormat><lx>&l;</lx></ildgFormat>".encode()
    refused(path, ildg_bytes(links, "double", format_xml=bomb), "declares entities")
    deep = b"<ildgFormat>" + b"<a>" * 15_000
    refused(path, ildg_bytes(links, "double", format_xml=deep), "broken")
    long = b"<ildgFormat>" + b"<a/>" * 100_000 + b"</ildgFormat>"
    refused(path, ildg_bytes(links, "double", format_xml=long), "bytes of XML")
    wide = "<?xml version='1.0' encoding='UTF-16'?><!DOCTYPE x><ildgFormat/>".encode("utf-16")
    refused(path, ildg_bytes(links, "double", format_xml=wide), "broken")
    bomb = bomb.replace(b"ildgFormat", b"usqcdInfo")
    more = record(b"scidac-record-xml", bomb)
    refused(path, ildg_bytes(links, "double", more=more), "declares entities")


def test_containers_that_lie(path):
    links = random_links("su2", extents=(2, 2, 2, 2))
    good = ildg_bytes(links, "double")
    refused(path, good + b"\0", "no LIME record")
    refused(path, good + bytes(200), "no LIME record")
    refused(path, good.rstrip(b"\0")[:-1], "beyond")
    path.write_bytes(good.rstrip(b"\0") + b"\0")  # some programs leave out the last padding
    np.testing.assert_array_equal(open_configuration(path).to_numpy(), links)
    refused(path, good + record(b"end", b"", length=2**64 - 1), "beyond")
    refused(path, good + record(b"end", b"", length=2**63), "beyond")
    refused(path, good + record(b"end", b"") * 1000, "more than 1000")
    refused(path, good + record(b"\xff\x01", b""), "no readable type")
    refused(path, good + good, "2 ildg-format records")
    refused(path, good.replace(b"ildg-binary-data", b"ildg-binary-datx"), "0 ildg-binary-data")
    refused(path, good[:144], "beyond")
    refused(path, good[:100], "truncated")
    refused(path, record(b"scidac-file-xml", b"<a/>"), "0 ildg-format")
    refused(path, good.replace(b"<suma>", b"<sumc>"), "broken")
    bad = record(b"scidac-checksum", b"<scidacChecksum><suma>12</suma></scidacChecksum>")
    refused(path, ildg_bytes(links, "double", checksum=False, more=bad), "two hexadecimal")
    refused(path, good + bad, "2 scidac-checksum")
    bad = bad.replace(b"<suma>12</suma>", b"<suma>12</suma><sumb>0</sumb>")
    bad = record(b"scidac-checksum", bad[144:].rstrip(b"\0"))
    refused(path, ildg_bytes(links, "double", checksum=False, more=bad), "SciDAC checksum")
