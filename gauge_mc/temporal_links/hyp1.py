"""HYP1 temporal links."""

from __future__ import annotations

from typing import ClassVar

from gauge_mc.temporal_links import TEMPORAL_LINKS, HypTemporalLinks


@TEMPORAL_LINKS.register
class Hyp1(HypTemporalLinks):
    """HYP1 of M. Della Morte, A. Shindler and R. Sommer, hep-lat/0506008, as in hep-lat/0103029."""

    name: ClassVar[str] = "hyp1"
    alphas: ClassVar[tuple[float, float, float]] = (0.75, 0.6, 0.3)
