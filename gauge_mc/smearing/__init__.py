"""Smearing of links.

Each smearing has a module of its name, with a subclass of `Smearing` that is registered in
`SMEARINGS`, and a kernel. Observables with smearing accept the options of all smearings.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from gauge_mc import defaults
from gauge_mc.errors import UsageError
from gauge_mc.fields.field import Field
from gauge_mc.options import Option, check_options
from gauge_mc.registry import Registry, nearest

NO_SMEARING = "none"
"""Value of ``--smear`` for no smearing."""


class Smearing(ABC):
    """A smearing of links. Calling an instance does one iteration; its str describes it.

    Attributes
    ----------
    name : str
        Name on the command line, for ``--smear``.
    options : tuple of Option
        Options of `from_options`.
    """

    name: ClassVar[str]
    options: ClassVar[tuple[Option, ...]]

    @classmethod
    @abstractmethod
    def from_options(cls, values: Mapping[str, Any]) -> Smearing:
        """Return a smearing with the given options, by name; the others have their defaults.

        Raises
        ------
        UsageError
            If a value is invalid.
        """

    @abstractmethod
    def __call__(self, source: Field, target: Field) -> None:
        """Write the smeared links of `source` to `target`, a different field of the same kind."""


SMEARINGS: Registry[type[Smearing]] = Registry("smearing", __name__)


def smearing_options() -> tuple[Option, ...]:
    """Return the options of all smearings, without duplicates."""
    found: dict[str, Option] = {}
    for smearing in SMEARINGS.values():
        for option in smearing.options:
            found.setdefault(option.name, option)
    return tuple(found.values())


def smear_option() -> Option:
    """Return the option that chooses a smearing."""
    choices = "|".join((*SMEARINGS, NO_SMEARING))
    return Option("smear", str, "Smearing of the links.", defaults.SMEARING, choices)


def make_smearing(name: str, values: Mapping[str, Any]) -> Smearing | None:
    """Return a smearing by name, or None for `NO_SMEARING`.

    Parameters
    ----------
    name : str
        Name of the smearing.
    values : mapping of str to object
        Values of its options by name; None means that an option was not given.

    Raises
    ------
    UsageError
        If the smearing is unknown, or if it does not have an option or accept its value.
    """
    given = [key for key, value in values.items() if value is not None]
    if name == NO_SMEARING:
        if given:
            raise UsageError(f"--{given[0].replace('_', '-')} is not for --smear {name}.")
        return None
    if name not in SMEARINGS:
        known = [*SMEARINGS, NO_SMEARING]
        raise UsageError(f"There is no smearing '{name}'{nearest(name, known)}")
    smearing = SMEARINGS[name]
    return smearing.from_options(check_options(smearing.options, values, f"--smear {name}"))
