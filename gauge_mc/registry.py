"""Registries of plug-ins: observables, file formats, fits and all other kinds.

There is one registry for each kind. What belongs to it is declared by entry points: those of this
package, of its extensions and of other installed packages, see `gauge_mc.registry`. The group of an
entry point is the package of the kind, its name is that of the plug-in, and its value is an object,
or a module that registers one. A program can also register its own plug-ins.
"""

from __future__ import annotations

import difflib
import inspect
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module, metadata
from importlib.metadata import EntryPoint, EntryPoints, PathDistribution
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, ClassVar, Generic, Protocol, TypeVar, cast

from gauge_mc.defaults import WORDS
from gauge_mc.errors import CautionWarning, GaugeError, UnknownNameError

GROUPS = "gauge_mc."
"""Beginning of the groups of entry points that declare plug-ins."""

CALLED = re.compile(r"(?:[\w<>]+\.)*?((?:\w+\.)?\w+)\(\) ")
"""Beginning of the message of a `TypeError` about a call with unsuitable arguments."""

WHOLE = "GAUGE_MC_TRACEBACK"
"""Environment variable that lets whole tracebacks of such failures be printed."""


HERE = Path(__file__).resolve().parent
"""The folder of this package."""


class FolderDistribution(PathDistribution):
    """The package or one of its extensions, by the folder that has its entry points."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.title = "gauge-mc" if folder == HERE else f"gauge-mc ({folder.name})"

    @property
    def name(self) -> str:
        """Name of the package in messages."""
        return self.title


@cache
def installed() -> EntryPoints:
    """Return the entry points of all installed packages, whose files are read by the first call."""
    # Python 3.11 returns another class with the same method.
    return cast(EntryPoints, metadata.entry_points())


@cache
def ours() -> EntryPoints:
    """Return the entry points of this package and its extensions."""
    folders = [HERE, *sorted(path.parent for path in HERE.glob("extensions/*/entry_points.txt"))]
    return EntryPoints(x for folder in folders for x in FolderDistribution(folder).entry_points)


def entry_points(group: str) -> list[EntryPoint]:
    """Return the entry points of a group, those of other packages before those of this one."""
    return [*installed().select(group=group), *ours().select(group=group)]


def is_ours(entry: EntryPoint) -> bool:
    """Return whether an entry point belongs to this package or one of its extensions."""
    return isinstance(entry.dist, FolderDistribution)


@dataclass(frozen=True)
class PluginFailure:
    """The place in a plug-in at which its code fails, or at which what was called begins."""

    package: str
    """Name of the package."""
    file: str
    """Path of the file."""
    line: int
    """Number of the line."""

    @property
    def place(self) -> str:
        """The file and the line in words."""
        return f"{self.file}, line {self.line}"


def plugin_failure(error: BaseException) -> PluginFailure | None:
    """Return the place in an installed plug-in that an error comes from; None if it is from none.

    The place is the last line of a plug-in that was carried out. If a function of a plug-in was
    called with arguments that it does not take, no line was, and the place is the beginning of the
    function.
    """
    groups = [group for group in installed().groups if group.startswith(GROUPS)]
    entries = [entry for group in groups for entry in installed().select(group=group)]
    tops = {entry: re.split("[.:]", entry.value)[0] for entry in entries}
    packages = {top: entry.dist.name if entry.dist else top for entry, top in tops.items()}
    failure = None
    for frame, line in traceback.walk_tb(error.__traceback__):
        if name := packages.get(str(frame.f_globals.get("__name__", "")).partition(".")[0]):
            failure = PluginFailure(name, frame.f_code.co_filename, line)
    if failure is None and isinstance(error, TypeError) and (called := CALLED.match(str(error))):
        places = _functions(called[1], packages)
        failure = next((PluginFailure(n, c.co_filename, c.co_firstlineno) for n, c in places), None)
    return failure


def _functions(name: str, packages: dict[str, str]) -> Iterator[tuple[str, CodeType]]:
    """Yield the functions and methods of a qualified name in the modules of plug-ins."""
    for module, content in [*sys.modules.items()]:
        if package := packages.get(module.partition(".")[0]):
            member: Any = content
            for part in name.split("."):
                member = getattr(member, part, None)
            code = getattr(member, "__code__", None)
            if isinstance(code, CodeType):
                yield package, code


class PluginWarning(CautionWarning):
    """A plug-in of another package is left out."""


class Plugin(Protocol):
    """An object that can be registered under its name."""

    @property
    def name(self) -> str:
        """Name by which the user chooses the object."""


class PluginOption(Plugin, Protocol):
    """An option of a plug-in, such as `gauge_mc.options.Option`."""

    @property
    def flag(self) -> str:
        """The option on the command line."""

    def same_meaning(self, option: Any) -> bool:
        """Return whether another option of this name means the same."""


T = TypeVar("T", bound=Plugin)

MEETING = tuple(
    f"gauge_mc.{kind}"
    for kind in ("actions", "algorithms", "smearing", "observables", "updates.terms")
)
"""Modules of the kinds whose options are given together, of which others are told when they are
imported. In this order plug-ins of other packages are compared, and by name.
"""


class Registry(Mapping[str, T], Generic[T]):
    """The plug-ins of one kind, by name. Modules are imported when they are first needed.

    Parameters
    ----------
    kind : str
        Name of the kind in messages, such as ``observable``.
    group : str
        Group of the entry points, which is the package of the kind, such as
        ``gauge_mc.observables``.
    base : type, optional
        Class of the plug-ins, or of which they are subclasses. They must have every attribute that
        it or its bases annotate without a value, and define all of its abstract methods.
    check : callable, optional
        Function of a plug-in that raises a `ValueError` with a reason for refusing it.
    options : callable, optional
        Function that returns the options of a plug-in which a user gives together with those of the
        other kinds that have such a function. A plug-in of another package is left out, with a
        warning, if an option of it has the name of a different one of this kind, or of one of
        another kind or of the program itself.
    alone : bool
        Whether only one plug-in of this kind is chosen at a time, so that several may give one name
        different meanings.
    """

    meeting: ClassVar[list[Registry[Any]]] = []
    """The registries whose options are given together."""

    reserved: ClassVar[frozenset[str]] = frozenset()
    """Names of the program's own options."""

    checked: ClassVar[bool] = False
    """Whether the plug-ins of other packages have been compared, or are being compared."""

    def __init__(
        self,
        kind: str,
        group: str,
        base: type | None = None,
        check: Callable[[T], object] | None = None,
        options: Callable[[T], Iterable[PluginOption]] | None = None,
        alone: bool = False,
    ) -> None:
        self.kind = kind
        self._options, self._alone = options, alone
        if options:
            Registry.meeting.append(self)
            Registry.checked = False
        self._group = group
        self._base = base
        self._check = check
        self._registered: dict[str, T] = {}

    def register(self, thing: T) -> T:
        """Register a plug-in and return it, so that this method is a class decorator.

        Raises
        ------
        GaugeError
            If another plug-in of this kind has the same name, or the declaration is incomplete.
        """
        self._check_declaration(thing)
        entry = self._entries.get(thing.name)
        stranger = entry and package_of(entry.module) != package_of(thing.__module__)
        if stranger or self._registered.setdefault(thing.name, thing) is not thing:
            raise GaugeError(f"There are two {self.kind}s named '{thing.name}'; rename one.")
        return thing

    def remove(self, name: str) -> None:
        """Remove a plug-in that a program has registered."""
        self._registered.pop(name, None)

    def __getitem__(self, name: str) -> T:
        """Return a plug-in by name, in any case."""
        if name not in self._registered and not self._is_ours(name):
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
        if self._options and not Registry.checked:
            Registry._check_newcomers()
        return tuple(sorted({*self._entries, *self._registered}))

    def package(self, name: str) -> str:
        """Return name and version of the other package that brings a plug-in; empty for ours."""
        entry = self._entries.get(name)
        if entry is None or entry.dist is None or is_ours(entry):
            return ""
        return f"{entry.dist.name} {entry.dist.version}"

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

    def _is_ours(self, name: str) -> bool:
        """Return whether a plug-in is one of this package, without a look at those of others.

        While modules are imported for the first time, those of others cannot be compared yet.
        """
        return name in self._entries and is_ours(self._entries[name])

    def _load(self, name: str) -> None:
        if not self._is_ours(name):
            self.check(name)
        entry = self._entries[name]
        try:
            thing = entry.load()
        except Exception as error:
            if is_ours(entry):
                if isinstance(error, GaugeError) and entry.module not in str(error):
                    raise GaugeError(f"In the module {entry.module}: {error}") from error
                raise
            package = entry.dist.name if entry.dist else entry.value
            failure = plugin_failure(error)
            where = f" in {failure.place}" if failure else ""
            raise GaugeError(
                f"The {self.kind} '{name}' of the package {package} cannot be imported "
                f"({error}{where}); repair or uninstall that package."
            ) from error
        if not isinstance(thing, ModuleType):
            self._check_declaration(thing)
            self._registered.setdefault(name, thing)
        if name not in self._registered:
            raise GaugeError(
                f"The module {entry.module} registers no {self.kind} named '{name}'; register it "
                "under the name of its entry point."
            )

    @staticmethod
    def _check_newcomers() -> None:
        """Leave out plug-ins of other packages whose options clash with those before them."""
        newcomers = not all(is_ours(e) for kind in Registry.meeting for e in kind._entries.values())
        for module in MEETING if newcomers else ():
            import_module(module)
        Registry.checked = True
        kinds = sorted(Registry.meeting, key=lambda x: [*MEETING, x._group].index(x._group))
        # Modules of later kinds merge the options of actions when they are imported.
        steps = [*([kind] for kind in kinds), kinds] if newcomers else []
        complete = [Registry._compare(step) for step in steps]
        Registry.checked = all(complete) and len(kinds) == len(Registry.meeting)

    @staticmethod
    def _compare(kinds: list[Registry[Any]]) -> bool:
        """Compare the plug-ins of kinds, ours first; return whether all could be imported."""
        before: list[tuple[Registry[Any], str, PluginOption]] = []
        plugins = [(kind, name) for kind in kinds for name in sorted(kind._entries)]
        plugins.sort(key=lambda plugin: not is_ours(plugin[0]._entries[plugin[1]]))
        complete = True
        for kind, name in plugins:
            assert kind._options
            try:
                options = [*kind._options(kind[name])]
            except (GaugeError, ImportError):  # as within its module
                complete = False
                continue
            newcomer = not is_ours(kind._entries[name])
            if newcomer and (clash := next(kind._clashes(options, before), None)):
                warnings.warn(
                    f"The {kind.kind} '{name}' of the package {kind.package_name(name)} is left "
                    f"out, because its option {clash}; rename it there.",
                    PluginWarning,
                    stacklevel=4,
                )
                del kind._entries[name]
                kind._registered.pop(name, None)
            else:
                before += [(kind, name, option) for option in options]
        return complete

    def _clashes(
        self, options: Iterable[PluginOption], before: list[tuple[Registry[Any], str, PluginOption]]
    ) -> Iterator[str]:
        """Yield how options of a plug-in of this kind clash with the program or what is before it.

        A kind shares options, as those that are chosen `alone` do with others. A value of any other
        shared option could not tell for which of two kinds it is.
        """
        for option in options:
            met = [(k, n, option.same_meaning(o)) for k, n, o in before if o.name == option.name]
            shared = any(kind is self and x for kind, _, x in met)
            if option.name in Registry.reserved and not (shared or self._alone):
                yield f"{option.flag} has the name of an option of the program itself"
            for kind, name, identical in met:
                own_kind = kind is self
                if not (
                    (identical and (own_kind or self._alone))
                    or (self._alone if own_kind else shared)
                ):
                    meaning = "is also one" if identical else "has another meaning than that"
                    owner = f"{kind.kind} {name} of the package {kind.package_name(name)}"
                    yield f"{option.flag} {meaning} of the {owner}"

    def package_name(self, name: str) -> str:
        """Return the name of the package that brings a plug-in."""
        entry = self._entries.get(name)
        return entry.dist.name if entry and entry.dist else "of this program"

    @cached_property
    def _entries(self) -> dict[str, EntryPoint]:
        return {entry.name: entry for entry in entry_points(group=self._group)}


