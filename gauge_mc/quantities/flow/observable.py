"""Action density and topological charge along the gradient flow."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gauge_mc import defaults
from gauge_mc.actions import ANISOTROPY
from gauge_mc.devices.kernels import Kernel
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.fields import gradient_flow
from gauge_mc.fields.field import Field
from gauge_mc.files.columns import TableColumns
from gauge_mc.files.table import TableData
from gauge_mc.flows import FLOWS, Flow
from gauge_mc.observables import OBSERVABLES, Measurer, Observable, Record, TimeSeries
from gauge_mc.options import Option, check_declared, check_options
from gauge_mc.quantities.flow.curves import COLUMNS, FLOW_ANISOTROPY, FLOW_COLUMNS, WHOLE
from gauge_mc.quoting import CommandLine
from gauge_mc.signatures import checks_types

STEP, EVERY = 0.05, 0.1
"""Defaults of the step, if the flow is stable with it, and of the flow time between records. With
this step the relative error of the energy is about 1e-5 at t = 1 and 2e-6 from t = 2 on (Wilson
flow of SU(3) at beta = 6.1)."""

MOST_RECORDS = 100_000
"""Largest number of flow times, to catch typing errors."""

BEYOND = 1.25
"""Ratio to the target that t^2 E of the first configuration must reach, so that the average over
all configurations passes it, and w0 can be determined."""


@dataclass(frozen=True)
class FlowedField:
    """A field at a flow time, and its action density and topological charge.

    Attributes
    ----------
    t : float
        Flow time in lattice units.
    field : Field
        The links; valid until the flow goes on. Save or copy them to keep them.
    energy_plaquette, energy_clover : float
        a^4 E, averaged over the sites, from plaquettes and from the clover.
    charge, charge_improved : float
        Topological charge from the clover, and from clovers of 1x1, 2x2 and 3x3 loops.
    largest : float
        Largest Re Tr (1 - U_p).
    by_slice : FieldStrength
        The sums over the time slices.
    charge_improved_by_slice : ndarray, shape (T,)
        Improved charge of every time slice.
    """

    t: float
    field: Field
    energy_plaquette: float
    energy_clover: float
    charge: float
    charge_improved: float
    largest: float
    by_slice: gradient_flow.FieldStrength
    charge_improved_by_slice: NDArray[np.float64]


@OBSERVABLES.register
@dataclass(frozen=True)
class GradientFlowObservable(Observable):
    """Action density and topological charge along the gradient flow, with one record per flow time.

    Raises
    ------
    UsageError
        If a value is invalid.
    """

    lattice: Lattice
    """Lattice of the fields."""
    kind: str = defaults.FLOW
    """Name of the flow, from `FLOWS`."""
    to: float = 0.0
    """Last flow time in lattice units; 0 if `until` is to determine it."""
    until: float = 0.0
    """Value of t^2 E (clover) that the first configuration passes by a quarter before the flow
    ends; 0 if `to` is given.
    """
    every: float = EVERY
    """Flow time between records."""
    step: float = STEP
    """Largest step of the integration; the first one if steps are adaptive."""
    tolerance: float = 0.0
    """Tolerance of adaptive steps; 0 for fixed steps."""
    slices: bool = False
    """Whether there are also records of every time slice."""
    anisotropy: float | None = None
    """Anisotropy a_s / a_t of the flow; None for the bare one of the ensemble, with which
    `for_ensemble` replaces it.
    """

    name: ClassVar[str] = "flow"
    summary: ClassVar[str] = "energy and topological charge along the gradient flow"
    columns: ClassVar[TableColumns] = COLUMNS
    normalisation: ClassVar[str] = (
        "E = G^a_mu_nu G^a_mu_nu / 4, averaged over sites; plaquette: 2 sum_p Re Tr (1 - U_p); "
        "clover: traceless; Q = - sum of eps tr(G G) / 32 pi^2, eps_xyzt = +1, G antihermitian; "
        "improved: 3/2 Q_1x1 - 3/5 Q_2x2 + 1/10 Q_3x3 (hep-lat/9701012)"
    )
    units: ClassVar[str] = "lattice units"
    strict: ClassVar[bool] = True
    main_kernel: ClassVar[Kernel | None] = gradient_flow.CLOVER
    bench_options: ClassVar[Mapping[str, object]] = {"to": 0.0, "every": 1.0}
    options: ClassVar[tuple[Option, ...]] = (
        Option(
            "flow", str, "Kind of the gradient flow.", default=defaults.FLOW, choices=tuple(FLOWS)
        ),
        Option(
            "to",
            float,
            "Last flow time, in lattice units.",
            default="where √(8t) is half the shortest extent",
            metavar="T",
            least=0,
        ),
        Option(
            "until",
            float,
            "Instead of --to: flow the first configuration until t²E (clover) has passed this "
            "number by a quarter, and all others as far.",
            metavar="X",
            least=1e-3,
            most=10,
        ),
        Option(
            "every",
            float,
            "Flow time between records.",
            default=f"{EVERY}",
            metavar="T",
            least=1e-5,
            most=1e5,
        ),
        Option(
            "step",
            float,
            "Step of the third-order Runge-Kutta scheme.",
            default=f"{STEP}",
            metavar="T",
            least=1e-5,
        ),
        Option(
            "tolerance",
            float,
            "Choose steps so that the error of every link in a step is at most this, such as 1e-5.",
            default="fixed steps",
            least=1e-12,
            most=1,
        ),
        Option("slices", bool, "Also record every time slice."),
        Option(
            "anisotropy",
            float,
            "Anisotropy a_s/a_t of the flow, which is in units of a_s.",
            default="the bare one of the ensemble",
            metavar="XI",
            least=ANISOTROPY.least,
            most=ANISOTROPY.most,
        ),
    )

    def __post_init__(self) -> None:
        FLOWS.check(self.kind)
        limits = {"tolerance": self.tolerance or None, "until": self.until or None}
        check_declared(self.options, {"step": self.step, "every": self.every, **limits})
        if self.step > (largest := gradient_flow.largest_step(self.chosen)):
            raise UsageError(
                f"--step is {self.step:g}, with which the flow {self.kind} is not stable; give at "
                f"most {largest:g}."
            )
        if not self.until and not 0 <= self.to < self.every * MOST_RECORDS:
            raise UsageError(
                f"--to is {self.to:g}; choose a flow time from 0 to {MOST_RECORDS} times --every."
            )

    @classmethod
    def slow_modes(cls, table: TableData) -> Mapping[str, NDArray[np.float64]]:
        """Return the squared topological charge at the largest flow time."""
        last = (table["slice"] == WHOLE) & (table["t"] == table["t"].max())
        return {"squared topological charge": np.square(table["charge"][last])}

    @classmethod
    def for_lattice(cls, lattice: Lattice, **options: Any) -> GradientFlowObservable:
        """Return the observable with the given options; see `Observable.for_lattice`."""
        values = check_options(cls.options, options, cls.name)
        if "until" in values and "to" in values:
            raise UsageError("--to and --until exclude each other; give one.")
        kind = values.pop("flow", defaults.FLOW)
        if "until" not in values:
            values.setdefault("to", min(lattice.extents) ** 2 / 32)
        if 0 < values.get("to", 0) < values.get("every", 0):
            raise UsageError(
                f"--every is {values['every']:g}, the flow time between records, but the flow ends "
                f"at {values['to']:g} already; give a shorter one."
            )
        values.setdefault("step", usual_step(kind, values.get("anisotropy", 1.0)))
        return cls(lattice, kind, **values)

    @property
    def chosen(self) -> Flow:
        """The flow, with its anisotropy."""
        return FLOWS[self.kind].with_anisotropy(1.0 if self.anisotropy is None else self.anisotropy)

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels of the energies and charges; those of the flow depend on its action."""
        return (gradient_flow.CLOVER, gradient_flow.LENGTHEN_LINES, gradient_flow.LONG_CLOVER)

    @property
    def times(self) -> list[float]:
        """The flow times of the records."""
        count = math.floor(self.to / self.every * (1 + 1e-9))
        return [round(n * self.every, 9) for n in range(count + 1)]

    @property
    def records(self) -> int:
        """Number of records per field; 0 if it depends on the first configuration."""
        if self.until and not self.to:
            return 0
        return len(self.times) * (1 + self.lattice.t * self.slices)

    @property
    def header(self) -> dict[str, str]:
        """Header of the table; see `Observable.header`."""
        xi = self.chosen.anisotropy
        adaptive = f"adaptive from {self.step:g}, tolerance {self.tolerance:g} (arXiv:1301.4388)"
        steps = adaptive if self.tolerance else f"fixed, at most {self.step:g}"
        reach = {"until": f"{self.until:g}"} if self.until else {"to": f"{self.to:.10g}"}
        return {
            **super().header,
            "flow": self.kind,
            "force": self.chosen.formula,
            "steps": f"{steps}; third-order Runge-Kutta (arXiv:1006.4518)",
            "every": f"{self.every:g}",
            **reach,
            "slices": "yes" if self.slices else "no",
            **({} if xi == 1 else {FLOW_ANISOTROPY: f"{xi:.10g}"}),
        }

    def for_ensemble(self, metadata: Mapping[str, str], field: Field | None = None) -> Self:
        """Return the observable for an ensemble, which may be anisotropic.

        Then the default of the step may be smaller. On its first configuration, `until` determines
        the last flow time.
        """
        if self.anisotropy is None:
            xi = float(metadata.get("anisotropy", 1))
            step = min(self.step, gradient_flow.largest_step(FLOWS[self.kind].with_anisotropy(xi)))
            return replace(self, anisotropy=xi, step=step).for_ensemble(metadata, field)
        return self._as_far_as_until(field) if field else self

    @property
    def warm_up(self) -> Self:
        """The flow up to its first step."""
        return replace(self, to=min(self.to, self.step), every=self.step)

    def _as_far_as_until(self, field: Field) -> Self:
        """Return the observable whose last flow time `until` determines on this field."""
        if not self.until or self.to:
            return self
        longest = replace(self, to=self.every * (MOST_RECORDS - 1), slices=False)
        for flowed in longest.along(field):
            if (flowed.t * flowed.t) * flowed.energy_clover >= BEYOND * self.until:
                return replace(self, to=flowed.t)
            if 8 * flowed.t > max(self.lattice.extents) ** 2:
                break
        raise UsageError(
            f"t²E of the first configuration does not reach {BEYOND:g} times {self.until:g}, even "
            "when √(8t) is the extent of the lattice; choose a smaller --until, or --to."
        )

    def along(self, field: Field) -> Iterator[FlowedField]:
        """Flow a field, which is not changed, and yield it at the times of the records."""
        return _FlowSchedule(self, field)(field)

    def measurer(self, like: Field) -> Measurer:
        """Return a function that flows copies of fields like this one.

        If `until` has not determined the last flow time yet, it does so on this one.
        """
        along = _FlowSchedule(self._as_far_as_until(like), like)
        return lambda field: [record for x in along(field) for record in self._records(x)]

    def _records(self, flowed: FlowedField) -> Iterator[Record]:
        f, sites = flowed, self.lattice.slice_sites
        energies = (f.energy_plaquette, f.energy_clover)
        yield (f.t, WHOLE, *energies, f.charge, f.charge_improved, f.largest)
        if self.slices:
            by_slice, improved = f.by_slice, f.charge_improved_by_slice
            densities = (by_slice.plaquette / sites, by_slice.clover / sites)
            values = np.stack([*densities, by_slice.charge, improved, by_slice.largest], axis=1)
            for n, row in enumerate(values.tolist()):
                yield (f.t, n, *row)

    @classmethod
    def series(cls, table: TableData, source: str) -> dict[str, TimeSeries]:
        """Return every column as a function of the flow time; see `Observable.series`.

        The correlators of time slices are named by the column and the flow time.
        """
        if not len(table):
            return {}
        try:
            sweeps, times, values = _arrays(table)
        except (KeyError, ValueError) as error:
            raise GaugeError(
                f"The table {source} is damaged: its configurations do not have the same flow "
                f"times and slices; check it with `{CommandLine('verify', source)}`."
            ) from error
        curves = {name: TimeSeries(sweeps, x[:, :, 0], first=0) for name, x in values.items()}
        for name, value in values.items():
            if value.shape[2] > 1:
                for i, t in enumerate(times):
                    curves[f"{name},t={t:.10g}"] = TimeSeries(sweeps, value[:, i, 1:], first=0)
        return curves


