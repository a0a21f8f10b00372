"""Smearing of links, one module each, named after the smearing.

A smearing is a kernel and a subclass of `Smearing`, registered in `SMEARINGS`. Observables that smear
take the options of all smearings.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from gauge_mc.errors import UsageError
from gauge_mc.fields.field import Field
from gauge_mc.options import Option, check_options
from gauge_mc.registry import Registry, nearest

NO_SMEARING = "none"
"""Instead of a smearing: none at all."""


class Smearing(ABC):
    """One iteration of smearing. An instance has its parameters, and its str describes it.

    Attributes
    ----------
    name : str
    options : tuple of Option
        What `from_options` takes.
    """

    name: ClassVar[str]
    options: ClassVar[tuple[Option, ...]]

    @classmethod
    @abstractmethod
    def from_options(cls, values: Mapping[str, Any]) -> Smearing:
        """Make a smearing from options by name; what is not given has its default.

        Raises
        ------
        UsageError
            If a value is not allowed.
        """

    @abstractmethod
    def __call__(self, source: Field, target: Field) -> None:
        """Smear the links of one field into another of the same kind."""


SMEARINGS: Registry[type[Smearing]] = Registry("smearing", __name__)


def smearing_options() -> tuple[Option, ...]:
    """Return the options of all smearings; one that several have comes once."""
    found: dict[str, Option] = {}
    for smearing in SMEARINGS.values():
        for option in smearing.options:
            found.setdefault(option.name, option)
    return tuple(found.values())


def make_smearing(name: str, values: Mapping[str, Any]) -> Smearing | None:
    """Make a smearing by name; None for `NO_SMEARING`.

    Parameters
    ----------
    name : str
    values : mapping of str to object
        Options by name.

    Raises
    ------
    UsageError
        If there is no such smearing, or it does not have an option or its value.
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
    own = {option.name for option in smearing.options}
    for key in given:
        if key not in own:
            raise UsageError(f"--{key.replace('_', '-')} is not for --smear {name}.")
    return smearing.from_options(check_options(smearing.options, values, name))