def package_of(module: str) -> str:
    """Return the top-level package of a module."""
    return module.partition(".")[0]


def check_attributes(thing: object, base: type) -> None:
    """Check that a plug-in has what its base class demands."""
    owner = thing if isinstance(thing, type) else type(thing)
    if not issubclass(owner, base):
        raise ValueError(f"is not a {base.__name__}; derive it from that class")
    if missing := sorted(getattr(owner, "__abstractmethods__", ())):
        raise ValueError(f"lacks {in_words(missing)}; define every abstract method of its base")
    for name, annotation in demanded(base).items():
        if isinstance(thing, type) and not annotation.startswith("ClassVar"):
            continue
        kind = annotation.removeprefix("ClassVar[").removesuffix("]")
        attribute = inspect.getattr_static(thing, name, None)
        if attribute is None:
            raise ValueError(f"has no {name}; declare {name}, of the type {kind}")
        if isinstance(attribute, property | cached_property):
            continue
        if kind == "str" and not (isinstance(attribute, str) and attribute.strip()):
            raise ValueError(f"has the {name} {attribute!r}; declare a text that is not empty")
        words = isinstance(attribute, tuple) and all(isinstance(x, str) for x in attribute)
        if kind == "tuple[str, ...]" and not words:
            raise ValueError(f"has the {name} {attribute!r}; declare a tuple of texts")


