"""Measurement of Wilson loops on smeared links in temporal gauge."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import cycle, groupby, pairwise, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gauge_mc.actions import Coupling
from gauge_mc.arrays import Array
from gauge_mc.devices.base import repeated
from gauge_mc.devices.kernels import Kernel
from gauge_mc.domain.halo import HaloExchange, SliceRange, transfers_above
from gauge_mc.domain.lattice import (
    ORDERINGS,
    PATHS,
    Lattice,
    Step,
    equivalent_steps,
    padded,
    shortest_paths,
    steps_along,
)
from gauge_mc.domain.slab import BOTH_PARITIES, Slab, work
from gauge_mc.errors import UsageError
from gauge_mc.fields.decorated_links import time_lines
from gauge_mc.fields.field import Field
from gauge_mc.fields.sums import PLAQUETTE, SUM_BYTES, SlabSums, add_slices, lattice_sums
from gauge_mc.observables.noise_reduction import NoiseReduction, digest_of
from gauge_mc.quoting import shortened
from gauge_mc.smearing import MAX_ITERATIONS, Smearing
from gauge_mc.temporal_links import TemporalLinks
from gauge_mc.updates.multilevel import TWO_LINKS


@dataclass(frozen=True)
class LoopSet:
    """The Wilson loops that are measured.

    Raises
    ------
    UsageError
        If an extent, a path, a level or the orderings are invalid, if levels exceed those of the
        smearing, if the levels cannot be correlated (there is only one, or their loops would have
        different links in direction t), or if noise reduction does not allow the smearing, the
        temporal links or correlations.
    """

    lattice: Lattice
    """Lattice of the fields."""
    r_max: int
    """Largest extent in space in lattice units, at most half the lattice. Off axis, it limits the
    largest component of the distance, so that there are r_max // 2 steps along ``210``.
    """
    t_max: int
    """Largest extent in time in lattice units, at most half the lattice."""
    paths: tuple[str, ...] = PATHS[:1]
    """Directions of the spatial lines, from `PATHS`."""
    smearing: Smearing | None = None
    """Smearing of the links before the measurement. Links in direction t are smeared as well if it
    smears them.
    """
    levels: tuple[int, ...] = (0,)
    """Numbers of smearing iterations after which loops are measured. They are sorted. Those of a
    chain of smearings are counted from its beginning.
    """
    temporal: TemporalLinks | None = None
    """Links in direction t of the loops, made from the field before it is smeared; by default those
    of the field.
    """
    correlations: bool = False
    """Whether to measure the loops between all pairs of levels."""
    orderings: str = next(iter(ORDERINGS))
    """Orders of the links in the line of a step, from `ORDERINGS`."""
    noise: NoiseReduction | None = None
    """Multilevel averages and multihit of the sides along t. T is then a multiple of the thickness
    of the thickest slabs, and the loops begin at multiples of it. With multihit R = 1 on axis is
    left out.
    """
    automatic: frozenset[str] = field(default=frozenset(), compare=False)
    """Names of the fields that follow from the lattice spacing."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "paths", tuple(self.paths))
        object.__setattr__(self, "levels", tuple(sorted(set(self.levels))))
        check_extents(self.lattice, self.r_max, self.t_max, self.paths)
        if not self.levels or self.levels[0] < 0:
            raise UsageError("A smearing level is negative or missing; give numbers of iterations.")
        if self.levels[-1] > MAX_ITERATIONS:
            raise UsageError(
                f"There are {self.levels[-1]} smearing iterations; choose at most {MAX_ITERATIONS}."
            )
        if self.smearing is None and self.levels[-1] > 0:
            raise UsageError(
                f"Loops after {self.levels[-1]} smearing iterations need a smearing; choose one."
            )
        most = self.smearing.most if self.smearing else None
        if most is not None and self.levels[-1] > most:
            raise UsageError(
                f"There are {most} smearing iterations in all, fewer than {self.levels[-1]}; "
                "choose fewer with --iterations, or more with --smear."
            )
        if self.orderings not in ORDERINGS:
            raise UsageError(
                f"There are no orderings '{shortened(self.orderings)}'; choose "
                f"{' or '.join(ORDERINGS)}."
            )
        if self.correlations:
            self._check_correlations()

    def _check_correlations(self) -> None:
        """Refuse levels without a matrix of correlations."""
        if len(self.levels) < 2:
            raise UsageError(
                "--correlations needs at least two smearing levels; name them with --iterations, "
                "such as 0,10,25."
            )
        if self.smearing and self.smearing.smears_time and not self.temporal:
            raise UsageError(
                "--correlations needs the same links in direction t at all levels, but they are "
                "smeared; leave them out with --exclude t, or choose --temporal."
            )

    def check_noise(self, noise: NoiseReduction) -> None:
        """Refuse loops that cannot be put together from averages of slabs."""
        if self.t_max < noise.thickness:
            raise UsageError(
                f"--t-max is {self.t_max}, but with slabs of {noise.thickness} time slices T is a "
                f"multiple of {noise.thickness}; choose a larger --t-max or thinner slabs."
            )
        if self.correlations:
            raise UsageError(
                "--multilevel and --multihit are not for loops between smearing levels; leave "
                "--correlations out."
            )
        if self.temporal:
            raise UsageError(
                "--multilevel and --multihit are for the temporal links of the field; leave "
                "--temporal out."
            )
        if self.smearing and (self.smearing.smears_time or self.smearing.uses_time):
            raise UsageError(
                "--multilevel and --multihit are for smearing within time slices; exclude t from "
                "the smearing."
            )

    @property
    def matrix_size(self) -> int:
        """Number of smearing levels that are correlated with each other, or 1."""
        return len(self.levels) if self.correlations else 1


