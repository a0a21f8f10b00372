"""Grids of couplings and lattices."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache
from itertools import product, takewhile
from shlex import quote
from typing import Any, NamedTuple

from gauge_mc import defaults
from gauge_mc.actions import BETA, Action, couplings
from gauge_mc.algorithms import ALGORITHMS, Algorithm, algorithm_options
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import UsageError
from gauge_mc.option_items import Items, OptionItem
from gauge_mc.options import Option
from gauge_mc.results import documented, result_field
from gauge_mc.run.options import known_options
from gauge_mc.run.parameters import Parameters

MAX_RUNS = 10_000
"""Maximum number of runs in a scan, to catch mistyped ranges."""

MAX_DIGITS = 40
"""Maximum length of a number as text."""

PLACE = ("beta", "lattice")
"""The axes that every grid has."""


COUPLINGS = "Values of the options of the action, and the numbers of dynamical quarks, by name."
"""Description of `Point.numbers` in results."""


def axes() -> dict[str, Option]:
    """Return the numbers that may differ between the points of a grid, by name.

    These are the coupling, the lattice and the options of actions; see also `list_axes`.
    """
    found = known_options()
    return {name: found[name] for name in (*PLACE, *(one.name for one in couplings()))}


@cache
def list_axes() -> dict[str, type[OptionItem]]:
    """Return the kinds of things with numbers that may differ, by the option that lists them.

    They are options of algorithms, such as the dynamical quarks.
    """
    lists = {one.name: one.items for one in algorithm_options() if one.items}
    return {name: kind for name, kind in lists.items() if kind.axes()}


@cache
def numbers_of_things() -> dict[str, Option]:
    """Return the numbers of things in lists that may differ between the points of a grid."""
    return {one.name: one for kind in list_axes().values() for one in kind.axes()}


@cache
def number_of_point(name: str) -> Option:
    """Return the option of a number in `Point.numbers`, with a symbol and a tag of its own."""
    known = {one.name: one for one in couplings()} | numbers_of_things()
    if name in known:
        return known[name]
    first = max((one for one in known if re.fullmatch(f"{one}[0-9]+", name)), key=len)
    number, option = name.removeprefix(first), known[first]
    whose = next(key for key, each in list_axes().items() if option in each.axes())
    symbol, tag = f"{option.short} ({number})", f"{whose}{number}-{option.tag or first}"
    return replace(option, name=name, symbol=symbol, axis="", tag=tag)


class Point(NamedTuple):
    """A coupling, a lattice, and an action and an algorithm with the values of their options."""

    beta: float
    lattice: Lattice
    action: Action
    algorithm: Algorithm = ALGORITHMS[defaults.ALGORITHM]

    @classmethod
    def of(cls, parameters: Parameters) -> Point:
        """Return the point of a run."""
        p = parameters
        return cls(p.beta, p.lattice, p.action, p.algorithm)

    @property
    def listed(self) -> dict[Option, float]:
        """The numbers of the things in lists, unless they are usual, such as masses of quarks."""
        values = self.algorithm.values
        numbers = (values[name].numbers.items() for name in list_axes() if name in values)
        return {number_of_point(name): value for each in numbers for name, value in each}

    @property
    def numbers(self) -> dict[str, float]:
        """The values of the options of the action and the numbers of the things, by name."""
        return {**self.action.values, **{one.name: value for one, value in self.listed.items()}}

    @property
    def words(self) -> list[str]:
        """These numbers in words, unless they are usual."""
        return [one.said(value) for one, value in (self.action.changed | self.listed).items()]


def numbers_in(columns: Iterable[str]) -> list[Option]:
    """Return the options of actions and of things in lists among the columns of a scan's table.

    They precede that of the lattice.
    """
    known = {one.name for one in couplings()} | numbers_of_things().keys()
    before = takewhile(lambda name: name != "lattice", columns)
    numbered = re.compile(f"({'|'.join(known)})[0-9]*")
    return [number_of_point(name) for name in before if numbered.fullmatch(name)]


def value_at(numbers: Mapping[str, float], name: str) -> float:
    """Return a number of a point, which `Point.numbers` need not state."""
    return numbers[name] if name in numbers else number_of_point(name).usual or 0.0


def differing(points: Iterable[Mapping[str, float]]) -> list[str]:
    """Return the numbers of things in lists that differ between points, by name.

    Numbers that are always equal, such as one chemical potential of all quarks, are represented by
    the first of them.
    """
    points, actions = list(points), {one.name for one in couplings()}
    names = dict.fromkeys(name for one in points for name in one if name not in actions)
    series = {tuple(value_at(one, name) for one in points): name for name in reversed(names)}
    found = {name for values, name in series.items() if len({*values}) > 1}
    return [name for name in names if name in found]


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
    options: Mapping[str, tuple[Any, ...]] = result_field(
        "Values of options of the action, and lists of things such as dynamical quarks, by name, "
        "without duplicates.",
        dict,
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

    def points(self, action: Action, algorithm: Algorithm) -> list[Point]:
        """Return the points of the grid, in the order of their runs.

        Parameters
        ----------
        action, algorithm : Action, Algorithm
            Action and algorithm, with the values of the options that the grid does not state.
        """
        lists = {name: values for name, values in self.options.items() if name in list_axes()}
        own = {name: values for name, values in self.options.items() if name not in lists}
        actions = [action.with_options(**one) for one in _combinations(own)]
        algorithms = [algorithm.with_options(**one) for one in _combinations(lists)]
        return [
            Point(beta, *rest)
            for rest in product(self.lattice, actions, algorithms)
            for beta in self.beta
        ]

    def values(self) -> dict[str, object]:
        """Return the grid as TOML keys and values, which `from_values` reads back."""
        return {
            "beta": list(self.beta),
            "lattice": list(map(str, self.lattice)),
            "chains": self.chains,
            **{
                name: [str(one) if isinstance(one, Items) else one for one in values]
                for name, values in self.options.items()
            },
        }

    @property
    def words(self) -> list[str]:
        """The options of ``gauge-mc scan`` that state the grid, once for each list of things."""
        axes = {"beta": self.beta, "lattice": self.lattice, **self.options}
        lists = {name: axes.pop(name) for name in list_axes() if name in axes}
        found = [f"{known_options()[name].flag} {','.join(map(str, axes[name]))}" for name in axes]
        whole = " ".join([*found, f"--chains {self.chains}"])
        return [
            " ".join([whole, *(f"{known_options()[key].flag} {quote(str(v))}" for key, v in each)])
            for each in map(dict.items, _combinations(lists))
        ]

    @classmethod
    def from_values(cls, values: dict[str, list[object]]) -> Grid:
        """Return a grid from TOML keys and values."""
        beta = tuple(float(str(one)) for one in values["beta"])
        lattice = tuple(Lattice.parse(str(one)) for one in values["lattice"])
        options: dict[str, tuple[Any, ...]] = {
            one.name: tuple(float(str(value)) for value in values[one.name])
            for one in couplings()
            if one.name in values
        }
        options |= {
            name: tuple(map(one.several, values[name]))
            for name, one in list_axes().items()
            if name in values
        }
        return cls(beta, lattice, int(str(values["chains"])), options)


def _combinations(values: Mapping[str, Iterable[Any]]) -> list[dict[str, Any]]:
    """Return all combinations of one value for each name."""
    return [dict(zip(values, one, strict=True)) for one in product(*values.values())]


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
