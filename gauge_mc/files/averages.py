"""Averages over a configuration, which the headers of files state."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Averages:
    """Lattice averages of Re Tr / N, each in [-1, 1].

    Attributes
    ----------
    mean, spatial, temporal : float
        Averages over all plaquettes, over those in spatial planes, and over those in planes that
        contain the time direction.
    link_trace : float
        Average over all links.
    """

    mean: float
    spatial: float
    temporal: float
    link_trace: float
