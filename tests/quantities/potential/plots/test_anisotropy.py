"""The plot of ratios of Wilson loops."""

import pytest

from gauge_mc.plots.drawing import find_plot
from tests.quantities.potential.fits.test_anisotropy import synthetic


@pytest.mark.slow
def test_ratios_are_drawn(tmp_path):
    synthetic(tmp_path / "planar_loops.csv", 1e-3, 20)
    drawn = []
    for n, options in enumerate(({}, {"least": 3})):
        file = tmp_path / f"{n}.svg"
        assert find_plot("anisotropy").draw([tmp_path], file, **options) == []
        drawn.append(file.read_text())
    assert drawn[0].count("<path") > 50
    assert drawn[0] != drawn[1]
