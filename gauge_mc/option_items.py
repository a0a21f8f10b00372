"""Lists of things that have options of their own, such as the quarks of a run, as one option.

In text the things have commas between them, and each consists of words with colons between them, as
in ``omf2:5,omf2:6`` or ``wilson:kappa=0.15:flavours=2``. Run cards have a table for each of them,
and Python also takes mappings or objects.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar, Self, TypeVar

from gauge_mc.errors import UsageError
from gauge_mc.options import READ, Option, check_options, flag_of, parse_options
from gauge_mc.quoting import quoted, shortened
from gauge_mc.registry import Registry, in_words, words_in_any_case


class OptionItem:
    """A thing with values of its options. Two are equal if they have the same text.

    Parameters
    ----------
    *leading : object
        Values of the options that `leading` names.
    **options : object
        Values of options by name.

    Attributes
    ----------
    kind : str
        What it is, for messages.
    flag : str
        Option of the command line whose value it is, for messages; empty to name the kind instead.
    leading : tuple of str
        Names of the options whose values come first in text, without their names.
    between, within : str
        Regular expressions of what is between several such things, and between the words of one.
    joined, glued : str
        The same as they are written.
    values : dict
        Values of the options by name. Those that were not given have their usual values.
    given : frozenset of str
        Names of the options that were given.

    Raises
    ------
    UsageError
        If an option is unknown or invalid.
    """

    kind: ClassVar[str]
    flag: ClassVar[str] = ""
    leading: ClassVar[tuple[str, ...]] = ()
    between: ClassVar[str] = r",(?![-+.0-9]|\w+=)"
    within: ClassVar[str] = r":|,(?=\w+=)"
    joined: ClassVar[str] = ","
    glued: ClassVar[str] = ":"

    def __init__(self, *leading: object, **options: object) -> None:
        named = {**dict(zip(self.leading, leading, strict=False)), **options}
        declared = self.placed(named)
        checked = check_options(declared.values(), named, self.place(named))
        for name, value in checked.items():
            each = declared[name].each
            if each is not None and not (isinstance(value, str) and value.isalpha()):
                checked[name] = declared[name].numbers(value, READ[each])
        usual = {name: x.usual for name, x in declared.items() if x.usual is not None}
        self.values: dict[str, Any] = {**usual, **checked}
        self.given = frozenset(checked)
        self.check()

    @classmethod
    def options(cls) -> tuple[Option, ...]:
        """Return the options, in the order in which they are written."""
        raise NotImplementedError

    @classmethod
    def axes(cls) -> tuple[Option, ...]:
        """Return the options that may have several values in a scan; by default none."""
        return ()

    @classmethod
    def place(cls, values: Mapping[str, object]) -> str:
        """Return words for a thing in messages, such as ``--quark domain-wall``."""
        if not cls.flag:
            return f"a {cls.kind}"
        first = values.get(cls.leading[0]) if cls.leading else None
        return f"{cls.flag} {shortened(first)}" if isinstance(first, str) else cls.flag

    @classmethod
    def placed(cls, values: Mapping[str, object]) -> dict[str, Option]:
        """Return the options by name, as messages name them; see `place`."""
        place = cls.place(values)
        return {option.name: replace(option, place=place) for option in cls.options()}

    def check(self) -> None:
        """Check values that depend on each other."""

    @property
    def numbers(self) -> dict[Option, float]:
        """The values of `axes` that are given and not usual."""
        pairs = ((axis, self.values.get(axis.name)) for axis in self.axes())
        return {x: value for x, value in pairs if value not in (None, x.usual)}

    def __getattr__(self, name: str) -> Any:
        """Return the value of an option; None if it was not given and has no usual value."""
        if name.startswith("_") or name == "values":
            raise AttributeError(name)
        if name not in (option.name for option in self.options()):
            raise AttributeError(f"a {self.kind} has no option {name}", name=name)
        return self.values.get(name)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a thing from text, in which names of options may have capital letters."""
        declared = {option.name: option for option in cls.options()}
        words = [
            re.sub(r"\w+(?==)", lambda name: name[0].lower(), word.strip())
            for word in re.split(cls.within, text)
        ]
        places = [declared[name] for name in cls.leading]
        named = 0
        while named < len(words) and places and not _is_named(words[named], declared):
            place, integer = places.pop(0), bool(re.fullmatch("[0-9]+", words[named]))
            if integer == (place.kind is int):
                words[named] = f"{place.name}={words[named]}"
                named += 1
        for word in words:
            if not _is_named(word, declared):
                names = [x.written or x.name.replace("_", "-") for x in declared.values()]
                raise UsageError(
                    f"'{shortened(word)}' in '{shortened(text)}' is not of the form OPTION=VALUE; "
                    f"a {cls.kind} has {in_words(names)}."
                )
        pairs = [word.partition("=") for word in words]
        first = {
            key.strip(): value.strip() for key, _, value in pairs if key.strip() in cls.leading
        }
        return cls(**parse_options(cls.placed(first).values(), words, cls.place(first), ""))

    @classmethod
    def several(cls, value: object) -> Items[Self]:
        """Return the things that text, a table, an object, or a list of these stands for."""
        if isinstance(value, str):
            texts = re.split(cls.between, value) if value.strip() else []
            return Items(map(cls.parse, texts))
        if isinstance(value, Mapping):
            return Items([cls(**{option_name(key): x for key, x in value.items()})])
        if isinstance(value, cls):
            return Items([value])
        if isinstance(value, Iterable):
            return Items(x for each in value for x in cls.several(each))
        raise UsageError(f"{quoted(value)} is not a {cls.kind}; give text, or a table.")

    def __str__(self) -> str:
        return self._text

    @cached_property
    def _text(self) -> str:
        words, options = [], self.options()
        for option in options:
            value = self.values.get(option.name)
            if value is None or value == option.usual:
                continue
            numbers = isinstance(value, tuple) and not isinstance(value, Items)
            text = ",".join(map(str, value)) if numbers else str(value)
            bare = option.name in self.leading
            words.append(
                text if bare else option.name if value is True else f"{option.name}={text}"
            )
        return self.glued.join(words)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and str(other) == str(self)

    def __hash__(self) -> int:
        return hash(str(self))


