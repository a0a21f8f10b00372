"""Registries of plug-ins: observables, file formats, fits and all other kinds.

There is one registry for each kind. A plug-in is declared in a module of its name in the package of
the kind, ``history`` in ``plots/history.py``, or in a folder of results, ``wilson-loops`` in
``quantities/potential/observables/wilson_loops.py``. Other installed packages can add plug-ins by
entry points. The group of an entry point is the package of the kind, and its name is that of the
plug-in. A program can also register its own plug-ins.
"""

from __future__ import annotations

import difflib
import inspect
import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, cached_property
from importlib import import_module
from importlib.metadata import EntryPoint
from typing import Generic, Protocol, TypeVar

from gauge_mc.errors import GaugeError, UnknownNameError
from gauge_mc.plugins import entry_points, plugin_failure


class Plugin(Protocol):
    """An object that can be registered under its name."""

    @property
    def name(self) -> str:
        """Name by which the user chooses the object."""


T = TypeVar("T", bound=Plugin)

QUANTITIES = f"{__name__.partition('.')[0]}.quantities"
"""Package of the folders of results, for observables, fits and plots."""


class Registry(Mapping[str, T], Generic[T]):
    """The plug-ins of one kind, by name. Modules are imported when they are first needed.

    Parameters
    ----------
    kind : str
        Name of the kind in messages, such as ``observable``.
    package : str
        Package whose modules declare the plug-ins, such as ``gauge_mc.observables``.
    base : type, optional
        Class of the plug-ins, or of which they are subclasses. They must have every attribute that
        it or its bases annotate without a value, and define all of its abstract methods.
    check : callable, optional
        Function of a plug-in that raises a `ValueError` with a reason for refusing it.
    folders : bool
        True if the plug-ins are subpackages and the modules of the package are helpers.
    rooms : str, optional
        Package whose subpackages may each have a package of the same last name as `package`, which
        declares further plug-ins.
    """

    def __init__(
        self,
        kind: str,
        package: str,
        base: type | None = None,
        check: Callable[[T], object] | None = None,
        folders: bool = False,
        rooms: str | None = None,
    ) -> None:
        self.kind = kind
        self._package = package
        self._base = base
        self._check = check
        self._folders = folders
        self._rooms = rooms
        self._registered: dict[str, T] = {}

    def register(self, thing: T) -> T:
        """Register a plug-in and return it, so that this method is a class decorator.

        Raises
        ------
        GaugeError
            If another plug-in of this kind has the same name, or the declaration is incomplete.
        """
        self._check_declaration(thing)
        home = self._modules.get(thing.name, "")
        stranger = not thing.__module__.startswith(home)
        if stranger or self._registered.setdefault(thing.name, thing) is not thing:
            raise GaugeError(f"There are two {self.kind}s named '{thing.name}'; rename one.")
        return thing

    def remove(self, name: str) -> None:
        """Remove a plug-in that a program has registered."""
        self._registered.pop(name, None)

    def __getitem__(self, name: str) -> T:
        """Return a plug-in by name, in any case.

        Raises
        ------
        UnknownNameError
            If the name is unknown; this is a `UsageError` and a `KeyError`.
        GaugeError
            If the package that declares the plug-in cannot be imported.
        """
        if name not in self._registered:
            name = in_any_case(name, self.names)
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
            The name that the user has given.
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

    def _check_declaration(self, thing: T) -> None:
        """Refuse a plug-in that lacks something, in a sentence that names its module."""
        try:
            if self._base:
                check_attributes(thing, self._base)
            if self._check:
                self._check(thing)
        except ValueError as error:
            owner = thing if isinstance(thing, type) else type(thing)
            raise GaugeError(
                f"The {self.kind} {owner.__name__} in the module {owner.__module__} {error}."
            ) from error

    def _load(self, name: str) -> None:
        self.check(name)
        if name in self._modules:
            self._import(name, self._modules[name])
            return
        entry = self._entries[name]
        try:
            thing = entry.load()
        except Exception as error:
            package = entry.dist.name if entry.dist else entry.value
            failure = plugin_failure(error)
            where = f" in {failure.place}" if failure else ""
            raise GaugeError(
                f"The {self.kind} '{name}' of the package {package} cannot be imported "
                f"({error}{where}); repair or uninstall that package."
            ) from error
        self._check_declaration(thing)
        self._registered.setdefault(name, thing)

    def _import(self, name: str, module: str) -> None:
        """Import the module that declares a plug-in."""
        try:
            import_module(module)
        except GaugeError as error:
            if module in str(error):
                raise
            raise GaugeError(f"In the module {module}: {error}") from error
        if name not in self._registered:
            raise GaugeError(
                f"The module {module} registers no {self.kind} named '{name}'; register it under "
                f"the name of the module, as the other modules of {self._package} do."
            )

    @cached_property
    def _modules(self) -> dict[str, str]:
        """Names of the plug-ins of this package, and the modules that declare them."""
        return {
            one.name.replace("_", "-"): f"{package}.{one.name}"
            for package, path in self._homes()
            for one in pkgutil.iter_modules(path)
            if one.ispkg == self._folders
        }

    def _homes(self) -> Iterator[tuple[str, Iterable[str]]]:
        """Yield the packages with plug-ins of this kind, and their folders."""
        yield self._package, import_module(self._package).__path__
        last = self._package.rpartition(".")[2]
        rooms = import_module(self._rooms).__path__ if self._rooms else ()
        for room in pkgutil.iter_modules(rooms):
            yield (
                f"{self._rooms}.{room.name}.{last}",
                [f"{one}/{room.name}/{last}" for one in rooms],
            )

    @cached_property
    def _entries(self) -> dict[str, EntryPoint]:
        return {entry.name: entry for entry in entry_points(group=self._package)}


