"""Values that a shell completes, and that are read in any case."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gauge_mc.registry import words_in_any_case


def leave_values(parameters: Iterable[Any]) -> None:
    """Leave the values of parameters as text while a shell completes.

    Converting them would import what takes a third of the time.
    """
    for one in parameters:
        one.process_value = lambda ctx, value: value


def choosing(words: Iterable[str], separator: str | None = None) -> dict[str, Any]:
    """Return arguments of `typer.Option` for an option whose value begins with a known word.

    A shell completes the words, and they are read in any case. Other values are left as they are,
    so that the owner of the option can refuse them.

    Parameters
    ----------
    words : iterable of str
        The known words, which completion offers.
    separator : str, optional
        Character between the values of a list, as in ``plaquette,flow:50``.
    """
    known = list(words)

    def complete(incomplete: str) -> list[str]:
        before, found, _ = incomplete.rpartition(separator) if separator else ("", "", "")
        return [before + found + word for word in known]

    def read(text: str) -> str:
        return words_in_any_case(text, known, separator or "")

    return {"autocompletion": complete, "parser": read}
