"""HYP2 temporal links."""

from __future__ import annotations

from typing import ClassVar

from gauge_mc.temporal_links import TEMPORAL_LINKS, HypTemporalLinks


@TEMPORAL_LINKS.register
class Hyp2(HypTemporalLinks):
    """HYP2 of M. Della Morte, A. Shindler and R. Sommer, hep-lat/0506008, for the least noise."""

    name: ClassVar[str] = "hyp2"
    alphas: ClassVar[tuple[float, float, float]] = (1.0, 1.0, 0.5)
