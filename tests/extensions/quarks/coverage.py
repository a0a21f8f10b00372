"""How often errors of ratios contain the truth; see ``docs/studies/coverage.py``."""

from collections.abc import Iterator

import numpy as np

from gauge_mc.analysis.timeseries import estimate
from gauge_mc.extensions.quarks.spectroscopy.correlators import ratio_series

EXACT = ("ratio",)
"""Quantities whose errors are right from 20 independent measurements on."""

RATIO = 0.7
"""True ratio."""


def averages(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> Iterator[tuple[str, float]]:
    """Yield the deviation, in errors, of the ratio of two averages that fluctuate together."""
    above, below = RATIO * (1 + 0.1 * (x + 0.5 * y)), 1 + 0.1 * (x + 0.5 * z)
    found = estimate(ratio_series(above[:, None], below[:, None])[:, 0])
    yield "ratio", (found.value - RATIO) / found.error
