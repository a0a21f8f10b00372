"""By which version of its sources an observable is measured.

A kernel or a plug-in may change between two measurements. So tables say by which sources their rows
were made: with the digest of the module of the observable, of the modules with the calculation that
it imports, and of their kernels with the headers of these. What moves links and numbers, but does
not calculate (``arch/`` in ``cuda_src``, files, devices, the field itself), does not count.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from gauge_mc.devices.kernels import SELECTING_HEADERS
from gauge_mc.devices.source import included, source_folder
from gauge_mc.files.table import TableData
from gauge_mc.observables import Observable, observable_of_table

PACKAGE = Path(__file__).parents[1]

CALCULATIONS = ("fields", "flows", "observables", "quarks", "smearing", "temporal_links")
"""Packages whose modules calculate what is measured."""

REGISTRIES = ("flows", "smearing", "temporal_links")
"""Those of these packages that have parts by name, of which an option chooses one."""

FRAMES = ("fields/field.py", "observables/__init__.py")
"""Modules of these packages on which all observables depend, but no result."""

OTHER_SOURCES = ", some made by other sources of the observable than those of now"
"""Words about the rows of a table."""

IMPORT = re.compile(
    r"^[ \t]*(?:from (gauge_mc[\w.]*) import (\([^)]*\)|[^\n]*)|import (gauge_mc[\w.]*))", re.M
)
KERNEL = re.compile(r"""\bKernel\(\s*["'](\w+)["']""")


def sources_of(observable: type[Observable]) -> str:
    """Return the digest of the sources of an observable in 16 hexadecimal digits.

    It does not depend on the machine, the folder of the package or the ends of lines.
    """
    # Classes of a session of Python have no file.
    module = Path(getattr(sys.modules.get(observable.__module__), "__file__", None) or "")
    kernel = observable.main_kernel
    return _digest_of(module, *([kernel.source] if kernel else []))


def made_by_others(table: TableData) -> bool:
    """Return whether a table says that other sources than those of now have made rows."""
    observable = observable_of_table(table)
    return observable is not None and not {*table.sources} <= {sources_of(observable)}


@cache
def _digest_of(module: Path, *kernels: Path) -> str:
    modules = _modules(module)
    paths = {*modules, *_files({*kernels, *_kernels(modules)})}
    texts = ((one.name.encode(), one.read_bytes().replace(b"\r\n", b"\n")) for one in paths)
    parts = (part + b"\0" for text in sorted(texts) for part in text)
    return hashlib.sha256(b"".join(parts)).hexdigest()[:16]


def _modules(first: Path) -> dict[Path, str]:
    """Return the texts of a module and of the modules with calculations that it imports.

    Of a package whose parts are registered, these are all parts.
    """
    found: dict[Path, str] = {}
    frames = {PACKAGE / frame for frame in FRAMES}
    new = [first]
    while new:
        path = new.pop()
        if path in found or path in frames or not path.is_file():
            continue
        found[path] = path.read_text(encoding="utf-8")
        for name in _imported(found[path]):
            imported = PACKAGE.parent.joinpath(*name.split("."))
            new.append(imported.with_suffix(".py"))
            if name.count(".") > 1 or name.split(".")[1] in REGISTRIES:
                new += imported.glob("*.py")
    return found


def _imported(text: str) -> Iterator[str]:
    """Yield the full names of what a module imports from packages with calculations."""
    for module, names, alone in IMPORT.findall(text):
        for name in (module or alone, *(f"{module}.{one}" for one in re.findall(r"\w+", names))):
            if name.split(".")[1:2] and name.split(".")[1] in CALCULATIONS:
                yield name


def _kernels(modules: Mapping[Path, str]) -> set[Path]:
    """Return the source files of the kernels that modules name."""
    named = ((path.parent, name) for path, text in modules.items() for name in KERNEL.findall(text))
    places = (
        folder / f"{name}.cu"
        for beside, name in named
        for folder in (beside, source_folder() / "kernels")
    )
    return {one for one in places if one.is_file()}


def _files(kernels: Iterable[Path]) -> set[Path]:
    """Return the files of kernels, with the headers of all choices on which they depend."""
    found = {one for kernel in kernels for one in included((kernel,))}
    for header in SELECTING_HEADERS.values():
        path = source_folder() / header
        if path in found:
            found |= {*path.parent.glob("*.h")}
    return {one for one in found if one.parent.name != "arch"}
