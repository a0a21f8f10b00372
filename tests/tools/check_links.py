"""Links in pages lead to files and headings that exist: `python tests/tools/check_links.py`.

Addresses in the network are not tried, nor anchors of pages that are filled when they are built;
`mkdocs build --strict` checks these.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
PAGES = ("*.md", "docs/**/*.md", "runs/**/*.md", ".github/**/*.md")
FENCE = re.compile(r"^( *)```.*?^\1```", re.M | re.S)
CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"\]\(([^()\s]+)\)")
FILLED = ("<!-- generated:", "<!-- attributes:", "\n::: ", "--8<--")


def pages(root: Path) -> list[Path]:
    """Return the pages of a checkout."""
    return sorted(path for pattern in PAGES for path in root.glob(pattern))


def text_of(page: Path) -> str:
    """Return a page without its blocks of code."""
    return FENCE.sub("", page.read_text())


def anchors(page: Path) -> set[str]:
    """Return the anchors of the headings of a page."""
    found: set[str] = set()
    for heading in re.findall(r"^#+ (.+)$", text_of(page), re.M):
        stated = re.search(r"\{ *#([\w-]+) *\}", heading)
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        plain = unicodedata.normalize("NFKD", words).encode("ascii", "ignore").decode()
        slug = re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())
        found.add(stated[1] if stated else slug)
    return found


def target_of(page: Path, place: str) -> Path:
    """Return the file to which a link leads; the site has the pages of ``runs`` beside its own."""
    target = (page.parent / place).resolve()
    site = CHECKOUT / "docs"
    beside = target.is_relative_to(site / "runs")
    return CHECKOUT / target.relative_to(site) if beside else target


def broken_links(page: Path) -> Iterator[str]:
    """Yield the links of a page that lead nowhere."""
    for link in LINK.findall(CODE.sub("", text_of(page))):
        place, _, anchor = link.partition("#")
        target = target_of(page, place) if place else page
        if re.match(r"[a-z]+:", link):
            continue
        if not target.exists():
            yield link
        elif anchor and target.suffix == ".md":
            filled = any(mark in target.read_text() for mark in FILLED)
            if not filled and anchor not in anchors(target):
                yield link


def main() -> None:
    """Print the links that lead nowhere, and fail if there are any."""
    found = [
        f"{page.relative_to(CHECKOUT)}: {link}"
        for page in pages(CHECKOUT)
        for link in broken_links(page)
    ]
    print(*found, sep="\n", end="\n" * bool(found))
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