def check_extents(lattice: Lattice, r_max: int, t_max: int, paths: Iterable[str]) -> None:
    """Refuse loops longer than half the lattice, where a periodic image of the charge is nearer."""
    limits = {"--r-max": (r_max, min(lattice.extents[:3])), "--t-max": (t_max, lattice.t)}
    for name, (value, extent) in limits.items():
        if not 1 <= value <= extent // 2:
            raise UsageError(
                f"{name} is {value}; on {lattice} choose it between 1 and {extent // 2}, half the "
                "lattice."
            )
    for path in paths:
        if path not in PATHS:
            raise UsageError(f"There is no path '{path}'; choose from {', '.join(PATHS)}.")
        if not steps_along(path, r_max):
            raise UsageError(
                f"--r-max is {r_max}, less than one step along {path}; choose a larger one."
            )


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
    scratch : Slab
        Memory of the same size as the links, in which spatial lines are stored.
    links : list of Slab
        The links in temporal gauge of all levels that are correlated.
    """

    def __init__(self, loops: LoopSet, scratch: Slab, links: list[Slab]) -> None:
        self._loops, self._links, self._other = loops, links, scratch
        self._chunks, self._pairs = chunks_of(loops.t_max), ordered_pairs(len(links))
        layout = scratch.layout
        self._in_memory = layout.slices + layout.above
        # For each level the steps and lines, and lines of the next length of one level: as many as
        # possible in the other slab.
        self._field_bytes = layout.field_bytes(scratch.group.matrix_components) // 4
        fields = 2 * len(links) + 1
        self._room = min(fields, scratch.buffer.nbytes // self._field_bytes)
        self._rest = fields - self._room
        further = self._rest * self._field_bytes
        self._further = scratch.device.allocate(further) if further else None
        self._prepared: dict[tuple[tuple[int, ...], int, Step], list[_Launches]] = {}

    def swap(self, place: int) -> None:
        """Exchange the links of a level and the other slab."""
        self._links[place], self._other = self._other, self._links[place]

    def launch(self, path: str) -> Callable[[], NDArray[np.float64]]:
        """Launch the sums along all directions that are equivalent to a path."""
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
            level = pairs[0][0]
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
                free += [lines[level]] if r > 1 else []  # the steps are kept
                lines[level] = longer


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
        slabs = zip(*(link.slabs for link in (self._other, *self._links)), strict=True)
        self._slabs = [SlabLoops(loops, x, links) for x, *links in slabs]
        static, smearing = loops.temporal is not None, loops.smearing if loops.levels[-1] else None
        apart = smearing is not None and (smearing.smears_time or (static and smearing.uses_time))
        self._static = Field.empty(*kind) if static else None
        self._apart = [Field.empty(*kind), Field.empty(*kind)] if apart else []

    def __call__(self, field: Field) -> Iterator[tuple[tuple[int, ...], str, NDArray[np.float64]]]:
        """Measure the loops of a field."""
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
        smeared, iterations = field, 0
        for n, level in enumerate(self._loops.levels):
            place = min(n, len(self._links) - 1)
            for number in range(iterations, level):
                assert self._loops.smearing is not None
                smearing = self._loops.smearing.iteration(number)
                if self._apart:
                    first, second = self._apart
                    source, smeared = smeared, second if smeared is first else first
                    smearing(source, smeared)
                else:
                    self._smear(smearing, max(0, place - (number == iterations)), place)
            iterations = level
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

    def _with_static_sources(self, smeared: Field) -> Field:
        """Return smeared links in space with the links in direction t of the loops."""
        if self._static is None:
            return smeared
        for slab, static in zip(smeared.slabs, self._static.slabs, strict=True):
            slab.launch(
                COPY_LINKS,
                slab.whole(),
                source=slab.buffer.address,
                target=static.buffer.address,
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
        rows = add_slices(self._other.devices, [s() for s in sums])
        chunks = chunks_of(self._loops.t_max)
        pairs = [pair for p in ordered_pairs(len(self._links)) for pair in p]
        longest = steps_along(path, self._loops.r_max)
        by_step = rows.reshape(-1, longest, len(pairs), len(chunks), rows.shape[-1])
        parts = [by_step[:, :, :, i, :count] for i, (_, count) in enumerate(chunks)]
        mean = np.mean(np.concatenate(parts, axis=3), axis=0)
        mean /= self._other.group.colours * self._other.lattice.sites
        loops = dict(zip(pairs, mean.transpose(1, 0, 2), strict=True))
        return {(i, j): (loops[i, j] + loops[j, i]) / 2 for i, j in pairs if i <= j}


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
            for path, some in groupby(distances, key=lambda d: d[0])
            for lengths in [[r for _, r in some]]
            for step in equivalent_steps(path)
            for r in lengths
        ]
        vectors = [(r * step[0], r * step[1], r * step[2]) for _, step, r in self._lines]
        self._averages = noise.averages(like, vectors, above=self._times - 1)
        kind = (like.lattice, like.group.name, like.precision, like.devices)
        self._spare = [Field.empty(*kind) for _ in range(min(levels[-1], 2))]
        self._steps = list(dict.fromkeys(step for _, step, _ in self._lines))
        counts = [layout.slices // self._thickness for layout in like.layouts]
        above = self._times if len(counts) > 1 else 0
        sizes = len(levels), len(self._steps), max(counts) + above
        self._memory = [_SpatialLines(slab, noise, above, *sizes) for slab in like.slabs]
        places = [x.steps for x in self._memory]
        self._halo = HaloExchange(like.devices, places, transfers_above(counts, above))

    def __call__(self, coupling: Coupling, field: Field) -> dict[tuple[int, str, int], Array]:
        """Measure the loops of a field."""
        digest = digest_of(lattice_sums(field, PLAQUETTE, values=2))
        self._prepare_steps(field)
        chunks = self._chunks()
        rows = len(self._lines) * len(self._levels) * len(chunks)
        at_a_time = SLAB_LOOPS.constant("SLABS_AT_A_TIME")
        sums = [
            SlabSums(slab, at_a_time, rows, memory.over)
            for slab, memory in zip(field.slabs, self._memory, strict=True)
        ]
        averages = self._averages.operators(field, coupling, digest)
        for operators, (_, step, r) in zip(averages, self._lines, strict=True):
            for memory, slab_sums, address in zip(self._memory, sums, operators, strict=True):
                self._launch(memory, slab_sums, address, step, r)
        totals = add_slices(field.devices, [s.by_slice() for s in sums])
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
        source, iterations = field, 0
        for n, level in enumerate(self._levels):
            for number in range(iterations, level):
                assert self._smearing is not None
                target = self._spare[0] if source is not self._spare[0] else self._spare[1]
                self._smearing.iteration(number)(source, target)
                source = target
            iterations = level
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
        by_distance: dict[tuple[str, int], list[Array]] = {d: [] for d in self._distances}
        for (path, _, r), value in zip(self._lines, values, strict=True):
            by_distance[path, r].append(value)
        return {
            (level, path, r): np.mean([x[n] for x in some], axis=0)
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
        # A boundary has as many bytes as a slice of links with this number of components.
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
