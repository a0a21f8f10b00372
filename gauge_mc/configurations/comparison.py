"""Comparison of configurations: whether a file has the links of another one, bit for bit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gauge_mc.configurations.reading import Configuration
from gauge_mc.errors import DamagedError
from gauge_mc.storage.links import Links


def first_difference(source: Configuration, copy: Configuration) -> str:
    """Return why a file does not have the links of another one, or an empty text if it does.

    Both are read by their own formats, and every number of the copy is compared with that of the
    source, rounded to the precision of the copy. A last row that the source does not store is not
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
        return f"its links are those of {kinds[1][0]} on {kinds[1][1]}"
    rows, precision = source.stored.rows, copy.header.precision
    copies = copy.slices()
    for t, links in enumerate(source.slices()):
        try:
            others = next(copies)
        except DamagedError as error:
            return error.reason
        differ = _words(_rounded(links, precision)[..., :rows, :]) != _words(others[..., :rows, :])
        if differ.any():
            return f"{source.stored.place(t, int(np.argmax(differ)))} is another one"
    return ""


def _rounded(links: Links, precision: str) -> Links:
    return links.astype(np.complex64).astype(np.complex128) if precision == "single" else links


def _words(links: Links) -> NDArray[np.void]:
    """Return the bytes of each link, in the order of `StoredLinks.place`."""
    n = links.shape[-1] * links.shape[-2]
    flat = np.ascontiguousarray(links).reshape(-1, n)
    return flat.view(np.dtype((np.void, flat.itemsize * n))).reshape(-1)
