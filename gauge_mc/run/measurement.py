"""Measurements of a run: an observable, the interval, and the options of the observable.

User-defined observables are functions of a field that are measured like any other observable.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import numpy as np

from gauge_mc import defaults
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import UsageError
from gauge_mc.fields.field import Field
from gauge_mc.files.columns import INDICES, SWEEP, TableColumns
from gauge_mc.observables import OBSERVABLES, Measurer, Observable, Record, table_name
from gauge_mc.options import Option, check_options, merged, parse_options, within
from gauge_mc.quoting import quoted, shortened
from gauge_mc.registry import in_words
from gauge_mc.smearing import smear_option, smearing_owners

if TYPE_CHECKING:
    from gauge_mc.run.parameters import Parameters


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


Function = Callable[[Field], Any]
"""Function of a field that returns a number, a record or an array.

A record is a mapping, a data class or a named tuple of numbers."""

CustomObservable = Function | type[Observable] | Observable
"""A user-defined observable."""

ObservableLike = CustomObservable | tuple[Any, int]
"""A user-defined observable, or a pair of an observable and the updates between measurements."""


class FunctionObservable(Observable):
    """An observable that is computed by a function of a field.

    A number is written to the column ``value``, or to ``re`` and ``im`` if it is complex. The
    entries of a record are written to columns of the same names. An array is written in one row per
    element, with its indices in the columns ``i``, ``j``, … before the value.

    Attributes
    ----------
    name : str
        Name of the function.
    columns : TableColumns
        Columns of the table, known only after `for_ensemble` or the first measurement.
    """

    def __init__(self, function: Function) -> None:
        name = getattr(function, "__name__", type(function).__name__)
        self.name = name  # type: ignore[misc]
        self._function = function
        self._records = 0

    def for_ensemble(
        self, metadata: Mapping[str, str], field: Field | None = None
    ) -> FunctionObservable:
        """Call the function once on a field, to determine the columns and the number of records."""
        if field:
            self._determine(*_table_of(self._function(field), self.name))
        return self

    def _determine(self, columns: tuple[str, ...], rows: list[Record]) -> None:
        """Take the columns and the number of records from a result of the function."""
        self.columns = TableColumns.of_function(self.name, columns)  # type: ignore[misc]
        self._records = len(rows)

    @property
    def records(self) -> int:
        """Number of records per measurement; 0 if it is not known yet."""
        return self._records

    @property
    def text(self) -> str:
        """Source text of the function; empty if it is not known."""
        try:
            return inspect.getsource(self._function)
        except (OSError, TypeError):
            return ""

    @property
    def header(self) -> dict[str, str]:
        """Header of the table: name of the function and first line of its docstring."""
        first = (inspect.getdoc(self._function) or "").partition("\n")[0].strip()
        text = "".join(c for c in first if c.isprintable())
        return {
            "observable": self.name,
            "normalisation": text or "that of the function",
            "units": "those of the function",
        }

    def measurer(self, like: Field) -> Measurer:
        """Return a function that calls the user's function and converts its result to records."""

        def measure(field: Field) -> list[Record]:
            columns, rows = _table_of(self._function(field), self.name)
            if not self._records:
                self._determine(columns, rows)
            if columns != self.columns.names or len(rows) != self._records:
                raise UsageError(
                    f"The observable {self.name} returned {len(rows)} rows of {', '.join(columns)} "
                    f"after {self._records} rows of {', '.join(self.columns.names)}; it must "
                    "return the same number of values every time."
                )
            return rows

        return measure


def _table_of(result: Any, name: str) -> tuple[tuple[str, ...], list[Record]]:
    """Convert the result of a function to columns and rows."""
    if dataclasses.is_dataclass(result) and not isinstance(result, type):
        result = dataclasses.asdict(result)
    elif hasattr(result, "_asdict"):
        result = result._asdict()
    if isinstance(result, Mapping):
        cells = [cell for key, value in result.items() for cell in _cells(value, str(key), name)]
        columns = tuple(column for column, _ in cells)
        reserved = {SWEEP, *INDICES}
        for column in columns:
            plain = column.isprintable() and column.strip() == column and "," not in column
            if not plain or not column or column.startswith("#") or column in reserved:
                raise UsageError(
                    f"The observable {name} cannot have a column '{column}'; choose a name without "
                    f"commas or surrounding spaces, other than {in_words(sorted(reserved), 'or')}."
                )
        if not columns or len(set(columns)) < len(columns):
            raise UsageError(
                f"The observable {name} must return at least one value, with distinct names."
            )
        return columns, [tuple(value for _, value in cells)]
    array = np.asarray(result)
    if array.ndim == 0:
        cells = _cells(array.item(), "", name)
        return tuple(column for column, _ in cells), [tuple(value for _, value in cells)]
    if array.ndim > len(INDICES) or array.dtype.kind not in "biufc" or not array.size:
        raise UsageError(f"The observable {name} must return numbers, not {array.dtype}.")
    indexed = list(np.ndenumerate(array))
    last = tuple(column for column, _ in _cells(indexed[0][1].item(), "", name))
    rows: list[Record] = [
        (*map(int, index), *(cell for _, cell in _cells(value.item(), "", name)))
        for index, value in indexed
    ]
    return (*INDICES[: array.ndim], *last), rows


