"""MILC in detail."""

import numpy as np
import pytest

from gauge_mc.configurations.reading import open_configuration
from gauge_mc.errors import GaugeError
from tests.formats.format_samples import milc_bytes, random_links

pytestmark = pytest.mark.kernels

LINKS = random_links("su3", "single", (2, 4, 6, 2))


@pytest.mark.parametrize("order", "<>")
def test_byte_orders(tmp_path, order):
    path = tmp_path / "milc"
    path.write_bytes(milc_bytes(LINKS, order))
    configuration = open_configuration(path)
    assert configuration.header.provenance == {"time_stamp": "Thu Jan  2 03:04:05 2003"}
    np.testing.assert_array_equal(np.stack(list(configuration.slices())), LINKS)


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"site_order": 1}, "serial format"),
        ({"extents": (2, 4, 6, -2)}, "The extent in t is -2"),
        ({"extents": (2, 3, 6, 2)}, "too long"),
        ({"extents": (2**31 - 2,) * 4}, "2^32"),
        ({"extents": (2, 4, 6, 2**24)}, "truncated"),
        ({"extents": (2, 4, 2, 2)}, "too long"),
        ({"extents": (6, 4, 2, 2)}, None),
    ],
)
def test_header_that_lies(tmp_path, order, changes, words):
    path = tmp_path / "milc"
    path.write_bytes(milc_bytes(LINKS, order, **changes))
    if words is None:
        # The same sites in another shape: nothing in the file tells that this is wrong.
        assert len(list(open_configuration(path).slices())) == 2
        return
    with pytest.raises(GaugeError) as error:
        open_configuration(path)
    assert words in str(error.value)
    assert str(path) in str(error.value)


def test_links_outside_the_group(tmp_path):
    path = tmp_path / "milc"
    bad = LINKS.copy()
    bad[1, 2, 3, 0, 1] *= 1.001
    path.write_bytes(milc_bytes(bad))
    slices = open_configuration(path).slices()
    np.testing.assert_array_equal(next(slices), LINKS[0])
    with pytest.raises(GaugeError, match=r"direction y at .* \(0, 3, 2, 1\) is not in SU\(3\)"):
        next(slices)
