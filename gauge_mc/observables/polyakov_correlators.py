"""Correlators of Polyakov loops, from which the potential of static charges follows."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise, product
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gauge_mc import defaults
from gauge_mc.actions import ACTIONS
from gauge_mc.devices.kernels import Kernel
from gauge_mc.domain.lattice import Lattice
from gauge_mc.domain.layout import BOTH_PARITIES
from gauge_mc.domain.slab import Slab, work
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.fields.field import Field
from gauge_mc.fields.sums import SlabSums, add_slices
from gauge_mc.fields.time_lines import TIME_LINE, complete_lines
from gauge_mc.files.table import TableData
from gauge_mc.observables import (
    OBSERVABLES,
    SWEEP,
    ImmediateRecorder,
    Measurer,
    Observable,
    Quantity,
    Record,
    Recorder,
    Series,
)
from gauge_mc.observables.wilson_loops import PATHS, Step, equivalent_steps, steps_along
from gauge_mc.options import Option, check_options, flag_of
from gauge_mc.random import GENERATORS
from gauge_mc.updates.multilevel import (
    Level,
    MultilevelAverages,
    check_levels,
    check_mean_beta,
    parse_levels,
)

POLYAKOV_CORRELATORS = Kernel("polyakov_correlators")

Array = NDArray[np.float64]

NEIGHBOURS = (PATHS[0], 1)
"""The distance at which two loops contain links of the same plaquettes."""

OVERRELAX = 4
"""Default number of overrelaxation sweeps per update of the slabs. With one sweep successive values
are correlated so much that, for SU(3) at beta = 5.7 on 8^4, the noise of 80 values with multihit in
slabs of two slices is four times as large."""

ONE_VALUE = (Level(2, 1),)
"""Levels for which no slab is updated. Such slabs fit nearly every division among devices."""

MOST_SWEEPS = 1000
"""Largest number of overrelaxation sweeps per update, to catch typing errors."""


@OBSERVABLES.register
@dataclass(frozen=True)
class PolyakovCorrelators(Observable):
    """Correlators of two Polyakov loops on and off axis, with one record per distance.

    C(R) is the real part of P(x) P(x + R)^*, averaged over all sites of space and all equivalent
    directions, where P(x) is Tr / N of the product of the links along t.

    Attributes
    ----------
    lattice : Lattice
        Lattice of the fields.
    r_max : int
        Largest component of the distance in lattice units, at most half the lattice.
    paths : tuple of str
        Directions of the distance, from `PATHS`.
    levels : tuple of Level
        Levels of multilevel averages; see `gauge_mc.updates.multilevel`. Empty for the product of
        the loops of the links as they are.
    overrelax : int
        Overrelaxation sweeps per update of the slabs.
    seed : int
        Seed of the updates of the slabs.
    beta, action : float and str, optional
        Coupling and action of the updates of the slabs, if those of the ensemble are unknown.
    multihit : bool
        Whether the links of the loops are replaced by their means, given all other links. The loops
        must then be further apart than one lattice unit.
    ensemble : tuple of (str, str), optional
        Coupling and action of the ensemble, from `informed`.

    Raises
    ------
    UsageError
        If a value is invalid.
    """

    lattice: Lattice
    r_max: int
    paths: tuple[str, ...] = PATHS[:1]
    levels: tuple[Level, ...] = ()
    overrelax: int = OVERRELAX
    seed: int = defaults.SEED
    beta: float | None = None
    action: str | None = None
    multihit: bool = False
    ensemble: tuple[str, str] | None = None

    name: ClassVar[str] = "polyakov-correlators"
    summary: ClassVar[str] = "correlators of two Polyakov loops, on and off axis"
    columns: ClassVar[tuple[str, ...]] = ("path", "r", "re")
    descriptions: ClassVar[Mapping[str, str]] = {
        "path": f"direction of the distance: {', '.join(PATHS)}",
        "r": "steps along the path",
        "re": "C(R), averaged over the sites of space and equivalent directions",
    }
    words: ClassVar[tuple[str, ...]] = ("path",)
    normalisation: ClassVar[str] = (
        "Re P(x) P(x + R)^*, P = Tr / N, averaged over space and equivalent directions"
    )
    units: ClassVar[str] = "r in steps along path, such as (1,1,0)"
    quantities: ClassVar[tuple[Quantity, ...]] = ()
    main_kernel: ClassVar[Kernel | None] = POLYAKOV_CORRELATORS
    options: ClassVar[tuple[Option, ...]] = (
        Option("r_max", int, "Largest distance R.", "half the lattice"),
        Option("off_axis", bool, "Also measure along (1,1,0), (2,1,0) and (1,1,1)."),
        Option(
            "multilevel",
            str,
            "Reduce the noise: average over so many values of slabs of so many time slices, as in "
            "4,100, or 4,20/2,50 with two levels.",
            metavar="SLICES,VALUES",
        ),
        Option(
            "multihit",
            bool,
            "Reduce the noise: replace links by their means. R = 1 on axis is left out.",
        ),
        Option("overrelax", int, "Overrelaxation sweeps per update of the slabs.", f"{OVERRELAX}"),
        Option("seed", int, "Seed of the updates of the slabs.", f"{defaults.SEED}"),
        Option("beta", float, "Coupling of the updates of the slabs.", "that of the ensemble"),
        Option("action", str, "Action of the updates of the slabs.", "that of the ensemble"),
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "paths", tuple(self.paths))
        half = min(self.lattice.extents[:3]) // 2
        if not 1 <= self.r_max <= half:
            raise UsageError(
                f"r_max is {self.r_max}; on {self.lattice} choose it between 1 and {half}, half "
                "the lattice."
            )
        for path in self.paths:
            if path not in PATHS:
                raise UsageError(f"There is no path '{path}'; choose from {', '.join(PATHS)}.")
        self._check_levels()

    def _check_levels(self) -> None:
        check_levels(self.levels)
        if self.multihit and not self.levels:
            object.__setattr__(self, "levels", ONE_VALUE)
        if not self.distances:
            raise UsageError("r_max is 1, where --multihit is not possible; choose a larger one.")
        for one in self.levels:
            if self.lattice.t % one.thickness:
                raise UsageError(
                    f"--multilevel: slabs of {one.thickness} time slices do not make up the "
                    f"lattice {self.lattice}; choose a thickness that divides {self.lattice.t}."
                )
        if not 0 <= self.overrelax <= MOST_SWEEPS:
            raise UsageError(
                f"--overrelax is {self.overrelax}; choose a number from 0 to {MOST_SWEEPS}."
            )
        GENERATORS[defaults.START_RNG].check(self.seed, 0)
        if self.beta is not None and not 0 < self.beta < math.inf:
            raise UsageError(f"--beta is {self.beta:g}; choose a positive coupling.")
        if self.action is not None:
            ACTIONS.check(self.action, "--action")

    @classmethod
    def for_lattice(cls, lattice: Lattice, **options: Any) -> PolyakovCorrelators:
        """Return the observable with the given options; see `Observable.for_lattice`."""
        given = check_options(cls.options, options, cls.name)
        r_max = given.pop("r_max", min(lattice.extents[:3]) // 2)
        paths = PATHS if given.pop("off_axis", False) else PATHS[:1]
        if "multilevel" in given:
            given["levels"] = parse_levels(given.pop("multilevel"))
        elif given.get("multihit"):
            given["levels"] = ONE_VALUE
        elif given:
            raise UsageError(
                f"{flag_of(next(iter(given)))} is for --multilevel and --multihit; give one of "
                "them too."
            )
        return cls(lattice, r_max, tuple(p for p in paths if steps_along(p, r_max)), **given)

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels of the lines and of the products of their traces."""
        return (TIME_LINE, POLYAKOV_CORRELATORS)

    @property
    def distances(self) -> list[tuple[str, int]]:
        """Path and number of steps of every record."""
        every = [(p, r) for p in self.paths for r in range(1, steps_along(p, self.r_max) + 1)]
        return [one for one in every if not (self.multihit and one == NEIGHBOURS)]

    @property
    def trial(self) -> PolyakovCorrelators:
        """The same with one update of every slab, if there are multilevel averages."""
        if not self.levels:
            return self
        levels = tuple(replace(one, values=min(one.values, 2)) for one in self.levels)
        return replace(self, levels=levels)

    @property
    def records(self) -> int:
        """Number of records per field."""
        return len(self.distances)

    @property
    def header(self) -> dict[str, str]:
        """Header of the table; see `Observable.header`."""
        reach = {"paths": ",".join(self.paths), "r_max": str(self.r_max)}
        if not self.levels:
            return {**super().header, **reach, "multilevel": "none"}
        slabs = "/".join(map(str, self.levels))
        words = [f"{slabs} (slices,values)"]
        if any(one.values > 1 for one in self.levels):
            update = f"1 heatbath and {self.overrelax} overrelaxation sweeps per update"
            words += [update, f"seed {self.seed}"]
        words += [f"{key} {value}" for key, value in self._given.items()]
        multihit = {"multihit": "yes"} if self.multihit else {}
        return {**super().header, **reach, "multilevel": "; ".join(words), **multihit}

    @property
    def _given(self) -> dict[str, str]:
        """The coupling and the action, if they are given and not those of the ensemble."""
        given = {"beta": self.beta, "action": self.action}
        return {key: f"{value}" for key, value in given.items() if value is not None}

    def informed(self, facts: Mapping[str, str]) -> PolyakovCorrelators:
        """Return the observable with the coupling and the action of an ensemble, if known.

        Raises
        ------
        UsageError
            If they are neither known nor given, or given differently, or if multihit does not
            allow them.
        """
        if not self.levels:
            return self
        if not {"beta", "action"} <= facts.keys():
            self._check_coupling()
            return self
        for key, value in self._given.items():
            if (float(value) != float(facts[key])) if key == "beta" else (value != facts[key]):
                raise UsageError(
                    f"--{key} is {value}, but the ensemble has {facts[key]}; leave --{key} out."
                )
        informed = replace(self, ensemble=(facts["beta"], facts["action"]))
        informed._check_coupling()
        return informed

    def _check_coupling(self) -> None:
        """Refuse an unknown coupling, and one for which the means of links are not computed."""
        beta, _ = self.coupling
        if self.multihit:
            check_mean_beta(beta)

    @property
    def coupling(self) -> tuple[float, str]:
        """The coupling and the action of the updates of the slabs.

        Raises
        ------
        UsageError
            If the coupling is unknown.
        """
        if self.ensemble:
            return float(self.ensemble[0]), self.ensemble[1]
        if self.beta is None:
            raise UsageError(
                "The coupling of the configurations is unknown, which --multilevel and --multihit "
                "need; give it "
                f"with --beta, and the action with --action unless it is {defaults.ACTION}."
            )
        return self.beta, self.action or defaults.ACTION

    def measurer(self, like: Field) -> Measurer:
        """Return a function that measures fields like this one.

        With multilevel averages it owns the memory that `MultilevelAverages` states.
        """
        if not self.levels:
            return partial(_records, self, partial(polyakov_correlators, self))
        multilevel = _Multilevel(self, like)
        return partial(_records, self, partial(multilevel, self.coupling[0]))

    def recorder_along(self, field: Field, facts: Sequence[Mapping[str, str]]) -> Recorder:
        """Return a recorder for the runs of a batch, which share the memory."""
        if not self.levels:
            return self.recorder(field)
        runs = [self.informed(one) for one in facts]
        multilevel = _Multilevel(runs[0], field.replicas[0])
        measurers = (partial(_records, self, partial(multilevel, one.coupling[0])) for one in runs)
        return ImmediateRecorder(field, *measurers)

    @classmethod
    def series(cls, table: TableData, source: str) -> dict[str, Series]:
        """Return a time series for each path and r; see `Observable.series`."""
        try:
            sweeps, path, r, values = (table[name] for name in (SWEEP, *cls.columns))
            pairs = dict.fromkeys(zip(path.tolist(), r.tolist(), strict=True))
            rows = {pair: (path == pair[0]) & (r == pair[1]) for pair in pairs}
            found = {
                f"path={path},r={r}": Series(sweeps[mask], values[mask].astype(np.float64))
                for (path, r), mask in rows.items()
            }
            if any(not np.array_equal(one.sweeps, np.unique(sweeps)) for one in found.values()):
                raise ValueError
        except (KeyError, ValueError) as error:
            raise GaugeError(
                f"The table {source} is damaged: its configurations do not have the same "
                "distances; run gauge-mc verify on its run."
            ) from error
        return found


