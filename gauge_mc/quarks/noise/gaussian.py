"""Noise of normal numbers."""

from __future__ import annotations

from typing import ClassVar

from gauge_mc.quarks.noise import NOISES, Noise


@NOISES.register
class NormalNoise(Noise):
    """Complex numbers with the weight exp(-|z|^2)."""

    name = "gaussian"
    summary = "normal numbers"
    roots: ClassVar[int] = 0
