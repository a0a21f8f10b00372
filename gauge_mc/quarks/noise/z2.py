"""Noise of signs."""

from __future__ import annotations

from typing import ClassVar

from gauge_mc.quarks.noise import NOISES, Noise


@NOISES.register
class SignNoise(Noise):
    """1 or -1, each with the probability 1/2."""

    name = "z2"
    summary = "1 and -1"
    roots: ClassVar[int] = 2