@cache
def demanded(base: type) -> dict[str, str]:
    """Return the attributes that a subclass must define, with their types.

    They are those that a class and its bases annotate without a value. Attributes that the
    constructor of a data class sets are among them.
    """
    annotations: dict[str, str] = {}
    for owner in reversed(base.__mro__):
        declared = vars(owner).get("__annotations__", {})
        annotations |= {
            name: str(kind) for name, kind in declared.items() if not name.startswith("_")
        }
    return {name: kind for name, kind in annotations.items() if not hasattr(base, name)}


def similar(word: str, words: Iterable[str]) -> str:
    """Return the most similar of the known words, or an empty text if none is similar.

    Short words with a wrong letter still match, but not ``topology`` and ``polyakov`` or ``delete``
    and ``generate``. A part between dashes, such as ``wilson``, stands for the only word that has
    it. Leading dashes, which all options share, make none similar.
    """
    bare = {plain(x): x for x in reversed([*words])}
    target = plain(word)
    having = [x for x in bare if target in x.split("-")]
    cutoff = SIMILARITY if len(target) > SHORT else SHORT_SIMILARITY
    match = difflib.get_close_matches(target, bare, n=1, cutoff=cutoff)
    matches = match or (having if len(having) == 1 else [])
    return bare[matches[0]] if matches else ""