Item = TypeVar("Item", bound=OptionItem)


class Items(tuple[Item, ...]):
    """Things of one kind, as the value of an option. Their text is what `several` reads."""

    __slots__ = ()

    @property
    def numbers(self) -> dict[str, float]:
        """The numbers of all things by name, from the second thing on with its number behind."""
        return {
            f"{option.name}{n if n > 1 else ''}": value
            for n, x in enumerate(self, 1)
            for option, value in x.numbers.items()
        }

    def __str__(self) -> str:
        return self[0].joined.join(map(str, self)) if self else ""


def option_name(key: object) -> str:
    """Return the name of an option for a key of a table."""
    return str(key).replace("-", "_").lower()


def _is_named(word: str, options: Mapping[str, Option]) -> bool:
    """Return whether a word gives an option by name."""
    return "=" in word or word.replace("-", "_") in options


class Configurable:
    """A thing of a kind. Instances contain the values of its options.

    Two instances are equal if they have the same class and the same values.
    """

    kind: ClassVar[str]
    """Name of the kind, in messages and as an option of the command line."""
    name: str
    """Name by which the user chooses the thing."""
    options: tuple[Option, ...] = ()
    """Its options, numbers or words. One without a usual value must be given."""
    _given: Mapping[str, Any] = {}

    @property
    def values(self) -> dict[str, Any]:
        """Values of the options by name; those that must be given are missing until they are."""
        usual = {option.name: option.usual for option in self.options if option.usual is not None}
        return {**usual, **self._given}

    @property
    def written(self) -> dict[str, str | int | float]:
        """The values as run cards state them, those that are lists of things as text."""
        lists = {option.name for option in self.options if option.items}
        return {name: str(value) if name in lists else value for name, value in self.values.items()}

    def with_options(self, **values: object) -> Self:
        """Return the thing with values of its options, by name."""
        checked = check_options(self.options, values, f"the {self.kind} {self.name}")
        if not checked:
            return self
        configured = type(self)()
        configured._given = {**self.values, **checked}
        return configured

    def check(self) -> Self:
        """Return this thing if it has everything that it needs."""
        for option in self.options:
            if option.name not in self.values:
                raise UsageError(
                    f"The {self.kind} {self.name} needs {option.flag} {option.metavar}: "
                    f"{option.help}"
                )
        return self

    @property
    def changed(self) -> dict[Option, Any]:
        """The options that do not have their usual values, with their values."""
        values = self.values
        return {
            option: values[option.name]
            for option in self.options
            if option.name in values and values[option.name] != option.usual
        }

    @property
    def stated(self) -> dict[str, str]:
        """The name and the options that are not usual, for headers of tables."""
        return {self.kind: self.name, **{o.name: str(v) for o, v in self.changed.items()}}

    def __str__(self) -> str:
        """Return the thing as text, such as ``rectangle:c1=-0.1``, which `chosen` reads."""
        return ":".join([self.name, *(f"{o.name}={v}" for o, v in self.changed.items())])

    @property
    def said(self) -> str:
        """The thing in words, such as ``rectangle, c₁ = -0.1``."""
        return ", ".join([self.name, *(name.said(value) for name, value in self.changed.items())])

    def tags(self, usual: str) -> list[str]:
        """Return words for names of directories: its name and its options, unless usual."""
        changed = self.changed
        numbers = [f"{value:.10g}" for name, value in changed.items() if name.usual is None]
        words = [] if self.name == usual and not numbers else [":".join([self.name, *numbers])]
        return words + [o.tagged(v) for o, v in changed.items() if o.usual is not None]

    def __repr__(self) -> str:
        return f"<{self.kind} {self}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Configurable) and self._key == other._key

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _key(self) -> tuple[object, ...]:
        return type(self), *self.values.items()

    @cached_property
    def _hash(self) -> int:
        return hash(self._key)