def _records(
    observable: PolyakovCorrelators, measure: Callable[[Field], Array], field: Field
) -> list[Record]:
    """Return the records of a field, given a function that returns C(R) of all distances."""
    pairs = zip(observable.distances, measure(field).tolist(), strict=True)
    return [(path, r, value) for (path, r), value in pairs]


class _Multilevel:
    """Measurement of multilevel averages, which owns the memory for them."""

    def __init__(self, observable: PolyakovCorrelators, like: Field) -> None:
        o = self._observable = observable
        beta, action = o.coupling
        self._counts = [len(equivalent_steps(path)) for path, _ in o.distances]
        vectors = [
            (r * step[0], r * step[1], r * step[2])
            for path, r in o.distances
            for step in equivalent_steps(path)
        ]
        self._averages = MultilevelAverages(
            like, o.levels, vectors, beta, action, o.seed, o.overrelax, o.multihit
        )

    def __call__(self, beta: float, field: Field) -> Array:
        """Return C(R) for all distances."""
        plain = polyakov_correlators(self._observable, field)
        sums = self._averages(field, beta, _digest(plain))
        ends = np.cumsum([0, *self._counts])
        means = [sums[begin:end].mean() for begin, end in pairwise(ends)]
        return np.array(means) / (field.group.colours**2 * field.lattice.slice_sites)