SIMILARITY, SHORT_SIMILARITY = 0.65, 0.5
"""Required similarity of two words, as `difflib` defines it, and of a short one to another."""

SHORT = 3
"""Letters of a short word."""


def plain(word: str) -> str:
    """Return a word in small letters, with dashes within but not before it."""
    return word.lstrip("-").replace("_", "-").casefold()


MOST_NAMES = 12
"""Number of names above which a message does not list them."""


def nearest(word: str, choices: Iterable[str], where: str = "--help") -> str:
    """Return the end of a message about an unknown word: what is meant, or all words."""
    choices = list(choices)
    if not choices:
        return "."
    dashes = "--" if choices[0].startswith("--") else ""
    names = {plain(x) for x in choices}
    meanings = [
        f"'{dashes}{meaning}'"
        for meaning, words in WORDS.items()
        if plain(word) in words.split() and meaning.split()[0] in names
    ]
    if meanings and plain(word) not in names:
        return f"; here it is {in_words(meanings, 'or')}."
    if match := similar(in_any_case(word, choices), choices):
        return f"; did you mean '{match}'?"
    if len(choices) > MOST_NAMES:
        return f"; {where} lists all."
    return f"; choose {in_words(choices, 'or')}."


def first_few(names: Sequence[str]) -> str:
    """Return the first three names in words, with the number of the others."""
    more = len(names) - 3
    return in_words([*names[:3], *([f"{more} more"] if more > 0 else [])])


def in_any_case(word: str, words: Iterable[str]) -> str:
    """Return the known word that differs from a word only in case, or else the word itself."""
    words = list(words)
    alike = [x for x in words if x.casefold() == word.casefold()]
    return alike[0] if word not in words and len(alike) == 1 else word


def words_in_any_case(text: str, words: Iterable[str], separator: str = "") -> str:
    """Return a text in which known words, given in any case, are as they are written.

    A word ends at a colon, after which its options follow.
    """
    words = list(words)

    def corrected(part: str) -> str:
        word, colon, options = part.partition(":")
        return in_any_case(word, words) + colon + options

    return separator.join(map(corrected, text.split(separator) if separator else [text]))


def in_words(words: Iterable[str], conjunction: str = "and") -> str:
    """Join words as in ``a, b and c``."""
    *first, last = [*words] or [""]
    return f"{', '.join(first)} {conjunction} {last}" if first else last
