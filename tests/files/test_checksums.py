import zlib

import numpy as np
import pytest

from gauge_mc.files.checksums import RotatedChecksum
from tests.formats.format_samples import rotated


@pytest.mark.parametrize("size", [0, 1, 28, 29, 30, 31, 62, 899, 2000])
@pytest.mark.parametrize("chunk", [1, 29, 30, 2000])
def test_words_in_chunks_equal_the_definition(size, chunk):
    words = np.random.default_rng(size).integers(2**32, size=size, dtype=np.uint32)
    checksum = RotatedChecksum()
    for first in range(0, size, chunk):
        checksum.add(words[first : first + chunk])
    expected = rotated(words.tolist())
    assert [checksum.first, checksum.second] == expected
    assert str(checksum) == "{:08x} {:08x}".format(*expected)


def test_sites_enter_with_their_crc():
    data = np.random.default_rng(1).integers(256, size=40 * 144, dtype=np.uint8)
    checksum = RotatedChecksum()
    checksum.add_sites(data[: 7 * 144], 144)
    checksum.add_sites(data[7 * 144 :], 144)
    expected = rotated([zlib.crc32(site.tobytes()) for site in data.reshape(40, 144)])
    assert [checksum.first, checksum.second] == expected


def test_the_place_of_a_word_matters():
    words = np.arange(1, 60, dtype=np.uint32)
    swapped = words.copy()
    swapped[[3, 40]] = swapped[[40, 3]]
    one, other = RotatedChecksum(), RotatedChecksum()
    one.add(words)
    other.add(swapped)
    assert str(one) != str(other)
