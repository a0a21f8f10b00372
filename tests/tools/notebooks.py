"""Carry out notebooks, and compare what they show with what is stored in them.

``python -m tests.tools.notebooks docs/how-to/r0.ipynb`` writes what its cells show today into it.
"""

from __future__ import annotations

import html
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

NUMBER = re.compile(r"[-−]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
LONGEST = 300
"""Seconds after which a cell is stopped."""


def executed(path: Path, folder: Path) -> Any:
    """Return a notebook with new outputs, after its cells have been carried out in a folder."""
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=LONGEST,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
        record_timing=False,
    )
    client.execute()
    notebook.metadata.pop("language_info", None)  # which names the version of Python
    return notebook


def shown(cell: Any) -> str:
    """Return what a reader sees below a cell, without pictures and the version of gauge-mc."""
    words = []
    for one in cell.get("outputs", ()):
        data = one.get("data", {})
        text = one.get("text") or data.get("text/html") or data.get("text/plain") or ""
        if "text/html" in data:
            text = html.unescape(re.sub(r"<[^>]*>", " ", re.sub(r"(?s)<svg.*?</svg>", "", text)))
        words.append(text)
    return re.sub(r"gauge-mc \d[\w.]*", "gauge-mc", " ".join(" ".join(words).split()))


def differences(stored: Any, new: Any) -> list[str]:
    """Return what differs between the outputs of two notebooks.

    Words must be equal, and numbers up to one unit of their last digit, since other libraries for
    linear algebra round otherwise.
    """
    found = []
    for number, (old, now) in enumerate(zip(stored.cells, new.cells, strict=True)):
        before, after = shown(old), shown(now)
        if NUMBER.sub("#", before) != NUMBER.sub("#", after):
            found.append(f"Cell {number} shows other words: {before!r} became {after!r}")
        pairs = zip(NUMBER.findall(before), NUMBER.findall(after), strict=False)
        found += [f"Cell {number}: {a} became {b}" for a, b in pairs if not _alike(a, b)]
    return found


def _alike(one: str, two: str) -> bool:
    """Return whether two numbers are equal up to one unit of the last digit of the first."""
    mantissa, _, power = one.replace("−", "-").partition("e")
    unit = 10.0 ** (int(power or 0) - len(mantissa.partition(".")[2]))
    return abs(float(one.replace("−", "-")) - float(two.replace("−", "-"))) <= 1.01 * unit


def main() -> None:
    """Write the outputs of today into notebooks."""
    for name in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as folder:
            made = executed(Path(name), Path(folder))
        nbformat.write(made, name)


if __name__ == "__main__":
    main()
