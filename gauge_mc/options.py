"""Declarations of numbers: parameters, options, columns of tables, fields of results.

A number is declared once, in the module of the thing that has it. The command line, run cards,
Python, headers of tables, axes of plots and the reference documentation follow from that.
"""

from __future__ import annotations

import difflib
import hashlib
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Any

from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.quoting import N, listed, number, quoted, shortened, whole_number
from gauge_mc.registry import nearest, words_in_any_case

LONGEST_NAME = 80
"""Largest number of characters of a list in the name of a directory."""

LARGEST = 2**63
"""Whole numbers of this absolute value or more are refused."""


@dataclass(frozen=True)
class Number:
    """A quantity with a name and a type."""

    name: str
    """Name in Python, in cards, tables and JSON, with underscores."""
    kind: type[Any] = float
    """Type of the value: ``int``, ``float``, ``str`` or ``bool``."""
    help: str = ""
    """Short description, for help texts and the reference documentation."""
    _: KW_ONLY
    symbol: str = ""
    """Symbol in text, such as ``β``; by default the name."""
    unit: str = ""
    """Unit, such as ``1/a``; empty if the quantity is dimensionless."""
    axis: str = ""
    """Label of an axis, in Matplotlib's mathematical text; by default the symbol."""

    @property
    def short(self) -> str:
        """The symbol, or the name if there is none."""
        return self.symbol or self.name

    @property
    def label(self) -> str:
        """Label of an axis, with the unit."""
        return f"{self.axis or self.short} [{self.unit}]" if self.unit else self.axis or self.short


