"""The residual mass of domain-wall quarks, and correlators of their conserved currents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gauge_mc.devices.kernels import Kernel
from gauge_mc.errors import UsageError
from gauge_mc.fields.field import Field
from gauge_mc.files.columns import TableColumns
from gauge_mc.observables import OBSERVABLES, Record
from gauge_mc.quantities.hadrons.analysis.residual_mass import COLUMNS
from gauge_mc.quantities.hadrons.observables.parts.correlators import QuarkObservable
from gauge_mc.quantities.hadrons.observables.parts.options import MOMENTA, QUARK, SMEAR_SINK
from gauge_mc.quantities.hadrons.observables.parts.propagators import SolveRecords, solutions
from gauge_mc.quantities.hadrons.observables.parts.quark_masses import EXAMPLE
from gauge_mc.quarks.domain_walls.effective import EffectivePropagator, contact_correlator
from gauge_mc.quarks.domain_walls.walls import WallOperator
from gauge_mc.quarks.hadrons.contractions import QUARK_PAIRS, meson, spin_tensor
from gauge_mc.quarks.vectors.gamma import GAMMA, GAMMA_5


@OBSERVABLES.register
@dataclass(frozen=True)
class ResidualMassSums(QuarkObservable):
    """Sums for the residual mass and Z_A of domain-wall quarks, one record for each time slice.

    Attributes
    ----------
    quarks : Quarks
        The quarks and their sources.
    """

    name: ClassVar[str] = "residual-mass"
    summary: ClassVar[str] = "residual mass and conserved currents of domain-wall quarks"
    strict: ClassVar[bool] = True
    columns: ClassVar[TableColumns] = COLUMNS
    normalisation: ClassVar[str] = (
        "sums over x, spins and colours, S = (D_c + m)^-1: pion = |S|^2, midpoint = |S_mid|^2; "
        "axial(t) - axial(t - 1) = 2 m pion + 2 midpoint off the source"
    )
    main_kernel: ClassVar[Kernel | None] = QUARK_PAIRS
    bench_options: ClassVar[Mapping[str, object]] = {"quark": EXAMPLE}

    def __post_init__(self) -> None:
        """Choose the columns, which depend on whether there is a midpoint."""
        if self.quarks.smear_sink or len(self.quarks.momenta) > 1:
            raise UsageError(
                f"{self.name} is for local sinks at rest; leave out {SMEAR_SINK.flag} and "
                f"{MOMENTA.flag}."
            )
        if self.quarks.massive and self._has_midpoint:
            object.__setattr__(self, "columns", COLUMNS.complete())
        self._choose_tables()

    @property
    def _has_midpoint(self) -> bool:
        massive = self.quarks.massive
        if not massive or not issubclass(massive.operator_class, WallOperator):
            raise UsageError(
                f"Only quarks with a fifth direction have a residual mass; give some by "
                f"{QUARK.flag}."
            )
        return massive.operator_class.has_midpoint(**massive.parameters)

    @property
    def records(self) -> int:
        """Number of records per field."""
        q = self.quarks
        if not q.massive:
            raise UsageError(f"{QUARK.flag} is missing; give domain-wall quarks.")
        q.check()
        return len(q.kinds) * len(q.sources) * q.lattice.t

    def _records(self, field: Field, solves: SolveRecords) -> Iterator[Record]:
        for source, found in solutions(self.quarks, field, solves):
            label = self.quarks.label(source)
            for quark, one in found.items():
                if one.effective:
                    sums = _sums(one.effective)
                    for t, values in enumerate(zip(*sums, strict=True)):
                        yield (quark.m, label, t, *values)


def _sums(found: EffectivePropagator) -> list[list[float]]:
    """Return the sums by column and t."""
    tensor, strict = spin_tensor(found.quark, found.quark), found.quark.field.devices.strict
    pion = meson(tensor, GAMMA_5, GAMMA_5, strict).real
    sums = [pion, contact_correlator(found)]
    if found.midpoint and found.axial is not None and found.vector is not None:
        between = spin_tensor(found.midpoint, found.midpoint)
        middle = meson(between, GAMMA_5, GAMMA_5, strict).real
        local = meson(tensor, GAMMA[3] @ GAMMA_5, GAMMA_5, strict).real
        with np.errstate(invalid="ignore"):  # a forecast of memory counts, and has zeros
            ratio = middle / pion
        sums += [middle, ratio, found.axial, local, found.vector]
    return [one.tolist() for one in sums]
