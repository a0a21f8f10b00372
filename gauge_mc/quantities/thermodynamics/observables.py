"""Electric and magnetic energies, and correlators of fields, along the gradient flow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gauge_mc.actions import ANISOTROPY
from gauge_mc.devices.kernels import Kernel
from gauge_mc.fields.field import AlgebraField, Field
from gauge_mc.fields.gradient_flow import CLOVER, GradientFlow, LargestValues, field_strength
from gauge_mc.fields.sums import SlabSums, total
from gauge_mc.files.columns import SWEEP, Column, TableColumns
from gauge_mc.files.table import TableData
from gauge_mc.observables import OBSERVABLES, Measurer, Observable, Record, TimeSeries
from gauge_mc.options import Option
from gauge_mc.quantities.flow.observable import GradientFlowObservable, check_flowed, times_along
from gauge_mc.quantities.polyakov.observables import Polyakov, polyakov_loop

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
    columns: ClassVar[TableColumns] = TableColumns(
        Column("t", float, "flow time in lattice units", index=True),
        Column(
            "electric", float, "a⁴E of the planes with t from the clover, averaged over the sites"
        ),
        Column("magnetic", float, "a⁴E of the planes in space from the clover"),
        Column("electric_plaquette", float, "a⁴E of the planes with t from plaquettes"),
        Column("magnetic_plaquette", float, "a⁴E of the planes in space from plaquettes"),
        Column("loop_re", float, "real part of the Polyakov loop, averaged over space"),
        Column("loop_im", float, "its imaginary part; 0 for SU(2)"),
    )
    normalisation: ClassVar[str] = (
        "E = G^a_mu_nu G^a_mu_nu / 4 = electric + magnetic, averaged over sites; loop: Tr / N"
    )
    options: ClassVar[tuple[Option, ...]] = tuple(
        option for option in GradientFlowObservable.options if option.name not in WITHOUT
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
        far = self._as_far_as_until(like)
        flow = GradientFlow(far.chosen, like, adaptive=bool(far.tolerance))
        largest = LargestValues(flow.field)
        return lambda field: [*_records(far, flow, largest, field)]

    @classmethod
    def series(cls, table: TableData, source: str) -> dict[str, TimeSeries]:
        """Return every column at every flow time; see `Observable.series`."""
        func: Any = Observable.series.__func__  # type: ignore[attr-defined]
        return dict(func(cls, table, source))


def _records(
    observable: GradientFlowObservable, flow: GradientFlow, largest: LargestValues, field: Field
) -> Iterator[Record]:
    """Flow a copy of a field, and yield the record of every flow time."""
    for t in times_along(flow, observable, field):
        loop = polyakov_loop(flow.field)
        yield (t, *_energies(flow, largest, t), loop.real, loop.imag)


def _energies(flow: GradientFlow, largest: LargestValues, t: float) -> tuple[float, ...]:
    """Return electric and magnetic energy from the clover and from plaquettes."""
    field, sites = flow.field, flow.field.lattice.sites
    # The flow leaves halos as deep as its action, and the clover needs one slice.
    both = field_strength(field, largest, flow.flow.anisotropy)
    space = field_strength(field, largest, 0.0)  # planes with t have the weight 0
    check_flowed(both.clover, t)
    energies = []
    for all_planes, magnetic in ((both.clover, space.clover), (both.plaquette, space.plaquette)):
        energies += [float((all_planes - magnetic).sum()) / sites, float(magnetic.sum()) / sites]
    return tuple(energies)


COLOUR_FIELDS = Kernel("colour_fields")
MOVE_COLOUR_FIELDS = Kernel("move_colour_fields")
LENGTHEN_TIME_LINES = Kernel("lengthen_time_lines")
FIELD_CORRELATORS = Kernel("field_correlators")


@OBSERVABLES.register
@dataclass(frozen=True)
class FieldCorrelators(ThermalFlow):
    """Correlators of two fields on the Polyakov loop, a record per flow time and distance.

    They are those whose slope at small frequencies is the diffusion of a heavy quark: with fields F
    of the flowed links, the line W along t and F_i of the electric or the magnetic field,

        C(tau) = sum over i of Tr [ F_i(0) W(0, tau) F_i(tau) W(tau, 1/T) ] / N,

    averaged over all sites, for tau = 1, ..., N_t / 2 (S. Caron-Huot, M. Laine and G. D. Moore,
    arXiv:0901.1195; magnetic: A. Bouttefeux and M. Laine, arXiv:2010.07316). F is antihermitian and
    from the clover.

    Raises
    ------
    UsageError
        If a value is invalid.
    """

    name: ClassVar[str] = "field-correlators"
    summary: ClassVar[str] = "electric and magnetic fields on the Polyakov loop"
    columns: ClassVar[TableColumns] = TableColumns(
        Column("t", float, "flow time in lattice units", index=True),
        Column("tau", int, "distance along t of the two fields", index=True),
        Column("electric_re", float, "a⁴ C_E, real part, summed over directions and averaged"),
        Column("electric_im", float, "its imaginary part; 0 for SU(2)"),
        Column("magnetic_re", float, "a⁴ C_B, real part"),
        Column("magnetic_im", float, "its imaginary part; 0 for SU(2)"),
        Column("loop_re", float, "real part of the Polyakov loop of the flowed links"),
        Column("loop_im", float, "its imaginary part; 0 for SU(2)"),
    )
    normalisation: ClassVar[str] = (
        "C = sum over i of Tr [F_i W F_i W] / N, averaged over sites, F antihermitian from the "
        "clover; loop: Tr / N"
    )

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels of fields, lines and traces; those of the flow depend on its action."""
        insertions = (COLOUR_FIELDS, MOVE_COLOUR_FIELDS, LENGTHEN_TIME_LINES, FIELD_CORRELATORS)
        return (*insertions, *Polyakov().kernels)

    @property
    def records(self) -> int:
        """Number of records per field; 0 if it depends on the first configuration."""
        return super().records * (self.lattice.t // 2)

    def measurer(self, like: Field) -> Measurer:
        """Return a function that flows copies of fields like this one; see `Observable.measurer`.

        If `until` has not determined the last flow time yet, it does so on this one.
        """
        far: Any = self._as_far_as_until(like)
        flow = GradientFlow(far.chosen, like, adaptive=bool(far.tolerance))
        insertions = Insertions.like(flow.field)

        def measure(field: Field) -> Iterator[Record]:
            for t in times_along(flow, far, field):
                closed_lines(flow.field, flow.spare)
                both = [insertions.correlators(flow.field, flow.spare, x) for x in (False, True)]
                loop = polyakov_loop(flow.field)
                check_flowed(both, t)
                for tau, values in enumerate(zip(*both, strict=True), 1):
                    parts = (x for value in (*values, loop) for x in (value.real, value.imag))
                    yield (t, tau, *map(float, parts))

        return lambda field: [*measure(field)]


@dataclass(frozen=True)
class Insertions:
    """Memory for the fields of all sites, and for fields that are moved along t."""

    fields: AlgebraField
    """The fields of every site, as directions 0 to 2."""
    moved: tuple[AlgebraField, AlgebraField]
    """The fields that were moved to every site, from an odd and from an even distance."""

    @classmethod
    def like(cls, field: Field) -> Insertions:
        """Return memory for links like those of a field."""
        fields, *moved = (AlgebraField.like(field) for _ in range(3))
        return cls(fields, (moved[0], moved[1]))

    def correlators(self, field: Field, lines: Field, magnetic: bool) -> NDArray[np.complex128]:
        """Return the correlators of electric or magnetic fields, of shape (N_t / 2,)."""
        for slab, insertion in zip(field.slabs, self.fields.slabs, strict=True):
            slab.launch(
                COLOUR_FIELDS,
                slab.whole(),
                links=slab.buffer.address,
                strength=insertion.buffer.address,
                magnetic=int(magnetic),
            )
        traces, last = [], self.fields
        for tau in range(1, field.lattice.t // 2 + 1):
            target = self.moved[tau % 2]
            _move(field, last, target)
            traces.append(self._traces(lines, target))
            last = target
        norm = field.lattice.sites * field.group.colours
        return np.array(traces, np.complex128) / norm

    def _traces(self, lines: Field, moved: AlgebraField) -> complex:
        """Return the sum over all sites of the traces with the fields of a distance."""
        sums = [SlabSums(slab, 2, 1) for slab in lines.slabs]
        slabs = zip(sums, lines.slabs, self.fields.slabs, moved.slabs, strict=True)
        for slab_sums, line, first, second in slabs:
            addresses = {"first": first.buffer.address, "second": second.buffer.address}
            addresses |= {"lines": line.buffer.address}
            slab_sums.launch(FIELD_CORRELATORS, {**addresses, "direction": _place(lines.lattice.t)})
        return complex(*total(lines, sums)[0])


def _move(field: Field, source: AlgebraField, target: AlgebraField) -> None:
    """Bring fields from the following time slices to all sites."""
    source.exchange_halo()
    for slab, old, new in zip(field.slabs, source.slabs, target.slabs, strict=True):
        slab.launch(
            MOVE_COLOUR_FIELDS,
            slab.whole(),
            links=slab.buffer.address,
            source=old.buffer.address,
            target=new.buffer.address,
        )


def _place(length: int) -> int:
    """Return the direction under which lines of a length are stored."""
    return length % 2


def closed_lines(field: Field, lines: Field) -> None:
    """Compute the products of all links along t that begin and end at each site."""
    for length in range(1, field.lattice.t + 1):
        before = _place(length - 1) if length > 1 else -1
        for slab, line_slab in zip(field.slabs, lines.slabs, strict=True):
            slab.launch(
                LENGTHEN_TIME_LINES,
                slab.whole(),
                links=slab.buffer.address,
                lines=line_slab.buffer.address,
                source=before,
                target=_place(length),
            )
        lines.exchange_halo()


THERMAL_COLUMNS = (SWEEP, *ThermalFlow.columns.names)
FIELD_COLUMNS = (SWEEP, *FieldCorrelators.columns.names)
"""Names of the columns of the tables of both."""
