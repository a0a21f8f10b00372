import numpy as np
import pytest
from matplotlib.image import imread

from gauge_mc.errors import GaugeError
from gauge_mc.files.table import write_table
from gauge_mc.plots.figures.pictures import COLOURS
from gauge_mc.plots.standard import draw_scan


def write_averages(path, header=None):
    """Write the table of a scan with three couplings on two lattices."""
    numbers = {"plaquette": 0.6, "plaquette_error": 0.01, "plaquette_tau_int": 0.5}
    loops = {"polyakov_abs": 0.2, "polyakov_abs_error": 0.01}
    rows = [
        {"beta": beta, "lattice": lattice, "chains": 1, "sweeps": 9, **numbers, **loops}
        for lattice in ("8x8x8x4", "8x8x8x6")
        for beta in (2.4, 2.2, 2.3)
    ]
    write_table(path, header or {}, list(rows[0]), [list(row.values()) for row in rows])


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["pdf", "png", "svg"])
def test_drawing_a_table(tmp_path, ending):
    table, figure = tmp_path / "scan.csv", tmp_path / f"scan.{ending}"
    write_averages(table, {"group": "su3"})
    draw_scan(table, figure)
    assert figure.stat().st_size > 5000
    if ending == "png":
        image = imread(figure)[..., :3]
        for code in COLOURS[:2]:  # one curve for each lattice
            colour = [int(code[i : i + 2], 16) / 255 for i in (1, 3, 5)]
            assert (np.abs(image - colour).max(axis=-1) < 0.02).sum() > 200
    elif ending == "svg":
        assert figure.read_text().count('id="axes_') == 2  # plaquette, Polyakov loop


def test_tables_that_cannot_be_drawn(tmp_path):
    table, figure = tmp_path / "scan.csv", tmp_path / "scan.pdf"
    with pytest.raises(GaugeError, match="cannot be read"):
        draw_scan(table, figure)
    write_table(table, {}, ("beta", "lattice"))
    with pytest.raises(GaugeError, match="no data to draw yet"):
        draw_scan(table, figure)
    write_table(table, {}, ("sweep", "plaquette"), [(1, 0.5)])
    with pytest.raises(GaugeError, match="not the table of a scan"):
        draw_scan(table, figure)
    assert not figure.exists()