def check_attributes(thing: object, base: type) -> None:
    """Check that a plug-in has what its base class demands.

    Parameters
    ----------
    thing : object
        A subclass of `base`, or an instance of one.
    base : type
        The class, whose annotations without a value name what must be there: class variables if
        the plug-in is a class.

    Raises
    ------
    ValueError
        If the plug-in is not of this class, or something is missing or of the wrong type.
    """
    owner = thing if isinstance(thing, type) else type(thing)
    if not issubclass(owner, base):
        raise ValueError(f"is not a {base.__name__}; derive it from that class")
    if missing := sorted(getattr(owner, "__abstractmethods__", ())):
        raise ValueError(f"lacks {in_words(missing)}; define every abstract method of its base")
    for name, annotation in demanded(base).items():
        if isinstance(thing, type) and not annotation.startswith("ClassVar"):
            continue
        kind = annotation.removeprefix("ClassVar[").removesuffix("]")
        found = inspect.getattr_static(thing, name, None)
        if found is None:
            raise ValueError(f"has no {name}; declare {name}, of the type {kind}")
        if isinstance(found, property | cached_property):
            continue
        if kind == "str" and not (isinstance(found, str) and found.strip()):
            raise ValueError(f"has the {name} {found!r}; declare a text that is not empty")
        words = isinstance(found, tuple) and all(isinstance(one, str) for one in found)
        if kind == "tuple[str, ...]" and not words:
            raise ValueError(f"has the {name} {found!r}; declare a tuple of texts")


@cache
def demanded(base: type) -> dict[str, str]:
    """Return the attributes that a subclass must define, with their types.

    They are those that a class and its bases annotate without a value. Attributes that the
    constructor of a data class sets are among them.
    """
    annotations: dict[str, str] = {}
    for one in reversed(base.__mro__):
        own = vars(one).get("__annotations__", {})
        annotations |= {name: str(kind) for name, kind in own.items() if not name.startswith("_")}
    return {name: kind for name, kind in annotations.items() if not hasattr(base, name)}


def similar(word: str, known: Iterable[str]) -> str:
    """Return the most similar of the known words, or an empty text if none is similar.

    Short words with a wrong letter still match, but not ``topology`` and ``polyakov`` or ``delete``
    and ``generate``. A part between dashes, such as ``wilson``, stands for the only word that has
    it. Leading dashes, which all options share, make none similar.
    """
    bare = {one.lstrip("-").casefold(): one for one in reversed([*known])}
    wanted = word.lstrip("-").casefold()
    having = [one for one in bare if wanted in one.split("-")]
    cutoff = SIMILARITY if len(wanted) > SHORT else SHORT_SIMILARITY
    match = difflib.get_close_matches(wanted, bare, n=1, cutoff=cutoff)
    found = match or (having if len(having) == 1 else [])
    return bare[found[0]] if found else ""


SIMILARITY, SHORT_SIMILARITY = 0.65, 0.5
"""Required similarity of two words, as `difflib` defines it, and of a short one to another."""

SHORT = 3
"""Letters of a short word."""


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the end of a message about an unknown word: the most similar word, or all words."""
    known = list(known)
    if not known:
        return "."
    match = similar(in_any_case(word, known), known)
    return f"; did you mean '{match}'?" if match else f"; choose {in_words(known, 'or')}."


def in_any_case(word: str, known: Iterable[str]) -> str:
    """Return the known word that differs from a word only in case, or else the word itself."""
    known = list(known)
    alike = [one for one in known if one.casefold() == word.casefold()]
    return alike[0] if word not in known and len(alike) == 1 else word


def words_in_any_case(text: str, known: Iterable[str], separator: str = "") -> str:
    """Return a text in which known words, given in any case, are as they are written.

    A word ends at a colon, after which its options follow.

    Parameters
    ----------
    text : str
        The text.
    known : iterable of str
        The known words.
    separator : str
        Separator of several words with options; empty if there is one.
    """
    known = list(known)

    def corrected(one: str) -> str:
        word, colon, options = one.partition(":")
        return in_any_case(word, known) + colon + options

    return separator.join(map(corrected, text.split(separator) if separator else [text]))


def in_words(words: Iterable[str], conjunction: str = "and") -> str:
    """Join words as in ``a, b and c``."""
    *first, last = [*words] or [""]
    return f"{', '.join(first)} {conjunction} {last}" if first else last
