"""Measurement of Wilson loops on smeared links in temporal gauge."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from gauge_mc.devices.kernels import Kernel
from gauge_mc.domain.layout import BOTH_PARITIES
from gauge_mc.domain.paths import steps_along
from gauge_mc.domain.slab import work
from gauge_mc.fields.field import Field
from gauge_mc.fields.sums import add_slices
from gauge_mc.fields.time_lines import time_lines
from gauge_mc.quantities.potential.observables.loops.loop_set import LoopSet
from gauge_mc.quantities.potential.observables.loops.slab_loops import (
    SlabLoops,
    chunks_of,
    ordered_pairs,
)
from gauge_mc.smearing import Smearing

COPY_LINKS = Kernel("copy_links")

TEMPORAL_GAUGE = Kernel("temporal_gauge")

SPACE = 3
"""Number of spatial directions."""


class LoopMeasurer:
    """Measurement of Wilson loops, which owns the memory of up to two and a half more fields.

    Temporal links other than those of the field need one more field, and smearings of links in
    direction t two more. Smearings and temporal links may need further memory themselves. For
    loops between n levels it owns the links of all levels and lines of each, 1.5 n + 0.3 fields for
    SU(2) and 1.8 n + 0.6 for SU(3). They take n^2 sums instead of n, but the links of each level
    are smeared, and its lines made, once.

    In temporal gauge, links in direction t are 1 except those of the last slice. The gauge is fixed
    before links in space are smeared. It is fixed for each level anew if links in direction t are
    smeared as well, or if they are needed to smear but are not those of the loops.

    Parameters
    ----------
    loops : LoopSet
        Loops to measure.
    like : Field
        A field of the same kind as those to be measured. It is not changed.

    Raises
    ------
    GaugeError
        If the device does not have enough memory.
    """

    def __init__(self, loops: LoopSet, like: Field) -> None:
        self._loops = loops
        kind = (like.lattice, like.group.name, like.precision, like.devices)
        levels = range(loops.matrix_size)
        self._links = [Field.empty(*kind, above=loops.t_max) for _ in levels]
        self._other = Field.empty(*kind, above=loops.t_max)
        slabs = zip(*(one.slabs for one in (self._other, *self._links)), strict=True)
        self._slabs = [SlabLoops(loops, other, links) for other, *links in slabs]
        static, smearing = loops.temporal is not None, loops.smearing if loops.levels[-1] else None
        apart = smearing is not None and (smearing.smears_time or (static and smearing.uses_time))
        self._static = Field.empty(*kind) if static else None
        self._apart = [Field.empty(*kind), Field.empty(*kind)] if apart else []

    def __call__(self, field: Field) -> Iterator[tuple[tuple[int, ...], str, NDArray[np.float64]]]:
        """Measure the loops of a field.

        Yields
        ------
        levels : tuple of int
            Number of smearing iterations; of both spatial sides if there are loops between levels.
        path : str
            Direction of the spatial lines.
        loops : ndarray, shape (steps, t_max), float64
            W(r, t) for r = 1, 2, … steps along the path and t = 1, 2, ….
        """
        for level in self._smeared_levels(field):
            if not self._loops.correlations:
                yield from self._loops_of((level,))
        if self._loops.correlations:
            yield from self._loops_of(self._loops.levels)

    def _loops_of(
        self, levels: tuple[int, ...]
    ) -> Iterator[tuple[tuple[int, ...], str, NDArray[np.float64]]]:
        """Yield the loops of the levels whose links are in their places."""
        columns = 2 if self._loops.correlations else 1
        for path in self._loops.paths:
            for pair, loops in self._along(path).items():
                yield tuple(levels[place] for place in pair[:columns]), path, loops

    def _smeared_levels(self, field: Field) -> Iterator[int]:
        """Yield each level when its links are in their place: a common one, or one for each level.

        Levels have places of their own if they are correlated.
        """
        if self._loops.temporal is not None:
            assert self._static is not None
            self._loops.temporal(field, self._static)
        if not self._apart:
            self._fix_gauge(self._static or field, 0)
        smeared, done = field, 0
        for n, level in enumerate(self._loops.levels):
            place = min(n, len(self._links) - 1)
            for number in range(done, level):
                assert self._loops.smearing is not None
                smearing = self._loops.smearing.iteration(number)
                if self._apart:
                    smeared = self._smear_apart(smearing, smeared)
                else:
                    self._smear(smearing, max(0, place - (number == done)), place)
            done = level
            if self._apart:
                self._fix_gauge(self._with_static_sources(smeared), place)
            self._links[place].exchange_halo(depth=None)
            yield level

    def _smear(self, smearing: Smearing, source: int, target: int) -> None:
        """Smear the links of one place in temporal gauge; the target is the same or another."""
        smearing(self._links[source], self._other)
        self._links[target], self._other = self._other, self._links[target]
        for slab in self._slabs:
            slab.swap(target)

    def _smear_apart(self, smearing: Smearing, source: Field) -> Field:
        """Return the smeared links of a field in any gauge."""
        target = self._apart[0] if source is not self._apart[0] else self._apart[1]
        smearing(source, target)
        return target

    def _with_static_sources(self, smeared: Field) -> Field:
        """Return smeared links in space with the links in direction t of the loops."""
        if self._static is None:
            return smeared
        for slab, other in zip(smeared.slabs, self._static.slabs, strict=True):
            slab.launch(
                COPY_LINKS,
                slab.whole(),
                source=slab.buffer.address,
                target=other.buffer.address,
                directions=(1 << SPACE) - 1,
            )
        self._static.exchange_halo()
        return self._static

    def _fix_gauge(self, field: Field, place: int) -> None:
        """Copy the links in temporal gauge: temporal links are 1 except those of the last slice."""
        all_lines = time_lines(field)
        for lines, target in zip(all_lines, self._links[place].slabs, strict=True):
            slab = lines.slab
            slab.launch(
                TEMPORAL_GAUGE,
                work(0, slab.layout.period, SPACE * slab.layout.replicas, BOTH_PARITIES),
                source=slab.buffer.address,
                target=target.buffer.address,
                before=lines.before.address if lines.before else None,
                slices=slab.layout.slices,
            )
        self._links[place].exchange_halo()

    def _along(self, path: str) -> dict[tuple[int, int], NDArray[np.float64]]:
        """Return W(r, t) of each pair of places, averaged over directions equivalent to a path."""
        sums = [slab.launch(path) for slab in self._slabs]
        rows = add_slices(self._other.devices, [one() for one in sums])
        chunks = chunks_of(self._loops.t_max)
        pairs = [pair for one in ordered_pairs(len(self._links)) for pair in one]
        longest = steps_along(path, self._loops.r_max)
        by_step = rows.reshape(-1, longest, len(pairs), len(chunks), rows.shape[-1])
        parts = [by_step[:, :, :, i, :count] for i, (_, count) in enumerate(chunks)]
        mean = np.mean(np.concatenate(parts, axis=3), axis=0)
        mean /= self._other.group.colours * self._other.lattice.sites
        found = dict(zip(pairs, mean.transpose(1, 0, 2), strict=True))
        return {(i, j): (found[i, j] + found[j, i]) / 2 for i, j in pairs if i <= j}