def _cells(value: Any, key: str, name: str) -> list[tuple[str, int | float]]:
    """Return the columns for a number with their values: one, or two if it is complex."""
    number = value.item() if isinstance(value, np.generic) else value
    if isinstance(number, complex):
        prefix = f"{key}_" if key else ""
        return [(f"{prefix}re", number.real), (f"{prefix}im", number.imag)]
    if not isinstance(number, int | float):
        raise UsageError(f"The observable {name} must return numbers, not {type(number).__name__}.")
    integral = isinstance(number, int) and not isinstance(number, bool)
    return [(key or "value", number if integral else float(number))]


def observables_of(
    parameters: Parameters,
    customs: Iterable[ObservableLike] = (),
    table: Callable[[str], Path] | None = None,
) -> dict[Measurement, Observable]:
    """Return what a run measures, as in the tables that it has, whose paths `table` returns."""
    named = {x.observable: y for x, y in user_defined(parameters.lattice, customs).items()}
    observables = {}
    for item in parameters.measure:
        name = item.observable
        if name not in named and name not in OBSERVABLES:
            raise UsageError(
                f"The run measures '{name}', an observable defined in Python; continue the run "
                "from Python with the same observables."
            )
        custom = named.get(name)
        observable = (
            custom.for_ensemble(parameters.provenance)
            if custom
            else observable_along(item, parameters)
        )
        observables[item] = observable.as_in(table(name)) if table else observable
    return observables


def user_defined(
    lattice: Lattice, customs: Iterable[ObservableLike]
) -> dict[Measurement, Observable]:
    """Return the user-defined observables of a run by their measurement."""
    observables: dict[Measurement, Observable] = {}
    for item in customs:
        custom, every = item if isinstance(item, tuple) else (item, 1)
        observable = observable_of(custom, lattice)
        if table_name(observable.name) in {table_name(x.observable) for x in observables}:
            raise _two_named(observable.name)
        observables[Measurement(observable.name, every)] = observable
    return observables


def observable_along(item: Measurement, parameters: Parameters) -> Observable:
    """Return the registered observable of a measurement of a run, with its options."""
    kind, declared = OBSERVABLES[item.observable], options_of_observable(item.observable)
    options = parse_options(declared, item.options, item.observable)
    observable = kind.for_lattice(parameters.lattice, **options).for_group(parameters.group)
    observable = observable.for_ensemble(parameters.provenance)
    if not observable.records:
        raise UsageError(
            f"measure: '{item}' depends on a stored configuration; measure it later, on stored "
            "configurations, or choose other options."
        )
    if parameters.strict and observable.strict and observable.loose:
        raise UsageError(
            f"measure: --strict does not hold for {item.observable} with {observable.loose} yet; "
            f"leave that out of '{item}', or measure it later, on stored configurations."
        )
    if parameters.strict and not observable.strict:
        words = in_words([name for name, x in OBSERVABLES.items() if x.strict], "and")
        raise UsageError(
            f"measure: --strict does not hold for '{item}' yet, but for {words}; measure it "
            "later, on stored configurations."
        )
    return observable


def options_of_observable(name: str) -> tuple[Option, ...]:
    """Return the options of a registered observable, with those of smearings if it has some."""
    kind = OBSERVABLES[name]
    smearing = [("--smear", (smear_option(),)), *smearing_owners()] if kind.smears else []
    return merged([*kind.owners(), *smearing])


def check_folders(file: Path, parameters: Parameters, values: Mapping[str, object]) -> None:
    """Refuse folders elsewhere to which a run writes measurements, unless the user states them."""
    advice = f"add --measure {quote(str(parameters.values()['measure']))} to allow it"
    for measurement in () if "measure" in values else parameters.measure:
        options = (
            options_of_observable(measurement.observable)
            if measurement.observable in OBSERVABLES
            else ()
        )
        within(Path(), options, measurement.options, f"{measurement.observable} in {file}", advice)


def observable_of(custom: CustomObservable, lattice: Lattice, **options: Any) -> Observable:
    """Return a user-defined observable for fields on a lattice."""
    if isinstance(custom, type) and issubclass(custom, Observable):
        observable = custom.for_lattice(lattice, **options)
    elif isinstance(custom, Observable) or callable(custom):
        observable = custom if isinstance(custom, Observable) else FunctionObservable(custom)
        check_options((), options, observable.name)
    else:
        raise UsageError(f"{custom!r} is not an observable; pass a function of a field.")
    name = observable.name
    ours = (x for x in OBSERVABLES if not OBSERVABLES.package(x))
    registered = {table_name(our): our for our in ours}.get(table_name(name))
    if registered and not isinstance(observable, OBSERVABLES[registered]):
        raise _two_named(name)
    if not name.replace("-", "_").isidentifier():
        raise UsageError(
            f"The observable '{name}' needs a name of letters, digits and underscores; "
            "set its __name__, or define it with def."
        )
    return observable


def _two_named(name: str) -> UsageError:
    return UsageError(f"There are two observables named '{name}'; rename one.")
