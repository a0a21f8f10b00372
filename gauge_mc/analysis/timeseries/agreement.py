"""Agreement of chains that began from different starts."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gauge_mc.analysis.timeseries.gamma_method import LEAST_BINS, estimate

DISAGREEMENT = 4.0
"""Difference of two means, in standard errors, from which on chains disagree."""


class SampledChain(NamedTuple):
    """A quantity along a chain."""

    sweeps: NDArray[np.int64]
    """Numbers of updates, of shape (samples,), ascending."""
    values: NDArray[np.float64]
    """Values, of shape (samples,)."""


class Agreement(NamedTuple):
    """How two chains agree."""

    update: int
    """Last update of the stretches in which they disagree; 0 if there is none."""
    reached: bool
    """Whether they agree in the last half of the updates that both have done."""


def agreement(first: SampledChain, second: SampledChain) -> Agreement | None:
    """Return from where two chains agree.

    The updates that both have done are divided into stretches, of which each is as long as all
    before it together: the last is the second half, the one before it the second quarter, and so
    on. Chains agree in a stretch if their means in it differ by less than `DISAGREEMENT` standard
    errors, which follow from the fluctuations and autocorrelation times in the second halves. A
    stretch counts, with all before it, if they disagree in it. So an exponential approach is seen
    where it ends, and few comparisons are made.

    Parameters
    ----------
    first, second : SampledChain
        A quantity along two chains with the same parameters.

    Returns
    -------
    Agreement or None
        None if the second half has fewer than `LEAST_BINS` measurements of a chain, or values that
        are no numbers, so that nothing can be said.
    """
    chains = [one for one in (first, second) if one.sweeps.size]
    if len(chains) < 2:
        return None
    begin = max(int(one.sweeps[0]) for one in chains) - 1
    end = min(int(one.sweeps[-1]) for one in chains)
    edges = [end]
    while edges[-1] > begin + 1:
        edges.append(begin + (edges[-1] - begin) // 2)
    late = [_within(one, edges[1], end) for one in chains if len(edges) > 1]
    if len(late) < 2 or any(one.size < LEAST_BINS or not np.isfinite(one).all() for one in late):
        return None
    spreads = [(float(one.std()), max(0.5, estimate(one).tau_int)) for one in late]
    for number, (high, low) in enumerate(pairwise(edges)):
        values = [_within(one, low, high) for one in chains]
        if not all(one.size for one in values):
            break
        error = math.hypot(
            *(
                spread * math.sqrt(min(1.0, 2 * tau / one.size))
                for (spread, tau), one in zip(spreads, values, strict=True)
            )
        )
        if abs(values[0].mean() - values[1].mean()) > DISAGREEMENT * error:
            return Agreement(high, number > 0)
    return Agreement(0, True)


def _within(chain: SampledChain, low: int, high: int) -> NDArray[np.float64]:
    """Return the values after an update, up to another one."""
    return chain.values[(chain.sweeps > low) & (chain.sweeps <= high)]
