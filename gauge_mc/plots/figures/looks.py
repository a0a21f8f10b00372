"""Colours and markers, of which each run has its own.

The palette is that of M. Okabe and K. Ito, "Color universal design" (2008), whose colours can be
distinguished with every kind of colour vision.
"""

from __future__ import annotations

from typing import Any

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")

MARKERS = "os^Dv<>PX"

WIDTH = 6.3
"""Width of a figure in inches: the text width of an A4 page with margins of 25 mm."""

GREY = "0.35"
"""Colour of lines in a legend that stand for the lines of all runs."""

SHADE = "0.9"
"""Colour of the updates that are left out of the averages."""

LINE = 0.2
"""Height of a line of a legend in inches."""


def look(i: int) -> dict[str, Any]:
    """Return the colour and marker of the i-th run."""
    return {"color": COLOURS[i % len(COLOURS)], "marker": MARKERS[i % len(MARKERS)]}
