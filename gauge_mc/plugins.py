"""Entry points of all packages, and where the code of others fails.

This package and each folder of ``extensions`` have a file ``entry_points.txt``, in the format that
installed packages have. A folder that is removed takes its entry points along.
"""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from importlib.metadata import EntryPoint, EntryPoints, PathDistribution
from pathlib import Path
from types import CodeType
from typing import Any, cast

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
    return EntryPoints(
        entry for folder in folders for entry in FolderDistribution(folder).entry_points
    )


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
    """Return the place in an installed plug-in that an error comes from; None if it is of none.

    The place is the last line of a plug-in that was carried out. If a function of a plug-in was
    called with arguments that it does not take, no line was, and the place is the beginning of the
    function.
    """
    packages = _packages()
    found = None
    for frame, line in traceback.walk_tb(error.__traceback__):
        if name := packages.get(str(frame.f_globals.get("__name__", "")).partition(".")[0]):
            found = PluginFailure(name, frame.f_code.co_filename, line)
    if found is None and isinstance(error, TypeError) and (called := CALLED.match(str(error))):
        places = _functions(called[1], packages)
        found = next((PluginFailure(n, c.co_filename, c.co_firstlineno) for n, c in places), None)
    return found


def _packages() -> dict[str, str]:
    """Return the top-level packages of all plug-ins, with the names of their distributions."""
    groups = [group for group in installed().groups if group.startswith(GROUPS)]
    entries = [entry for group in groups for entry in installed().select(group=group)]
    tops = {entry: re.split("[.:]", entry.value)[0] for entry in entries}
    return {top: entry.dist.name if entry.dist else top for entry, top in tops.items()}


def _functions(name: str, packages: dict[str, str]) -> Iterator[tuple[str, CodeType]]:
    """Yield the functions and methods of a qualified name in the modules of plug-ins."""
    for module, content in [*sys.modules.items()]:
        if package := packages.get(module.partition(".")[0]):
            one: Any = content
            for part in name.split("."):
                one = getattr(one, part, None)
            code = getattr(one, "__code__", None)
            if isinstance(code, CodeType):
                yield package, code
