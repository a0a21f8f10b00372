"""Electric and magnetic energy and the Polyakov loop along the gradient flow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gauge_mc.actions import ANISOTROPY
from gauge_mc.devices.kernels import Kernel
from gauge_mc.errors import GaugeError
from gauge_mc.fields.field import Field
from gauge_mc.fields.field_strength import CLOVER, LargestValues, field_strength
from gauge_mc.fields.gradient_flow import GradientFlow
from gauge_mc.files.columns import TableColumns
from gauge_mc.files.table import TableData
from gauge_mc.observables import OBSERVABLES, Measurer, Observable, Record, TimeSeries
from gauge_mc.options import Option
from gauge_mc.quantities.flow.observables.flow import GradientFlowObservable
from gauge_mc.quantities.polyakov.observables.polyakov import Polyakov, polyakov_loop
from gauge_mc.quantities.thermodynamics.analysis.flow_columns import COLUMNS

WITHOUT = ("slices", ANISOTROPY.name)
"""Options of the gradient flow that this observable does not have."""


@OBSERVABLES.register
@dataclass(frozen=True)
class ThermalFlow(GradientFlowObservable):
    """Electric and magnetic energy and Polyakov loop of the flowed links, a record per flow time.

    The energies of the planes with and without direction t give the entropy density, and their sum
    the trace anomaly (H. Suzuki, arXiv:1304.0533); the loop of the flowed links is a renormalised
    one (P. Petreczky and H.-P. Schadler, arXiv:1509.07874).

    Raises
    ------
    UsageError
        If a value is invalid.
    """

    name: ClassVar[str] = "thermal-flow"
    summary: ClassVar[str] = "electric and magnetic energy, Polyakov loop along the gradient flow"
    columns: ClassVar[TableColumns] = COLUMNS
    normalisation: ClassVar[str] = (
        "E = G^a_mu_nu G^a_mu_nu / 4 = electric + magnetic, averaged over sites; loop: Tr / N"
    )
    options: ClassVar[tuple[Option, ...]] = tuple(
        one for one in GradientFlowObservable.options if one.name not in WITHOUT
    )

    @classmethod
    def slow_modes(cls, table: TableData) -> Mapping[str, NDArray[np.float64]]:
        """Return nothing: the topological charge is not measured."""
        return {}

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels of energies and loops; those of the flow depend on its action."""
        return (CLOVER, *Polyakov().kernels)

    @property
    def records(self) -> int:
        """Number of records per field; 0 if it depends on the first configuration."""
        return 0 if self.until and not self.to else len(self.times)

    def measurer(self, like: Field) -> Measurer:
        """Return a function that flows copies of fields like this one; see `Observable.measurer`.

        If `until` has not determined the last flow time yet, it does so on this one.
        """
        made = self._as_far_as_until(like)
        flow = GradientFlow(made.chosen, like, adaptive=bool(made.tolerance))
        largest = LargestValues(flow.field)
        return lambda field: [*_records(made, flow, largest, field)]

    @property
    def warm_up(self) -> ThermalFlow:
        """The flow up to its first step."""
        return replace(self, to=min(self.to, self.step), every=self.step)

    @classmethod
    def series(cls, table: TableData, source: str) -> dict[str, TimeSeries]:
        """Return every column at every flow time; see `Observable.series`."""
        found: Any = Observable.series.__func__  # type: ignore[attr-defined]
        return dict(found(cls, table, source))


def _records(
    observable: GradientFlowObservable,
    flow: GradientFlow,
    largest: LargestValues,
    field: Field,
) -> Iterator[Record]:
    """Flow a copy of a field, and yield the record of every flow time."""
    flow.start(field)
    step = observable.step
    for t in observable.times:
        step = flow.advance(t, step, observable.tolerance or None)
        yield (t, *_energies(flow, largest, t), *_loop(flow.field))


def _energies(flow: GradientFlow, largest: LargestValues, t: float) -> tuple[float, ...]:
    """Return electric and magnetic energy from the clover and from plaquettes."""
    field, sites = flow.field, flow.field.lattice.sites
    # The flow leaves halos as deep as its action, and the clover needs one slice.
    both = field_strength(field, largest, flow.flow.anisotropy)
    space = field_strength(field, largest, 0.0)  # planes with t have the weight 0
    if not np.isfinite(both.clover.sum()):
        raise GaugeError(
            f"The links of the field are not all numbers at the flow time {t:g}; check where the "
            "field comes from."
        )
    found = []
    for all_planes, magnetic in ((both.clover, space.clover), (both.plaquette, space.plaquette)):
        found += [float((all_planes - magnetic).sum()) / sites, float(magnetic.sum()) / sites]
    return tuple(found)


def _loop(field: Field) -> tuple[float, float]:
    """Return real and imaginary part of the average Polyakov loop."""
    loop = polyakov_loop(field)
    return loop.real, loop.imag
