"""Pseudofermions of several chains, and their norms."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gauge_mc.devices.source import zero
from gauge_mc.fields.random_field import Random
from gauge_mc.fields.sums import SlabSums, slices_of_all_slabs
from gauge_mc.quarks.forces.pseudofermions import draw_vectors
from gauge_mc.quarks.matrices.linear import EVEN
from gauge_mc.quarks.solvers import Failures, Mask
from gauge_mc.quarks.vectors.algebra import MULTIPLY_SPINORS, PRODUCTS
from gauge_mc.quarks.vectors.spinors import SpinorField
from gauge_mc.updates.energy import Energy


def draw_all(
    vectors: SpinorField, randoms: Sequence[Random], number: int, failures: Failures
) -> Mask:
    """Draw the vectors of the chains without failures as `draw_vectors` does, and return these."""
    wanted = failures.left(np.ones(vectors.replicas, np.bool_))
    for n in np.flatnonzero(wanted).tolist():
        own = vectors.part(range(n, n + 1)) if vectors.replicas > 1 else vectors
        draw_vectors(own, randoms[n], number)
    return wanted


def local_norms(vectors: SpinorField) -> list[Energy]:
    """Return the sum of |v|^2 over the even sites of every replica, as parts from blocks."""
    sums = []
    for slab in vectors.slabs:
        choices, count = (vectors.storage.choice,), vectors.per_site
        one = SlabSums(slab, PRODUCTS, count, slab.whole(EVEN), choices=choices, wide=True)
        own = [vectors.by_vector(slab, n) for n in range(count)]
        one.launch(MULTIPLY_SPINORS, *({"w": zero(type(this)), "r": this} for this in own))
        sums.append(one.by_block())
    found = slices_of_all_slabs(vectors.field.devices, sums)[..., PRODUCTS - 1]
    each = found.reshape(len(found), vectors.replicas, -1)
    return [Energy.of(each[:, n]) for n in range(vectors.replicas)]
