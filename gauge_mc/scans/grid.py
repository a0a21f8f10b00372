"""Grids of couplings and lattices."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

from gauge_mc import defaults
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import UsageError
from gauge_mc.run.parameters import check_beta

MAX_RUNS = 10_000
"""Maximum number of runs in a scan, to catch mistyped ranges."""

MAX_DIGITS = 40
"""Maximum length of a number as text."""

AXES = ("beta", "lattice", "anisotropy")
"""Parameters in which the points of a grid differ."""


class Point(NamedTuple):
    """A coupling, a lattice and a bare anisotropy."""

    beta: float
    lattice: Lattice
    anisotropy: float = defaults.ANISOTROPY


@dataclass(frozen=True)
class Grid:
    """A grid of points: every coupling on every lattice, with several chains at each point.

    Attributes
    ----------
    beta : tuple of float
        Couplings, without duplicates.
    lattice : tuple of Lattice
        Lattices, without duplicates.
    chains : int
        Number of chains at each point.
    anisotropy : tuple of float
        Bare anisotropies, without duplicates.

    Raises
    ------
    UsageError
        If the grid has no runs or more than `MAX_RUNS`, or a coupling is not positive.
    """

    beta: tuple[float, ...]
    lattice: tuple[Lattice, ...]
    chains: int = 1
    anisotropy: tuple[float, ...] = (defaults.ANISOTROPY,)

    def __post_init__(self) -> None:
        object.__setattr__(self, "beta", tuple(dict.fromkeys(self.beta)))
        object.__setattr__(self, "lattice", tuple(dict.fromkeys(self.lattice)))
        object.__setattr__(self, "anisotropy", tuple(dict.fromkeys(self.anisotropy)))
        for beta in self.beta:
            check_beta(beta)
        if self.chains < 1:
            raise UsageError(f"chains must be at least 1, not {self.chains}.")
        runs = len(self.points) * self.chains
        if not 1 <= runs <= MAX_RUNS:
            raise UsageError(f"A scan has 1 to {MAX_RUNS} runs, not {runs}.")

    @property
    def points(self) -> list[Point]:
        """The points of the grid, in the order of their runs."""
        ratios, lattices = self.anisotropy, self.lattice
        return [Point(b, one, xi0) for one in lattices for xi0 in ratios for b in self.beta]

    def values(self) -> dict[str, object]:
        """Return the grid as TOML keys and values, which `from_values` reads back."""
        isotropic = self.anisotropy == (defaults.ANISOTROPY,)
        return {
            "beta": list(self.beta),
            "lattice": list(map(str, self.lattice)),
            "chains": self.chains,
            **({} if isotropic else {"anisotropy": list(self.anisotropy)}),
        }

    @classmethod
    def from_values(cls, values: dict[str, list[object]]) -> Grid:
        """Return a grid from TOML keys and values."""
        beta = tuple(float(str(one)) for one in values["beta"])
        lattice = tuple(Lattice.parse(str(one)) for one in values["lattice"])
        ratios = tuple(float(str(one)) for one in values.get("anisotropy", [defaults.ANISOTROPY]))
        return cls(beta, lattice, int(str(values["chains"])), ratios)


def parse_numbers(text: str, name: str = "beta") -> tuple[float, ...]:
    """Read couplings: numbers and ranges ``FIRST:LAST:STEP``, separated by commas.

    Ranges include their last number, and are computed in decimal arithmetic.

    Raises
    ------
    UsageError
        If the text does not have this form, or a range does not end at its last number.
    """
    return tuple(one for word in text.split(",") for one in _range(word.strip(), name))


def parse_lattices(text: str) -> tuple[Lattice, ...]:
    """Read lattices separated by commas; for the errors see `Lattice.parse`."""
    return tuple(Lattice.parse(word.strip()) for word in text.split(","))


def _range(word: str, name: str) -> list[float]:
    """Read a number or a range."""
    numbers = [_number(part, word, name) for part in word.split(":")]
    if len(numbers) == 1:
        return [float(numbers[0])]
    if len(numbers) != 3:
        raise UsageError(
            f"{name}: '{word}' is not of the form FIRST:LAST:STEP, as in 2.2:2.8:0.05."
        )
    first, last, step = numbers
    if last < first:
        raise UsageError(f"{name}: in {word} the last number must not be below the first.")
    steps = (last - first) / step
    if steps >= MAX_RUNS:
        raise UsageError(f"{name}: {word} has more than {MAX_RUNS} numbers.")
    if steps != int(steps):
        raise UsageError(
            f"{name}: in {word} the distance from {first} to {last} is not a multiple of the step."
        )
    return [float(first + i * step) for i in range(int(steps) + 1)]


def _number(part: str, word: str, name: str) -> Decimal:
    """Read a positive number of at most 12 digits, which the names of runs can represent."""
    plain = re.fullmatch(r"\+?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?", part.strip())
    number = Decimal(part.strip() if plain and len(part) <= MAX_DIGITS else "NaN")
    value = float(number)
    if not (math.isfinite(value) and value > 0):
        raise UsageError(f"{name}: '{word}' must consist of positive numbers, as in 2.2:2.8:0.05.")
    if float(f"{value:.12g}") != value:
        raise UsageError(f"{name}: {part} has more than 12 digits.")
    return number
