"""Noise of the third roots of unity."""

from typing import ClassVar

from gauge_mc.extensions.quarks.noise import Noise


class Z3Noise(Noise):
    """1 or one of the other third roots of unity, each with the probability 1/3."""

    name: ClassVar[str] = "z3"
    summary: ClassVar[str] = "the third roots of unity"
    roots: ClassVar[int] = 3
