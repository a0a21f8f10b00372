"""Wilson loops W(R, T), from which the potential of static charges at a distance R follows."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from gauge_mc import defaults
from gauge_mc.actions import Coupling, action_of
from gauge_mc.analysis.table_series import series_of
from gauge_mc.devices.kernels import Kernel
from gauge_mc.domain.lattice import ORDERINGS, PATHS, Lattice, steps_along
from gauge_mc.errors import UsageError
from gauge_mc.fields.decorated_links import TIME_LINE
from gauge_mc.fields.field import Field
from gauge_mc.fields.gradient_flow import LENGTHEN_LINES
from gauge_mc.fields.sums import SlabSums, total
from gauge_mc.files.columns import Column, TableColumns
from gauge_mc.files.table import TableData, read_heading
from gauge_mc.groups import GROUPS
from gauge_mc.observables import (
    OBSERVABLES,
    Measurer,
    Observable,
    Record,
    TimeSeries,
    noise_reduction,
)
from gauge_mc.options import Option, check_options, flag_of
from gauge_mc.quantities.potential import loop_tables
from gauge_mc.quantities.potential.loops import (
    KERNELS,
    TEMPORAL_GAUGE,
    TRANSPORTER_STEP,
    WILSON_LOOPS,
    LoopMeasurer,
    LoopSet,
    MultilevelLoops,
)
from gauge_mc.quoting import shortened
from gauge_mc.smearing import NO_SMEARING, make_smearing, smear_option, smearing_options
from gauge_mc.temporal_links import NO_TEMPORAL_LINKS, TEMPORAL_LINKS, Hyp2, make_temporal_links

PLANAR_LOOPS = Kernel("planar_loops")
COPY_LINKS = Kernel("copy_links")

SPACE, TIME = "space", "time"
"""Values of the column ``plane``: both sides are in space, or one is along t."""

LOOPS = {SPACE: 6, TIME: 3}
"""Number of loops per site: ordered pairs of directions in space, or directions in space."""

R_MAX, T_MAX = 6, 24
"""Default of the largest extents, on lattices that are at least twice as large."""


@OBSERVABLES.register
@dataclass(frozen=True)
class PlanarLoops(Observable):
    """Wilson loops of the links as they are, whose sides in space and along t are treated alike.

    W(r, t) has a side of r links in space and one of t links, in space as well or along t. Loops in
    both kinds of planes determine the anisotropy of the lattice.

    Raises
    ------
    UsageError
        If an extent is not between 1 and half the lattice.
    """

    lattice: Lattice
    """Extents of the lattice."""
    r_max: int
    """Largest extent in space, at most half the lattice."""
    t_max: int
    """Largest extent along t, at most half the lattice."""

    name: ClassVar[str] = "planar-loops"
    summary: ClassVar[str] = "Wilson loops on axis in space and along t, not smeared"
    columns: ClassVar[TableColumns] = TableColumns(
        Column(
            "plane",
            str,
            f"`{SPACE}` if both sides are in space, `{TIME}` if one is along t",
            index=True,
        ),
        Column("r", int, "extent of the side in space, in links", index=True),
        Column("t", int, "extent of the other side, in links", index=True),
        Column("loop", float, "W(r, t), averaged over all sites and directions"),
    )
    normalisation: ClassVar[str] = "Re Tr / N averaged over sites and directions"
    units: ClassVar[str] = "r and t in links"
    strict: ClassVar[bool] = True
    on_copies: ClassVar[bool] = True
    options: ClassVar[tuple[Option, ...]] = (
        Option("r_max", int, "Largest distance R.", default=f"{R_MAX}, or half the lattice"),
        Option("t_max", int, "Largest time T.", default=f"{T_MAX}, or half the lattice"),
    )

    def __post_init__(self) -> None:
        limits = {"r_max": min(self.lattice.extents[:3]), "t_max": self.lattice.t}
        for name, extent in limits.items():
            if not 1 <= getattr(self, name) <= extent // 2:
                raise UsageError(
                    f"{flag_of(name)} is {getattr(self, name)}; on {self.lattice} choose it "
                    f"between 1 and {extent // 2}, half the lattice."
                )

    @classmethod
    def for_lattice(cls, lattice: Lattice, **options: Any) -> PlanarLoops:
        """Return the observable with the given options; see `Observable.for_lattice`."""
        values = check_options(cls.options, options, cls.name)
        r_max = values.get("r_max", min(R_MAX, min(lattice.extents[:3]) // 2))
        return cls(lattice, r_max, values.get("t_max", min(T_MAX, lattice.t // 2)))

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels of the lines and of the loops."""
        return (COPY_LINKS, LENGTHEN_LINES, PLANAR_LOOPS)

    @property
    def extents(self) -> list[tuple[str, int, int]]:
        """Plane, r and t of the records."""
        across = range(1, self.r_max + 1)
        along = range(1, self.t_max + 1)
        return [
            *((SPACE, r, t) for r, t in product(across, across)),
            *((TIME, r, t) for r, t in product(across, along)),
        ]

    @property
    def records(self) -> int:
        """Number of records per field."""
        return len(self.extents)

    @property
    def header(self) -> dict[str, str]:
        """Header of the table; see `Observable.header`."""
        return {**super().header, "r_max": str(self.r_max), "t_max": str(self.t_max)}

    def measurer(self, like: Field) -> Measurer:
        """Return a function that measures fields like this one.

        It owns the memory of max(r_max, t_max) further fields.
        """
        return _LoopLines(self, like)


