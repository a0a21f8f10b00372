"""Wilson loops W(R, T), from which the potential of static charges at a distance R follows."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gauge_mc import defaults
from gauge_mc.actions import Coupling
from gauge_mc.analysis.table_series import series_of
from gauge_mc.devices.kernels import Kernel
from gauge_mc.domain.lattice import Lattice
from gauge_mc.domain.paths import ORDERINGS, PATHS
from gauge_mc.errors import UsageError
from gauge_mc.fields.field import Field
from gauge_mc.fields.time_lines import TIME_LINE
from gauge_mc.files.columns import TableColumns
from gauge_mc.files.table import TableData
from gauge_mc.observables import OBSERVABLES, Measurer, Record, TimeSeries
from gauge_mc.observables.noise.noise_reduction import NOISE_OPTIONS, NoiseReduction, ReducedNoise
from gauge_mc.options import Option, check_options
from gauge_mc.quantities.potential.analysis.loop_tables import (
    COLUMNS,
    OTHER_LEVEL,
    T_STEP,
    WHAT,
    level_pairs,
    paths_of,
    select_loops,
)
from gauge_mc.quantities.potential.observables.loops.loop_set import LoopSet
from gauge_mc.quantities.potential.observables.loops.measurer import TEMPORAL_GAUGE, LoopMeasurer
from gauge_mc.quantities.potential.observables.loops.multilevel_loops import (
    KERNELS,
    MultilevelLoops,
)
from gauge_mc.quantities.potential.observables.loops.slab_loops import (
    TRANSPORTER_STEP,
    WILSON_LOOPS,
)
from gauge_mc.quoting import shortened
from gauge_mc.smearing import NO_SMEARING, make_smearing, smear_option, smearing_options
from gauge_mc.temporal_links import NO_TEMPORAL_LINKS, TEMPORAL_LINKS, make_temporal_links

EXTENT = 12
"""Default of the largest R and T, on lattices that are at least twice as large. It is a compromise
between the range of the loops and the time of a measurement."""

WITHOUT_UPDATES = 1
"""Thickness of slabs that are not updated. With such slabs there are loops of all T."""

ITERATIONS = 25
"""Default number of smearing iterations, as in arXiv:1010.4834, section 4."""


@OBSERVABLES.register
@dataclass(frozen=True)
class WilsonLoops(LoopSet, ReducedNoise):
    """Wilson loops on and off axis, with one record per loop.

    W(R, T) is Re Tr / N of a loop with R steps in space and T in time, averaged over all sites and
    all equivalent directions. Off axis, the line of each step is the average over the shortest
    paths of links, taken independently on the two spatial sides of the loop.

    With `correlations` the spatial links at t and at t + T may have different smearing levels. The
    records of a pair of levels are averages over both orders, so that their matrix is symmetric.
    """

    name: ClassVar[str] = "wilson-loops"
    summary: ClassVar[str] = "Wilson loops on and off axis, smeared"
    columns: ClassVar[TableColumns] = COLUMNS
    normalisation: ClassVar[str] = "Re Tr / N averaged over sites and equivalent directions"
    units: ClassVar[str] = "r in steps along path, such as (1,1,0); t in lattice units"
    smears: ClassVar[bool] = True
    strict: ClassVar[bool] = True
    on_copies: ClassVar[bool] = True
    options: ClassVar[tuple[Option, ...]] = (
        Option("r_max", int, "Largest distance R.", f"{EXTENT}, or half the lattice"),
        Option("t_max", int, "Largest time T.", f"{EXTENT}, or half the lattice"),
        Option("off_axis", bool, "Also measure along (1,1,0), (2,1,0) and (1,1,1)."),
        Option(
            "iterations",
            str,
            "Smearing iterations, or several numbers, such as 0,10,25, counted from the first "
            "smearing.",
            f"{ITERATIONS}, or those given with --smear",
            "N[,N...]",
            each=int,
        ),
        Option(
            "temporal",
            str,
            "Links along t, made from the unsmeared field.",
            f"{NO_TEMPORAL_LINKS}, its own",
            choices=(*TEMPORAL_LINKS, NO_TEMPORAL_LINKS),
        ),
        Option(
            "correlations",
            bool,
            "Measure all pairs of smearing levels, for variational analyses.",
        ),
        Option(
            "orderings",
            str,
            "Orders of the links in a step along (2,1,0): all, or those in which the links of a "
            "direction follow each other (xxy, yxx).",
            next(iter(ORDERINGS)),
            choices=tuple(ORDERINGS),
        ),
        *NOISE_OPTIONS,
    )
    formerly: ClassVar[Mapping[str, str]] = {"orderings": ORDERINGS["all"]}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.correlations:
            object.__setattr__(self, "columns", COLUMNS.complete())
        self.check_distances()
        if self.noise:
            self.check_noise(self.noise)

    @classmethod
    def for_lattice(cls, lattice: Lattice, **options: Any) -> WilsonLoops:
        """Return the observable with the given options; see `Observable.for_lattice`.

        By default the loops are on axis, up to `EXTENT` or half the lattice, after all iterations
        of a chain of smearings, or after `ITERATIONS` of a smearing without a number of them.
        """
        options = {"smear": defaults.SMEARING} | {
            name: value for name, value in options.items() if value is not None
        }
        known = (*cls.options, smear_option())
        given = check_options((*known, *smearing_options()), options, cls.name)
        noise = NoiseReduction.from_options(lattice, given, WITHOUT_UPDATES)
        own = {option.name for option in known}
        others = {name: value for name, value in given.items() if name not in own}
        smearing = make_smearing(given["smear"], others)
        if smearing is None and "iterations" in given:
            raise UsageError(f"--iterations is not for --smear {NO_SMEARING}.")
        usual = smearing.most if smearing and smearing.most is not None else ITERATIONS
        levels = _parse_levels(given.get("iterations", str(usual)))
        x, y, z, t = (min(EXTENT, extent // 2) for extent in lattice.extents)
        return cls(
            lattice,
            given.get("r_max", min(x, y, z)),
            given.get("t_max", t),
            PATHS if given.get("off_axis") else PATHS[:1],
            smearing,
            levels if smearing else (0,),
            make_temporal_links(given.get("temporal", NO_TEMPORAL_LINKS)),
            given.get("correlations", False),
            given.get("orderings", next(iter(ORDERINGS))),
            noise,
        )

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels of the gauge, of the lines and of the loops, or of multilevel averages."""
        if self.noise:
            return KERNELS
        return (TIME_LINE, TEMPORAL_GAUGE, TRANSPORTER_STEP, WILSON_LOOPS)

    @property
    def records(self) -> int:
        """Number of records per field."""
        pairs = len(self.levels) * (self.matrix_size + 1) // 2
        return pairs * len(self.times) * len(self.distances)

    @property
    def times(self) -> range:
        """The values of T."""
        step = self.noise.thickness if self.noise else 1
        return range(step, self.t_max + 1, step)

    @property
    def header(self) -> dict[str, str]:
        """Header of the table; see `Observable.header`."""
        smeared = self.smearing is not None and max(self.levels) > 0
        return {
            **super().header,
            "observable": "wilson_loops",
            "smearing": str(self.smearing) if smeared else NO_SMEARING,
            "iterations": ",".join(map(str, self.levels)),
            **({"temporal": str(self.temporal)} if self.temporal else {}),
            **({"correlations": CORRELATIONS} if self.correlations else {}),
            "paths": ",".join(self.paths),
            **({"orderings": ORDERINGS[self.orderings]} if self._has_orderings else {}),
            "r_max": str(self.r_max),
            "t_max": str(self.t_max),
            **({T_STEP: str(self.times.step), **self.noise.header} if self.noise else {}),
        }

    @property
    def _has_orderings(self) -> bool:
        """Whether the orderings differ for some path."""
        return any("2" in path for path in self.paths)

    def plain_measurer(self, like: Field) -> Measurer:
        """Return a function that measures fields like this one; see `LoopMeasurer` for memory."""
        measure = LoopMeasurer(self, like)
        return lambda field: [
            (*levels, path, r + 1, t + 1, float(loop))
            for levels, path, loops in measure(field)
            for (r, t), loop in np.ndenumerate(loops)
        ]

    def reduced_measurer(self, like: Field) -> Callable[[Coupling, Field], list[Record]]:
        """Return a function that measures multilevel averages; see `ReducedNoise`."""
        assert self.noise
        lines = self.distances, len(self.times), self.levels, self.smearing, self.orderings
        measure = MultilevelLoops(like, self.noise, *lines)
        return lambda coupling, field: [
            (*which, t, float(loop))
            for which, loops in measure(coupling, field).items()
            for t, loop in zip(self.times, loops, strict=True)
        ]

    @classmethod
    def series(cls, table: TableData, source: str) -> dict[str, TimeSeries]:
        """Return a correlator in t for each smearing level, path and r; see `Observable.series`.

        The names of correlators between levels have both, as ``smearing=0,smearing2=10``.
        """
        found = series_of(table, source, COLUMNS, WHAT)
        return {
            f"{_in_words(pair, OTHER_LEVEL in table)},path={path},r={r}": TimeSeries(
                loops.sweeps, loops.values[:, i], loops.t_step, loops.t_step
            )
            for pair in level_pairs(found)
            for path in paths_of(found)
            for loops in [select_loops(found, path, *pair)]
            for i, r in enumerate(loops.r)
        }


CORRELATIONS = "all pairs of levels on the two spatial sides, averaged over both orders"
"""Entry in the headers of tables with loops between smearing levels."""


def _in_words(levels: tuple[int, int], both: bool) -> str:
    """Return the levels of loops for the name of a series."""
    return f"smearing={levels[0]}" + (f",{OTHER_LEVEL}={levels[1]}" if both else "")


def _parse_levels(text: str | tuple[int, ...]) -> tuple[int, ...]:
    """Parse numbers of iterations, such as ``0,10,25``."""
    if not isinstance(text, str):
        return text
    words = text.split(",")
    if not all(re.fullmatch("[0-9]{1,9}", word.strip()) for word in words):
        raise UsageError(
            f"--iterations: '{shortened(text)}' is not of the form N or N,N,..., such as 0,25."
        )
    return tuple(sorted({int(word) for word in words}))
