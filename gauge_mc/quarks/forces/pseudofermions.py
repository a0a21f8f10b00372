"""Pseudofermions: random vectors on the even sites."""

from __future__ import annotations

from gauge_mc.devices.kernels import Kernel
from gauge_mc.fields.random_field import Random
from gauge_mc.quarks.vectors.spinors import SpinorField

PSEUDOFERMIONS = Kernel("pseudofermions")

FIRST_SUBSTREAM = 1
"""Sub-stream of the first field; that of the momenta is 0."""


def draw_vectors(vectors: SpinorField, random: Random, number: int) -> None:
    """Draw vectors eta on the sites of one parity with the weight exp(-eta^dagger eta).

    The numbers of a site depend only on the seed, the site, `random.step` and the field's number,
    and differ from those of the momenta. Generators with a state go on with it instead.

    Parameters
    ----------
    vectors : SpinorField
        Vectors in the precision of the links, which are overwritten.
    random : Random
        The random numbers of the lattice.
    number : int
        Number of the field among those that are drawn for a trajectory, from 0; with several
        vectors, or a fifth direction, that of the first one.
    """
    for vector in range(vectors.vectors):
        for n, slab in enumerate(vectors.slabs):
            slab.launch(
                PSEUDOFERMIONS,
                slab.whole(vectors.parities[0]),
                vectors.storage.choice,
                random.choice,
                vectors=vectors.structure(slab),
                stream=random.stream(n),
                vector=vector,
                substream=FIRST_SUBSTREAM + number + vector,
            )