def _arrays(
    table: TableData,
) -> tuple[NDArray[np.int64], NDArray[np.float64], dict[str, NDArray[np.float64]]]:
    """Return the columns of a table as arrays."""
    indices = [table[name] for name in FLOW_COLUMNS[:3]]
    distinct = [index[np.sort(np.unique(index, return_index=True)[1])] for index in indices]
    grid = np.meshgrid(*distinct, indexing="ij")
    shape = grid[0].shape
    matches = (np.array_equal(a.reshape(shape), b) for a, b in zip(indices, grid, strict=True))
    if not all(matches) or distinct[2][0] != WHOLE:
        raise ValueError
    values = {name: table[name].astype(np.float64).reshape(shape) for name in FLOW_COLUMNS[3:]}
    return distinct[0], distinct[1], values


def times_along(
    flow: gradient_flow.GradientFlow, observable: GradientFlowObservable, field: Field
) -> Iterator[float]:
    """Flow a copy of a field, and yield the times of the records when it has reached them."""
    flow.start(field)
    step = observable.step
    for t in observable.times:
        step = flow.advance(t, step, observable.tolerance or None)
        yield t


class _FlowSchedule:
    """The flow of fields of one kind through the times of an observable's records."""

    def __init__(self, observable: GradientFlowObservable, like: Field) -> None:
        self._observable = observable
        self._flow = gradient_flow.GradientFlow(
            observable.chosen, like, adaptive=bool(observable.tolerance)
        )
        self._largest = gradient_flow.LargestValues(self._flow.field)

    def __call__(self, field: Field) -> Iterator[FlowedField]:
        for t in times_along(self._flow, self._observable, field):
            yield self._measured(t)

    def _measured(self, t: float) -> FlowedField:
        field, sites = self._flow.field, self._flow.field.lattice.sites
        field.exchange_halo(depth=None)
        strength = gradient_flow.field_strength(field, self._largest, self._flow.flow.anisotropy)
        improved = gradient_flow.improved_charge(field, self._flow.spare, strength.charge)
        check_flowed(strength.clover, t)
        plaquette, clover = (float(x.sum()) / sites for x in (strength.plaquette, strength.clover))
        charge, largest = float(strength.charge.sum()), float(strength.largest.max())
        averages = (plaquette, clover, charge, float(improved.sum()), largest)
        return FlowedField(t, field, *averages, strength, improved)


