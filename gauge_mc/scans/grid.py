"""Grids of couplings and lattices.

Axes of a grid within lists of things with options, such as the masses of dynamical quarks.

A number of a thing may have several values, as in ``wilson:kappa=0.12:0.16:0.01``, which then
stands for as many lists. Where things of one list have the same name with the same values, such as
one chemical potential of all quarks, they vary together.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache
from itertools import chain, product, takewhile
from shlex import quote
from typing import Any, NamedTuple

from gauge_mc import defaults
from gauge_mc.actions import BETA, Action, couplings
from gauge_mc.algorithms import ALGORITHMS, Algorithm, algorithm_options
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import UsageError
from gauge_mc.option_items import Items, OptionItem, option_name
from gauge_mc.options import Option
from gauge_mc.quoting import shortened
from gauge_mc.registry import in_words
from gauge_mc.results import documented, result_field
from gauge_mc.run.parameters import Parameters, known_options

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
    options = known_options()
    return {name: options[name] for name in (*PLACE, *(c.name for c in couplings()))}


@cache
def list_axes() -> dict[str, type[OptionItem]]:
    """Return the kinds of things with numbers that may differ, by the option that lists them.

    They are options of algorithms, such as the dynamical quarks.
    """
    lists = {option.name: option.items for option in algorithm_options() if option.items}
    return {name: kind for name, kind in lists.items() if kind.axes()}


@cache
def numbers_of_things() -> dict[str, Option]:
    """Return the numbers of things in lists that may differ between the points of a grid."""
    return {axis.name: axis for kind in list_axes().values() for axis in kind.axes()}


@cache
def number_of_point(name: str) -> Option:
    """Return the option of a number in `Point.numbers`, with a symbol and a tag of its own."""
    options = {c.name: c for c in couplings()} | numbers_of_things()
    if name in options:
        return options[name]
    first = max((x for x in options if re.fullmatch(f"{x}[0-9]+", name)), key=len)
    number, option = name.removeprefix(first), options[first]
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
        return {**self.action.values, **{name.name: value for name, value in self.listed.items()}}

    @property
    def words(self) -> list[str]:
        """These numbers in words, unless they are usual."""
        return [name.said(value) for name, value in (self.action.changed | self.listed).items()]


def numbers_in(columns: Iterable[str]) -> list[Option]:
    """Return the options of actions and of things in lists among the columns of a scan's table.

    They precede that of the lattice.
    """
    options = {c.name for c in couplings()} | numbers_of_things().keys()
    before = takewhile(lambda name: name != "lattice", columns)
    numbered = re.compile(f"({'|'.join(options)})[0-9]*")
    return [number_of_point(name) for name in before if numbered.fullmatch(name)]


def value_at(numbers: Mapping[str, float], name: str) -> float:
    """Return a number of a point, which `Point.numbers` need not state."""
    return numbers[name] if name in numbers else number_of_point(name).usual or 0.0


def differing(points: Iterable[Mapping[str, float]]) -> list[str]:
    """Return the numbers of things in lists that differ between points, by name.

    Numbers that are always equal, such as one chemical potential of all quarks, are represented by
    the first of them.
    """
    points, actions = list(points), {c.name for c in couplings()}
    names = dict.fromkeys(name for point in points for name in point if name not in actions)
    series = {tuple(value_at(point, name) for point in points): name for name in reversed(names)}
    varying = {name for values, name in series.items() if len({*values}) > 1}
    return [name for name in names if name in varying]


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
        usual = {c.name: (c.usual,) for c in couplings()}
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
        """Return the points of the grid, in the order of their runs."""
        lists = {name: values for name, values in self.options.items() if name in list_axes()}
        ranges = {name: values for name, values in self.options.items() if name not in lists}
        actions = [action.with_options(**c) for c in _combinations(ranges)]
        algorithms = [algorithm.with_options(**c) for c in _combinations(lists)]
        places = product(self.lattice, actions, algorithms)
        return [Point(beta, *place) for place in places for beta in self.beta]

    def values(self) -> dict[str, object]:
        """Return the grid as TOML keys and values, which `from_values` reads back."""
        return {
            "beta": list(self.beta),
            "lattice": list(map(str, self.lattice)),
            "chains": self.chains,
            **{
                name: [str(value) if isinstance(value, Items) else value for value in values]
                for name, values in self.options.items()
            },
        }

    @property
    def words(self) -> list[str]:
        """The options of ``gauge-mc scan`` that state the grid, once for each list of things."""
        axes = {"beta": self.beta, "lattice": self.lattice, **self.options}
        lists = {name: axes.pop(name) for name in list_axes() if name in axes}
        flags = [f"{known_options()[name].flag} {','.join(map(str, axes[name]))}" for name in axes]
        common = " ".join([*flags, f"--chains {self.chains}"])
        return [
            " ".join([common, *(f"{known_options()[key].flag} {quote(str(v))}" for key, v in each)])
            for each in map(dict.items, _combinations(lists))
        ]

    @classmethod
    def from_values(cls, values: dict[str, list[object]]) -> Grid:
        """Return a grid from TOML keys and values."""
        beta = tuple(float(str(value)) for value in values["beta"])
        lattice = tuple(Lattice.parse(str(value)) for value in values["lattice"])
        numbers = {c.name: values[c.name] for c in couplings() if c.name in values}
        lists = {name: kind for name, kind in list_axes().items() if name in values}
        options: dict[str, tuple[Any, ...]]
        options = {name: tuple(float(str(x)) for x in each) for name, each in numbers.items()}
        options |= {name: tuple(map(kind.several, values[name])) for name, kind in lists.items()}
        return cls(beta, lattice, int(str(values["chains"])), options)


def _combinations(values: Mapping[str, Iterable[Any]]) -> list[dict[str, Any]]:
    """Return all combinations of one value for each name."""
    return [dict(zip(values, x, strict=True)) for x in product(*values.values())]


def parse_numbers(text: str, option: Option = BETA) -> tuple[float, ...]:
    """Read values of a coupling: numbers and ranges ``FIRST:LAST:STEP``, separated by commas.

    Ranges include their last number, and are computed in decimal arithmetic. Each value is returned
    once.
    """
    ranges = (_range(word.strip(), option) for word in text.split(","))
    return tuple(dict.fromkeys(chain.from_iterable(ranges)))


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
    values = [float(first + i * step) for i in range(int(steps) + 1)]
    for value in values:
        option.checked(value)
    return values


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


WITHIN = r":(?!\s*[-+.0-9])|,(?=\s*\w+=)"
"""Regular expression of what is between the words of a thing that may have ranges."""

ListAxis = tuple[str, tuple[float, ...]]
"""The name of an option, and its values."""


@dataclass(frozen=True)
class _Template:
    """A thing, some of whose numbers have several values."""

    kind: type[OptionItem]
    """Its kind."""
    given: object
    """The rest of it: text, a table, or an object."""
    axes: Sequence[ListAxis] = ()
    """These numbers."""

    def at(self, numbers: Mapping[ListAxis, float]) -> object:
        """Return the thing with one value of each of these numbers."""
        values = {axis[0]: numbers[axis] for axis in self.axes}
        if isinstance(self.given, Mapping):
            return {**self.given, **values}
        if not isinstance(self.given, str):
            return self.given
        words = (f"{name}={value!r}" for name, value in values.items())
        return self.kind.parse(self.kind.glued.join([self.given, *words]))


def lists_of(kind: type[OptionItem], value: object) -> tuple[Items[Any], ...]:
    """Return the lists of things that a value stands for, the last number varying fastest."""
    templates = list(_templates(kind, value))
    axes = list(dict.fromkeys(axis for t in templates for axis in t.axes))
    combinations = product(*(values for _, values in axes))
    points = (dict(zip(axes, numbers, strict=True)) for numbers in combinations)
    return tuple(kind.several([t.at(point) for t in templates]) for point in points)


def is_point_beside(first: Items[Any], second: Items[Any]) -> bool:
    """Return whether lists of things differ in nothing but numbers that may be axes."""
    pairs = zip(first, second, strict=False)
    return 0 < len(first) == len(second) and all(_rest(x) == _rest(two) for x, two in pairs)


def _rest(thing: OptionItem) -> dict[str, Any]:
    """Return the values of a thing that cannot be axes."""
    names = {axis.name for axis in thing.axes()}
    return {name: value for name, value in thing.values.items() if name not in names}


def _templates(kind: type[OptionItem], value: object) -> Iterator[_Template]:
    """Yield the things of a list, whose numbers may have several values."""
    if isinstance(value, str):
        yield from (_of_text(kind, word) for word in re.split(kind.between, value) if value.strip())
    elif isinstance(value, Mapping):
        yield _of_table(kind, value)
    elif isinstance(value, Iterable):
        yield from (t for each in value for t in _templates(kind, each))
    else:
        yield _Template(kind, value)


def _of_text(kind: type[OptionItem], text: str) -> _Template:
    rest, axes, options = [], [], _axes_by_name(kind)
    for word in re.split(WITHIN, text):
        name, equals, numbers = word.partition("=")
        key = option_name(name.strip())
        option = options.get(key)
        if option and equals and re.search("[:,]", numbers):
            axes.append((option.name, parse_numbers(numbers, option)))
        elif equals and ":" in numbers and any(key == option.name for option in kind.options()):
            raise UsageError(
                f"{name} of {kind.place({})} is '{shortened(numbers)}', but has one value in a "
                f"scan; numbers that may vary are "
                f"{in_words([axis.written or axis.name for axis in kind.axes()])}."
            )
        else:
            rest.append(word.partition(":")[0])
    return _Template(kind, kind.glued.join(rest), axes)


def _of_table(kind: type[OptionItem], table: Mapping[str, object]) -> _Template:
    rest, axes, options = {}, [], _axes_by_name(kind)
    for key, value in table.items():
        option = options.get(option_name(str(key).strip()))
        words = ",".join(map(str, value)) if isinstance(value, list | tuple) else value
        if option and isinstance(words, str):
            axes.append((option.name, parse_numbers(words, option)))
        else:
            rest[key] = value
    return _Template(kind, rest, axes)


def _axes_by_name(kind: type[OptionItem]) -> dict[str, Option]:
    names = {axis.name for axis in kind.axes()}
    return {name: x for name, x in kind.placed({}).items() if name in names}
