"""Correlators of mesons, from quark propagators on the links."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

from gauge_mc.analysis.hadron_correlators import MESON_COLUMNS
from gauge_mc.devices.kernels import Kernel
from gauge_mc.domain.lattice import Lattice
from gauge_mc.fields.field import Field
from gauge_mc.files.table import TableData
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
from gauge_mc.quarks.contractions import QUARK_PAIRS, meson, spin_tensor
from gauge_mc.quarks.gamma import SIXTEEN
from gauge_mc.quarks.measurements import (
    SOLVE_WORDS,
    SOLVES,
    Quarks,
    pairs_of,
    quark_options,
    series_of_correlators,
)

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
class Mesons(Observable):
    """Correlators of mesons q̄1 Gamma q2, with one record for each time slice.

    Attributes
    ----------
    quarks : Quarks
        The quarks, their sources and momenta. All pairs of hopping parameters are measured.
    gammas : tuple of (str, str)
        Matrices at source and sink, by their names in `SIXTEEN`.
    """

    quarks: Quarks
    gammas: tuple[tuple[str, str], ...] = USUAL_PAIRS

    name: ClassVar[str] = "mesons"
    summary: ClassVar[str] = "correlators of mesons"
    columns: ClassVar[tuple[str, ...]] = MESON_COLUMNS[1:]
    descriptions: ClassVar[Mapping[str, str]] = {
        "kappa1": "hopping parameter of the antiquark",
        "kappa2": "hopping parameter of the quark",
        "source": "kind of the source, and its place after @",
        "gamma_source": "matrix at the source, such as g5 or gxgt",
        "gamma_sink": "matrix at the sink",
        "px": "momentum along x, in units of 2π/L",
        "py": "momentum along y",
        "pz": "momentum along z",
        "t": "time since the source",
        "re": "real part of the correlator",
        "im": "imaginary part of the correlator",
    }
    words: ClassVar[tuple[str, ...]] = ("source", "gamma_source", "gamma_sink", *SOLVE_WORDS)
    normalisation: ClassVar[str] = (
        "sum over x of exp(-i p (x - x0)) < q̄1 sink q2 (x) [q̄1 source q2 (x0)]^dagger >, "
        "S = 2 kappa M^-1, DeGrand-Rossi gamma matrices"
    )
    units: ClassVar[str] = "lattice units"
    smears: ClassVar[bool] = True
    quantities: ClassVar[tuple[Quantity, ...]] = ()
    main_kernel: ClassVar[Kernel | None] = QUARK_PAIRS
    options: ClassVar[tuple[Option, ...]] = (*quark_options(), ALL_GAMMAS)
    bench_options: ClassVar[Mapping[str, object]] = {"kappa": "0.12"}

    @classmethod
    def for_lattice(cls, lattice: Lattice, **options: Any) -> Mesons:
        """Return the observable with the given options; see `Observable.for_lattice`."""
        everything = options.pop(ALL_GAMMAS.name, None)
        gammas = tuple(product(SIXTEEN, SIXTEEN)) if everything else USUAL_PAIRS
        return cls(Quarks.of_options(lattice, cls.name, options), gammas)

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """None, as they depend on more than the group."""
        return ()

    @property
    def records(self) -> int:
        """Number of records per field."""
        q = self.quarks
        q.check()
        each = len(q.sources) * len(q.momenta) * len(self.gammas) * q.lattice.t
        return len(pairs_of(q.kappas)) * each

    @property
    def header(self) -> dict[str, str]:
        """Header of the table; see `Observable.header`."""
        return {**super().header, **self.quarks.header}

    def measurer(self, like: Field) -> Measurer:
        """Return a function that measures fields of the same kind."""
        self.quarks.check()

        def measure(field: Field) -> list[Record]:
            solves: list[Record] = []
            return Accompanied(self._records(field, solves), {SOLVES.name: solves})

        return measure

    @property
    def companions(self) -> tuple[Companion, ...]:
        """The table of the solutions of the Dirac equation; see `Observable.companions`."""
        return (self.quarks.solves,)

    def _records(self, field: Field, solves: list[Record]) -> Iterator[Record]:
        for source, quarks in self.quarks.propagators(field, solves):
            label = self.quarks.label(source)
            for pair, momentum in product(pairs_of(self.quarks.kappas), self.quarks.momenta):
                tensor = spin_tensor(quarks[pair[1]], quarks[pair[0]], momentum)
                for begin, end in self.gammas:
                    correlator = meson(tensor, SIXTEEN[end], SIXTEEN[begin])
                    for t, value in enumerate(correlator.tolist()):
                        yield (*pair, label, begin, end, *momentum, t, value.real, value.imag)

    @classmethod
    def series(cls, table: TableData, source: str) -> dict[str, Series]:
        """Return a correlator for each meson; see `Observable.series`."""
        return series_of_correlators(table, source, cls.columns)
