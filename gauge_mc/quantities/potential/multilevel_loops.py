"""Wilson loops whose sides along t are multilevel averages.

The links in space at the boundaries of the thickest slabs stay fixed while the interior of the
slabs is updated. So do lines in space there, also if their links are smeared within a time slice.
Between them are products of averaged two-link operators (M. Luescher and P. Weisz,
hep-lat/0108014).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np

from gauge_mc.actions import Coupling
from gauge_mc.arrays import Array
from gauge_mc.devices.kernels import Kernel
from gauge_mc.domain.halo import HaloExchange, SliceRange, transfers_above
from gauge_mc.domain.lattice import Step, equivalent_steps, padded, shortest_paths
from gauge_mc.domain.slab import BOTH_PARITIES, Slab, work
from gauge_mc.fields.field import Field
from gauge_mc.fields.sums import PLAQUETTE, SlabSums, add_slices, lattice_sums
from gauge_mc.observables.noise_reduction import NoiseReduction, digest_of
from gauge_mc.smearing import Smearing
from gauge_mc.updates.multilevel import TWO_LINKS

SLAB_STEPS = Kernel("slab_steps")
LONGER_SLAB_STEPS = Kernel("longer_slab_steps")
SLAB_LOOPS = Kernel("slab_loops")

KERNELS = (TWO_LINKS, SLAB_STEPS, LONGER_SLAB_STEPS, SLAB_LOOPS)
"""Kernels that depend on nothing but the group."""


class MultilevelLoops:
    """Measurement of Wilson loops by multilevel averages, which owns the memory for them.

    This is that of `MultilevelAverages`, and for every thickest slab and site in space one line for
    each level of smearing and direction of a step, and two more for each level. Smearing needs two
    more fields.

    Parameters
    ----------
    like : Field
        A field of the same kind as those to be measured. It is not changed.
    noise : NoiseReduction
        Levels, updates and multihit.
    distances : sequence of (str, int)
        Path and number of steps of all lines in space, in the order of the paths.
    times : int
        Number of values of T, which are the multiples of the thickness of the thickest slabs.
    levels : sequence of int
        Numbers of smearing iterations after which loops are measured, ascending.
    smearing : Smearing or None
        A smearing within time slices.
    orderings : str
        Orders of the links in the line of a step, from `ORDERINGS`.

    Raises
    ------
    UsageError
        If the slabs do not fit the lattice or its division among devices, or the action; or if the
        means of links are not known.
    GaugeError
        If a device does not have enough memory.
    """

    def __init__(
        self,
        like: Field,
        noise: NoiseReduction,
        distances: Sequence[tuple[str, int]],
        times: int,
        levels: Sequence[int],
        smearing: Smearing | None,
        orderings: str,
    ) -> None:
        self._thickness, self._times = noise.thickness, times
        self._distances, self._levels = distances, levels
        self._smearing, self._orderings = smearing, orderings
        self._lines = [
            (path, step, r)
            for path, some in groupby(distances, key=lambda one: one[0])
            for lengths in [[r for _, r in some]]
            for step in equivalent_steps(path)
            for r in lengths
        ]
        vectors = [(r * step[0], r * step[1], r * step[2]) for _, step, r in self._lines]
        self._averages = noise.averages(like, vectors, above=self._times - 1)
        kind = (like.lattice, like.group.name, like.precision, like.devices)
        self._spare = [Field.empty(*kind) for _ in range(min(levels[-1], 2))]
        self._steps = list(dict.fromkeys(step for _, step, _ in self._lines))
        counts = [one.slices // self._thickness for one in like.layouts]
        above = self._times if len(counts) > 1 else 0
        sizes = len(levels), len(self._steps), max(counts) + above
        self._memory = [_SpatialLines(one, noise, above, *sizes) for one in like.slabs]
        places = [one.steps for one in self._memory]
        self._halo = HaloExchange(like.devices, places, transfers_above(counts, above))

    def __call__(self, coupling: Coupling, field: Field) -> dict[tuple[int, str, int], Array]:
        """Measure the loops of a field.

        Parameters
        ----------
        coupling : Coupling
            Couplings of the updates of the slabs.
        field : Field
            The links.

        Returns
        -------
        dict of (int, str, int) to ndarray, shape (times,), float64
            W(R, T) for the times T of the observable, by smearing level, path and number of steps.
        """
        digest = digest_of(lattice_sums(field, PLAQUETTE, values=2))
        self._prepare_steps(field)
        chunks = self._chunks()
        rows = len(self._lines) * len(self._levels) * len(chunks)
        at_a_time = SLAB_LOOPS.constant("SLABS_AT_A_TIME")
        sums = [
            SlabSums(slab, at_a_time, rows, memory.over)
            for slab, memory in zip(field.slabs, self._memory, strict=True)
        ]
        found = self._averages.operators(field, coupling, digest)
        for operators, (_, step, r) in zip(found, self._lines, strict=True):
            for memory, one, address in zip(self._memory, sums, operators, strict=True):
                self._launch(memory, one, address, step, r)
        totals = add_slices(field.devices, [one.by_slice() for one in sums])
        parts = totals.reshape(len(self._lines), len(self._levels), len(chunks), at_a_time)
        each = [parts[:, :, n, :count] for n, (_, count) in enumerate(chunks)]
        norm = field.group.colours * field.lattice.sites // self._thickness
        return self._means(np.concatenate(each, axis=2) / norm)

    def _chunks(self) -> list[tuple[int, int]]:
        """Divide the times among launches; return the first and their number, in units of slabs."""
        most = SLAB_LOOPS.constant("SLABS_AT_A_TIME")
        return [(n + 1, min(most, self._times - n)) for n in range(0, self._times, most)]

    def _prepare_steps(self, field: Field) -> None:
        """Smear the field, and compute the steps of all directions at every level."""
        source, done = field, 0
        for n, level in enumerate(self._levels):
            for number in range(done, level):
                assert self._smearing is not None
                target = self._spare[0] if source is not self._spare[0] else self._spare[1]
                self._smearing.iteration(number)(source, target)
                source = target
            done = level
            for slab, memory in zip(source.slabs, self._memory, strict=True):
                for k, step in enumerate(self._steps):
                    memory.make_step(slab, n, k, shortest_paths(step, self._orderings))
        first = self._memory[0]
        for n in range(len(self._levels) * len(self._steps)):
            self._halo.post(SliceRange(n * first.nbytes, first.steps.slice_bytes))
            self._halo.wait()

    def _launch(
        self, memory: _SpatialLines, sums: SlabSums, operators: int, step: Step, r: int
    ) -> None:
        """Make the lines of r steps, and sum their loops."""
        for n in range(len(self._levels)):
            lines = memory.line(sums.slab, n, self._steps.index(step), step, r)
            common = {
                "lines": lines,
                "operators": operators,
                "thickness": self._thickness,
                "in_memory": memory.in_memory,
            }
            chunks = self._chunks()
            sums.launch(SLAB_LOOPS, *({**common, "first": a, "count": c} for a, c in chunks))

    def _means(self, values: Array) -> dict[tuple[int, str, int], Array]:
        """Average the loops, of shape (lines, levels, times), over equivalent directions."""
        by_distance: dict[tuple[str, int], list[Array]] = {one: [] for one in self._distances}
        for (path, _, r), one in zip(self._lines, values, strict=True):
            by_distance[path, r].append(one)
        return {
            (level, path, r): np.mean([one[n] for one in some], axis=0)
            for n, level in enumerate(self._levels)
            for (path, r), some in by_distance.items()
        }


class _SpatialLines:
    """The lines in space at the boundaries of slabs on one device, for every level of smearing.

    Parameters
    ----------
    like : Slab
        A slab of the field that is measured.
    noise : NoiseReduction
        Levels, updates and multihit.
    above : int
        Number of boundaries on other devices that are in memory as well.
    levels, steps : int
        Numbers of levels of smearing, and of directions of a step.
    places : int
        Number of boundaries for which there is memory.
    """

    def __init__(
        self, like: Slab, noise: NoiseReduction, above: int, levels: int, steps: int, places: int
    ) -> None:
        group, layout = like.group, like.layout
        self._thickness, self._directions = noise.thickness, steps
        self._count = layout.slices // noise.thickness
        self.in_memory = self._count + above
        self.over = work(0, noise.thickness, self._count, BOTH_PARITIES)
        element = layout.lattice.slice_sites * layout.real.itemsize
        self.nbytes = places * element * group.matrix_components
        memory = like.device.allocate(levels * steps * self.nbytes)
        # A boundary has as many bytes as a slice of links with so many components.
        self.steps = Slab(group, like.device, layout, memory, group.matrix_components // 4)
        self._lines = like.device.allocate(2 * levels * self.nbytes)

    def make_step(
        self, links: Slab, level: int, number: int, paths: Sequence[tuple[int, ...]]
    ) -> None:
        """Compute the transporters of one step, which are averages over paths."""
        links.launch(
            SLAB_STEPS,
            self.over,
            links=links.buffer.address,
            steps=self._step(level, number),
            paths=len(paths),
            length=len(paths[0]),
            path=padded(paths),
            thickness=self._thickness,
        )

    def line(self, slab: Slab, level: int, number: int, step: Step, r: int) -> int:
        """Return the address of lines of r steps, after those of r - 1 steps have been made."""
        if r == 1:
            return self._step(level, number)
        longer = self._line(level, r)
        slab.launch(
            LONGER_SLAB_STEPS,
            self.over,
            lines=self._step(level, number) if r == 2 else self._line(level, r - 1),
            steps=self._step(level, number),
            longer=longer,
            end=tuple((r - 1) * n for n in step),
            thickness=self._thickness,
            slabs=self._count,
            in_memory=self.in_memory,
        )
        return longer

    def _step(self, level: int, number: int) -> int:
        return self.steps.buffer.address + (level * self._directions + number) * self.nbytes

    def _line(self, level: int, r: int) -> int:
        return self._lines.address + (2 * level + r % 2) * self.nbytes
