"""Kinds of things that are declared in one place and found everywhere.

A *kind* is for instance the observables or the file formats. Each thing of a kind is declared in one
module of the kind's package, named after it: ``wilson-loops`` in ``observables/wilson_loops.py``.
Another installed package may declare more through an entry point whose group is the name of the
kind's package and whose name is that of the thing, and a program may register its own.
"""

from __future__ import annotations

import difflib
import pkgutil
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Generic, Protocol, TypeVar

from gauge_mc.errors import GaugeError, UsageError


class Named(Protocol):
    """A thing that can be registered."""

    @property
    def name(self) -> str:
        """The name by which it is chosen."""


T = TypeVar("T", bound=Named)


class Registry(Mapping[str, T], Generic[T]):
    """The things of one kind by name. A module is imported when its thing is first used.

    Parameters
    ----------
    kind : str
        What the things are called in messages, such as ``observable``.
    package : str
        The package whose modules declare them, such as ``gauge_mc.observables``.
    folders : bool
        Whether things are declared in subpackages, and other modules of the package are helpers.
    """

    def __init__(self, kind: str, package: str, folders: bool = False) -> None:
        self.kind = kind
        self._package = package
        self._folders = folders
        self._registered: dict[str, T] = {}

    def register(self, thing: T) -> T:
        """Register a thing, and return it, so that this can decorate a class.

        Raises
        ------
        GaugeError
            If another thing of this kind has the same name.
        """
        home = f"{self._package}.{self._modules.get(thing.name)}"
        stranger = thing.name in self._modules and not thing.__module__.startswith(home)
        if stranger or self._registered.setdefault(thing.name, thing) is not thing:
            raise GaugeError(f"There are two {self.kind}s named '{thing.name}'; rename one.")
        return thing

    def remove(self, name: str) -> None:
        """Forget a thing that was registered by a program."""
        self._registered.pop(name, None)

    def __getitem__(self, name: str) -> T:
        """Return a thing by name.

        Raises
        ------
        UsageError
            If there is none of that name.
        GaugeError
            If the package that declares it cannot be imported.
        """
        if name not in self._registered:
            self._load(name)
        return self._registered[name]

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names, in alphabetical order, without importing anything."""
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def names(self) -> tuple[str, ...]:
        """All names, in alphabetical order."""
        return tuple(sorted({*self._modules, *self._entries, *self._registered}))

    def check(self, name: str, option: str | None = None) -> None:
        """Refuse a name that is not known.

        Parameters
        ----------
        name : str
        option : str, optional
            The option that it was given for, named in the message.

        Raises
        ------
        UsageError
            If there is nothing of that name.
        """
        if name not in self:
            where = f"{option}: " if option else ""
            raise UsageError(f"{where}There is no {self.kind} '{name}'{nearest(name, self)}")

    def _load(self, name: str) -> None:
        self.check(name)
        if name in self._modules:
            import_module(f"{self._package}.{self._modules[name]}")
            return
        entry = self._entries[name]
        try:
            thing = entry.load()
        except Exception as error:
            package = entry.dist.name if entry.dist else entry.value
            raise GaugeError(
                f"The {self.kind} '{name}' of the package {package} does not load ({error}); "
                "mend or uninstall that package."
            ) from error
        self._registered.setdefault(name, thing)

    @cached_property
    def _modules(self) -> dict[str, str]:
        """Names of the things of this package, and the modules that declare them."""
        found = pkgutil.iter_modules(import_module(self._package).__path__)
        modules = (one.name for one in found if one.ispkg == self._folders)
        return {module.replace("_", "-"): module for module in modules}

    @cached_property
    def _entries(self) -> dict[str, EntryPoint]:
        return {entry.name: entry for entry in entry_points(group=self._package)}


def nearest(word: str, known: Iterable[str]) -> str:
    """End a complaint about an unknown word: with the nearest known one, or with all of them."""
    known = list(known)
    if not known:
        return "."
    match = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    return f"; did you mean '{match[0]}'?" if match else f"; choose {in_words(known, 'or')}."


def in_words(words: Iterable[str], conjunction: str = "and") -> str:
    """Join words as in ``a, b and c``."""
    *first, last = words
    return f"{', '.join(first)} {conjunction} {last}" if first else last
