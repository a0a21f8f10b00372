"""Correlators of mesons, from quark propagators on the links."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, ClassVar

from gauge_mc.devices.kernels import Kernel
from gauge_mc.domain.lattice import Lattice
from gauge_mc.files.columns import TableColumns
from gauge_mc.observables import OBSERVABLES
from gauge_mc.options import Option
from gauge_mc.quantities.hadrons.analysis.correlators import MESONS, Quark
from gauge_mc.quantities.hadrons.observables.parts.correlators import (
    HadronCorrelator,
    Hadrons,
    pairs_of,
)
from gauge_mc.quarks.hadrons.contractions import QUARK_PAIRS, meson, spin_tensor
from gauge_mc.quarks.hadrons.propagators import Propagator
from gauge_mc.quarks.operators import INVERSE
from gauge_mc.quarks.vectors.gamma import SIXTEEN

ALL_GAMMAS = Option("all_gammas", bool, "Also measure all pairs of different matrices.")

USUAL_PAIRS = (
    *((name, name) for name in SIXTEEN),
    ("g5", "gtg5"),
    ("gtg5", "g5"),
)
"""Matrices at source and sink that are measured by default: equal ones, and the pair of the PCAC
relation."""


@OBSERVABLES.register
@dataclass(frozen=True)
class Mesons(Hadrons):
    """Correlators of mesons q̄1 Gamma q2, with one record for each time slice.

    Attributes
    ----------
    quarks : Quarks
        The quarks, their sources and momenta. All pairs of them are measured.
    gammas : tuple of (str, str)
        Matrices at source and sink, by their names in `SIXTEEN`.
    """

    gammas: tuple[tuple[str, str], ...] = USUAL_PAIRS

    name: ClassVar[str] = "mesons"
    summary: ClassVar[str] = "correlators of mesons"
    strict: ClassVar[bool] = True
    columns: ClassVar[TableColumns] = MESONS
    normalisation: ClassVar[str] = (
        "sum over x of exp(-i p (x - x0)) < q̄1 sink q2 (x) [q̄1 source q2 (x0)]^dagger >, "
        f"{INVERSE}, DeGrand-Rossi gamma matrices"
    )
    main_kernel: ClassVar[Kernel | None] = QUARK_PAIRS
    options: ClassVar[tuple[Option, ...]] = (*Hadrons.options, ALL_GAMMAS)

    @classmethod
    def for_lattice(cls, lattice: Lattice, **options: Any) -> Mesons:
        """Return the observable with the given options; see `Observable.for_lattice`."""
        everything = options.pop(ALL_GAMMAS.name, None)
        found = super().for_lattice(lattice, **options)
        return replace(found, gammas=tuple(product(SIXTEEN, SIXTEEN))) if everything else found

    @property
    def records(self) -> int:
        """Number of records per field."""
        q = self.quarks
        q.check()
        each = len(q.sources) * len(q.momenta) * len(self.gammas) * q.lattice.t
        return len(pairs_of(q.kinds)) * each

    def correlators(self, quarks: Mapping[Quark, Propagator]) -> Iterator[HadronCorrelator]:
        """Yield the correlators of all pairs of quarks; see `Hadrons.correlators`."""
        strict = next(iter(quarks.values())).field.devices.strict
        for pair, momentum in product(pairs_of(self.quarks.kinds), self.quarks.momenta):
            tensor = spin_tensor(quarks[pair[1]], quarks[pair[0]], momentum)
            for names in self.gammas:
                begin, end = (SIXTEEN[name] for name in names)
                yield pair, names, momentum, meson(tensor, end, begin, strict)
