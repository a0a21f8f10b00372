"""The list of what is done differently with blocks of pages: ``blocks.toml``.

An entry names a page, the lines with which a block of it begins, and directives, which
`tests.documentation.plugin` explains. Without ``block`` they are for the first block of the page.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

LIST = Path(__file__).with_name("blocks.toml")

BLOCK = re.compile("^```(bash|python)$", re.M)
"""First line of a block to run."""

PARSED = ("sh", "py")
"""Languages of blocks that are only parsed: an entry is for a block of another language."""


@cache
def entries() -> dict[str, list[dict[str, Any]]]:
    """Return the entries of all pages, which are named by their paths in the checkout."""
    return tomllib.loads(LIST.read_text(encoding="utf-8"))


def directives_of(entry: dict[str, Any]) -> list[str]:
    """Return the directives of an entry, of which there may be one or a list."""
    run = entry["run"]
    return [run] if isinstance(run, str) else run


def directives(page: str, blocks: Sequence[tuple[str, str]]) -> list[list[str]]:
    """Return the directives for each block of a page, which has a language and a text.

    Raises
    ------
    ValueError
        If an entry is for no block, or may be for several.
    """
    found: list[list[str]] = [[] for _ in blocks]
    for entry in entries().get(page, ()):
        beginning = entry.get("block")
        numbers = [
            number
            for number, (language, text) in enumerate(blocks)
            if language not in PARSED and begins(text, beginning)
        ]
        if beginning is None:
            numbers = numbers[:1]
        if len(numbers) != 1:
            raise ValueError(
                f"{LIST.name}: {len(numbers) or 'no'} blocks of {page} begin with\n"
                f"{beginning or 'any line'}\n"
                "Write as many of the first lines of one block as tell it from the others."
            )
        found[numbers[0]] += directives_of(entry)
    return found


def begins(block: str, lines: str | None) -> bool:
    """Return whether a block begins with whole lines; every block does so with None."""
    return lines is None or f"{block.rstrip()}\n".startswith(f"{lines.rstrip()}\n")


def sharing() -> Iterator[list[str]]:
    """Yield the pages of every folder that pages share."""
    folders: dict[str, list[str]] = {}
    for page, listed in entries().items():
        for words in (words for entry in listed for words in directives_of(entry)):
            if words.startswith("in "):
                folders.setdefault(words, []).append(page)
    yield from folders.values()


def guides(checkout: Path) -> list[str]:
    """Return the pages of the documentation with blocks to run, those of one folder on a line.

    The page that shows files of tests is left out.
    """
    shared = [" ".join(pages) for pages in sharing()]
    docs = checkout / "docs"
    paths = [docs / "tutorial.md", *docs.glob("how-to/*.md"), *docs.glob("extensions/*/*.md")]
    names = sorted(
        str(path.relative_to(checkout))
        for path in paths
        if path.name != "extending.md" and BLOCK.search(path.read_text(encoding="utf-8"))
    )
    return [*shared, *(name for name in names if name not in " ".join(shared).split())]
