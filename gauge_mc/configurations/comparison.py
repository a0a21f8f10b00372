"""Comparison of configurations: whether a file has the links of another one, bit for bit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gauge_mc.configurations.reading import Configuration
from gauge_mc.errors import DamagedError
from gauge_mc.files.averages import Averages
from gauge_mc.results import documented, result_field
from gauge_mc.storage.links import Links


@documented
@dataclass(frozen=True)
class FileComparison:
    """The comparison of a file with the one from which it was converted."""

    verdict: str = result_field(
        "Verdict on the file: ``good`` if every number of its links is that of the source, rounded "
        "to the precision of the file; ``damaged`` if it cannot be read back; ``other`` if it is "
        "intact, but not what the source becomes.",
    )
    difference: str = result_field("Why the file is not ``good``, in words; or empty.", "")
    averages: Averages | None = result_field(
        "Averages over the links of the file, if it is ``good``.", None
    )
    source_averages: Averages | None = result_field(
        "Averages over the links of the source, if the file is ``good``.", None
    )


GOOD, DAMAGED, OTHER = "good", "damaged", "other"
"""Verdicts on a file."""


def compare(source: Configuration, copy: Configuration) -> FileComparison:
    """Compare the links of a file with those of another one.

    Both are read by their own formats, and every number of the copy is compared with that of the
    source, rounded to the precision of the copy. A last row that one of them does not store is not
    compared; it follows from the others, and is checked like all links of the copy.

    Parameters
    ----------
    source : Configuration
        The file.
    copy : Configuration
        Another file, of any format and precision.

    Raises
    ------
    GaugeError
        If the source is damaged, or one of the files cannot be read.
    """
    kinds = [(one.header.group, one.header.lattice) for one in (source, copy)]
    if kinds[0] != kinds[1]:
        return FileComparison(OTHER, f"its links are those of {kinds[1][0]} on {kinds[1][1]}")
    rows = min(one.stored.rows or one.stored.group.colours for one in (source, copy))
    precision = copy.header.precision
    windows = [one.matrices() for one in (source, copy)]
    copies = copy.slices(windows[1])
    for t, links in enumerate(source.slices(windows[0])):
        try:
            others = next(copies)
        except DamagedError as error:
            return FileComparison(DAMAGED, error.reason)
        differ = _words(_rounded(links, precision)[..., :rows, :]) != _words(others[..., :rows, :])
        if differ.any():
            place = source.stored.place(t, int(np.argmax(differ)))
            return FileComparison(OTHER, f"{place} is another one")
    return FileComparison(GOOD, "", windows[1].averages, windows[0].averages)


def _rounded(links: Links, precision: str) -> Links:
    return links.astype(np.complex64).astype(np.complex128) if precision == "single" else links


def _words(links: Links) -> NDArray[np.void]:
    """Return the bytes of each link, in the order of `StoredLinks.place`."""
    n = links.shape[-1] * links.shape[-2]
    flat = np.ascontiguousarray(links).reshape(-1, n)
    return flat.view(np.dtype((np.void, flat.itemsize * n))).reshape(-1)
