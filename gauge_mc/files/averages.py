"""Averages over a configuration, which the headers of files state."""

from __future__ import annotations

from dataclasses import dataclass

from gauge_mc.results import documented, result_field


@documented
@dataclass(frozen=True)
class Averages:
    """Lattice averages of Re Tr / N, each in [-1, 1]."""

    mean: float = result_field("Average over all plaquettes.")
    spatial: float = result_field("Average over the plaquettes in spatial planes.")
    temporal: float = result_field(
        "Average over the plaquettes in planes that contain the time direction."
    )
    link_trace: float = result_field("Average over all links.")