def check_flowed(values: ArrayLike, t: float) -> None:
    """Refuse values at a flow time that are not numbers, as those of damaged links."""
    if not np.isfinite(values).all():
        raise GaugeError(
            f"The links of the field are not all numbers at the flow time {t:g}; check where the "
            "field comes from."
        )


def usual_step(kind: str, anisotropy: float = 1.0) -> float:
    """Return the default step of a flow."""
    return min(STEP, gradient_flow.largest_step(FLOWS[kind].with_anisotropy(anisotropy)))


@checks_types
def flow(
    field: Field,
    to: float,
    kind: str = defaults.FLOW,
    *,
    every: float = EVERY,
    step: float | None = None,
    tolerance: float | None = None,
    anisotropy: float = 1.0,
) -> Iterator[FlowedField]:
    """Flow a field, which is not changed, and return it at t = 0, every, 2 every, … up to `to`.

    Parameters
    ----------
    field : Field
        The links at t = 0.
    to : float
        Last flow time, in lattice units.
    kind : str
        Name of the flow, from `FLOWS`.
    every : float
        Flow time between the fields that are returned.
    step : float, optional
        Largest step of the third-order Runge-Kutta scheme of M. Luescher, arXiv:1006.4518. By
        default 0.05, or less if the flow requires it.
    tolerance : float, optional
        Tolerance of adaptive steps; see `GradientFlow.advance`. By default steps are fixed.
    anisotropy : float
        Anisotropy xi = a_s / a_t of the lattice. The flow time is in units of a_s^2, and energies
        are in units of a_s^-4.

    Returns
    -------
    iterator of FlowedField
        The fields are in the same memory: each is valid until the next one is asked for.

    Raises
    ------
    UsageError
        If a value is invalid.
    GaugeError
        If the device has too little memory, the tolerance cannot be reached, or a link is not a
        number.
    """
    options: dict[str, Any] = {"to": to, "every": every, "anisotropy": anisotropy}
    options["tolerance"] = tolerance or 0.0
    first = usual_step(kind, anisotropy) if step is None else step
    return GradientFlowObservable(field.lattice, kind, step=first, **options).along(field)
