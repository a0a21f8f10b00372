"""Values of variables within a context."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

T = TypeVar("T")


@contextmanager
def in_context(variable: ContextVar[Any], value: T) -> Iterator[T]:
    """Give a variable a value within a context, which yields the value."""
    token = variable.set(value)
    try:
        yield value
    finally:
        variable.reset(token)