class _LoopLines:
    """Measurement of planar loops, which owns the lines of every length."""

    def __init__(self, loops: PlanarLoops, like: Field) -> None:
        self._loops = loops
        kind = (like.lattice, like.group.name, like.precision, like.devices)
        longest = max(loops.r_max, loops.t_max)
        self._lines = [Field.empty(*kind, above=loops.t_max) for _ in range(longest)]

    def __call__(self, field: Field) -> list[Record]:
        """Return the records of a field."""
        for number, (kernel, values) in enumerate(self._steps(field)):
            line_field = self._lines[number]
            for n, slab in enumerate(line_field.slabs):
                slab.launch(kernel, slab.whole(), **values(n))
            line_field.exchange_halo(depth=None)
        launched = [x for x in self._loops.extents if x[0] == TIME or x[1] <= x[2]]
        sums = [SlabSums(slab, 1, len(launched)) for slab in self._lines[0].slabs]
        for plane, r, t in launched:
            pairs = zip(sums, self._lines[r - 1].slabs, self._lines[t - 1].slabs, strict=True)
            for pair, lines, second in pairs:
                memory = {"lines": lines.buffer.address, "others": second.buffer.address}
                pair.launch(PLANAR_LOOPS, {**memory, "r": r, "s": t, "along_t": int(plane == TIME)})
        norm = field.group.colours * field.lattice.sites
        rows = total(self._lines[0], sums)[:, 0].tolist()
        averages = {x: row / (norm * LOOPS[x[0]]) for x, row in zip(launched, rows, strict=True)}
        return [
            (plane, r, t, averages[plane, *(sorted((r, t)) if plane == SPACE else (r, t))])
            for plane, r, t in self._loops.extents
        ]

    def _steps(self, field: Field) -> Iterator[tuple[Kernel, Any]]:
        """Yield the kernel that makes the lines of each length, and its arguments on a slab.

        Those of one link come first.
        """

        def address(lines: Field, n: int) -> int:
            return lines.slabs[n].buffer.address

        first = self._lines[0]
        yield (
            COPY_LINKS,
            lambda n: {"source": address(field, n), "target": address(first, n), "directions": 15},
        )
        for length in range(1, len(self._lines)):
            shorter, longer = self._lines[length - 1 : length + 1]
            yield (
                LENGTHEN_LINES,
                lambda n, length=length, shorter=shorter, longer=longer: {
                    "links": address(self._lines[0], n),
                    "lines": address(shorter, n),
                    "longer": address(longer, n),
                    "length": length,
                },
            )


SCALE = 6.0
"""r0/a that is assumed where it is not known."""

REACH = 2.0
"""Default of the largest R and T, in units of r0, on lattices that are at least twice as large."""

LEAST_EXTENT = 4
"""Least default of the largest R and T."""

IN_R0 = {"r₀": 1.0, "1/√σ": 1.17, "√t₀": 2.97}
"""Size of r0 in units of the lengths that actions know (R. Sommer, arXiv:1401.3270)."""

WITHOUT_UPDATES = 1
"""Thickness of slabs that are not updated. With such slabs there are loops of all T."""

ITERATIONS = 25
"""Default number of smearing iterations, as in arXiv:1010.4834, section 4."""

LEAST_SMEARED = 6
"""Least default of the highest smearing level, which is (r0/a)^2: the width of a spatial line grows
with the square root of the number of iterations."""

LINES = Hyp2.name
"""Links of the static lines without options, on fine lattices. In the same time r0 becomes known
nearly twice as well as with plain lines, and as with HYP1 (``docs/notes/performance.md``)."""

FINE = 5.0
"""Least r0/a of a fine lattice. On coarser ones HYP links change r0 by effects of the lattice, for
SU(3) by 3 % at r0/a = 2.9 and 1 % at 4.1, and plain lines are known well enough up to r0."""


