"""Results that measurements of the same links share."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")


class ResultCache:
    """Cache of results that depend on the links, such as quark propagators.

    Results are kept only within the context `links_stay`, and only those of one owner at a time.
    """

    def __init__(self) -> None:
        self._owner: object = None
        self._found: dict[Hashable, Any] | None = None

    @contextmanager
    def links_stay(self) -> Iterator[None]:
        """Keep results in this context, and drop them at its end."""
        before, self._found = self._found, {} if self._found is None else self._found
        try:
            yield
        finally:
            self._found = before
            if before is None:
                self._owner = None

    def once(self, owner: object, key: Hashable, compute: Callable[[], T]) -> T:
        """Return a result from the cache, or compute it.

        Parameters
        ----------
        owner : object
            The field to which the result belongs; results of other owners are dropped.
        key : hashable
            All that the result depends on apart from the owner.
        compute : callable
            Function that returns the result.
        """
        if self._found is None:
            return compute()
        if owner is not self._owner:
            self._found.clear()
            self._owner = owner
        if key not in self._found:
            self._found[key] = compute()
        found: T = self._found[key]
        return found