@dataclass(frozen=True)
class Option(Number):
    """A number that the user can give.

    The command line has dashes in place of the underscores of its name.
    """

    _: KW_ONLY
    default: str = ""
    """The default in words, for help texts."""
    metavar: str = ""
    """Placeholder of the value in help texts."""
    repeated: bool = False
    """Whether the option may be given several times. Its value is then a tuple of str."""
    least: float = -math.inf
    """Smallest number, also of each number in a text that consists of numbers."""
    most: float = math.inf
    """Largest number, in the same way. What else a value has to satisfy is checked by the owner of
    the option.
    """
    inside: bool = False
    """Whether `least` and `most` themselves are not allowed."""
    usual: Any = None
    """The value if the option is not given; None if there is none, or if it depends on others."""
    tag: str = ""
    """Abbreviation that precedes the value in names of directories; by default the name."""
    panel: str = ""
    """Panel of the help text."""
    choices: tuple[str, ...] = ()
    """Words that the value may be, or with which it may begin. A shell completes them, and they are
    taken in any case; the owner of the option checks the value.
    """
    each: type[int] | type[float] | None = None
    """Type of the numbers, if a text consists of numbers with commas between them. Python also
    gives them as a number or a sequence of numbers, and the value is then a tuple.
    """
    rows: bool = False
    """Whether there may be several rows of such numbers, with slashes between them; a sequence of
    sequences in Python.
    """
    accepts: type[Any] | None = None
    """Class whose objects Python also gives in place of a text that may be given several times."""
    instead: tuple[str, ...] = ()
    """Words that may be given instead of a number, such as ``auto``."""
    open: bool = False
    """Whether other words than the choices can be given."""
    separator: str = ""
    """Character between the choices of a value that is a list; empty if there is one choice."""
    items: type[Any] | None = None
    """Subclass of `gauge_mc.option_items.OptionItem`, if the value is a list of such things, whose
    text may contain colons.
    """
    folder: bool = False
    """Whether the value names a folder into which files are written."""
    written: str = ""
    """Name within a text of several options, such as ``M5``; by default the name."""
    place: str = ""
    """Thing in whose text the value stands, such as ``--quark domain-wall``; empty for an option of
    a command.
    """

    def __post_init__(self) -> None:
        if not isinstance(self.default, str):
            raise TypeError(
                f"the default of the option {self.name} is {quoted(self.default)}, which is not "
                "text; give a value as usual="
            )

    @property
    def default_in_words(self) -> str:
        """The default for help texts; empty if there is none."""
        if self.default or self.usual is None:
            return self.default
        return f"{self.usual:g}" if isinstance(self.usual, float) else str(self.usual)

    def is_usual(self, value: object) -> bool:
        """Return whether a value, which may be text, is the usual one; an empty list always is."""
        return value == self.usual or (self.items is not None and not value)

    def said(self, value: float | str) -> str:
        """Return a value with the symbol, such as ``ξ₀ = 2``."""
        return f"{self.short} = {_said(value)}"

    def tagged(self, value: float | str) -> str:
        """Return a value as names of directories state it, a word as it is."""
        if self.items:
            return _as_name(str(value))
        return value if isinstance(value, str) else f"{self.tag or self.name}{value:.12g}"

    def drawn(self, value: float | str) -> str:
        """Return a value with the symbol, for figures."""
        return f"{self.axis or self.short} = {_said(value)}"

    @property
    def placeholder(self) -> str:
        """Placeholder of the value in help texts; empty for a flag."""
        if self.kind is bool:
            return ""
        return self.metavar or "|".join(self.choices) or f"<{self.kind.__name__}>"

    def read(self, text: str) -> Any:
        """Return the value that a text stands for: a number, a text, or a word instead of a number.

        Raises
        ------
        ValueError
            If it is not a number, and a number is needed.
        """
        word = str(text).strip().lower()
        if word in self.instead:
            return word
        try:
            return READ[self.kind](text)
        except ValueError as error:
            if not self.instead:
                raise
            words = " or ".join((self._kind_in_words, *self.instead))
            raise ValueError(f"'{shortened(text)}' is not {words}.") from error

    def same_meaning(self, option: Option) -> bool:
        """Return whether another option differs from this one in its default at most."""
        return self == option or replace(self, usual=None, default=OWN_DEFAULT) == replace(
            option, usual=None, default=OWN_DEFAULT
        )

    @property
    def flag(self) -> str:
        """Name on the command line, such as ``--r-max``."""
        return flag_of(self.name)

    @property
    def called(self) -> str:
        """Name in messages: the flag, or what the user writes within the text of another option."""
        return f"{self.written or self.name} of {self.place}" if self.place else self.flag

    def checked(self, value: Any) -> Any:
        """Return a value of the right type, with the choices as they are written.

        Raises
        ------
        UsageError
            If it is a number that is not finite, or outside of the bounds; or if it is a text that
            is empty, or has characters that no table can contain.
        """
        if isinstance(value, str):
            if not value.strip():
                raise UsageError(f"{self.called} is empty; give a value, or leave the option out.")
            if not value.isprintable():
                raise UsageError(f"{self.called} has unprintable characters; choose another value.")
            return words_in_any_case(value, self.choices, self.separator)
        if not isinstance(value, bool):
            finite = abs(value) < LARGEST if isinstance(value, int) else math.isfinite(value)
            bounded = self.least <= value <= self.most
            if not finite or not bounded or (self.inside and value in (self.least, self.most)):
                text = f"{value:g}" if isinstance(value, float) else quoted(value)
                raise UsageError(f"{self.called} is {text}; {self.wanted}.")
        return value

    def numbers(self, text: str | tuple[N, ...], read: Callable[[str], N]) -> tuple[N, ...]:
        """Return the numbers that a text consists of, with commas or semicolons between them.

        Parameters
        ----------
        text : str or tuple
            A tuple has been checked, and is returned as it is.
        read : callable
            `gauge_mc.quoting.number` or `gauge_mc.quoting.whole_number`.

        Raises
        ------
        UsageError
            If something is not a number, is outside of the bounds, or is missing.
        """
        if not isinstance(text, str):
            return text
        try:
            values = listed(text, read)
        except ValueError:
            raise UsageError(
                f"{self.called} is '{shortened(text)}'; give one number, or several with commas "
                "between them."
            ) from None
        for x in values:
            self.checked(x)
        return values

    @property
    def _kind_in_words(self) -> str:
        return "a whole number" if self.kind is int else "a number"

    @property
    def wanted(self) -> str:
        """The allowed numbers, as the end of a message."""
        kind_in_words = self._kind_in_words
        least, most = (_bound(bound) for bound in (self.least, self.most))
        if math.isinf(self.least) and math.isinf(self.most):
            return f"give {kind_in_words}"
        if math.isinf(self.most):
            return f"give {kind_in_words} of at least {least}"
        if self.inside:
            return (
                f"give {kind_in_words} between {least} and {most}, which are not allowed themselves"
            )
        return f"give {kind_in_words} from {least} to {most}"


