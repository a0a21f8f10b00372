"""Polyakov loops: averages, representations, planes, and correlators with their potential."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise, product
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gauge_mc.actions import Coupling
from gauge_mc.analysis.states import PRECISION
from gauge_mc.analysis.table_series import Skips, Tables, read_series
from gauge_mc.analysis.timeseries import Replicas, kurtosis, phase_of_mean, susceptibility
from gauge_mc.arrays import Array, Integers
from gauge_mc.devices.kernels import Kernel
from gauge_mc.domain.lattice import PATHS, Lattice, Step, bracketed, equivalent_steps, steps_along
from gauge_mc.domain.slab import BOTH_PARITIES, Slab, nowhere, work
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.fields.decorated_links import TIME_LINE, complete_lines, time_lines
from gauge_mc.fields.field import Field
from gauge_mc.fields.sums import DeferredSums, SlabSums, add_slices
from gauge_mc.files.columns import SWEEP, Column, TableColumns
from gauge_mc.groups import GROUPS, Group
from gauge_mc.observables import (
    OBSERVABLES,
    Columns,
    DerivedQuantity,
    Measurer,
    Observable,
    Record,
    SummedObservable,
    noise_reduction,
)
from gauge_mc.options import Option, check_options
from gauge_mc.quantities.potential import static_potential
from gauge_mc.quantities.potential.loop_tables import step_length
from gauge_mc.quoting import modulus, root_of_unity

CORRELATORS = TableColumns(
    Column("path", str, f"direction of the distance: {', '.join(PATHS)}", index=True),
    Column("r", int, "steps along the path", index=True),
    Column("re", float, "C(R), averaged over the sites of space and equivalent directions"),
)
"""Columns of a table of correlators."""

CORRELATOR_COLUMNS = (SWEEP, *CORRELATORS.names)
"""Names of the columns of a table of correlators."""

AXES = ("x", "y", "z")
"""Names of the axes of space."""

PLANES = TableColumns(
    Column("axis", str, "axis to which the planes are perpendicular: x, y or z", index=True),
    Column("r", int, "distance of the planes", index=True),
    Column("re", float, "product of the real parts of the averages over two planes"),
    Column("im", float, "product of the imaginary parts; 0 for SU(2)"),
)
"""Columns of a table of correlators of planes."""

PLANE_COLUMNS = (SWEEP, *PLANES.names)
"""Names of the columns of such a table."""


@dataclass(frozen=True)
class Correlators:
    """Correlators of two Polyakov loops at all distances of a table."""

    colours: int
    """N of SU(N)."""
    extent: int
    """Extent of the lattice in time, N_t."""
    distances: tuple[tuple[str, int], ...]
    """Path and number of steps of every distance."""
    sweeps: Integers
    """Numbers (updates) of the configurations, ascending in every chain, of shape
    (configurations,)."""
    replicas: Replicas
    """Division of the configurations into chains."""
    values: Array
    """C(R) = Re P(x) P(x + R)^* with P = Tr / N, averaged over each configuration, of shape
    (configurations, distances).
    """


def read_correlators(tables: Tables, skip: Skips = 0) -> tuple[Correlators, Mapping[str, str]]:
    """Read the correlators at all distances from the file of a table, or of several chains."""
    series = read_series(tables, CORRELATORS, "correlators of Polyakov loops", skip, 1)
    try:
        extent, colours = series.lattice.t, GROUPS[series.header.get("group", "")].colours
    except (GaugeError, UsageError) as error:
        raise GaugeError(
            f"The header of {series.source} does not state the lattice and the group; measure the "
            "correlators again."
        ) from error
    columns = (series.index[name].tolist() for name in ("path", "r"))
    distances = tuple(zip(*columns, strict=True))
    values = np.asarray(series.values["re"], np.float64)
    chains = series.sweeps, series.replicas
    correlators = Correlators(colours, extent, distances, *chains, values)
    return correlators, series.header


def correlator_potential(correlators: Correlators) -> static_potential.PotentialSeries:
    """Return V(R) = -ln [N^2 C(R)] / N_t at all distances at which C(R) is known well enough.

    With the traces Tr instead of Tr / N, that is N^2 C(R), the correlator is the sum over all
    states of two static charges of w_n exp(-V_n(R) N_t), with integers w_n and w_0 = 1 (M. Luescher
    and P. Weisz, hep-lat/0207003, section 2). So this is the potential of the ground state, the one
    of Wilson loops, up to terms of the order exp(-(V_1 - V_0) N_t) / N_t; without N^2 it would be
    larger by 2 ln N / N_t. C(R) must be known to better than `PRECISION`, as ln C is biased
    otherwise; this leaves out all distances at which the average is negative.
    """
    static_potential.check_enough(correlators.sweeps.size, "correlators")
    if (np.ptp(correlators.values, axis=0) == 0).any():
        raise GaugeError(
            "The correlators do not fluctuate, so the configurations are all the same; generate "
            "different ones."
        )
    pairs, left_out, extent = [], [], correlators.extent
    for (path, steps), values in zip(correlators.distances, correlators.values.T, strict=True):
        distance, mean = steps * step_length(path), float(values.mean())
        if not mean > 0 or correlators.replicas.estimate(values).error >= PRECISION * mean:
            left_out.append(f"{bracketed(path)} R = {distance:.4g}")
            continue
        logs = math.log(correlators.colours**2 * mean) + (values - mean) / mean
        energy = correlators.replicas.estimate(-logs / extent)
        point = static_potential.PotentialPoint(path, steps, distance, energy, 0.0, extent, extent)
        pairs.append((point, -logs / extent))
    if not pairs:
        raise GaugeError(
            f"No correlator is known to better than {PRECISION:.0%}; measure more configurations, "
            "or with multilevel averages."
        )
    return static_potential.PotentialSeries.of(pairs, correlators.replicas, left_out)


def caution_images(points: Sequence[static_potential.PotentialPoint], lattice: str) -> list[str]:
    """Return a caution about points at half the lattice, or nothing.

    There a periodic image of one charge is as near to the other as the charge itself, so that
    C(R) is about twice as large for every such direction.
    """
    half = min(Lattice.parse(lattice).extents[:3]) / 2
    far = [point for point in points if point.steps * max(map(int, point.path)) == half]
    if not far:
        return []
    names = ", ".join(f"{bracketed(point.path)} R = {point.distance:.4g}" for point in far)
    return [
        f"Half the lattice away, periodic images of the charges lower V(R): {names}; leave these "
        "distances out with --r-max or measure on a larger lattice."
    ]


POLYAKOV = Kernel("polyakov")

ROUNDING = 1e-9
"""Tolerance of the relation between the values of a row. Their rounding errors are 1e-16, so that
larger differences are damage."""


def _susceptibility(chains: Sequence[Columns], lattice: Lattice) -> tuple[float, float]:
    """Return V (<|L|^2> - <|L|>^2) and its error, with the number V of spatial sites."""
    return susceptibility(*(columns["abs"] for columns in chains), volume=lattice.slice_sites)


def _kurtosis(chains: Sequence[Columns], lattice: Lattice) -> tuple[float, float]:
    """Return <|L|^4> / <|L|^2>^2 and its error."""
    return kurtosis(*(columns["abs"] for columns in chains))


def _binder(chains: Sequence[Columns], lattice: Lattice) -> tuple[float, float]:
    """Return 1 - <|L|^4> / (3 <|L|^2>^2) and its error."""
    value, error = _kurtosis(chains, lattice)
    return 1 - value / 3, error / 3


def _phase(chains: Sequence[Columns], lattice: Lattice) -> tuple[float, float]:
    """Return the phase of <L> in units of pi, and its error."""
    return phase_of_mean(*(columns["re"] + 1j * columns["im"] for columns in chains))


@OBSERVABLES.register
@dataclass(frozen=True)
class Polyakov(SummedObservable):
    """Average L of Tr prod_t U_t(x, t) / N over the spatial lattice, which is real for SU(2)."""

    name: ClassVar[str] = "polyakov"
    summary: ClassVar[str] = "the Polyakov loop"
    columns: ClassVar[TableColumns] = TableColumns(
        Column(
            "re",
            help="real part of the average over space",
            axis=r"$\mathrm{Re}\,L$",
            average="Polyakov loop, real part",
        ),
        Column("im", help="imaginary part of the average over space; 0 for SU(2)"),
        Column(
            "abs",
            help="modulus of the average over space",
            symbol="|L|",
            axis=r"$|L|$",
            average="Polyakov loop, modulus",
            main=True,
        ),
    )
    normalisation: ClassVar[str] = (
        "Tr / N averaged over space: real part, imaginary part, modulus of the average"
    )
    derived: ClassVar[tuple[DerivedQuantity, ...]] = (
        DerivedQuantity(
            "susceptibility",
            help="V (<|L|^2> - <|L|>^2) of the average L over the V sites of space; jackknife",
            symbol="χ",
            axis=r"$V\,(\langle|L|^2\rangle-\langle|L|\rangle^2)$",
            estimate=_susceptibility,
        ),
        DerivedQuantity(
            "binder",
            help="1 - <|L|^4> / (3 <|L|^2>^2), the Binder cumulant of the average L; jackknife",
            symbol="U",
            axis=r"$1-\langle|L|^4\rangle/(3\,\langle|L|^2\rangle^2)$",
            estimate=_binder,
            shown=False,
        ),
        DerivedQuantity(
            "kurtosis",
            help="<|L|^4> / <|L|^2>^2 of the average L; jackknife",
            axis=r"$\langle|L|^4\rangle/\langle|L|^2\rangle^2$",
            estimate=_kurtosis,
            shown=False,
        ),
        DerivedQuantity(
            "phase",
            help="phase of <L> in units of pi, from -1 to 1; jackknife",
            axis=r"$\arg\langle L\rangle/\pi$",
            estimate=_phase,
            shown=False,
        ),
    )
    strict: ClassVar[bool] = True
    links_moved: ClassVar[float | None] = 0.25
    main_kernel: ClassVar[Kernel | None] = POLYAKOV

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels of the lines and of their traces."""
        return (TIME_LINE, POLYAKOV)

    def sums(self, field: Field, block: int) -> tuple[DeferredSums, Callable[[], object] | None]:
        """Return the sums over the lines; see `SummedObservable.sums`."""
        return sums_of_lines(field, POLYAKOV, 2, block)

    @classmethod
    def of_sums(
        cls, group: Group, lattice: Lattice, sums: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return L and its modulus, given the sums of the real and imaginary parts of traces."""
        re, im = np.moveaxis(sums, -1, 0) / (group.colours * lattice.slice_sites)
        return np.stack([re, im, np.vectorize(modulus, otypes=[float])(re, im)], axis=-1)

    @classmethod
    def live(cls, record: Record) -> str:
        """Return L in words, without the imaginary part if it is zero."""
        real, imaginary = float(record[0]), float(record[1])
        return f"Polyakov loop {real:+.4f}" + (f"{imaginary:+.4f}i" if imaginary else "")

    @classmethod
    def contradictions(cls, columns: Columns) -> NDArray[np.bool_]:
        """Return a mask of the rows in which the modulus does not match the complex number."""
        modulus = np.hypot(columns["re"], columns["im"])
        return np.asarray(np.abs(columns["abs"] - modulus) > ROUNDING)


def sums_of_lines(
    field: Field, kernel: Kernel, values: int, block: int
) -> tuple[DeferredSums, Callable[[], object] | None]:
    """Return sums over all lines along t, which end in the last slab; see `SummedObservable.sums`.

    On the side stream, the few threads of the lines do not keep other measurements waiting.
    """
    complete = [slab.layout.times.stop == field.lattice.t for slab in field.slabs]
    ends = zip(field.slabs, complete, strict=True)
    over = [slab.first_slices() if has else nowhere() for slab, has in ends]
    arguments = [
        {
            "links": lines.slab.buffer.address,
            "before": lines.before.address if lines.before else None,
            "slices": lines.slab.layout.slices,
        }
        for lines in time_lines(field)
    ]
    undivided = len(field.layouts) == 1
    sums = DeferredSums(field, kernel, values, arguments, over, block, side=undivided)
    return sums, None if undivided else partial(time_lines, field)


def polyakov_loop(field: Field) -> complex:
    """Return the average L of Tr prod_t U_t(x, t) / N over the spatial lattice; |L| <= 1."""
    re, im, _ = map(float, Polyakov().measure(field))
    return complex(re, im)


REPRESENTATIONS = Kernel("polyakov_representations")


def dimensions(colours: int) -> tuple[int, int, int, int]:
    """Return the dimensions of the representations, in the order of the columns.

    They are those of the adjoint representation, of antisymmetric and symmetric tensors of rank
    two, and of symmetric tensors of rank three: 8, 3, 6 and 10 for SU(3).
    """
    n = colours
    return n * n - 1, n * (n - 1) // 2, n * (n + 1) // 2, n * (n + 1) * (n + 2) // 6


@OBSERVABLES.register
@dataclass(frozen=True)
class PolyakovRepresentations(SummedObservable):
    """Averages of chi(W) / dim over space, where W is the product of the links of a line along t.

    The characters follow from p_k = Tr W^k: |p_1|^2 - 1 for the adjoint representation,
    (p_1^2 - p_2) / 2 and (p_1^2 + p_2) / 2 for tensors of rank two, and
    (p_1^3 + 3 p_1 p_2 + 2 p_3) / 6 for symmetric ones of rank three.
    """

    name: ClassVar[str] = "polyakov-representations"
    summary: ClassVar[str] = "the Polyakov loop in higher representations"
    columns: ClassVar[TableColumns] = TableColumns(
        Column("adjoint", help="adjoint representation, real", average="adjoint Polyakov loop"),
        Column("antisymmetric_re", help="antisymmetric tensors of rank two, real part"),
        Column("antisymmetric_im", help="antisymmetric tensors of rank two, imaginary part"),
        Column("symmetric_re", help="symmetric tensors of rank two, real part; 6 of SU(3)"),
        Column("symmetric_im", help="symmetric tensors of rank two, imaginary part"),
        Column("symmetric3_re", help="symmetric tensors of rank three, real part; 10 of SU(3)"),
        Column("symmetric3_im", help="symmetric tensors of rank three, imaginary part"),
    )
    normalisation: ClassVar[str] = "traces divided by the dimension of the representation"
    strict: ClassVar[bool] = True
    links_moved: ClassVar[float | None] = 0.25
    main_kernel: ClassVar[Kernel | None] = REPRESENTATIONS

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels of the lines and of their traces."""
        return (TIME_LINE, REPRESENTATIONS)

    def sums(self, field: Field, block: int) -> tuple[DeferredSums, Callable[[], object] | None]:
        """Return the sums over the lines; see `SummedObservable.sums`."""
        return sums_of_lines(field, REPRESENTATIONS, len(self.columns), block)

    @classmethod
    def of_sums(
        cls, group: Group, lattice: Lattice, sums: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the averages, given the sums of the traces."""
        adjoint, *complex_ones = dimensions(group.colours)
        of_columns = np.array([adjoint, *np.repeat(complex_ones, 2)])
        return np.asarray(sums / (of_columns * lattice.slice_sites))


POLYAKOV_PLANES = Kernel("polyakov_planes")


@OBSERVABLES.register
@dataclass(frozen=True)
class PolyakovPlanes(Observable):
    """Correlators of the averages of Polyakov loops over planes, a record per axis and distance.

    p(i) is the average of Tr / N of the product of the links along t over the plane with number i
    perpendicular to an axis of space. All loops of a configuration are multiplied by the element of
    the centre that turns their average to the sector of 1. The correlators are those of the real
    and of the imaginary parts, averaged over i: Re p(i) Re p(i + r) and Im p(i) Im p(i + r).
    """

    lattice: Lattice
    """Lattice of the fields."""

    name: ClassVar[str] = "polyakov-planes"
    summary: ClassVar[str] = "correlators of planes of Polyakov loops, for screening"
    columns: ClassVar[TableColumns] = PLANES
    normalisation: ClassVar[str] = (
        "p = Tr / N averaged over a plane and turned to the sector of 1; products averaged over "
        "the planes"
    )
    units: ClassVar[str] = "r in lattice units"
    strict: ClassVar[bool] = True
    main_kernel: ClassVar[Kernel | None] = POLYAKOV_PLANES

    @classmethod
    def for_lattice(cls, lattice: Lattice, **options: Any) -> PolyakovPlanes:
        """Return the observable with the given options; see `Observable.for_lattice`."""
        check_options(cls.options, options, cls.name)
        return cls(lattice)

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels of the lines and of the sums of their traces."""
        return (TIME_LINE, POLYAKOV_PLANES)

    @property
    def records(self) -> int:
        """Number of records per field."""
        return sum(extent // 2 + 1 for extent in self.lattice.extents[:3])

    def measurer(self, like: Field) -> Measurer:
        """Return a function that measures a field; see `Observable.measurer`."""
        return lambda field: [*_records(field)]


def _records(field: Field) -> Iterator[Record]:
    """Yield axis, distance and both correlators of a field."""
    planes = polyakov_planes(field)
    loops, colours = planes[0], field.group.colours
    re, im = float(loops.real.mean()), float(loops.imag.mean())
    centre = [root_of_unity(number, colours) for number in range(colours)]
    c, s = max(centre, key=lambda x: re * x[0] + im * x[1])  # nearest to the mean
    for axis, plane in zip(AXES, planes, strict=True):
        # Products of complex numbers are fused differently by different builds of NumPy.
        turned = (plane.real * c + plane.imag * s, plane.imag * c - plane.real * s)
        for r in range(plane.size // 2 + 1):
            yield axis, r, *(_correlator(part, r) for part in turned)


def _correlator(values: Array, r: int) -> float:
    return float((values * np.roll(values, -r)).mean())


def polyakov_planes(field: Field) -> list[NDArray[np.complex128]]:
    """Return the averages of Tr / N of the Polyakov loops over all planes, for each axis of space.

    The order of additions depends only on the lattice, not on its division.
    """
    at_a_time = POLYAKOV_PLANES.constant("PLANES_AT_A_TIME")
    extents = field.lattice.extents[:3]
    launches = [(d, first) for d in range(3) for first in range(0, extents[d], at_a_time)]
    local = []
    for slab, lines in complete_lines(field):
        # On a slice of even t, the sites have the parity of the lines wherever the slab begins.
        over = work(slab.layout.first % 2, 1, 1, BOTH_PARITIES)
        sums = SlabSums(slab, 2 * at_a_time, len(launches), over)
        steps = ({"lines": lines.address, "axis": d, "first": first} for d, first in launches)
        sums.launch(POLYAKOV_PLANES, *steps)
        local.append(sums.by_slice())
    rows = add_slices(field.devices, local).view(np.complex128)
    planes, begin = [], 0
    for extent in extents:
        count, sites = -(-extent // at_a_time), field.lattice.slice_sites // extent
        values = rows[begin : begin + count].reshape(-1)[:extent]
        planes.append(np.asarray(values / (field.group.colours * sites)))
        begin += count
    return planes


POLYAKOV_CORRELATORS = Kernel("polyakov_correlators")

WITHOUT_UPDATES = 2
"""Thickness of slabs that are not updated. Such slabs fit nearly every division among devices."""


@OBSERVABLES.register
@dataclass(frozen=True)
class PolyakovCorrelators(noise_reduction.ReducedNoise):
    """Correlators of two Polyakov loops on and off axis, with one record per distance.

    C(R) is the real part of P(x) P(x + R)^*, averaged over all sites of space and all equivalent
    directions, where P(x) is Tr / N of the product of the links along t.

    Raises
    ------
    UsageError
        If a value is invalid.
    """

    lattice: Lattice
    """Lattice of the fields."""
    r_max: int
    """Largest component of the distance in lattice units, at most half the lattice."""
    paths: tuple[str, ...] = PATHS[:1]
    """Directions of the distance, from `PATHS`."""
    noise: noise_reduction.NoiseReduction | None = None
    """Multilevel averages and multihit; None for the product of the loops of the links as they are.
    With multihit the loops must be further apart than one lattice unit.
    """

    name: ClassVar[str] = "polyakov-correlators"
    summary: ClassVar[str] = "correlators of two Polyakov loops, on and off axis"
    columns: ClassVar[TableColumns] = CORRELATORS
    normalisation: ClassVar[str] = (
        "Re P(x) P(x + R)^*, P = Tr / N, averaged over space and equivalent directions"
    )
    units: ClassVar[str] = "r in steps along path, such as (1,1,0)"
    strict: ClassVar[bool] = True
    main_kernel: ClassVar[Kernel | None] = POLYAKOV_CORRELATORS
    options: ClassVar[tuple[Option, ...]] = (
        Option("r_max", int, "Largest distance R.", default="half the lattice"),
        Option("off_axis", bool, "Also measure along (1,1,0), (2,1,0) and (1,1,1)."),
        *noise_reduction.NOISE_OPTIONS,
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "paths", tuple(self.paths))
        half = min(self.lattice.extents[:3]) // 2
        if not 1 <= self.r_max <= half:
            raise UsageError(
                f"--r-max is {self.r_max}; on {self.lattice} choose it between 1 and {half}, half "
                "the lattice."
            )
        for path in self.paths:
            if path not in PATHS:
                raise UsageError(f"There is no path '{path}'; choose from {', '.join(PATHS)}.")
        self.check_distances()

    @classmethod
    def for_lattice(cls, lattice: Lattice, **options: Any) -> PolyakovCorrelators:
        """Return the observable with the given options; see `Observable.for_lattice`."""
        values = check_options((*cls.options, *noise_reduction.action_options()), options, cls.name)
        r_max = values.pop("r_max", min(lattice.extents[:3]) // 2)
        paths = PATHS if values.pop("off_axis", False) else PATHS[:1]
        noise = noise_reduction.NoiseReduction.from_options(lattice, values, WITHOUT_UPDATES)
        return cls(lattice, r_max, tuple(p for p in paths if steps_along(p, r_max)), noise)

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels of the lines and of the products of their traces."""
        return (TIME_LINE, POLYAKOV_CORRELATORS)

    @property
    def records(self) -> int:
        """Number of records per field."""
        return len(self.distances)

    @property
    def header(self) -> dict[str, str]:
        """Header of the table; see `Observable.header`."""
        reach = {"paths": ",".join(self.paths), "r_max": str(self.r_max)}
        noise = self.noise.header if self.noise else {"multilevel": "none"}
        return {**super().header, **reach, **noise}

    def plain_measurer(self, like: Field) -> Measurer:
        """Return a function that measures products of loops of the links as they are."""
        return lambda field: self._records(polyakov_correlators(self, field))

    def reduced_measurer(self, like: Field) -> Callable[[Coupling, Field], list[Record]]:
        """Return a function that measures multilevel averages; see `ReducedNoise`."""
        assert self.noise
        steps = [equivalent_steps(path) for path, _ in self.distances]
        ends = np.cumsum([0, *map(len, steps)])
        vectors = [
            (r * step[0], r * step[1], r * step[2])
            for (_, r), equivalent in zip(self.distances, steps, strict=True)
            for step in equivalent
        ]
        averages = self.noise.averages(like, vectors)

        def measure(coupling: Coupling, field: Field) -> list[Record]:
            plain = polyakov_correlators(self, field)
            sums = averages(field, coupling, noise_reduction.digest_of(plain))
            means = [sums[begin:end].mean() for begin, end in pairwise(ends)]
            norm = field.group.colours**2 * field.lattice.slice_sites
            return self._records(np.array(means) / norm)

        return measure

    def _records(self, values: Array) -> list[Record]:
        """Return the records of a field, given C(R) for all distances."""
        pairs = zip(self.distances, values.tolist(), strict=True)
        return [(path, r, value) for (path, r), value in pairs]


def polyakov_correlators(observable: PolyakovCorrelators, field: Field) -> Array:
    """Return C(R) of a field for all distances of an observable, in their order."""
    launches = [*_launches(observable)]
    sums = [_sums(slab, lines.address, launches) for slab, lines in complete_lines(field)]
    rows = add_slices(field.devices, [s.by_slice() for s in sums])
    by_distance: dict[tuple[str, int], list[float]] = {}
    # All distances are summed, even those that are not asked for.
    for (path, _, first, count), row in zip(launches, rows, strict=True):
        for n in range(count):
            by_distance.setdefault((path, first + n), []).append(row[n])
    norm = field.group.colours**2 * field.lattice.slice_sites
    return np.array([np.mean(by_distance[d]) for d in observable.distances]) / norm


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
    arguments = ({"lines": lines, "step": s, "first": n, "count": c} for _, s, n, c in launches)
    sums.launch(POLYAKOV_CORRELATORS, *arguments)
    return sums
