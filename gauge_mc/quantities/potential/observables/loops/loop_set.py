"""The Wilson loops that are measured: their extents, paths, smearing and links along t."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gauge_mc.domain.lattice import Lattice
from gauge_mc.domain.paths import ORDERINGS, PATHS, steps_along
from gauge_mc.errors import UsageError
from gauge_mc.observables.noise.noise_reduction import NoiseReduction
from gauge_mc.quoting import shortened
from gauge_mc.smearing import MAX_ITERATIONS, Smearing
from gauge_mc.temporal_links import TemporalLinks


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
                f"t_max is {self.t_max}, but with slabs of {noise.thickness} time slices T is a "
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
    """Refuse loops longer than half the lattice, where a periodic image of the charge is nearer.

    Raises
    ------
    UsageError
        If an extent is not between 1 and half the lattice, if a path is unknown, or if one step
        along it is longer than `r_max`.
    """
    limits = {"r_max": (r_max, min(lattice.extents[:3])), "t_max": (t_max, lattice.t)}
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
                f"r_max is {r_max}, less than one step along {path}; choose a larger one."
            )