def _digest(values: Array) -> int:
    """Return a number of 40 bits that differs between configurations."""
    return int.from_bytes(hashlib.sha256(values.tobytes()).digest()[:5], "little")


def polyakov_correlators(observable: PolyakovCorrelators, field: Field) -> Array:
    """Return C(R) of a field for all distances of an observable, in their order."""
    launches = [*_launches(observable)]
    sums = [_sums(slab, lines.address, launches) for slab, lines in complete_lines(field)]
    rows = add_slices(field.devices, [one.by_slice() for one in sums])
    found: dict[tuple[str, int], list[float]] = {}
    # All distances are summed, also those that are not asked for.
    for (path, _, first, count), row in zip(launches, rows, strict=True):
        for n in range(count):
            found.setdefault((path, first + n), []).append(row[n])
    norm = field.group.colours**2 * field.lattice.slice_sites
    return np.array([np.mean(found[one]) for one in observable.distances]) / norm


def _launches(observable: PolyakovCorrelators) -> Iterable[tuple[str, Step, int, int]]:
    """Yield path, step, first r and number of values of r of every launch."""
    at_a_time = POLYAKOV_CORRELATORS.constant("DISTANCES_AT_A_TIME")
    for path in observable.paths:
        longest = steps_along(path, observable.r_max)
        for step, first in product(equivalent_steps(path), range(1, longest + 1, at_a_time)):
            yield path, step, first, min(at_a_time, longest + 1 - first)


def _sums(slab: Slab, lines: int, launches: list[tuple[str, Step, int, int]]) -> SlabSums:
    """Launch the sums over the lines, which end in a slab."""
    # On a slice of even t, the sites have the parity of the lines wherever the slab begins.
    over = work(slab.layout.first % 2, 1, 1, BOTH_PARITIES)
    sums = SlabSums(slab, POLYAKOV_CORRELATORS.constant("DISTANCES_AT_A_TIME"), len(launches), over)
    sums.launch(
        POLYAKOV_CORRELATORS,
        *(
            {"lines": lines, "step": step, "first": first, "count": count}
            for _, step, first, count in launches
        ),
    )
    return sums
