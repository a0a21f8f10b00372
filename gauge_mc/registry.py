"""Registries of plug-ins: observables, file formats, fits and all other kinds.

There is one registry for each kind. A plug-in is declared in a module of its name in the package of
the kind: ``wilson-loops`` in ``observables/wilson_loops.py``. Other installed packages can add
plug-ins by entry points. The group of an entry point is the package of the kind, and its name is
that of the plug-in. A program can also register its own plug-ins.
"""

from __future__ import annotations

import difflib
import pkgutil
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, cached_property
from importlib import import_module, metadata
from importlib.metadata import EntryPoint, EntryPoints
from typing import Generic, Protocol, TypeVar, cast

from gauge_mc.errors import GaugeError, UnknownNameError


class Named(Protocol):
    """An object that can be registered."""

    @property
    def name(self) -> str:
        """Name by which the user chooses the object."""


T = TypeVar("T", bound=Named)


class Registry(Mapping[str, T], Generic[T]):
    """The plug-ins of one kind, by name. Modules are imported when they are first needed.

    Parameters
    ----------
    kind : str
        Name of the kind in messages, such as ``observable``.
    package : str
        Package whose modules declare the plug-ins, such as ``gauge_mc.observables``.
    folders : bool
        True if the plug-ins are subpackages and the modules of the package are helpers.
    """

    def __init__(self, kind: str, package: str, folders: bool = False) -> None:
        self.kind = kind
        self._package = package
        self._folders = folders
        self._registered: dict[str, T] = {}

    def register(self, thing: T) -> T:
        """Register a plug-in and return it, so that this method is a class decorator.

        Raises
        ------
        GaugeError
            If another plug-in of this kind has the same name.
        """
        home = f"{self._package}.{self._modules.get(thing.name)}"
        stranger = thing.name in self._modules and not thing.__module__.startswith(home)
        if stranger or self._registered.setdefault(thing.name, thing) is not thing:
            raise GaugeError(f"There are two {self.kind}s named '{thing.name}'; rename one.")
        return thing

    def remove(self, name: str) -> None:
        """Remove a plug-in that a program has registered."""
        self._registered.pop(name, None)

    def __getitem__(self, name: str) -> T:
        """Return a plug-in by name.

        Raises
        ------
        UnknownNameError
            If the name is unknown; this is a `UsageError` and a `KeyError`.
        GaugeError
            If the package that declares the plug-in cannot be imported.
        """
        if name not in self._registered:
            self._load(name)
        return self._registered[name]

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names in alphabetical order, without importing any plug-in."""
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def names(self) -> tuple[str, ...]:
        """All names, in alphabetical order."""
        return tuple(sorted({*self._modules, *self._entries, *self._registered}))

    def check(self, name: str, option: str | None = None) -> None:
        """Refuse an unknown name.

        Parameters
        ----------
        name : str
        option : str, optional
            Option for which the name was given, for the message.

        Raises
        ------
        UnknownNameError
            If the name is unknown. The message suggests a similar name.
        """
        if name not in self:
            where = f"{option}: " if option else ""
            raise UnknownNameError(f"{where}There is no {self.kind} '{name}'{nearest(name, self)}")

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
                f"The {self.kind} '{name}' of the package {package} cannot be imported ({error}); "
                "repair or uninstall that package."
            ) from error
        self._registered.setdefault(name, thing)

    @cached_property
    def _modules(self) -> dict[str, str]:
        """Names of the plug-ins of this package, and the modules that declare them."""
        found = pkgutil.iter_modules(import_module(self._package).__path__)
        modules = (one.name for one in found if one.ispkg == self._folders)
        return {module.replace("_", "-"): module for module in modules}

    @cached_property
    def _entries(self) -> dict[str, EntryPoint]:
        return {entry.name: entry for entry in entry_points(group=self._package)}


@cache
def installed() -> EntryPoints:
    """Return the entry points of all installed packages, whose files are read by the first call."""
    # Python 3.11 returns another class with the same method.
    return cast(EntryPoints, metadata.entry_points())


def entry_points(group: str) -> EntryPoints:
    """Return the entry points of a group."""
    return installed().select(group=group)


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the end of a message about an unknown word: the most similar word, or all words.

    The required similarity of 0.5 is below the 0.6 of `difflib`, so that short words with a wrong
    letter still match.
    """
    known = list(known)
    if not known:
        return "."
    match = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    return f"; did you mean '{match[0]}'?" if match else f"; choose {in_words(known, 'or')}."


def in_words(words: Iterable[str], conjunction: str = "and") -> str:
    """Join words as in ``a, b and c``."""
    *first, last = words
    return f"{', '.join(first)} {conjunction} {last}" if first else last
