import numpy as np
from matplotlib.colors import to_rgb

from gauge_mc.plots.figures.pictures import COLOURS, MARKERS


def test_runs_stay_apart_for_the_colour_blind():
    """Colours differ without red-green contrast (red and green averaged), and so do markers."""
    rgb = np.array([to_rgb(colour) for colour in COLOURS])
    merged = np.stack([rgb[:, :2].mean(axis=1), rgb[:, 2]], axis=1)
    distance = np.abs(merged[:, None] - merged).max(axis=-1) + np.eye(len(rgb))
    assert distance.min() > 0.05
    assert len(set(MARKERS)) == len(MARKERS) > len(COLOURS)