@OBSERVABLES.register
@dataclass(frozen=True)
class WilsonLoops(LoopSet, noise_reduction.ReducedNoise):
    """Wilson loops on and off axis, with one record per loop.

    W(R, T) is Re Tr / N of a loop with R steps in space and T in time, averaged over all sites and
    all equivalent directions. Off axis, the line of each step is the average over the shortest
    paths of links, taken independently on the two spatial sides of the loop.

    With `correlations` the spatial links at t and at t + T may have different smearing levels. The
    records of a pair of levels are averages over both orders, so that their matrix is symmetric.
    """

    name: ClassVar[str] = "wilson-loops"
    summary: ClassVar[str] = "Wilson loops on and off axis, smeared"
    columns: ClassVar[TableColumns] = loop_tables.COLUMNS
    normalisation: ClassVar[str] = "Re Tr / N averaged over sites and equivalent directions"
    units: ClassVar[str] = "r in steps along path, such as (1,1,0); t in lattice units"
    smears: ClassVar[bool] = True
    strict: ClassVar[bool] = True
    on_copies: ClassVar[bool] = True
    options: ClassVar[tuple[Option, ...]] = (
        Option("r_max", int, "Largest component of R.", default="2 r₀, or half the lattice"),
        Option("t_max", int, "Largest time T.", default="2 r₀, or half the lattice"),
        Option("off_axis", bool, "Also measure along (1,1,0), (2,1,0) and (1,1,1)."),
        Option(
            "iterations",
            str,
            "Smearing iterations, or several numbers, such as 0,10,25, counted from the first "
            "smearing.",
            default=f"{ITERATIONS}, or those given with --smear",
            metavar="N[,N...]",
            each=int,
        ),
        Option(
            "temporal",
            str,
            "Links along t, made from the unsmeared field.",
            default=f"{NO_TEMPORAL_LINKS}, its own",
            choices=(*TEMPORAL_LINKS, NO_TEMPORAL_LINKS),
        ),
        Option(
            "correlations", bool, "Measure all pairs of smearing levels, for variational analyses."
        ),
        Option(
            "orderings",
            str,
            "Orders of the links in a step along (2,1,0): all, or those in which the links of a "
            "direction follow each other (xxy, yxx).",
            default=next(iter(ORDERINGS)),
            choices=tuple(ORDERINGS),
        ),
        *noise_reduction.NOISE_OPTIONS,
    )
    formerly: ClassVar[Mapping[str, str]] = {"orderings": ORDERINGS["all"]}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.correlations:
            object.__setattr__(self, "columns", loop_tables.COLUMNS.complete())
        self.check_distances()
        if self.noise:
            self.check_noise(self.noise)

    @classmethod
    def for_lattice(cls, lattice: Lattice, **options: Any) -> WilsonLoops:
        """Return the observable with the given options; see `Observable.for_lattice`.

        Without options but `r_max` and `t_max`, the loops are those that determine V(R) best: along
        all paths, with the correlations of two smearing levels and, on fine lattices, static lines
        with little noise, by the lattice spacing that `for_ensemble` knows. With any other option
        they are on axis, with the lines of the field, after all iterations of a chain of smearings,
        or after `ITERATIONS` of a smearing without a number of them.
        """
        settings = {name: value for name, value in options.items() if value is not None}
        options = {"smear": defaults.SMEARING} | settings
        declared = (*cls.options, *noise_reduction.action_options(), smear_option())
        values = check_options((*declared, *smearing_options()), options, cls.name)
        noise = noise_reduction.NoiseReduction.from_options(lattice, values, WITHOUT_UPDATES)
        names = {option.name for option in declared}
        parameters = {name: value for name, value in values.items() if name not in names}
        smearing = make_smearing(values["smear"], parameters)
        if smearing is None and "iterations" in values:
            raise UsageError(f"--iterations is not for --smear {NO_SMEARING}.")
        usual = smearing.most if smearing and smearing.most is not None else ITERATIONS
        extents = frozenset({"r_max", "t_max"})
        best = not settings.keys() - extents
        r_max, t_max = _reach(lattice, SCALE)
        loops = cls(
            lattice,
            values.get("r_max", r_max),
            values.get("t_max", t_max),
            PATHS[:1],
            smearing,
            _parse_levels(values.get("iterations", str(usual))) if smearing else (0,),
            make_temporal_links(values.get("temporal", NO_TEMPORAL_LINKS)),
            values.get("correlations", False),
            values.get("orderings", next(iter(ORDERINGS))),
            noise,
            extents - values.keys() | ({"levels", "paths", "temporal"} if best else set()),
        ).of_scale(SCALE)
        return replace(loops, paths=PATHS) if values.get("off_axis") else loops

    def of_scale(self, scale: float) -> Self:
        """Return the loops with what follows from r0/a, of what was not asked for."""
        reach, most = _reach(self.lattice, scale), max(LEAST_SMEARED, round(scale**2))
        r_max = reach[0] if "r_max" in self.automatic else self.r_max
        usual: dict[str, Any] = {
            "r_max": r_max,
            "t_max": reach[1],
            "levels": (most // 3, most),
            "temporal": make_temporal_links(LINES if scale >= FINE else NO_TEMPORAL_LINKS),
            "paths": tuple(path for path in PATHS if steps_along(path, r_max)),
        }
        changes = {name: value for name, value in usual.items() if name in self.automatic}
        return replace(self, **changes, correlations=self.correlations or "levels" in changes)

    def as_in(self, table: Path) -> Self:
        """Return the loops of a begun table; earlier versions took one level, on axis."""
        header = read_heading(table)[0] if self.automatic and table.exists() else {}
        if not header or "correlations" in header:
            return self
        former: dict[str, Any] = {name: int(header[name]) for name in ("r_max", "t_max")}
        former |= {"levels": _parse_levels(header["iterations"]), "paths": PATHS[:1]}
        former |= {"temporal": make_temporal_links(NO_TEMPORAL_LINKS)}
        changes = {name: former[name] for name in self.automatic}
        correlations = self.correlations and "levels" not in changes
        return replace(self, **changes, correlations=correlations, automatic=frozenset())

    def for_ensemble(self, metadata: Mapping[str, str], field: Field | None = None) -> Self:
        """Return the loops for the spacing of an ensemble; see `Observable.for_ensemble`."""
        return super().for_ensemble(metadata, field).of_scale(scale_of(metadata))

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
        has_orderings = any("2" in path for path in self.paths)  # which differ for some path
        return {
            **super().header,
            "observable": "wilson_loops",
            "smearing": str(self.smearing) if smeared else NO_SMEARING,
            "iterations": ",".join(map(str, self.levels)),
            **({"temporal": str(self.temporal)} if self.temporal else {}),
            **({"correlations": CORRELATIONS} if self.correlations else {}),
            "paths": ",".join(self.paths),
            **({"orderings": ORDERINGS[self.orderings]} if has_orderings else {}),
            "r_max": str(self.r_max),
            "t_max": str(self.t_max),
            **(
                {loop_tables.T_STEP: str(self.times.step), **self.noise.header}
                if self.noise
                else {}
            ),
        }

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
            (*name, t, float(loop))
            for name, loops in measure(coupling, field).items()
            for t, loop in zip(self.times, loops, strict=True)
        ]

    @classmethod
    def series(cls, table: TableData, source: str) -> dict[str, TimeSeries]:
        """Return a correlator in t for each smearing level, path and r; see `Observable.series`.

        The names of correlators between levels have both, as ``smearing=0,smearing2=10``.
        """
        wilson_loops = series_of(table, source, loop_tables.COLUMNS, loop_tables.WHAT)
        levels = "smearing={}"
        if loop_tables.OTHER_LEVEL in table:
            levels += f",{loop_tables.OTHER_LEVEL}={{}}"
        return {
            f"{levels.format(*pair)},path={path},r={r}": TimeSeries(
                loops.sweeps, loops.values[:, i], loops.t_step, loops.t_step
            )
            for pair in loop_tables.level_pairs(wilson_loops)
            for path in loop_tables.paths_of(wilson_loops)
            for loops in [loop_tables.select_loops(wilson_loops, path, *pair)]
            for i, r in enumerate(loops.r)
        }


def _reach(lattice: Lattice, scale: float) -> tuple[int, int]:
    """Return the default of the largest R and T, given r0/a."""
    *space, t = (extent // 2 for extent in lattice.extents)
    reach = max(LEAST_EXTENT, math.ceil(REACH * scale))
    return min(*space, reach), min(t, reach)


def scale_of(metadata: Mapping[str, str]) -> float:
    """Return r0/a of an ensemble, or `SCALE` if it is not known."""
    if not {"beta", "group"} <= metadata.keys():
        return SCALE
    group, beta = GROUPS[metadata["group"]], float(metadata["beta"])
    lengths = action_of(metadata).scales_at(group, beta)
    sizes = [IN_R0[length.name] * length.length(beta) for length in lengths if length.name in IN_R0]
    return next(iter(sizes), SCALE)


CORRELATIONS = "all pairs of levels on the two spatial sides, averaged over both orders"
"""Entry in the headers of tables with loops between smearing levels."""


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
