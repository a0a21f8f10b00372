"""A test of halo depths: a result in the first time slice does not depend on links far away."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gauge_mc.domain.slab import Slab


def is_local(slab: Slab, depth: int, compute: Callable[[], bytes]) -> bool:
    """Return whether a result in the first slice has the same bits if links far away change.

    Parameters
    ----------
    slab : Slab
        A whole lattice on one device, whose content is replaced.
    depth : int
        The largest distance in time slices of links that do not change.
    compute : callable
        Returns the result in the first slice, given the links in the slab.
    """
    random, real = np.random.default_rng(1), slab.layout.real
    shape = slab.layout.slices, slab.slice_bytes // real.itemsize
    near, far = (random.uniform(-0.5, 0.5, shape).astype(real) for _ in range(2))
    beyond = near.copy()
    away = slice(depth + 1, len(near) - depth)
    beyond[away] = far[away]
    found = []
    for links in (near, beyond):
        slab.device.write(slab.buffer, 0, links.reshape(-1).view(np.uint8))
        found.append(compute())
    return found[0] == found[1]
