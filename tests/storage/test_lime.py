import pytest

from gauge_mc.errors import GaugeError
from gauge_mc.files.input import InputFile
from gauge_mc.storage.scidac import read_records
from tests.formats.format_samples import record

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
