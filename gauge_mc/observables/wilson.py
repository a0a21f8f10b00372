"""Wilson loops: static quarks at a distance R for a time T."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, permutations, product

import numpy as np
from numpy.typing import NDArray

from gauge_mc.devices import Buffer
from gauge_mc.devices.base import repeated
from gauge_mc.devices.structures import GeometryStruct, WorkStruct
from gauge_mc.errors import UsageError
from gauge_mc.field import Field
from gauge_mc.lattice import Lattice
from gauge_mc.layout import BOTH_PARITIES
from gauge_mc.observables.sums import SlabSums, total
from gauge_mc.observables.time_lines import FIRST_SLICE, time_lines
from gauge_mc.ring.slab import Slab
from gauge_mc.smearing import Ape

Step = tuple[int, int, int]
"""One step of a spatial line, (dx, dy, dz)."""

PATHS = ("100", "110", "210", "111")
"""Directions of spatial lines, each standing for all that cubic symmetry makes of it."""

EXTENTS_AT_A_TIME = 8
"""``VALUES`` of ``cuda_src/kernels/wilson_loops.cu``."""


class _GaugeArguments(ctypes.Structure):
    _fields_ = [
        ("geometry", GeometryStruct),
        ("work", WorkStruct),
        ("source", ctypes.c_void_p),
        ("target", ctypes.c_void_p),
        ("before", ctypes.c_void_p),
        ("slices", ctypes.c_int),
    ]


class _StepArguments(ctypes.Structure):
    _fields_ = [
        ("geometry", GeometryStruct),
        ("work", WorkStruct),
        ("links", ctypes.c_void_p),
        ("lines", ctypes.c_void_p),
        ("paths", ctypes.c_int),
        ("length", ctypes.c_int),
        ("path", ctypes.c_int * 3 * 6),
    ]


class _TransporterArguments(ctypes.Structure):
    _fields_ = [
        ("geometry", GeometryStruct),
        ("work", WorkStruct),
        ("lines", ctypes.c_void_p),
        ("end", ctypes.c_int * 3),
    ]


class _LoopsArguments(ctypes.Structure):
    _fields_ = [
        ("geometry", GeometryStruct),
        ("work", WorkStruct),
        ("links", ctypes.c_void_p),
        ("lines", ctypes.c_void_p),
        ("end", ctypes.c_int * 3),
        ("first", ctypes.c_int),
        ("count", ctypes.c_int),
        ("sums", ctypes.c_void_p),
    ]


class WilsonLoops:
    """Measures Wilson loops on fields of one kind, with the memory of two more such fields.

    W(R, T) is Re Tr / N of R steps in space, T in time and back, averaged over all sites and over
    the equivalent directions. Off axis the line of each step is the average over the shortest
    paths of links, on either side of the loop by itself.

    Parameters
    ----------
    like : Field
        What the fields are like; not changed.
    r_max, t_max : int
        Largest extents, in lattice units: at most half the lattice. Off axis `r_max` bounds the
        largest component of the distance, so that there are r_max // 2 steps along ``210``.
    paths : iterable of str
        Some of `PATHS`.
    smearing : Ape
        An iteration of smearing.
    levels : iterable of int
        After how many iterations to measure.

    Raises
    ------
    UsageError
        If a path is unknown, or an extent or a level is out of bounds.
    GaugeError
        If the device has too little memory.
    """

    def __init__(
        self,
        like: Field,
        r_max: int,
        t_max: int,
        paths: Iterable[str] = ("100",),
        smearing: Ape | None = None,
        levels: Iterable[int] = (0,),
    ) -> None:
        self.r_max, self.t_max = r_max, t_max
        self.paths, self.levels = tuple(paths), tuple(sorted(set(levels)))
        self.smearing = smearing or Ape()
        check_extents(like.lattice, r_max, t_max, self.paths)
        if not self.levels or self.levels[0] < 0:
            raise UsageError("Smearing levels are numbers of iterations, from 0 on.")
        self._links, self._other = (
            Field.empty(like.lattice, like.group, like.precision, like.ring, above=t_max)
            for _ in range(2)
        )

    def __call__(self, field: Field) -> Iterator[tuple[int, str, NDArray[np.float64]]]:
        """Measure on a field.

        Yields
        ------
        level : int
            Iterations of smearing.
        path : str
            One of `paths`.
        loops : ndarray, shape (steps, t_max), float64
            W(r, t) for r = 1, 2, … steps along the path and t = 1, 2, …
        """
        self._fix_gauge(field)
        done = 0
        for level in self.levels:
            for _ in range(level - done):
                self.smearing(self._links, self._other)
                self._links, self._other = self._other, self._links
            done = level
            self._links.exchange(nearest=False)
            for path in self.paths:
                yield level, path, self._along(path)

    def _fix_gauge(self, field: Field) -> None:
        """Take over the links in temporal gauge, where time-like lines are 1 but at the end."""
        for lines, target in zip(time_lines(field), self._links.slabs, strict=True):
            slab = lines.slab
            arguments = _GaugeArguments(
                slab.geometry,
                WorkStruct(*FIRST_SLICE),
                slab.buffer.address,
                target.buffer.address,
                lines.before.address if lines.before else None,
                slab.layout.slices,
            )
            slab.kernel("temporal_gauge")(repeated([arguments], 1))
        self._links.exchange()

    def _along(self, path: str) -> NDArray[np.float64]:
        """Return W(r, t), averaged over the steps that are equivalent to a path."""
        steps = equivalent_steps(path)
        mean = np.mean([self._loops(step) for step in steps], axis=0)
        return np.asarray(mean / (int(self._links.group[2]) * self._links.lattice.sites))

    def _loops(self, step: Step) -> NDArray[np.float64]:
        """Return the sums of Re Tr W over the sites for r = 1, 2, … of one step and all t."""
        chunks = _chunks(self.t_max)
        longest = self.r_max // max(map(abs, step))
        pairs = zip(self._links.slabs, self._other.slabs, strict=True)
        sums = [_launch(slab, other.buffer, step, longest, chunks) for slab, other in pairs]
        rows = total(self._links, sums).reshape(longest, len(chunks), EXTENTS_AT_A_TIME)
        return np.concatenate([rows[:, i, :count] for i, (_, count) in enumerate(chunks)], axis=1)


def _launch(
    slab: Slab, memory: Buffer, step: Step, longest: int, chunks: Sequence[tuple[int, int]]
) -> SlabSums:
    """Launch the loops on a slab, whose copies of slices are as many as the loops are long."""
    lines = memory.address
    everything = WorkStruct(0, 1, slab.layout.slices + slab.layout.above, BOTH_PARITIES, 0)
    sums = SlabSums(slab, EXTENTS_AT_A_TIME, longest * len(chunks))
    paths = shortest_paths(step)
    begin = _StepArguments(
        slab.geometry, everything, slab.buffer.address, lines, len(paths), len(paths[0])
    )
    for number, one in enumerate(paths):
        begin.path[number][: len(one)] = one
    slab.kernel("transporter_step")(repeated([begin], 1))
    for r in range(1, longest + 1):
        if r > 1:
            end = _vector((r - 1) * n for n in step)
            extend = _TransporterArguments(slab.geometry, everything, lines, end)
            slab.kernel("transporter")(repeated([extend], 1))
        end = _vector(r * n for n in step)
        common = (slab.geometry, sums.work, slab.buffer.address, lines, end)
        sums.launch("wilson_loops", [_LoopsArguments(*common, *chunk) for chunk in chunks])
    return sums


def check_extents(lattice: Lattice, r_max: int, t_max: int, paths: Iterable[str]) -> None:
    """Refuse loops that are longer than half the lattice: periodic images would come closer.

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
            raise UsageError(f"The path '{path}' is unknown; there are {', '.join(PATHS)}.")
        if not steps_along(path, r_max):
            raise UsageError(f"r_max is {r_max}, less than one step along {path}.")