def _as_name(text: str) -> str:
    """Return a list of things as a word for names of directories, with a hash if it is long."""
    name = re.sub(r"[^\w.,+-]+", "_", text.replace("=", ""))
    if len(name) <= LONGEST_NAME:
        return name
    return f"{name[: LONGEST_NAME - 9]}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def _said(value: float | str) -> str:
    """Return a number as text, or a word as it is."""
    return str(value) if isinstance(value, str | tuple) else f"{value:g}"


def _bound(bound: float) -> str:
    """Return a bound as text, a whole number with all its digits."""
    integer = math.isfinite(bound) and bound == int(bound)
    return str(int(bound)) if integer else f"{bound:g}"


def flag_of(name: str) -> str:
    """Return the name of an option on the command line, given its name in Python."""
    return f"--{name.replace('_', '-')}"


OWN_DEFAULT = "its own for each"
"""The default in words of an option that several things have with different defaults."""

Owners = Iterable[tuple[str, Iterable[Option]]]
"""The things that declare options, as named in messages, and their options."""


def merged(owners: Owners) -> tuple[Option, ...]:
    """Return the options of several things that are given together, each once.

    Several things may share one option, also with different defaults: it then has none here. But
    no two of them may give one name two meanings.
    """
    optionses: dict[str, tuple[Option, str]] = {}
    for owner, options in owners:
        for option in options:
            shared, first = optionses.setdefault(option.name, (option, owner))
            if shared == option:
                continue
            if shared.same_meaning(option):
                optionses[option.name] = replace(shared, usual=None, default=OWN_DEFAULT), first
            else:
                both = f"{first} and {owner}" if first != owner else f"{owner}, twice,"
                raise GaugeError(
                    f"Both {both} declare an option {option.flag}, with different meanings; "
                    "rename one of them."
                )
    return tuple(option for option, _ in optionses.values())


def check_named(name: str, option: Option) -> None:
    """Check that a plug-in has the name of the option that chooses it."""
    if name != option.name:
        raise ValueError(f"has the option {option.name}; give both the same name")


def check_options(
    options: Iterable[Option], values: Mapping[str, object], whose: str
) -> dict[str, Any]:
    """Return the options that were given, with values converted to their types."""
    declared = {option.name: option for option in options}
    converted = {name: value for name, value in values.items() if value is not None}
    for name, value in converted.items():
        if name not in declared:
            raise _unknown(name, declared.values(), whose)
        converted[name] = _converted(declared[name], value)
    return converted


