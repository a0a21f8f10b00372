"""Versions of the sources that make the rows of tables.

A version is a digest of texts: of the Python modules of an observable and of its kernels. Any
change of a text counts, comments too, and line ends do not. These are the texts:

- the module that declares the observable, and the modules of `PARTS` that it imports, directly or
  through others; of another package's observable also the modules of that package;
- all modules of this package from which an option chooses, such as smearings;
- the kernels that these modules and the classes in them have as attributes, with the headers that
  they include and those of the choices on which they depend.

How lattices are stored and divided, and how a machine computes (`FRAME` and ``cuda_src/arch``), is
left out. All observables share it, so that every table would be out of date after any change of it.
Things of other packages that an option chooses, such as a smearing, are left out as well.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.util import resolve_name
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from gauge_mc.devices.kernels import SELECTING_HEADERS, Kernel
from gauge_mc.devices.source import included, source_folder
from gauge_mc.errors import GaugeError
from gauge_mc.files.table import UNKNOWN_SOURCES, TableData, read_heading
from gauge_mc.groups import GROUPS
from gauge_mc.observables import OBSERVABLES, OF_TABLE, Observable
from gauge_mc.registry import QUANTITIES, Registry
from gauge_mc.run.functions import FunctionObservable

OURS = __name__.partition(".")[0]
"""Name of this package."""

PARTS = {"fields", "flows", "observables", "quarks", "rounded", "smearing"}
PARTS |= {"temporal_links", "updates"}
"""Parts of this package, also in folders of results, that compute what observables measure."""

FRAME = {f"{OURS}.observables", f"{OURS}.fields.field"}
"""Modules that every observable imports, which are left out."""

MAIN = "__main__"
"""Module of a script or notebook, of which only the class of the observable counts."""

DIGITS = 16
"""Number of hexadecimal digits of a version."""


def sources_of(observable: Observable | type[Observable], group: str) -> str:
    """Return the version of the sources of an observable, for fields of a gauge group.

    The files are read once in a process.

    Returns
    -------
    str
        The digest; empty if the sources cannot be read, or this is no observable of fields, such as
        the records of updates.
    """
    if isinstance(observable, FunctionObservable):
        return _digest({"function": observable.text}) if observable.text else ""
    kind: type = observable if isinstance(observable, type) else type(observable)
    known = OBSERVABLES.get(getattr(kind, "name", ""))
    if known and issubclass(kind, known):  # `for_lattice` may return one of a subclass
        kind = known
    return _sources_of(kind, group)


@cache
def _sources_of(kind: type, group: str) -> str:
    home = kind.__module__
    own = home.partition(".")[0]
    if not _is_covered(home, own):
        return ""
    try:
        modules = _modules(home) if home != MAIN else {MAIN: import_module(MAIN)}
        texts = {name: _text(one) for name, one in modules.items() if name != MAIN}
        if home == MAIN:
            texts[MAIN] = inspect.getsource(kind)
        kernels = {*_kernels(map(vars, (*modules.values(), kind)))}
        for path in _files(kernels, group):
            inside = source_folder() in path.parents
            texts[str(path.relative_to(source_folder())) if inside else path.name] = _read(path)
    except Exception:  # a module may raise anything when it is imported
        return ""
    return _digest(texts)


def rows_of_others(path: Path, table: TableData) -> int:
    """Return the number of rows of a table that other sources made than those of this version.

    Rows whose version is unknown are not counted, and 0 is returned if that of the present sources
    is unknown.

    Parameters
    ----------
    path : Path
        The table. Beside that of a secondary table is the one that names the observable.
    table : TableData
        Its content.
    """
    known = {one for one in table.sources.values() if one != UNKNOWN_SOURCES}
    kind = _observable_of(path, table.header) if known else None
    if kind is None or "group" not in table.header:
        return 0
    return int(mask_of_others(table, sources_of(kind, table.header["group"])).sum())


def mask_of_others(table: TableData, sources: str) -> NDArray[np.bool_]:
    """Return a mask of the rows of a table that other sources made than those of a version.

    Rows of unknown sources are not among them, and none is if `sources` is empty.
    """
    mask = np.zeros(len(table), np.bool_)
    places = [*table.sources, len(table)]
    for one, begin, end in zip(table.sources.values(), places, places[1:], strict=False):
        mask[begin:end] = bool(sources) and one not in (sources, UNKNOWN_SOURCES)
    return mask


def _observable_of(path: Path, header: Mapping[str, str]) -> type[Observable] | None:
    """Return the observable of a table or of a secondary table; None if it is unknown."""
    try:
        if OF_TABLE in header:
            header = read_heading(path.with_name(header[OF_TABLE]))[0]
        return OBSERVABLES.get(header.get("observable", ""))
    except (GaugeError, ValueError):
        return None


def _modules(name: str) -> dict[str, ModuleType]:
    """Return a module and those that it imports, as far as they are covered, by name in order."""
    own = name.partition(".")[0]
    found: dict[str, ModuleType] = {}
    left = [name]
    while left:
        one = left.pop()
        if one not in found:
            found[one] = module = import_module(one)
            left += [other for other in _imports(one) if _is_covered(other, own)]
            left += _choices(module)
    return dict(sorted(found.items()))


def _is_covered(module: str, own: str) -> bool:
    """Return whether a module is covered that a module of the package `own` imports."""
    first, *others = module.split(".")
    if module.startswith(f"{QUANTITIES}."):
        others = others[2:]
    if first == OURS:
        return others[:1] != [] and others[0] in PARTS and module not in FRAME
    return first == own


@cache
def _imports(name: str) -> tuple[str, ...]:
    """Return the names of the modules that a module imports when it runs."""
    module, found = import_module(name), list[str]()
    own = name.partition(".")[0]
    left: list[ast.AST] = [ast.parse(_text(module))]
    while left:
        node = left.pop()
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            left += node.orelse
            continue
        for block in ("body", "orelse", "finalbody", "handlers"):
            inside = getattr(node, block, ())
            left += inside if isinstance(inside, list) else ()
        if isinstance(node, ast.Import):
            found += [one.name for one in node.names]
        elif isinstance(node, ast.ImportFrom):
            stem = "." * node.level + (node.module or "")
            home = resolve_name(stem, module.__package__) if node.level else stem
            inner = [f"{home}.{one.name}" for one in node.names]
            found += [one if _is_covered(one, own) and _is_module(one) else home for one in inner]
    return tuple(found)


def _is_module(name: str) -> bool:
    """Return whether a name that is imported from a package is a module of it."""
    home, _, last = name.rpartition(".")
    folders = [Path(one) for one in getattr(import_module(home), "__path__", ())]
    files = (file for one in folders for file in (one / f"{last}.py", one / last / "__init__.py"))
    return any(file.is_file() for file in files)


def _choices(module: ModuleType) -> list[str]:
    """Return the modules of a package whose things are registered, which nobody imports by name."""
    registries = [one for one in vars(module).values() if isinstance(one, Registry)]
    if not _is_covered(module.__name__, "") or not hasattr(module, "__path__") or not registries:
        return []
    return [f"{module.__name__}.{one.name}" for one in iter_modules(module.__path__)]


def _kernels(namespaces: Iterable[Mapping[str, object]]) -> Iterator[Kernel]:
    """Yield the kernels among the attributes of modules and of the classes that they declare."""
    for names in namespaces:
        for value in names.values():
            if isinstance(value, type) and value.__module__ == names.get("__name__"):
                yield from _kernels([vars(value)])
            several = value if isinstance(value, tuple | list) else (value,)
            for one in several:
                kernel = getattr(one, "kernel", one) if not isinstance(one, type) else None
                if isinstance(kernel, Kernel):
                    yield kernel


def _files(kernels: Iterable[Kernel], group: str) -> list[Path]:
    """Return the sources of kernels, the headers that they include, and those of choices."""
    machine = source_folder() / "arch"
    roots: set[Path] = set()
    for kernel in kernels:
        roots.add(kernel.source)
        for kind in kernel.kinds:
            if kind == "group":
                roots.add(source_folder() / GROUPS[group].header)
            else:
                roots.update((source_folder() / SELECTING_HEADERS[kind]).parent.glob("*.h"))
    return [path for path in sorted(included(tuple(sorted(roots)))) if machine not in path.parents]


def _text(module: ModuleType) -> str:
    return _read(Path(inspect.getfile(module)))


def _read(path: Path) -> str:
    """Return a text, whose lines end as on all machines."""
    return path.read_text(encoding="utf-8")


def _digest(texts: Mapping[str, str]) -> str:
    digest = hashlib.sha256()
    for name, text in sorted(texts.items()):
        digest.update(f"{name}\0{text}\0".encode())
    return digest.hexdigest()[:DIGITS]
