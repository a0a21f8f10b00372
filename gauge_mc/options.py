"""Options that declared things take, the same on the command line and from Python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gauge_mc.errors import UsageError
from gauge_mc.registry import nearest


@dataclass(frozen=True)
class Option:
    """An option.

    Attributes
    ----------
    name : str
        As in Python, with underscores; the command line has dashes instead.
    kind : type
        ``int``, ``float``, ``str`` or ``bool``.
    help : str
        What it means, in a few words.
    default : str
        What is taken if it is not given, in words.
    metavar : str
        What stands for its value in help texts.
    """

    name: str
    kind: type[Any]
    help: str
    default: str = ""
    metavar: str = ""

    @property
    def flag(self) -> str:
        """The option on the command line, such as ``--r-max``."""
        return flag_of(self.name)


def flag_of(name: str) -> str:
    """Return an option on the command line by its name in Python."""
    return f"--{name.replace('_', '-')}"


def check_options(
    options: Iterable[Option], values: Mapping[str, object], whose: str
) -> dict[str, Any]:
    """Return the values that were given, converted to the types of the options.

    Parameters
    ----------
    options : iterable of Option
        The options that exist.
    values : mapping of str to object
        What was given by name; None means that an option was not given.
    whose : str
        What takes the options, for messages.

    Raises
    ------
    UsageError
        If there is no such option, or a value has the wrong type.
    """
    known = {option.name: option for option in options}
    given = {name: value for name, value in values.items() if value is not None}
    for name, value in given.items():
        if name not in known:
            flag, flags = flag_of(name), [option.flag for option in known.values()]
            raise UsageError(f"{flag} is not an option of {whose}{nearest(flag, flags)}")
        given[name] = _converted(known[name], value)
    return given


def _converted(option: Option, value: object) -> object:
    """Return a value as the type of its option; whole numbers will do for real ones."""
    kind = option.kind
    accepted = (int, float) if kind is float else kind
    if not isinstance(value, accepted) or (isinstance(value, bool) and kind is not bool):
        raise UsageError(f"{option.flag} takes a value of type {kind.__name__}, not {value!r}.")
    return kind(value)
