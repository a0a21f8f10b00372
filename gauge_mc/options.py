"""Options of observables, smearings, fits and plots, for the command line and for Python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gauge_mc.errors import UsageError
from gauge_mc.registry import nearest


@dataclass(frozen=True)
class Option:
    """An option with a name and a type.

    Attributes
    ----------
    name : str
        Name in Python, with underscores. The command line has dashes instead.
    kind : type
        Type of the value: ``int``, ``float``, ``str`` or ``bool``.
    help : str
        Short description, for help texts.
    default : str
        The default in words, for help texts.
    metavar : str
        Placeholder of the value in help texts.
    repeated : bool
        Whether the option may be given several times. Its value is then a tuple of str.
    """

    name: str
    kind: type[Any]
    help: str
    default: str = ""
    metavar: str = ""
    repeated: bool = False

    @property
    def flag(self) -> str:
        """Name on the command line, such as ``--r-max``."""
        return flag_of(self.name)


def flag_of(name: str) -> str:
    """Return the name of an option on the command line, given its name in Python."""
    return f"--{name.replace('_', '-')}"


def check_options(
    options: Iterable[Option], values: Mapping[str, object], whose: str
) -> dict[str, Any]:
    """Return the options that were given, with values converted to their types.

    Parameters
    ----------
    options : iterable of Option
        All options that are known.
    values : mapping of str to object
        Values by name; None means that an option was not given.
    whose : str
        Name of the object that has the options, for error messages.

    Raises
    ------
    UsageError
        If an option is unknown, or a value has the wrong type.
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
    """Return a value converted to the type of its option; a float option also accepts an int."""
    kind = option.kind
    if option.repeated:
        values = (value,) if isinstance(value, str) else value
        if not isinstance(values, list | tuple) or not all(isinstance(one, str) for one in values):
            raise UsageError(f"{option.flag} is {value!r}; give text, or several texts.")
        return tuple(values)
    accepted = (int, float) if kind is float else kind
    if not isinstance(value, accepted) or (isinstance(value, bool) and kind is not bool):
        raise UsageError(f"{option.flag} is {value!r}; give a value of type {kind.__name__}.")
    return kind(value)


def parse_options(
    options: Iterable[Option],
    words: Iterable[str],
    whose: str,
    where: str = "after the interval between measurements",
) -> dict[str, Any]:
    """Return the options that text such as ``to=6.5`` gives, or ``slices`` for a flag.

    Parameters
    ----------
    options : iterable of Option
        All options that are known.
    words : iterable of str
    whose : str
        Name of the object that has the options, for error messages.
    where : str
        Where the options are given, for error messages.

    Raises
    ------
    UsageError
        If an option is unknown or given twice, or a value has the wrong type.
    """
    known = {option.name: option for option in options}
    found: dict[str, Any] = {}
    for word in words:
        key, equals, text = word.partition("=")
        name = key.strip().replace("-", "_")
        if name not in known:
            flag, flags = flag_of(name), [option.flag for option in known.values()]
            raise UsageError(f"{flag} is not an option of {whose}{nearest(flag, flags)}")
        if name in found and not known[name].repeated:
            raise UsageError(f"measure: {whose} has the option {name} twice; give it once.")
        value = _parsed(known[name], text.strip(), bool(equals), where)
        found[name] = (*found.get(name, ()), value) if known[name].repeated else value
    return found


def _parsed(option: Option, text: str, given: bool, where: str) -> object:
    """Return the value of an option that is given as text; a flag has none."""
    try:
        if (option.kind is bool) == given or len(text) > MOST_CHARACTERS:
            raise ValueError
        return True if option.kind is bool else option.kind(text)
    except ValueError:
        wanted = "no value" if option.kind is bool else f"a value of type {option.kind.__name__}"
        form = option.name if option.kind is bool else f"{option.name}=VALUE"
        raise UsageError(f"{option.flag} needs {wanted}; write {form} {where}.") from None


MOST_CHARACTERS = 100
"""Largest length of the value of an option."""
