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
from gauge_mc.options import READ, Option, check_options, parse_options
from gauge_mc.quoting import quoted, shortened
from gauge_mc.registry import in_words


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
        given = {**dict(zip(self.leading, leading, strict=False)), **options}
        known = self.placed(given)
        checked = check_options(known.values(), given, self.place(given))
        for name, value in checked.items():
            each = known[name].each
            if each is not None and not _is_word(value):
                checked[name] = known[name].numbers(value, READ[each])
        usual = {name: one.usual for name, one in known.items() if one.usual is not None}
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
    def place(cls, given: Mapping[str, object]) -> str:
        """Return words for a thing in messages, such as ``--quark domain-wall``.

        Parameters
        ----------
        given : mapping of str to object
            Values of its options by name.
        """
        if not cls.flag:
            return f"a {cls.kind}"
        first = given.get(cls.leading[0]) if cls.leading else None
        return f"{cls.flag} {shortened(first)}" if isinstance(first, str) else cls.flag

    @classmethod
    def placed(cls, given: Mapping[str, object]) -> dict[str, Option]:
        """Return the options by name, as messages name them; see `place`."""
        place = cls.place(given)
        return {one.name: replace(one, place=place) for one in cls.options()}

    def check(self) -> None:
        """Check values that depend on each other.

        Raises
        ------
        UsageError
            If they do not fit.
        """

    @property
    def numbers(self) -> dict[Option, float]:
        """The values of `axes` that are given and not usual."""
        pairs = ((one, self.values.get(one.name)) for one in self.axes())
        return {one: value for one, value in pairs if value not in (None, one.usual)}

    def __getattr__(self, name: str) -> Any:
        """Return the value of an option; None if it was not given and has no usual value."""
        if name.startswith("_") or name == "values":
            raise AttributeError(name)
        if name not in (one.name for one in self.options()):
            raise AttributeError(f"a {self.kind} has no option {name}", name=name)
        return self.values.get(name)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a thing from text, in which names of options may have capital letters.

        Raises
        ------
        UsageError
            If the text does not have this form, or an option is unknown or invalid.
        """
        known = {one.name: one for one in cls.options()}
        words = [_in_lower_case(one.strip()) for one in re.split(cls.within, text)]
        places = [known[name] for name in cls.leading]
        named = 0
        while named < len(words) and places and not _is_named(words[named], known):
            place, whole = places.pop(0), bool(re.fullmatch("[0-9]+", words[named]))
            if whole == (place.kind is int):
                words[named] = f"{place.name}={words[named]}"
                named += 1
        for word in words:
            if not _is_named(word, known):
                names = [one.written or one.name.replace("_", "-") for one in known.values()]
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
        """Return the things that text, a table, an object, or a list of these stands for.

        Raises
        ------
        UsageError
            If one of them is invalid, or of another type.
        """
        if isinstance(value, str):
            texts = re.split(cls.between, value) if value.strip() else []
            return Items(map(cls.parse, texts))
        if isinstance(value, Mapping):
            return Items([cls(**{option_name(key): one for key, one in value.items()})])
        if isinstance(value, cls):
            return Items([value])
        if isinstance(value, Iterable):
            return Items(one for each in value for one in cls.several(each))
        raise UsageError(f"{quoted(value)} is not a {cls.kind}; give text, or a table.")

    def __str__(self) -> str:
        return self._text

    @cached_property
    def _text(self) -> str:
        words, known = [], self.options()
        for one in known:
            value = self.values.get(one.name)
            if value is None or value == one.usual:
                continue
            numbers = isinstance(value, tuple) and not isinstance(value, Items)
            said = ",".join(map(str, value)) if numbers else str(value)
            bare = one.name in self.leading
            words.append(said if bare else one.name if value is True else f"{one.name}={said}")
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
            for n, one in enumerate(self, 1)
            for option, value in one.numbers.items()
        }

    def __str__(self) -> str:
        return self[0].joined.join(map(str, self)) if self else ""


def _in_lower_case(word: str) -> str:
    """Return a word with the names of options in lower case."""
    return re.sub(r"\w+(?==)", lambda name: name[0].lower(), word)


def option_name(key: object) -> str:
    """Return the name of an option for a key of a table."""
    return str(key).replace("-", "_").lower()


def _is_named(word: str, known: Mapping[str, Option]) -> bool:
    """Return whether a word gives an option by name."""
    return "=" in word or word.replace("-", "_") in known


def _is_word(value: object) -> bool:
    """Return whether a value that consists of numbers is a word instead."""
    return isinstance(value, str) and value.isalpha()