def steps_along(path: str, r_max: int) -> int:
    """Return how many steps along a path have no component above `r_max`."""
    return r_max // max(map(int, path))


def equivalent_steps(path: str) -> list[Step]:
    """Return the steps that cubic symmetry makes of a path, one of each and its opposite."""
    digits = [int(digit) for digit in path]
    signed = product((1, -1), repeat=3)
    steps = {(s[0] * p[0], s[1] * p[1], s[2] * p[2]) for s in signed for p in permutations(digits)}
    return sorted((step for step in steps if step > (0, 0, 0)), reverse=True)


def shortest_paths(step: Step) -> list[tuple[int, ...]]:
    """Return all shortest paths of links along a step: every order of its unit steps.

    Directions 0, 1, 2 are forwards, -1, -2, -3 backwards.
    """
    units = [mu if n > 0 else -1 - mu for mu, n in enumerate(step) for _ in range(abs(n))]
    return sorted(set(permutations(units)))


def _vector(numbers: Iterable[int]) -> ctypes.Array[ctypes.c_int]:
    return (ctypes.c_int * 3)(*numbers)


def _chunks(t_max: int) -> Sequence[tuple[int, int]]:
    """Return the first T and the number of T of each launch, nearly equal numbers."""
    launches = -(-t_max // EXTENTS_AT_A_TIME)
    bounds = [t_max * i // launches for i in range(launches + 1)]
    return [(low + 1, high - low) for low, high in pairwise(bounds)]
