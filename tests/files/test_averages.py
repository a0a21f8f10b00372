import numpy as np
import pytest

from gauge_mc.files.averages import AveragesStream, averages_of
from tests.formats.format_samples import averages, plaquettes, random_links


@pytest.mark.parametrize("group", ["su2", "su3"])
def test_averages_of_a_stream(group):
    links = random_links(group)
    found = averages_of(iter(links))
    planes = plaquettes(links)
    assert (found.mean, found.link_trace) == pytest.approx(averages(links), abs=1e-14)
    assert found.spatial == pytest.approx(np.mean(planes[:3]), abs=1e-14)
    assert found.temporal == pytest.approx(np.mean(planes[3:]), abs=1e-14)


def test_nothing_has_no_averages():
    with pytest.raises(ValueError, match="no time slice"):
        AveragesStream().averages()
