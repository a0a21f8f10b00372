"""Options of observables whose noise multilevel averages and multihit reduce."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from gauge_mc import defaults
from gauge_mc.actions import ACTIONS, Coupling, couplings, parse
from gauge_mc.domain.lattice import PATHS, Lattice, OddLattice, steps_along
from gauge_mc.errors import UsageError
from gauge_mc.fields.field import Field
from gauge_mc.groups import GROUPS
from gauge_mc.observables import ImmediateRecorder, Measurer, Observable, Record, Recorder
from gauge_mc.options import Option, check_declared, flag_of
from gauge_mc.random import GENERATORS
from gauge_mc.updates import multilevel

NEIGHBOURS = (PATHS[0], 1)
"""The distance at which two lines contain links of the same plaquettes."""

OVERRELAX = 4
"""Default number of overrelaxation sweeps per update of the slabs. With one sweep successive values
are correlated so much that, for SU(3) at beta = 5.7 on 8^4, the noise of 80 values with multihit in
slabs of two slices is four times as large."""

MOST_SWEEPS = 1000
"""Largest number of overrelaxation sweeps per update, to catch typing errors."""

NOISE_OPTIONS = (
    Option(
        "multilevel",
        str,
        "Reduce the noise by averages over VALUES of slabs of SLICES time slices, as in 4,100, or "
        "4,20/2,50 with two levels.",
        metavar="SLICES,VALUES",
        each=int,
        rows=True,
    ),
    Option("multihit", bool, "Reduce the noise by means of links. R = 1 on axis is left out."),
    Option(
        "overrelax",
        int,
        "Overrelaxation sweeps per update of the slabs.",
        default=f"{OVERRELAX}",
        least=0,
        most=MOST_SWEEPS,
    ),
    Option("seed", int, "Seed of the updates of the slabs.", default=f"{defaults.SEED}"),
    Option("beta", float, "Coupling of the updates of the slabs.", default="that of the ensemble"),
    Option(
        "action",
        str,
        "Action of the updates of the slabs.",
        default="that of the ensemble",
        metavar="NAME",
        choices=tuple(ACTIONS),
    ),
)
"""The options of all observables with noise reduction, without those of the action."""


def action_options() -> tuple[Option, ...]:
    """Return the options of the action of the updates of the slabs."""
    default = "that of the ensemble"
    return tuple(
        replace(c, help=f"{c.short} of the action.", default=default, usual=None)
        for c in couplings()
    )


@dataclass(frozen=True)
class NoiseReduction:
    """Multilevel averages and multihit of the lines along t of an observable.

    Raises
    ------
    UsageError
        If a value is invalid.
    """

    lattice: Lattice
    """Extents of the lattice."""
    levels: tuple[multilevel.Level, ...]
    """Levels of multilevel averages; see `gauge_mc.updates.multilevel`."""
    overrelax: int = OVERRELAX
    """Overrelaxation sweeps per update of the slabs."""
    seed: int = defaults.SEED
    """Seed of the updates of the slabs."""
    beta: float | None = None
    """Coupling of the updates of the slabs, if that of the ensemble is unknown."""
    action: str | None = None
    """Name of the action of these updates, if that of the ensemble is unknown."""
    multihit: bool = False
    """Whether the links of the lines are replaced by their means, given all other links. The lines
    must then be further apart than one lattice unit.
    """
    ensemble: Coupling | None = None
    """Couplings and action of the ensemble, from `for_ensemble`."""
    options: tuple[tuple[str, float], ...] = ()
    """Options of the action that are given."""

    def __post_init__(self) -> None:
        multilevel.check_levels(self.levels)
        if isinstance(self.lattice, OddLattice):
            raise UsageError(
                f"--multilevel and --multihit are for even extents, but the lattice is "
                f"{self.lattice}; leave them out."
            )
        for level in self.levels:
            if self.lattice.t % level.thickness:
                raise UsageError(
                    f"--multilevel: slabs of {level.thickness} time slices do not make up the "
                    f"lattice {self.lattice}; choose a thickness that divides {self.lattice.t}."
                )
        check_declared(NOISE_OPTIONS, {"overrelax": self.overrelax})
        GENERATORS[defaults.START_RNG].check(self.seed, 0)
        if self.beta is not None and not 0 < self.beta < math.inf:
            raise UsageError(f"--beta is {self.beta:g}; choose a positive coupling.")
        parse(self.action or defaults.ACTION).with_options(**dict(self.options))

    @classmethod
    def from_options(
        cls, lattice: Lattice, values: MutableMapping[str, Any], thinnest: int
    ) -> NoiseReduction | None:
        """Return the noise reduction that options demand, or None; remove them from `values`."""
        options = (*NOISE_OPTIONS, *action_options())
        names = [option.name for option in options if option.name in values]
        settings = {name: values.pop(name) for name in names}
        own_names = [c.name for c in couplings() if c.name in settings]
        if own_names:
            settings["options"] = tuple((name, settings.pop(name)) for name in own_names)
        if "multilevel" in settings:
            return cls(lattice, multilevel.parse_levels(settings.pop("multilevel")), **settings)
        if settings.get("multihit"):
            return cls(lattice, (multilevel.Level(thinnest, 1),), **settings)
        if settings:
            raise UsageError(
                f"{flag_of(names[0])} is for --multilevel and --multihit; give one of them too."
            )
        return None

    @property
    def thickness(self) -> int:
        """Number of time slices of the thickest slabs."""
        return self.levels[0].thickness

    @property
    def warm_up(self) -> NoiseReduction:
        """The same with one update of every slab."""
        levels = tuple(replace(level, values=min(level.values, 2)) for level in self.levels)
        return replace(self, levels=levels)

    @property
    def header(self) -> dict[str, str]:
        """The lines that describe it in the header of a table."""
        slabs = "/".join(map(str, self.levels))
        words = [f"{slabs} (slices,values)"]
        if any(level.values > 1 for level in self.levels):
            update = f"1 heatbath and {self.overrelax} overrelaxation sweeps per update"
            words += [update, f"seed {self.seed}"]
        words += [f"{key} {value}" for key, value in self._given.items()]
        multihit = {"multihit": "yes"} if self.multihit else {}
        return {"multilevel": "; ".join(words), **multihit}

    @property
    def _given(self) -> dict[str, str]:
        """The couplings and the action, if they are given."""
        values = {"beta": self.beta, "action": self.action, **dict(self.options)}
        return {key: f"{value}" for key, value in values.items() if value is not None}

    def for_ensemble(self, metadata: Mapping[str, str]) -> NoiseReduction:
        """Return the same with the couplings and the action of an ensemble, if known."""
        if not {"beta", "action"} <= metadata.keys():
            return replace(self, ensemble=self.coupling)
        coupling = Coupling.of_metadata(metadata)
        action = coupling.action
        parameters = {"beta": coupling.beta, "action": action.name, **action.values}
        for key, value in self._given.items():
            expected = parameters.get(key)
            equal = parse(value) == action if key == "action" else float(value) == expected
            if key == "action" and ":" not in value:
                equal = value == expected
            if not equal:
                raise UsageError(
                    f"{flag_of(key)} is {value}, but the ensemble has "
                    f"{metadata.get(key, expected)}; leave {flag_of(key)} out."
                )
        if self.multihit and "group" in metadata:
            multilevel.check_means(GROUPS[metadata["group"]], coupling)
        return replace(self, ensemble=coupling)

    @property
    def coupling(self) -> Coupling:
        """The couplings and the action of the updates of the slabs."""
        if self.ensemble:
            return self.ensemble
        if self.beta is None:
            raise UsageError(
                "The coupling of the configurations is unknown, which --multilevel and --multihit "
                "need; give it "
                f"with --beta, and the action with --action unless it is {defaults.ACTION}."
            )
        return Coupling.of(self.beta, self.action or defaults.ACTION, **dict(self.options))

    def averages(
        self, like: Field, vectors: Sequence[multilevel.Vector], above: int = 0
    ) -> multilevel.MultilevelAverages:
        """Return the averages of pairs of lines with these distance vectors.

        For the errors see `MultilevelAverages`.
        """
        options = self.seed, self.overrelax, self.multihit, above
        return multilevel.MultilevelAverages(like, self.levels, vectors, self.coupling, *options)


Self = TypeVar("Self", bound="ReducedNoise")


class ReducedNoise(Observable):
    """An observable with two lines along t, whose noise can be reduced.

    Subclasses are data classes with these attributes.
    """

    options: ClassVar[tuple[Option, ...]] = NOISE_OPTIONS

    @classmethod
    def owners(cls) -> list[tuple[str, tuple[Option, ...]]]:
        """Return its own options, and those of the action; see `Observable.owners`."""
        return [*super().owners(), (cls.name, action_options())]

    r_max: int
    """Largest component of the distance in lattice units."""
    paths: tuple[str, ...]
    """Directions of the distance."""
    noise: NoiseReduction | None
    """None to take the lines of the links as they are."""

    @property
    def distances(self) -> list[tuple[str, int]]:
        """Path and number of steps of all distances, without those that multihit does not allow."""
        every = [(p, r) for p in self.paths for r in range(1, steps_along(p, self.r_max) + 1)]
        multihit = self.noise and self.noise.multihit
        return [x for x in every if not (multihit and x == NEIGHBOURS)]

    def check_distances(self) -> None:
        """Refuse to replace the links of lines that are too close to each other."""
        if not self.distances:
            raise UsageError("--r-max is 1, where --multihit is not possible; choose a larger one.")

    def plain_measurer(self, like: Field) -> Measurer:
        """Return a function that measures fields like this one without noise reduction."""
        raise NotImplementedError

    def reduced_measurer(self, like: Field) -> Callable[[Coupling, Field], list[Record]]:
        """Return a function that measures fields like this one at given couplings."""
        raise NotImplementedError

    def measurer(self, like: Field) -> Measurer:
        """Return a function that measures fields like this one.

        With multilevel averages it owns the memory that `MultilevelAverages` states.
        """
        if not self.noise:
            return self.plain_measurer(like)
        return partial(self.reduced_measurer(like), self.noise.coupling)

    def for_ensemble(self: Self, metadata: Mapping[str, str], field: Field | None = None) -> Self:
        """Return the observable with the couplings and the action of an ensemble, if known."""
        return self._with(self.noise.for_ensemble(metadata)) if self.noise else self

    @property
    def warm_up(self: Self) -> Self:
        """The same with one update of every slab, if there are multilevel averages."""
        return self._with(self.noise.warm_up) if self.noise else self

    def _with(self: Self, noise: NoiseReduction) -> Self:
        return replace(self, noise=noise)  # type: ignore[type-var]

    def recorder(self: Self, field: Field, runs: Sequence[Self] = ()) -> Recorder:
        """Return a recorder for the runs of a batch, which share the memory."""
        if not self.noise:
            return super().recorder(field)
        couplings = [run.noise.coupling for run in runs or [self] if run.noise]
        measure = self.reduced_measurer(field.replicas[0])
        return ImmediateRecorder(field, *(partial(measure, coupling) for coupling in couplings))


def digest_of(values: NDArray[np.float64]) -> int:
    """Return a number of 40 bits that tells configurations apart, from averages over one."""
    return int.from_bytes(hashlib.sha256(values.tobytes()).digest()[:5], "little")
