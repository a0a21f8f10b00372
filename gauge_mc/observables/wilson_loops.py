"""Wilson loops: static charges at a distance R for a time T."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, permutations, product
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gauge_mc import defaults
from gauge_mc.analysis.loops import paths_of, select_loops, smearing_levels
from gauge_mc.devices import Buffer
from gauge_mc.devices.kernels import Kernel
from gauge_mc.domain.lattice import Lattice
from gauge_mc.domain.layout import BOTH_PARITIES
from gauge_mc.domain.slab import Slab, work
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.fields.field import Field
from gauge_mc.fields.sums import SlabSums, total
from gauge_mc.fields.time_lines import one_slice, time_lines
from gauge_mc.files.table import TableData
from gauge_mc.observables import OBSERVABLES, Measurer, Observable, Quantity, Series
from gauge_mc.options import Option, check_options
from gauge_mc.smearing import NO_SMEARING, Smearing, make_smearing, smearing_options

TEMPORAL_GAUGE = Kernel("temporal_gauge")
TRANSPORTER_STEP = Kernel("transporter_step")
TRANSPORTER = Kernel("transporter")
WILSON_LOOPS = Kernel("wilson_loops")

Step = tuple[int, int, int]
"""One step of a spatial line, (dx, dy, dz)."""

PATHS = ("100", "110", "210", "111")
"""Directions of spatial lines; each stands for all that are equivalent by cubic symmetry."""

EXTENT = 12
"""The largest R and T if nothing is said, on lattices of at least twice that extent."""

ITERATIONS = 25
"""Iterations of smearing if nothing is said."""


@OBSERVABLES.register
@dataclass(frozen=True)
class WilsonLoops(Observable):
    """Wilson loops, one record each.

    W(R, T) is Re Tr / N of a loop with R steps in space and T in time, averaged over all sites and
    over the equivalent directions. Off axis the line of each step is the average over the shortest
    paths of links, independently on both sides of the loop.

    Attributes
    ----------
    lattice : Lattice
    r_max, t_max : int
        Largest extents in lattice units, at most half the lattice. Off axis `r_max` limits the
        largest component of the distance, so that there are r_max // 2 steps along ``210``.
    paths : tuple of str
        Some of `PATHS`.
    smearing : Smearing or None
        One iteration of smearing.
    levels : tuple of int
        Numbers of iterations after which to measure; they are sorted.

    Raises
    ------
    UsageError
        If an extent, a path or a level is out of bounds, or there are levels without smearing.
    """

    lattice: Lattice
    r_max: int
    t_max: int
    paths: tuple[str, ...] = PATHS[:1]
    smearing: Smearing | None = None
    levels: tuple[int, ...] = (0,)

    name: ClassVar[str] = "wilson-loops"
    summary: ClassVar[str] = "Wilson loops on and off axis, smeared"
    columns: ClassVar[tuple[str, ...]] = ("smearing", "path", "r", "t", "loop")
    normalisation: ClassVar[str] = "Re Tr / N averaged over sites and equivalent directions"
    units: ClassVar[str] = "r in steps along path, such as (1,1,0); t in lattice units"
    smears: ClassVar[bool] = True
    quantities: ClassVar[tuple[Quantity, ...]] = ()
    options: ClassVar[tuple[Option, ...]] = (
        Option("r_max", int, "Largest distance R.", f"{EXTENT}, or half the lattice"),
        Option("t_max", int, "Largest time T.", f"{EXTENT}, or half the lattice"),
        Option("off_axis", bool, "Also along (1,1,0), (2,1,0) and (1,1,1)."),
        Option(
            "iterations",
            str,
            "Iterations of smearing, or several levels to measure at, such as 0,10,25.",
            f"{ITERATIONS}",
            "N[,N...]",
        ),
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "paths", tuple(self.paths))
        object.__setattr__(self, "levels", tuple(sorted(set(self.levels))))
        check_extents(self.lattice, self.r_max, self.t_max, self.paths)
        if not self.levels or self.levels[0] < 0:
            raise UsageError("Smearing levels are numbers of iterations, from 0 on.")
        if self.smearing is None and self.levels[-1] > 0:
            raise UsageError(
                f"Loops after {self.levels[-1]} iterations need a smearing; give one, or no levels."
            )

    @classmethod
    def for_lattice(cls, lattice: Lattice, **options: Any) -> WilsonLoops:
        """Return the loops that options describe; see `Observable.for_lattice`.

        By default on axis, up to `EXTENT` or half the lattice, after `ITERATIONS` of smearing.
        """
        smear = options.pop("smear", None) or defaults.SMEARING
        given = check_options((*cls.options, *smearing_options()), options, cls.name)
        own = {option.name for option in cls.options}
        others = {name: value for name, value in given.items() if name not in own}
        if smear == NO_SMEARING and "iterations" in given:
            raise UsageError(f"--iterations is not for --smear {smear}.")
        smearing = make_smearing(smear, others)
        levels = _parse_levels(given.get("iterations", str(ITERATIONS)))
        x, y, z, t = (min(EXTENT, extent // 2) for extent in lattice.extents)
        return cls(
            lattice,
            given.get("r_max", min(x, y, z)),
            given.get("t_max", t),
            PATHS if given.get("off_axis") else PATHS[:1],
            smearing,
            levels if smearing else (0,),
        )

    @property
    def records(self) -> int:
        """The number of records of one field."""
        steps = sum(steps_along(path, self.r_max) for path in self.paths)
        return len(self.levels) * self.t_max * steps

    @property
    def header(self) -> dict[str, str]:
        """What the table says of the loops."""
        smeared = self.smearing is not None and max(self.levels) > 0
        return {
            **super().header,
            "observable": "wilson_loops",
            "smearing": str(self.smearing) if smeared else NO_SMEARING,
            "iterations": ",".join(map(str, self.levels)),
            "paths": ",".join(self.paths),
            "r_max": str(self.r_max),
            "t_max": str(self.t_max),
        }

    def measurer(self, like: Field) -> Measurer:
        """Return what measures on fields like this one, with the memory of two more of them."""
        measure = LoopMeasurer(self, like)
        return lambda field: [
            (level, path, r + 1, t + 1, float(loop))
            for level, path, loops in measure(field)
            for (r, t), loop in np.ndenumerate(loops)
        ]

    @classmethod
    def series(cls, table: TableData, source: str) -> dict[str, Series]:
        """Return a correlator in t for each smearing level, path and r."""
        try:
            everything = [
                select_loops(table, path, level, source)
                for level in smearing_levels(table)
                for path in paths_of(table)
            ]
        except (KeyError, ValueError) as error:
            raise GaugeError(
                f"The table {source} is damaged: it is not a table of Wilson loops."
            ) from error
        return {
            f"smearing={loops.smearing},path={loops.path},r={r}": Series(
                loops.sweeps, loops.values[:, i]
            )
            for loops in everything
            for i, r in enumerate(loops.r)
        }


def _parse_levels(text: str) -> tuple[int, ...]:
    """Read numbers of iterations, such as ``0,10,25``."""
    words = text.split(",")
    if not all(word.strip().isdecimal() for word in words):
        raise UsageError(f"--iterations: '{text}' is not of the form N or N,N,..., such as 0,25.")
    return tuple(sorted({int(word) for word in words}))


class LoopMeasurer:
    """Measures Wilson loops on fields of one kind, with the memory of two more such fields.

    Parameters
    ----------
    loops : WilsonLoops
        Which loops.
    like : Field
        A field of the kind; not changed.

    Raises
    ------
    GaugeError
        If the device has too little memory.
    """

    def __init__(self, loops: WilsonLoops, like: Field) -> None:
        self._loops = loops
        kind = (like.lattice, like.group.name, like.precision, like.devices)
        self._links = Field.empty(*kind, above=loops.t_max)
        self._other = Field.empty(*kind, above=loops.t_max)

    def __call__(self, field: Field) -> Iterator[tuple[int, str, NDArray[np.float64]]]:
        """Measure on a field.

        Yields
        ------
        level : int
            Iterations of smearing.
        path : str
        loops : ndarray, shape (steps, t_max), float64
            W(r, t) for r = 1, 2, … steps along the path and t = 1, 2, …
        """
        self._fix_gauge(field)
        done = 0
        for level in self._loops.levels:
            for _ in range(level - done):
                assert self._loops.smearing is not None
                self._loops.smearing(self._links, self._other)
                self._links, self._other = self._other, self._links
            done = level
            self._links.exchange_halo(nearest=False)
            for path in self._loops.paths:
                yield level, path, self._along(path)

    def _fix_gauge(self, field: Field) -> None:
        """Take the links in temporal gauge, where lines along t are 1 except across the last slice."""
        for lines, target in zip(time_lines(field), self._links.slabs, strict=True):
            slab = lines.slab
            slab.launch(
                TEMPORAL_GAUGE,
                one_slice(),
                source=slab.buffer.address,
                target=target.buffer.address,
                before=lines.before.address if lines.before else None,
                slices=slab.layout.slices,
            )
        self._links.exchange_halo()

    def _along(self, path: str) -> NDArray[np.float64]:
        """Return W(r, t), averaged over the steps that are equivalent to a path."""
        steps = equivalent_steps(path)
        mean = np.mean([self._sums(step) for step in steps], axis=0)
        return np.asarray(mean / (self._links.group.colours * self._links.lattice.sites))

    def _sums(self, step: Step) -> NDArray[np.float64]:
        """Return the sums of Re Tr W over the sites for r = 1, 2, … of one step and all t."""
        chunks = _chunks(self._loops.t_max)
        longest = self._loops.r_max // max(map(abs, step))
        pairs = zip(self._links.slabs, self._other.slabs, strict=True)
        sums = [_launch(slab, other.buffer, step, longest, chunks) for slab, other in pairs]
        at_a_time = WILSON_LOOPS.constant("EXTENTS_AT_A_TIME")
        rows = total(self._links, sums).reshape(longest, len(chunks), at_a_time)
        return np.concatenate([rows[:, i, :count] for i, (_, count) in enumerate(chunks)], axis=1)


def _launch(
    slab: Slab, memory: Buffer, step: Step, longest: int, chunks: Sequence[tuple[int, int]]
) -> SlabSums:
    """Launch the loops on a slab, whose halo above is as deep as the loops are long."""
    links, lines = slab.buffer.address, memory.address
    everything = work(0, 1, slab.layout.slices + slab.layout.above, BOTH_PARITIES)
    sums = SlabSums(slab, WILSON_LOOPS.constant("EXTENTS_AT_A_TIME"), longest * len(chunks))
    paths = shortest_paths(step)
    slab.launch(
        TRANSPORTER_STEP,
        everything,
        links=links,
        lines=lines,
        paths=len(paths),
        length=len(paths[0]),
        path=_padded(paths),
    )
    for r in range(1, longest + 1):
        if r > 1:
            end = tuple((r - 1) * n for n in step)
            slab.launch(TRANSPORTER, everything, lines=lines, end=end)
        end = tuple(r * n for n in step)
        common = {"links": links, "lines": lines, "end": end}
        chunk_steps = [{**common, "first": first, "count": count} for first, count in chunks]
        sums.launch(WILSON_LOOPS, *chunk_steps)
    return sums


def _padded(paths: Sequence[tuple[int, ...]]) -> ctypes.Array[Any]:
    """Return paths as the member ``path`` of the arguments of ``transporter_step``."""
    longest = ctypes.c_int * 3
    rows = [longest(*path) for path in paths]
    return (longest * 6)(*rows)


def check_extents(lattice: Lattice, r_max: int, t_max: int, paths: Iterable[str]) -> None:
    """Refuse loops longer than half the lattice, beyond which periodic images are nearer.

    Raises
    ------
    UsageError
        If there are such, or a path is unknown or longer than `r_max`.
    """
    limits = {"r_max": (r_max, min(lattice.extents[:3])), "t_max": (t_max, lattice.t)}
    for name, (value, extent) in limits.items():
        if not 1 <= value <= extent // 2:
            raise UsageError(
                f"{name} is {value}; on {lattice} it can be from 1 to {extent // 2}, half the "
                "lattice."
            )
    for path in paths:
        if path not in PATHS:
            raise UsageError(f"There is no path '{path}'; there are {', '.join(PATHS)}.")
        if not steps_along(path, r_max):
            raise UsageError(f"r_max is {r_max}, less than one step along {path}.")


def steps_along(path: str, r_max: int) -> int:
    """Return how many steps along a path have no component above `r_max`."""
    return r_max // max(map(int, path))


def equivalent_steps(path: str) -> list[Step]:
    """Return the steps that are equivalent to a path by cubic symmetry, without their opposites."""
    digits = [int(digit) for digit in path]
    signed = product((1, -1), repeat=3)
    steps = {(s[0] * p[0], s[1] * p[1], s[2] * p[2]) for s in signed for p in permutations(digits)}
    return sorted((step for step in steps if step > (0, 0, 0)), reverse=True)


def shortest_paths(step: Step) -> list[tuple[int, ...]]:
    """Return all shortest paths of links along a step: every order of its unit steps.

    Directions 0, 1, 2 are forwards, and -1, -2, -3 backwards.
    """
    units = [mu if n > 0 else -1 - mu for mu, n in enumerate(step) for _ in range(abs(n))]
    return sorted(set(permutations(units)))


def _chunks(t_max: int) -> Sequence[tuple[int, int]]:
    """Return the first T and the number of T of each launch, in nearly equal numbers."""
    launches = -(-t_max // WILSON_LOOPS.constant("EXTENTS_AT_A_TIME"))
    bounds = [t_max * i // launches for i in range(launches + 1)]
    return [(low + 1, high - low) for low, high in pairwise(bounds)]
