"""Axes of a grid within lists of things with options, such as the masses of dynamical quarks.

A number of a thing may have several values, as in ``wilson:kappa=0.12:0.16:0.01``, which then
stands for as many lists. Where things of one list have the same name with the same values, such as
one chemical potential of all quarks, they vary together.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from gauge_mc.errors import UsageError
from gauge_mc.option_items import Items, OptionItem, option_name
from gauge_mc.options import Option
from gauge_mc.quoting import shortened
from gauge_mc.registry import in_words
from gauge_mc.scans.grid import parse_numbers

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
        own = {axis[0]: numbers[axis] for axis in self.axes}
        if isinstance(self.given, Mapping):
            return {**self.given, **own}
        if not isinstance(self.given, str):
            return self.given
        words = (f"{name}={value!r}" for name, value in own.items())
        return self.kind.parse(self.kind.glued.join([self.given, *words]))


def lists_of(kind: type[OptionItem], value: object) -> tuple[Items[Any], ...]:
    """Return the lists of things that a value stands for, the last number varying fastest.

    Parameters
    ----------
    kind : type of OptionItem
        The kind of things.
    value : object
        Text, a table, a thing, or a list of these. Numbers in text and tables may have several
        values.

    Raises
    ------
    UsageError
        If a value, a range or a thing is invalid.
    """
    templates = list(_templates(kind, value))
    axes = list(dict.fromkeys(axis for one in templates for axis in one.axes))
    combinations = product(*(values for _, values in axes))
    points = (dict(zip(axes, numbers, strict=True)) for numbers in combinations)
    return tuple(kind.several([one.at(point) for one in templates]) for point in points)


def is_point_beside(first: Items[Any], other: Items[Any]) -> bool:
    """Return whether lists of things differ in nothing but numbers that may be axes."""
    pairs = zip(first, other, strict=False)
    return 0 < len(first) == len(other) and all(_rest(one) == _rest(two) for one, two in pairs)


def _rest(thing: OptionItem) -> dict[str, Any]:
    """Return the values of a thing that cannot be axes."""
    names = {one.name for one in thing.axes()}
    return {name: value for name, value in thing.values.items() if name not in names}


def _templates(kind: type[OptionItem], value: object) -> Iterator[_Template]:
    """Yield the things of a list, whose numbers may have several values."""
    if isinstance(value, str):
        yield from (_of_text(kind, one) for one in re.split(kind.between, value) if value.strip())
    elif isinstance(value, Mapping):
        yield _of_table(kind, value)
    elif isinstance(value, Iterable):
        yield from (one for each in value for one in _templates(kind, each))
    else:
        yield _Template(kind, value)


def _of_text(kind: type[OptionItem], text: str) -> _Template:
    rest, axes, known = [], [], _axes_by_name(kind)
    for word in re.split(WITHIN, text):
        name, equals, numbers = word.partition("=")
        own = option_name(name.strip())
        option = known.get(own)
        if option and equals and re.search("[:,]", numbers):
            axes.append((option.name, _distinct(parse_numbers(numbers, option))))
        elif equals and ":" in numbers and any(own == one.name for one in kind.options()):
            raise UsageError(
                f"{name} of {kind.place({})} is '{shortened(numbers)}', but has one value in a "
                f"scan; numbers that may vary are "
                f"{in_words([one.written or one.name for one in kind.axes()])}."
            )
        else:
            rest.append(word.partition(":")[0])
    return _Template(kind, kind.glued.join(rest), axes)


def _of_table(kind: type[OptionItem], table: Mapping[str, object]) -> _Template:
    rest, axes, known = {}, [], _axes_by_name(kind)
    for key, value in table.items():
        option = known.get(option_name(str(key).strip()))
        words = ",".join(map(str, value)) if isinstance(value, list | tuple) else value
        if option and isinstance(words, str):
            axes.append((option.name, _distinct(parse_numbers(words, option))))
        else:
            rest[key] = value
    return _Template(kind, rest, axes)


def _axes_by_name(kind: type[OptionItem]) -> dict[str, Option]:
    names = {one.name for one in kind.axes()}
    return {name: one for name, one in kind.placed({}).items() if name in names}


def _distinct(values: Iterable[float]) -> tuple[float, ...]:
    return tuple(dict.fromkeys(values))
