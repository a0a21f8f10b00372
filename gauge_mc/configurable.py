"""Things of a kind that have options: gauge actions, algorithms."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar, Self, TypeVar

from gauge_mc.errors import UsageError
from gauge_mc.options import READ, Option, check_options, flag_of
from gauge_mc.quoting import shortened
from gauge_mc.registry import Registry, words_in_any_case


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
        usual = {one.name: one.usual for one in self.options if one.usual is not None}
        return {**usual, **self._given}

    @property
    def written(self) -> dict[str, str | int | float]:
        """The values as run cards state them, those that are lists of things as text."""
        lists = {one.name for one in self.options if one.items}
        return {name: str(one) if name in lists else one for name, one in self.values.items()}

    def with_options(self, **given: object) -> Self:
        """Return the thing with values of its options, by name.

        Raises
        ------
        UsageError
            If it has no such option, or a value is invalid.
        """
        checked = check_options(self.options, given, f"the {self.kind} {self.name}")
        if not checked:
            return self
        configured = type(self)()
        configured._given = {**self.values, **checked}
        return configured

    def check(self) -> Self:
        """Return this thing if it has everything that it needs.

        Raises
        ------
        UsageError
            If an option is missing that must be given.
        """
        for one in self.options:
            if one.name not in self.values:
                raise UsageError(
                    f"The {self.kind} {self.name} needs {one.flag} {one.metavar}: {one.help}"
                )
        return self

    @property
    def changed(self) -> dict[Option, Any]:
        """The options that do not have their usual values, with their values."""
        values = self.values
        return {
            one: values[one.name]
            for one in self.options
            if one.name in values and values[one.name] != one.usual
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
        return ", ".join([self.name, *(one.said(value) for one, value in self.changed.items())])

    def tags(self, usual: str) -> list[str]:
        """Return words for names of directories: its name and its options, unless usual.

        Parameters
        ----------
        usual : str
            Name of the usual thing of the kind.
        """
        changed = self.changed
        needed = [f"{value:.10g}" for one, value in changed.items() if one.usual is None]
        words = [] if self.name == usual and not needed else [":".join([self.name, *needed])]
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

    Raises
    ------
    UsageError
        If there is no such thing, or an option is unknown or invalid.
    """
    name, *words = words_in_any_case(text, registry).split(":")
    registry.check(name, registry.kind)
    thing, what = registry[name], f"The {registry.kind} {name}"
    known = {one.name: one for one in thing.options}
    needed = [one.name for one in thing.options if one.usual is None]
    given: dict[str, object] = {}
    for word in _joined(words, known):
        listed = known.get(word.partition("=")[0].strip())
        apart = word.partition if listed and listed.items else word.rpartition
        key, equals, value = apart("=")
        if not equals and (not needed or given):
            raise UsageError(
                f"{what} has no parameter without a name; leave ':{shortened(word)}' out, or write "
                f"{name}:OPTION=NUMBER."
            )
        option = key.strip() if equals else needed[0]
        kind = known[option].kind if option in known else str
        try:
            given[option] = READ[kind](value)
        except ValueError:
            raise UsageError(
                f"{what} has the option {flag_of(option)} with the value '{shortened(value)}', "
                f"which is not a number; write {name}:{option}=NUMBER."
            ) from None
    return thing.with_options(**given)


def _joined(words: list[str], known: Mapping[str, Option]) -> list[str]:
    """Return the words, with those that belong to a list of things with options joined to it."""
    found: list[str] = []
    for word in words:
        last = known.get(found[-1].partition("=")[0].strip()) if found else None
        if last and last.items and word.partition("=")[0].strip() not in known:
            found[-1] += f":{word}"
        else:
            found.append(word)
    return found
