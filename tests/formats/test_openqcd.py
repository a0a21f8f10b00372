"""openQCD in detail."""

import struct

import numpy as np
import pytest

from gauge_mc.configurations.reading import open_configuration
from gauge_mc.configurations.writing import write_configuration
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError
from tests.formats.format_samples import averages, openqcd_bytes, random_links

pytestmark = pytest.mark.kernels


@pytest.mark.parametrize("extents", [(4, 2, 6, 8), (2, 2, 2, 2), (6, 4, 2, 2)])
def test_bytes_as_written(tmp_path, extents):
    links = random_links("su3", extents=extents)
    path = tmp_path / "n1"
    write_configuration(path, links, Lattice(*extents), "su3", "double", "openqcd")
    data, want = path.read_bytes(), openqcd_bytes(links)
    assert (data[:16], data[24:]) == (want[:16], want[24:])
    (plaquette,) = struct.unpack("<d", data[16:24])
    # openQCD itself asks for sqrt(6V) roundings.
    assert plaquette == pytest.approx(3 * averages(links)[0], abs=2e-16 * (6 * links.size) ** 0.5)
    assert open_configuration(path).header.plaquette == pytest.approx(plaquette / 3, abs=1e-15)


@pytest.mark.parametrize(
    ("extents", "plaquette", "words"),
    [
        ((2, 2, 4, 4), 0.5, "plaquette"),
        ((2, 2, 4, 4), float("nan"), "not a configuration"),
        ((2, 2, 4, 3), 0.5, "The extent in z is 3"),
        ((2, 2, 4, 0), 0.5, "not a configuration"),
        ((2, 2, 4, 2), 0.5, "too long"),
        ((4096, 4096, 128, 128), 0.5, "2^32"),
        ((4096, 4096, 16, 8), 0.5, "truncated"),
    ],
)
def test_header_that_lies(tmp_path, extents, plaquette, words):
    data = openqcd_bytes(random_links("su3", extents=(2, 4, 4, 2)))
    path = tmp_path / "n1"
    path.write_bytes(struct.pack("<4id", *extents, plaquette) + data[24:])
    with pytest.raises(GaugeError) as error:
        list(open_configuration(path).slices())
    assert words in str(error.value)
    assert str(path) in str(error.value)


def test_exact_links_of_wrong_plaquette(tmp_path):
    links = random_links("su3", extents=(2, 2, 2, 2))
    path = tmp_path / "n1"
    path.write_bytes(openqcd_bytes(links, 3 * averages(links)[0] + 1e-11))
    slices = open_configuration(path).slices()
    np.testing.assert_array_equal(next(slices), links[0])
    with pytest.raises(GaugeError, match="plaquette"):
        next(slices)
