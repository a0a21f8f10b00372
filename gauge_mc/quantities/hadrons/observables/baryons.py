"""Correlators of baryons, from quark propagators on the links."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import ClassVar

from gauge_mc.devices.kernels import Kernel
from gauge_mc.errors import UsageError
from gauge_mc.files.columns import TableColumns
from gauge_mc.groups import GROUPS, special_unitary
from gauge_mc.observables import OBSERVABLES
from gauge_mc.quantities.hadrons.analysis.correlators import BARYONS as COLUMNS
from gauge_mc.quantities.hadrons.analysis.correlators import BOSONS, Quark
from gauge_mc.quantities.hadrons.observables.parts.correlators import (
    HadronCorrelator,
    Hadrons,
    Pair,
    pairs_of,
)
from gauge_mc.quarks.hadrons.contractions import (
    AT_REST,
    BARYONS,
    delta,
    diquark,
    nucleon,
    of_parity,
)
from gauge_mc.quarks.hadrons.propagators import Propagator
from gauge_mc.quarks.operators import INVERSE
from gauge_mc.quarks.vectors.gamma import GAMMA, SIXTEEN

PARITIES = (1, -1)


@OBSERVABLES.register
@dataclass(frozen=True)
class Baryons(Hadrons):
    """Correlators of baryons, with one record for each time slice.

    They are nucleons and, at rest, Delta baryons for three colours, and diquarks for two.

    Attributes
    ----------
    quarks : Quarks
        The quarks, their sources and momenta.
    group : str
        Name of the gauge group; empty if it is not known yet.
    """

    group: str = ""

    name: ClassVar[str] = "baryons"
    summary: ClassVar[str] = "correlators of baryons"
    strict: ClassVar[bool] = True
    columns: ClassVar[TableColumns] = COLUMNS
    normalisation: ClassVar[str] = (
        "sum over x of exp(-i p (x - x0)) parity Tr [(1 + parity gamma_t)/2 < B(x) B-bar(x0) >] "
        "with B = epsilon (u^T C gamma_5 d) u, or (u^T C gamma_i u) u with spin 3/2; "
        "< D(x) D(x0)^dagger > with D = epsilon q1^T C Gamma q2; "
        f"{INVERSE}, DeGrand-Rossi gamma matrices, C = gamma_t gamma_y"
    )
    main_kernel: ClassVar[Kernel | None] = BARYONS

    @property
    def records(self) -> int:
        """Number of records per field; 0 if the group is not known yet."""
        q = self.quarks
        q.check()
        if not self.group:
            return 0
        momenta, pairs = len(q.momenta), len(pairs_of(q.kinds))
        each = len(SIXTEEN) * momenta * pairs
        if self._has_three_colours:
            each = len(PARITIES) * (momenta * len(q.kinds) ** 2 + len(q.kinds))
        return each * len(q.sources) * q.lattice.t

    @property
    def _has_three_colours(self) -> bool:
        two, three = map(special_unitary, (2, 3))
        if self.group not in (two, three):
            raise UsageError(
                f"The baryons of {GROUPS[self.group].label} are not known; measure mesons."
            )
        return self.group == three

    def for_group(self, group: str) -> Baryons:
        """Return the observable for a gauge group; see `Observable.for_group`."""
        super().for_group(group)
        return replace(self, group=group)

    def correlators(self, quarks: Mapping[Quark, Propagator]) -> Iterator[HadronCorrelator]:
        """Yield the correlators of all baryons of the group; see `Hadrons.correlators`."""
        if not self._has_three_colours:
            for one, other in pairs_of(self.quarks.kinds):
                yield from self._diquarks((one, other), quarks[one], quarks[other])
            return
        for one, other in product(self.quarks.kinds, repeat=2):
            yield from self._baryons((one, other), quarks[one], quarks[other])

    def _baryons(self, pair: Pair, up: Propagator, down: Propagator) -> Iterator[HadronCorrelator]:
        """Yield the correlators of the nucleon, and of the Delta of equal quarks."""
        strict = up.field.devices.strict
        for momentum in self.quarks.momenta:
            found = nucleon(up, down, momentum)
            for parity in PARITIES:
                yield pair, ("nucleon", parity), momentum, of_parity(found, parity, strict)
        if up is down:
            found = delta(up)
            for parity in PARITIES:
                yield pair, ("delta", parity), AT_REST, of_parity(found, parity, strict)

    def _diquarks(
        self, pair: Pair, first: Propagator, second: Propagator
    ) -> Iterator[HadronCorrelator]:
        for (name, gamma), momentum in product(SIXTEEN.items(), self.quarks.momenta):
            # A diquark and the meson with the same matrix have opposite parities.
            parity = -1 if (GAMMA[3] @ gamma @ GAMMA[3] == gamma).all() else 1
            found = diquark(first, second, gamma, momentum)
            yield pair, (f"{BOSONS}-{name}", parity), momentum, found
