"""Grids of couplings and lattices."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from itertools import product
from typing import NamedTuple

from gauge_mc.actions import BETA, Action, couplings
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import UsageError
from gauge_mc.options import Option
from gauge_mc.results import documented, result_field
from gauge_mc.run.options import known_options

MAX_RUNS = 10_000
"""Maximum number of runs in a scan, to catch mistyped ranges."""

MAX_DIGITS = 40
"""Maximum length of a number as text."""

PLACE = ("beta", "lattice")
"""The axes that every grid has."""


def axes() -> dict[str, Option]:
    """Return the numbers that may differ between the points of a grid, by name.

    These are the coupling, the lattice and the options of actions.
    """
    found = known_options()
    return {name: found[name] for name in (*PLACE, *(one.name for one in couplings()))}


class Point(NamedTuple):
    """A coupling, a lattice and an action with the values of its options."""

    beta: float
    lattice: Lattice
    action: Action


@documented
@dataclass(frozen=True)
class Grid:
    """A grid of points: every coupling on every lattice, with several chains at each point.

    Raises
    ------
    UsageError
        If the grid has no runs or more than `MAX_RUNS`, or a coupling is not positive.
    """

    beta: tuple[float, ...] = result_field("Couplings, without duplicates.")
    lattice: tuple[Lattice, ...] = result_field("Lattices, without duplicates.")
    chains: int = result_field("Number of chains at each point.", 1)
    options: Mapping[str, tuple[float, ...]] = result_field(
        "Values of options of the action by name, without duplicates.", dict
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "beta", tuple(dict.fromkeys(self.beta)))
        object.__setattr__(self, "lattice", tuple(dict.fromkeys(self.lattice)))
        usual = {one.name: (one.usual,) for one in couplings()}
        only = {name: tuple(dict.fromkeys(values)) for name, values in self.options.items()}
        only = {name: values for name, values in only.items() if values != usual.get(name)}
        object.__setattr__(self, "options", only)
        for beta in self.beta:
            BETA.checked(beta)
        if self.chains < 1:
            raise UsageError(f"chains must be at least 1, not {self.chains}.")
        sizes = (len(self.beta), len(self.lattice), *map(len, only.values()))
        runs = math.prod(sizes) * self.chains
        if not 1 <= runs <= MAX_RUNS:
            raise UsageError(f"A scan has 1 to {MAX_RUNS} runs, not {runs}.")

    def points(self, action: Action) -> list[Point]:
        """Return the points of the grid, in the order of their runs.

        Parameters
        ----------
        action : Action
            The action, with the values of the options that the grid does not state.
        """
        actions = [
            action.with_options(**dict(zip(self.options, values, strict=True)))
            for values in product(*self.options.values())
        ]
        return [Point(b, one, each) for one in self.lattice for each in actions for b in self.beta]

    def values(self) -> dict[str, object]:
        """Return the grid as TOML keys and values, which `from_values` reads back."""
        return {
            "beta": list(self.beta),
            "lattice": list(map(str, self.lattice)),
            "chains": self.chains,
            **{name: [*values] for name, values in self.options.items()},
        }

    @property
    def words(self) -> list[str]:
        """The options of ``gauge-mc scan`` that state the grid."""
        axes = {"beta": self.beta, "lattice": self.lattice, **self.options}
        found = [f"{known_options()[name].flag} {','.join(map(str, axes[name]))}" for name in axes]
        return [*found, f"--chains {self.chains}"]

    @classmethod
    def from_values(cls, values: dict[str, list[object]]) -> Grid:
        """Return a grid from TOML keys and values."""
        beta = tuple(float(str(one)) for one in values["beta"])
        lattice = tuple(Lattice.parse(str(one)) for one in values["lattice"])
        options = {
            one.name: tuple(float(str(value)) for value in values[one.name])
            for one in couplings()
            if one.name in values
        }
        return cls(beta, lattice, int(str(values["chains"])), options)


def parse_numbers(text: str, option: Option = BETA) -> tuple[float, ...]:
    """Read values of a coupling: numbers and ranges ``FIRST:LAST:STEP``, separated by commas.

    Ranges include their last number, and are computed in decimal arithmetic.

    Raises
    ------
    UsageError
        If the text does not have this form, a range does not end at its last number, or a number is
        outside of the bounds of the option.
    """
    return tuple(one for word in text.split(",") for one in _range(word.strip(), option))


def parse_lattices(text: str) -> tuple[Lattice, ...]:
    """Read lattices separated by commas; for the errors see `Lattice.parse`."""
    return tuple(Lattice.parse(word.strip()) for word in text.split(","))


def _range(word: str, option: Option) -> list[float]:
    """Read a number or a range."""
    name = option.name
    numbers = [_number(part, word, name) for part in word.split(":")]
    if len(numbers) not in (1, 3):
        raise UsageError(
            f"{name}: '{word}' is not of the form FIRST:LAST:STEP, as in 2.2:2.8:0.05."
        )
    first, last, step = numbers if len(numbers) == 3 else (*numbers, *numbers, Decimal(1))
    if last < first:
        raise UsageError(f"{name}: in {word} the last number must not be below the first.")
    if step <= 0:
        raise UsageError(f"{name}: in {word} the step must be a positive number.")
    steps = (last - first) / step
    if steps >= MAX_RUNS:
        raise UsageError(f"{name}: {word} has more than {MAX_RUNS} numbers.")
    if steps != int(steps):
        raise UsageError(
            f"{name}: in {word} the distance from {first} to {last} is not a multiple of the step."
        )
    found = [float(first + i * step) for i in range(int(steps) + 1)]
    for one in found:
        option.checked(one)
    return found


def _number(part: str, word: str, name: str) -> Decimal:
    """Read a number of at most 12 digits, which the names of runs can represent."""
    plain = re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?", part.strip())
    number = Decimal(part.strip() if plain and len(part) <= MAX_DIGITS else "NaN")
    value = float(number)
    if not math.isfinite(value):
        raise UsageError(f"{name}: '{word}' must consist of numbers, as in 2.2:2.8:0.05.")
    if float(f"{value:.12g}") != value:
        raise UsageError(f"{name}: {part} has more than 12 digits.")
    return number