def check_declared(
    options: Iterable[Option], values: Mapping[str, object], place: str = ""
) -> None:
    """Refuse values outside of the bounds that options declare, as constructors do."""
    for option in options:
        value = values.get(option.name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            replace(option, place=place).checked(value)


def _unknown(name: str, options: Iterable[Option], whose: str) -> UsageError:
    """Return the error for an option that does not exist."""
    placed = any(x.place for x in options)
    words = [(x.written or x.name) if x.place else x.flag for x in options]
    flag = name if placed else flag_of(name)
    return UsageError(f"{flag} is not an option of {whose}{nearest(flag, words)}")


IN_WORDS = {int: "a whole number", float: "a number", str: "text", bool: "True or False"}
"""Types of options in words."""


def _converted(option: Option, value: object) -> object:
    """Return a value converted to the type of its option; a float option also accepts an int."""
    kind = option.kind
    if hasattr(value, "tolist"):  # of NumPy
        value = value.tolist()
    if option.repeated:
        values = value if isinstance(value, list | tuple) else (value,)
        objects = (option.accepts,) if option.accepts else ()
        if not all(isinstance(value, (str, *objects)) for value in values):
            raise UsageError(f"{option.called} is {value!r}; give text, or several texts.")
        return tuple(option.checked(value) if isinstance(value, str) else value for value in values)
    if option.each and not isinstance(value, str):
        return _numbers(option, value)
    if option.items:
        return option.items.several(value)
    if isinstance(value, str) and value in option.instead:
        return value
    accepted = (int, float) if kind is float else kind
    if not isinstance(value, accepted) or (isinstance(value, bool) and kind is not bool):
        words = " or ".join((IN_WORDS.get(kind, f"a {kind.__name__}"), *option.instead))
        raise UsageError(f"{option.called} is {quoted(value)}; give {words}.")
    checked = option.checked(value)
    return kind(checked)


def _numbers(option: Option, value: object) -> tuple[object, ...]:
    """Return a number or a sequence of numbers as a tuple of numbers of the right type."""
    items = value if isinstance(value, list | tuple) else (value,)
    accepted = int if option.each is int else (int, float)
    numbers: list[object] = []
    for item in items:
        if option.rows and isinstance(item, list | tuple):
            numbers.append(_numbers(replace(option, rows=False), item))
        elif option.each and isinstance(item, accepted) and not isinstance(item, bool):
            option.checked(item)
            numbers.append(option.each(item))
        else:
            kind = "a whole number" if option.each is int else "a number"
            raise UsageError(f"{option.called} is {quoted(value)}; give {kind}, or several.")
    if not numbers:
        raise UsageError(f"{option.called} is empty; give a value, or leave the option out.")
    return tuple(numbers)


def parse_options(
    options: Iterable[Option],
    words: Iterable[str],
    whose: str,
    where: str = "after the interval between measurements",
) -> dict[str, Any]:
    """Return the options that text such as ``to=6.5`` gives, or ``slices`` for a flag."""
    declared = {option.name: option for option in options}
    values: dict[str, Any] = {}
    for word in _joined(words, declared):
        key, equals, text = word.partition("=")
        name = key.strip().replace("-", "_")
        if name not in declared:
            raise _unknown(name, declared.values(), whose)
        if name in values and not declared[name].repeated:
            form = declared[name].written or name
            raise UsageError(f"{whose} has the option {form} twice; give it once.")
        value = _parsed(declared[name], text.strip(), bool(equals), whose, where)
        values[name] = (*values.get(name, ()), value) if declared[name].repeated else value
    return values


def within(
    folder: Path, options: Iterable[Option], words: Iterable[str], whose: str, advice: str
) -> tuple[str, ...]:
    """Return options as text, in which folders that are written lie in another folder."""
    declared = {option.name: option for option in options}
    texts = []
    for word in _joined(words, declared):
        key, equals, text = word.partition("=")
        name = key.strip().replace("-", "_")
        if equals and name in declared and declared[name].folder:
            path = Path(text.strip())
            if path.is_absolute() or ".." in path.parts:
                raise UsageError(
                    f"{whose} would write to '{shortened(text)}' ({name}), which may lie anywhere; "
                    f"{advice}."
                )
            word = f"{name}={folder / path}"
        texts.append(word)
    return tuple(texts)


def _joined(words: Iterable[str], options: Mapping[str, Option]) -> list[str]:
    """Return the words, with colons that belong to a text, as in ``smear=ape:polar``, put back.

    A word without a value that is like no flag belongs to the text before it.
    """
    joined: list[str] = []
    for word in words:
        option = (
            options.get(joined[-1].partition("=")[0].strip().replace("-", "_")) if joined else None
        )
        flag = word.strip().replace("-", "_")
        stray = "=" not in word and not difflib.get_close_matches(flag, options, n=1)
        if stray and option and option.kind is str:
            joined[-1] += f":{word}"
        else:
            joined.append(word)
    return joined


def _parsed(option: Option, text: str, has_value: bool, whose: str, where: str) -> object:
    """Return the value of an option that is given as text; a flag has none."""
    if option.kind is bool and not has_value:
        return True
    called = option.called if option.place else f"{whose}: {option.flag}"
    name = option.written or option.name
    end = f" {where}" if where else ""
    if option.kind is bool or not has_value:
        requirement = "no value" if option.kind is bool else "a value"
        form = name if option.kind is bool else f"{name}=VALUE"
        raise UsageError(f"{called} needs {requirement}; write {form}{end}.")
    if len(text) > MOST_CHARACTERS:
        raise UsageError(
            f"{option.called} has {len(text)} characters; give at most {MOST_CHARACTERS}{end}."
        )
    try:
        return option.checked(option.read(text))
    except ValueError:
        kind = "a whole number" if option.kind is int else "a number"
        raise UsageError(
            f"{called} is '{shortened(text)}', but needs {kind}; write {name}=VALUE{end}."
        ) from None


READ: Mapping[type[Any], Callable[[str], Any]] = {int: whole_number, float: number, str: str}
"""How values of each type are read from text."""

MOST_CHARACTERS = 100
"""Largest length of the value of an option."""
