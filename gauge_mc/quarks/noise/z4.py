"""Noise of the fourth roots of unity."""

from __future__ import annotations

from typing import ClassVar

from gauge_mc.quarks.noise import NOISES, Noise


@NOISES.register
class FourthRootNoise(Noise):
    """1, i, -1 or -i, each with the probability 1/4."""

    name = "z4"
    summary = "1, i, -1 and -i"
    roots: ClassVar[int] = 4