C = TypeVar("C", bound=Configurable)


def chosen(registry: Registry[C], text: str) -> C:
    """Read one thing of a kind: a name, or a name and options as in ``rectangle:c1=-0.1``.

    A value without a name, as in ``rectangle:-0.1``, is that of the option that must be given.
    Versions up to 0.2 wrote actions like this.
    """
    name, *words = words_in_any_case(text, registry).split(":")
    registry.check(name, registry.kind)
    thing, owner = registry[name], f"The {registry.kind} {name}"
    options = {option.name: option for option in thing.options}
    names = [option.name for option in thing.options if option.usual is None]
    values: dict[str, object] = {}
    for word in _joined(words, options):
        listed = options.get(word.partition("=")[0].strip())
        apart = word.partition if listed and listed.items else word.rpartition
        key, equals, value = apart("=")
        if not equals and (not names or values):
            raise UsageError(
                f"{owner} has no parameter without a name; leave ':{shortened(word)}' out, or "
                f"write {name}:OPTION=NUMBER."
            )
        option = key.strip() if equals else names[0]
        kind = options[option].kind if option in options else str
        try:
            values[option] = READ[kind](value)
        except ValueError:
            raise UsageError(
                f"{owner} has the option {flag_of(option)} with the value '{shortened(value)}', "
                f"which is not a number; write {name}:{option}=NUMBER."
            ) from None
    return thing.with_options(**values)


def _joined(words: list[str], options: Mapping[str, Option]) -> list[str]:
    """Return the words, with those that belong to a list of things with options joined to it."""
    joined: list[str] = []
    for word in words:
        last = options.get(joined[-1].partition("=")[0].strip()) if joined else None
        if last and last.items and word.partition("=")[0].strip() not in options:
            joined[-1] += f":{word}"
        else:
            joined.append(word)
    return joined
