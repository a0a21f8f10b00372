"""Versions of the Markov chain: the same parameters and seed give the same links in each of them.

1. Links are divided by the norms of their rows. In single precision the squares of the norms are
   off by 1e-7 on average (too large on a CPU, too small on a GPU), and so is the mean plaquette,
   relatively by 2e-7. That is far below its statistical error.
2. Links in single precision are reunitarised without this bias. In double precision both versions
   have the same links.
"""

from __future__ import annotations

from gauge_mc import defaults
from gauge_mc.devices.kernels import Choice

FIRST = 1
"""The version of chains that do not state theirs."""

LATEST = 2
"""The highest version."""

ROUNDED = Choice.of("norms", "", "update/norms.h", "RoundedNorms")
UNBIASED = Choice.of("norms", "", "update/norms.h", "UnbiasedNorms")


def norms_of(precision: str, version: int = defaults.CHAIN_VERSION) -> Choice:
    """Return the compile-time selection of the reunitarisation in updates."""
    return UNBIASED if version >= 2 and precision == "single" else ROUNDED
