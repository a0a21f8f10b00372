"""Studies of errors on chains of small lattices; see `lattice_coverage`."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gauge_mc.analysis.timeseries import Estimate

Series = dict[str, np.ndarray]
"""Quantities measured along a chain, of shape (measurements, …)."""


Found = tuple[str, float, float, bool]
"""A quantity, its value and error, and whether a caution is shown."""

COMMON = {"group": "su2", "thermalize": 60, "format": "none"}


@dataclass(frozen=True)
class Study:
    """Chains of one or several ensembles, and what is found from them."""

    kind: str
    """Name in the table."""
    ensembles: list[dict[str, Any]]
    """Parameters; a chain is one run of each of them."""
    read: Callable[[Path], tuple[Any, Series]]
    """Function of a run directory that returns what all runs share, and the series."""
    results: Callable[[list[Any], list[Series]], Iterator[Found]]
    """Function of both, of every ensemble, that yields the quantities."""
    slow: tuple[str, ...]
    """Names of the series whose τ_int counts."""


def pair(one: Estimate) -> tuple[float, float]:
    """Return value and error."""
    return one.value, one.error
