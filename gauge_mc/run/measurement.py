"""Measurements of a run: an observable, the interval, and the options of the observable."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gauge_mc import defaults
from gauge_mc.errors import UsageError
from gauge_mc.quoting import quoted, shortened

NO_MEASUREMENT = "none"
"""The measurements of a run that measures nothing."""

MAX_UPDATES = 10**12
"""Largest number of updates of a kind, and of configurations."""

EVERY = "every"
"""Key of the interval in the table of an observable in a run card."""


@dataclass(frozen=True)
class Measurement:
    """An observable and the interval between its measurements.

    Raises
    ------
    UsageError
        If `every` is below 1.
    """

    observable: str
    """Name of an observable."""
    every: int = 1
    """Updates from one measurement to the next, counted from the end of thermalisation."""
    options: tuple[str, ...] = ()
    """Options of the observable as text, such as ``to=6.5``, or ``slices`` for a flag."""

    def __post_init__(self) -> None:
        if not 1 <= self.every <= MAX_UPDATES:
            raise UsageError(
                f"measure: {self.observable} cannot be measured after each {self.every} updates; "
                f"choose an interval from 1 to {MAX_UPDATES}."
            )

    @classmethod
    def parse(cls, text: str) -> Measurement:
        """Read a measurement from text.

        The text is a name; a name and an interval, as in ``polyakov:10``; or both followed by
        options of the observable, as in ``flow:50:to=6.5:slices``. After the interval, a colon
        before a digit belongs to the value of an option, as in
        ``wilson-loops:20:smear=ape:0.2x25``.
        """
        name, colon, rest = text.partition(":")
        words = re.split(r":(?![0-9])", rest) if colon else []
        name, *more = (word.strip() for word in (name, *words))
        if more and not re.fullmatch("[0-9]{1,18}", more[0]):
            raise UsageError(
                f"measure: '{shortened(text)}' is not of the form OBSERVABLE:UPDATES, such as "
                f"{defaults.MEASURE[0]}:10, or OBSERVABLE:UPDATES:OPTION=VALUE."
            )
        return cls(name, int(more[0]) if more else 1, tuple(more[1:]))

    @classmethod
    def of_table(cls, name: str, table: object) -> Measurement:
        """Return a measurement from a table of a run card, or from an interval."""
        options = dict(table) if isinstance(table, Mapping) else {EVERY: table}
        every = options.pop(EVERY, 1)
        if isinstance(every, bool) or not isinstance(every, int):
            raise UsageError(f"measure.{name}: every is {quoted(every)}; give a whole number.")
        words = (_word(name, key, value) for key, value in options.items())
        return cls(name, every, tuple(word for word in words if word))

    def __str__(self) -> str:
        if self.every == 1 and not self.options:
            return self.observable
        return ":".join((self.observable, str(self.every), *self.options))


def _word(observable: str, key: str, value: object) -> str:
    """Return an option as text; a flag that is off is empty."""
    name = key.replace("-", "_")
    if isinstance(value, bool):
        return name if value else ""
    if isinstance(value, list | tuple):
        return f"{name}={','.join(map(str, value))}"
    if isinstance(value, int | float | str):
        return f"{name}={value}"
    raise UsageError(f"measure.{observable}: {key} is {quoted(value)}; give a number or text.")


ADDING = "+"
"""Beginning of the text of measurements that are added to the default ones."""


class AddedMeasurements(tuple[Measurement, ...]):
    """Measurements beside the default ones, which depend on the action."""

    def beside(self, usual: Iterable[Measurement]) -> tuple[Measurement, ...]:
        """Return them and the default ones, of which they replace those of the same observable."""
        entries = {x.observable: x for x in (*usual, *self)}
        return tuple(entries[name] for name in sorted(entries))


def measurements(value: object) -> tuple[Measurement, ...]:
    """Read measurements from a list, a mapping, text with commas, or `NO_MEASUREMENT`."""
    if isinstance(value, AddedMeasurements):
        return value
    if isinstance(value, Mapping):
        tables = [Measurement.of_table(name, table) for name, table in value.items()]
    elif isinstance(value, list | tuple):
        tables = [x if isinstance(x, Measurement) else Measurement.parse(str(x)) for x in value]
    elif isinstance(value, str) and value.startswith(ADDING):
        return AddedMeasurements(measurements(value[len(ADDING) :]))
    elif isinstance(value, str):
        # Not within wilson-loops:10:iterations=0,25, or wilson-loops:10:smear=stout:0.1,exclude=xt.
        words = re.split(r",(?![0-9]|\w+=)", value)
        tables = [] if words == [NO_MEASUREMENT] else [Measurement.parse(word) for word in words]
    else:
        raise ValueError("text, a list, or a table")
    by_name = {item.observable: item for item in tables}
    if len(by_name) < len(tables):
        raise UsageError(f"measure: '{','.join(map(str, tables))}' names an observable twice.")
    return tuple(by_name[name] for name in sorted(by_name))


def is_due(updates: int, every: int) -> bool:
    """Return whether something that happens at an interval is due."""
    return updates > 0 and updates % every == 0
