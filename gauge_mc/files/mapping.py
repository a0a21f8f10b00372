"""Mappings for users of Python: files that are read on demand, and names with suggestions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from gauge_mc.errors import UnknownNameError
from gauge_mc.registry import in_words, nearest

K = TypeVar("K", str, int)
V = TypeVar("V")


class FileMapping(Mapping[K, V]):
    """Files by name or number. Each is read anew whenever it is asked for.

    Parameters
    ----------
    kind : str
        Name of the kind, such as ``table``, for messages.
    files : mapping of str or int to Path
        Paths of the files.
    read : callable
        Function that reads one of them.
    """

    def __init__(self, kind: str, files: Mapping[K, Path], read: Callable[[Path], V]) -> None:
        self._kind, self._read = kind, read
        self._files: Mapping[K, Path] = files

    def __getitem__(self, key: K) -> V:
        """Read a file.

        Raises
        ------
        UnknownNameError
            If there is no such file; this is a `UsageError` and a `KeyError`.
        GaugeError
            If the file is damaged.
        """
        if key not in self._files:
            raise unknown(self._kind, key, self._files)
        return self._read(self._files[key])

    def __contains__(self, key: object) -> bool:
        return key in self._files

    def __iter__(self) -> Iterator[K]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)

    def __repr__(self) -> str:
        names = f": {in_words(_ends([*self]))}" if self else ""
        return f"<{len(self)} {self._kind}{'s' * (len(self) != 1)}{names}>"


class SuggestingDict(dict[str, V]):
    """A dictionary whose error for an unknown name suggests the nearest one."""

    def __missing__(self, name: str) -> Any:
        raise unknown("entry", name, self)


def unknown(kind: str, key: str | int, known: Mapping[Any, object]) -> UnknownNameError:
    """Return the error for an unknown name or number, with the nearest one."""
    if not known:
        return UnknownNameError(f"There is no {kind} '{key}', and no other either.")
    if isinstance(key, int) and not isinstance(next(iter(known)), str):
        close = min(known, key=lambda one: abs(one - key))
        return UnknownNameError(f"There is no {kind} {key}; the nearest is {close}.")
    return UnknownNameError(f"There is no {kind} '{key}'{nearest(str(key), map(str, known))}")


def _ends(keys: list[Any]) -> list[str]:
    """Return the keys as text, without those in the middle of a long list."""
    words = [*map(str, keys)]
    return words if len(words) <= 6 else [*words[:2], "…", words[-1]]
