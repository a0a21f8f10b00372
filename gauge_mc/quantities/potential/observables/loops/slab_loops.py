"""The sums of Wilson loops over a slab, with lines that grow from one launch to the next."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle, pairwise, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gauge_mc.devices.base import repeated
from gauge_mc.devices.kernels import Kernel
from gauge_mc.domain.layout import BOTH_PARITIES
from gauge_mc.domain.paths import Step, equivalent_steps, padded, shortest_paths, steps_along
from gauge_mc.domain.slab import Slab, work
from gauge_mc.fields.sums import SUM_BYTES, SlabSums
from gauge_mc.quantities.potential.observables.loops.loop_set import LoopSet

TRANSPORTER_STEP = Kernel("transporter_step")

WILSON_LOOPS = Kernel("wilson_loops")

_Launches = list[tuple[Kernel, "ctypes.Array[Any]"]]
"""Kernels, and their arguments for every step."""


class SlabLoops:
    """The sums of Re Tr W over a slab, whose upper halo is as deep as the longest loop.

    The arguments of all launches are prepared once, because that takes longer than a launch.

    Parameters
    ----------
    loops : LoopSet
        The observable, with its distances and times.
    other : Slab
        Memory of the same size as the links, in which spatial lines are stored.
    links : list of Slab
        The links in temporal gauge of all levels that are correlated.
    """

    def __init__(self, loops: LoopSet, other: Slab, links: list[Slab]) -> None:
        self._loops, self._links, self._other = loops, links, other
        self._chunks, self._pairs = chunks_of(loops.t_max), ordered_pairs(len(links))
        layout = other.layout
        self._in_memory = layout.slices + layout.above
        # For each level the steps and lines, and lines of the next length of one level: as many as
        # possible in the other slab.
        self._field_bytes = layout.field_bytes(other.group.matrix_components) // 4
        fields = 2 * len(links) + 1
        self._room = min(fields, other.buffer.nbytes // self._field_bytes)
        self._rest = fields - self._room
        further = self._rest * self._field_bytes
        self._further = other.device.allocate(further) if further else None
        self._prepared: dict[tuple[tuple[int, ...], int, Step], list[_Launches]] = {}

    def swap(self, place: int) -> None:
        """Exchange the links of a level and the other slab."""
        self._links[place], self._other = self._other, self._links[place]

    def launch(self, path: str) -> Callable[[], NDArray[np.float64]]:
        """Launch the sums along all directions that are equivalent to a path.

        Returns
        -------
        callable
            Waits for the sums and returns them by direction, r, pair of levels and chunk of t, and
            by slice: an array of shape (rows, slices, values).
        """
        steps, slab = equivalent_steps(path), self._other
        longest = steps_along(path, self._loops.r_max)
        # The loops of many pairs would need much memory for the partial sums of all r.
        at_a_time = longest if len(self._links) == 1 else 1
        rows = at_a_time * len(self._links) ** 2 * len(self._chunks)
        sums = SlabSums(slab, WILSON_LOOPS.constant("EXTENTS_AT_A_TIME"), rows)
        nbytes, batches = SUM_BYTES * math.prod(sums.shape), len(steps) * longest // at_a_time
        memory = slab.device.scratch("totals", batches * nbytes)
        prepared = (batch for step in steps for batch in self._batches(step, path, sums))
        for n, batch in enumerate(prepared):
            for kernel, arguments in batch:
                slab.kernel(kernel)(arguments)
            sums.add_up(memory.address + n * nbytes)
        shape = (batches * rows, *sums.shape[1:])

        def wait() -> NDArray[np.float64]:
            data = slab.device.read(memory, 0, batches * nbytes)
            return data.view(np.float64).reshape(shape)

        return wait

    def _batches(self, step: Step, path: str, sums: SlabSums) -> list[_Launches]:
        """Return the launches in one direction, divided where partial sums are added up."""
        addresses = [slab.buffer.address for slab in self._links]
        key = (tuple(addresses), sums.partial_sums(0), step)
        if key not in self._prepared:
            loops = [*self._steps(step, path, sums)]
            rows = sums.shape[0]
            batches: list[_Launches] = [
                [(WILSON_LOOPS, repeated(loops[n : n + rows], 1))]
                for n in range(0, len(loops), rows)
            ]
            transporters = [self._transporter(step, n) for n in range(len(self._links))]
            batches[0].insert(0, (TRANSPORTER_STEP, repeated(transporters, 1)))
            self._prepared[key] = batches
        return self._prepared[key]

    def _places(self) -> list[int]:
        """Return the addresses of the fields of lines."""
        memory = [(self._other.buffer.address, self._room)]
        if self._further:
            memory.append((self._further.address, self._rest))
        return [start + n * self._field_bytes for start, count in memory for n in range(count)]

    def _transporter(self, step: Step, level: int) -> ctypes.Structure:
        paths = shortest_paths(step, self._loops.orderings)
        return self._links[level].arguments(
            TRANSPORTER_STEP,
            work(0, 1, self._in_memory, BOTH_PARITIES),
            links=self._links[level].buffer.address,
            steps=self._places()[level],
            paths=len(paths),
            length=len(paths[0]),
            path=padded(paths),
        )

    def _steps(self, step: Step, path: str, sums: SlabSums) -> Iterator[ctypes.Structure]:
        """Yield the arguments that sum loops of r = 1, 2, … steps and make the next lines.

        The lines of a level are made longer in the first sum at this level; the place of the
        present ones is free after the last one.
        """
        longest = steps_along(path, self._loops.r_max)
        slab = self._other
        at_a_time = WILSON_LOOPS.constant(f"SLICES_{slab.layout.precision.upper()}")
        groups = work(0, at_a_time, -(-self._in_memory // at_a_time), BOTH_PARITIES)
        steps, free = self._places()[: len(self._links)], self._places()[len(self._links) :]
        lines, rows = list(steps), cycle(range(sums.shape[0]))
        for r, pairs in product(range(1, longest + 1), self._pairs):
            own = pairs[0][0]
            longer = free.pop(0) if r < longest else None
            for (i, j), (first, count) in product(pairs, self._chunks):
                yield slab.arguments(
                    WILSON_LOOPS,
                    groups,
                    links=self._links[i].buffer.address,
                    steps=steps[i],
                    lines=lines[i],
                    upper=lines[j],
                    longer=longer if i == j and first == 1 else None,
                    end=tuple(r * n for n in step),
                    first=first,
                    count=count,
                    slices=slab.layout.slices,
                    lengthened=self._in_memory,
                    sums=sums.partial_sums(next(rows)),
                )
            if longer is not None:
                free += [lines[own]] if r > 1 else []  # the steps are kept
                lines[own] = longer


def ordered_pairs(levels: int) -> list[list[tuple[int, int]]]:
    """Return the pairs of each level with itself, and with all later ones in both orders."""
    return [
        [(i, i), *(pair for j in range(i + 1, levels) for pair in ((i, j), (j, i)))]
        for i in range(levels)
    ]


def chunks_of(t_max: int) -> Sequence[tuple[int, int]]:
    """Divide the extents 1 to t_max among launches; return (first T, number of T) for each."""
    launches = -(-t_max // WILSON_LOOPS.constant("EXTENTS_AT_A_TIME"))
    bounds = [t_max * i // launches for i in range(launches + 1)]
    return [(low + 1, high - low) for low, high in pairwise(bounds)]
