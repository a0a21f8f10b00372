"""Versions of the Markov chain: the same parameters and seed give the same links in each of them.

1. Links are divided by the norms of their rows (all chains of gauge-mc 0.1). In single precision
   the squares of the norms are too large by 7e-8 on average, and the mean plaquette by 1.4e-7 of
   its value.
2. Links in single precision are reunitarised without this bias. In double precision both versions
   have the same links.
"""

from __future__ import annotations

from gauge_mc.devices.kernels import Choice

FIRST = 1
"""The version of chains that do not state theirs."""

LATEST = 2
"""The version of new chains."""

ROUNDED = Choice.of("norms", "", "update/norms.h", "RoundedNorms")
UNBIASED = Choice.of("norms", "", "update/norms.h", "UnbiasedNorms")


def norms_of(precision: str, version: int = LATEST) -> Choice:
    """Return the compile-time selection of the reunitarisation in updates."""
    return UNBIASED if version >= 2 and precision == "single" else ROUNDED
