"""Correlators of baryons, from quark propagators on the links."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gauge_mc.analysis.hadron_correlators import BARYON_COLUMNS, BOSONS
from gauge_mc.devices.kernels import Kernel
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import UsageError
from gauge_mc.fields.field import Field
from gauge_mc.files.table import TableData
from gauge_mc.groups import GROUPS
from gauge_mc.observables import (
    OBSERVABLES,
    Accompanied,
    Companion,
    Measurer,
    Observable,
    Quantity,
    Record,
    Series,
)
from gauge_mc.options import Option
from gauge_mc.quarks.contractions import (
    AT_REST,
    BARYONS,
    Momentum,
    delta,
    diquark,
    nucleon,
    of_parity,
)
from gauge_mc.quarks.gamma import GAMMA, SIXTEEN
from gauge_mc.quarks.measurements import (
    SOLVE_WORDS,
    SOLVES,
    Quarks,
    pairs_of,
    quark_options,
    series_of_correlators,
)
from gauge_mc.quarks.propagators import Propagator

Correlator = tuple[str, int, Momentum, NDArray[np.complex128]]
"""Name and parity of a baryon, its momentum, and its correlator."""

PARITIES = (1, -1)


@OBSERVABLES.register
@dataclass(frozen=True)
class Baryons(Observable):
    """Correlators of baryons, with one record for each time slice.

    They are nucleons and, at rest, Delta baryons for three colours, and diquarks for two.

    Attributes
    ----------
    quarks : Quarks
        The quarks, their sources and momenta.
    group : str
        Name of the gauge group; empty if it is not known yet.
    """

    quarks: Quarks
    group: str = ""

    name: ClassVar[str] = "baryons"
    summary: ClassVar[str] = "correlators of baryons"
    columns: ClassVar[tuple[str, ...]] = BARYON_COLUMNS[1:]
    descriptions: ClassVar[Mapping[str, str]] = {
        "kappa1": "hopping parameter of the u quarks, or of the first quark of a diquark",
        "kappa2": "hopping parameter of the d quark, or of the second quark of a diquark",
        "source": "kind of the source, and its place after @",
        "baryon": "nucleon, delta, or diquark- and its matrix",
        "parity": "1 or -1",
        "px": "momentum along x, in units of 2π/L",
        "py": "momentum along y",
        "pz": "momentum along z",
        "t": "time since the source",
        "re": "real part of the correlator",
        "im": "imaginary part of the correlator",
    }
    words: ClassVar[tuple[str, ...]] = ("source", "baryon", *SOLVE_WORDS)
    normalisation: ClassVar[str] = (
        "sum over x of exp(-i p (x - x0)) parity Tr [(1 + parity gamma_t)/2 < B(x) B-bar(x0) >] "
        "with B = epsilon (u^T C gamma_5 d) u, or (u^T C gamma_i u) u with spin 3/2; "
        "< D(x) D(x0)^dagger > with D = epsilon q1^T C Gamma q2; "
        "S = 2 kappa M^-1, DeGrand-Rossi gamma matrices, C = gamma_t gamma_y"
    )
    units: ClassVar[str] = "lattice units"
    smears: ClassVar[bool] = True
    quantities: ClassVar[tuple[Quantity, ...]] = ()
    main_kernel: ClassVar[Kernel | None] = BARYONS
    options: ClassVar[tuple[Option, ...]] = quark_options()
    bench_options: ClassVar[Mapping[str, object]] = {"kappa": "0.12"}

    @classmethod
    def for_lattice(cls, lattice: Lattice, **options: Any) -> Baryons:
        """Return the observable with the given options; see `Observable.for_lattice`."""
        return cls(Quarks.of_options(lattice, cls.name, options))

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """None, as they depend on more than the group."""
        return ()

    @property
    def records(self) -> int:
        """Number of records per field; 0 if the group is not known yet."""
        q = self.quarks
        q.check()
        if not self.group:
            return 0
        momenta, pairs = len(q.momenta), len(pairs_of(q.kappas))
        each = len(SIXTEEN) * momenta * pairs
        if self._has_three_colours:
            each = len(PARITIES) * (momenta * len(q.kappas) ** 2 + len(q.kappas))
        return each * len(q.sources) * q.lattice.t

    @property
    def _has_three_colours(self) -> bool:
        colours = GROUPS[self.group].colours
        if colours not in (2, 3):
            raise UsageError(
                f"The baryons of {GROUPS[self.group].label} are not known; measure mesons."
            )
        return colours == 3

    def prepared(self, field: Field) -> Baryons:
        """Return the observable for the group of a field; see `Observable.prepared`."""
        return replace(self, group=field.group.name)

    @property
    def header(self) -> dict[str, str]:
        """Header of the table; see `Observable.header`."""
        return {**super().header, **self.quarks.header}

    def measurer(self, like: Field) -> Measurer:
        """Return a function that measures fields of the same kind."""
        self.quarks.check()
        prepared = self.prepared(like)

        def measure(field: Field) -> list[Record]:
            solves: list[Record] = []
            return Accompanied(prepared._records(field, solves), {SOLVES.name: solves})

        return measure

    @property
    def companions(self) -> tuple[Companion, ...]:
        """The table of the solutions of the Dirac equation; see `Observable.companions`."""
        return (self.quarks.solves,)

    def _records(self, field: Field, solves: list[Record]) -> Iterator[Record]:
        correlators = self._baryons if self._has_three_colours else self._diquarks
        for source, quarks in self.quarks.propagators(field, solves):
            label = self.quarks.label(source)
            for kappas in product(self.quarks.kappas, repeat=2):
                first, second = (quarks[one] for one in kappas)
                for name, parity, momentum, values in correlators(first, second):
                    for t, value in enumerate(values.tolist()):
                        what = label, name, parity
                        yield (*kappas, *what, *momentum, t, value.real, value.imag)

    def _baryons(self, up: Propagator, down: Propagator) -> Iterator[Correlator]:
        """Yield the correlators of the nucleon, and of the Delta of equal quarks."""
        for momentum in self.quarks.momenta:
            found = nucleon(up, down, momentum)
            for parity in PARITIES:
                yield "nucleon", parity, momentum, of_parity(found, parity)
        if up is down:
            found = delta(up)
            for parity in PARITIES:
                yield "delta", parity, AT_REST, of_parity(found, parity)

    def _diquarks(self, first: Propagator, second: Propagator) -> Iterator[Correlator]:
        """Yield the correlators of all diquarks, unless the quarks are in the wrong order."""
        if first.kappa > second.kappa:
            return
        for (name, gamma), momentum in product(SIXTEEN.items(), self.quarks.momenta):
            # A diquark and the meson with the same matrix have opposite parities.
            parity = -1 if (GAMMA[3] @ gamma @ GAMMA[3] == gamma).all() else 1
            yield f"{BOSONS}-{name}", parity, momentum, diquark(first, second, gamma, momentum)

    @classmethod
    def series(cls, table: TableData, source: str) -> dict[str, Series]:
        """Return a correlator for each baryon; see `Observable.series`."""
        return series_of_correlators(table, source, cls.columns)
