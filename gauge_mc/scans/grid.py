"""Grids of couplings and lattices."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import UsageError

MAX_RUNS = 10_000
"""Maximum number of runs of a scan, against mistyped ranges."""

Point = tuple[float, Lattice]
"""A coupling and a lattice."""


@dataclass(frozen=True)
class Grid:
    """Chains at every coupling on every lattice. What is given twice counts once.

    Attributes
    ----------
    beta : tuple of float
    lattice : tuple of Lattice
    chains : int
        The number of chains at each point.

    Raises
    ------
    UsageError
        If it has no runs, more than `MAX_RUNS`, or a coupling that is not positive.
    """

    beta: tuple[float, ...]
    lattice: tuple[Lattice, ...]
    chains: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "beta", tuple(dict.fromkeys(self.beta)))
        object.__setattr__(self, "lattice", tuple(dict.fromkeys(self.lattice)))
        if not all(math.isfinite(beta) and beta > 0 for beta in self.beta):
            raise UsageError("beta must consist of positive numbers.")
        if self.chains < 1:
            raise UsageError(f"chains must be at least 1, not {self.chains}.")
        runs = len(self.beta) * len(self.lattice) * self.chains
        if not 1 <= runs <= MAX_RUNS:
            raise UsageError(f"A scan has 1 to {MAX_RUNS} runs, not {runs}.")

    def values(self) -> dict[str, object]:
        """Return it as TOML keys and values."""
        return {
            "beta": list(self.beta),
            "lattice": list(map(str, self.lattice)),
            "chains": self.chains,
        }

    @classmethod
    def from_values(cls, values: dict[str, list[object]]) -> Grid:
        """Read what `values` returns."""
        beta = tuple(float(str(one)) for one in values["beta"])
        lattice = tuple(Lattice.parse(str(one)) for one in values["lattice"])
        return cls(beta, lattice, int(str(values["chains"])))


def parse_betas(text: str) -> tuple[float, ...]:
    """Read couplings: numbers and ranges ``FIRST:LAST:STEP``, separated by commas.

    Ranges are counted in decimals and contain their last number.

    Raises
    ------
    UsageError
        If `text` is not of that form, or a range does not lead from its first number to its last.
    """
    return tuple(beta for word in text.split(",") for beta in _range(word.strip()))


def parse_lattices(text: str) -> tuple[Lattice, ...]:
    """Read lattices separated by commas; errors as of `Lattice.parse`."""
    return tuple(Lattice.parse(word.strip()) for word in text.split(","))


def _range(word: str) -> list[float]:
    """Read a number, or a range."""
    numbers = [_number(part, word) for part in word.split(":")]
    if len(numbers) == 1:
        return [float(numbers[0])]
    if len(numbers) != 3:
        raise UsageError(f"beta: '{word}' is not of the form FIRST:LAST:STEP, as in 2.2:2.8:0.05.")
    first, last, step = numbers
    if last < first:
        raise UsageError(f"beta: in {word} the last number must not be below the first.")
    steps = (last - first) / step
    if steps >= MAX_RUNS:
        raise UsageError(f"beta: {word} has more than {MAX_RUNS} numbers.")
    if steps != int(steps):
        raise UsageError(f"beta: in {word} no whole number of steps leads from {first} to {last}.")
    return [float(first + i * step) for i in range(int(steps) + 1)]


def _number(part: str, word: str) -> Decimal:
    """Read a positive number of at most 12 digits, as many as the names of runs show."""
    try:
        number = Decimal(part)
    except InvalidOperation:
        number = Decimal("NaN")
    value = float(number)
    if not (math.isfinite(value) and value > 0):
        raise UsageError(f"beta: '{word}' must consist of positive numbers, as in 2.2:2.8:0.05.")
    if float(f"{value:.12g}") != value:
        raise UsageError(f"beta: {part} has more than 12 digits.")
    return number
