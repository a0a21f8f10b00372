"""The chiral condensate and its susceptibility, by stochastic sources.

With the trace T = Tr S / V of one flavour on a configuration, the condensate is -<T> per flavour.
The derivative of <T> by the mass is V (<T^2> - <T>^2) from the weight, for every flavour that has
the mass there, and -<Tr S S> / V from the trace. Products of different sources alone estimate T^2
without the square of their noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from gauge_mc import defaults
from gauge_mc.arrays import Array
from gauge_mc.devices.kernels import Kernel
from gauge_mc.domain.lattice import Lattice
from gauge_mc.extensions.quarks.modes.chirality import CombineChiralities
from gauge_mc.extensions.quarks.noise import (
    DILUTIONS,
    NOISES,
    NUMBER_BITS,
    UNDILUTED,
    NoiseSource,
    dilution_of,
    source_parts,
)
from gauge_mc.extensions.quarks.operators import INVERSE
from gauge_mc.extensions.quarks.spectroscopy import propagators
from gauge_mc.extensions.quarks.spectroscopy.correlators import Quark
from gauge_mc.extensions.quarks.spectroscopy.observables import OPERATOR, SOLVES, QuarkObservable
from gauge_mc.extensions.quarks.spectroscopy.quarks import (
    MOMENTA,
    PROPAGATORS,
    SMEAR_SINK,
    SOURCE,
    Quarks,
    quark_options,
    quark_owners,
)
from gauge_mc.extensions.quarks.vectors import SPINS, SpinorField
from gauge_mc.extensions.quarks.vectors.algebra import MULTIPLY_SPINORS, Multiply
from gauge_mc.fields.field import Field
from gauge_mc.fields.sums import PLAQUETTE, lattice_sums
from gauge_mc.files.columns import SWEEP, Column, TableColumns
from gauge_mc.groups import GROUPS
from gauge_mc.observables import OBSERVABLES, Record, SecondaryTable
from gauge_mc.observables.noise_reduction import digest_of
from gauge_mc.options import Option, check_options

SOURCE_NUMBER = "source"
"""Name of the column with the number of the source."""

COLUMNS = TableColumns(
    Column("kappa", float, "hopping parameter of the quark", index=True),
    Column("mu", float, "twisted mass of the quark", index=True),
    Column("m", float, "mass of the quark", index=True, optional=True),
    Column(SOURCE_NUMBER, int, "number of the source, from 0", index=True),
    Column("scalar", float, "estimate of Re Tr S / V"),
    Column("scalar_im", float, "estimate of Im Tr S / V, 0 without a twisted mass", rounding=True),
    Column("pseudoscalar", float, "estimate of Re Tr γ₅S / V"),
    Column(
        "pseudoscalar_im",
        float,
        "estimate of Im Tr γ₅S / V, 0 without a twisted mass",
        rounding=True,
    ),
    Column("connected", float, "estimate of Re Tr S S / V"),
    Column("pion", float, "estimate of Tr S†S / V"),
)
"""Columns of the table."""

CONDENSATE_COLUMNS = (SWEEP, *COLUMNS.names)
"""Names of the columns that all tables have."""

WHAT = "condensates"
"""Content of the tables, for messages."""


NOISE_OPTION = Option(
    "noise",
    str,
    f"Noise of the sources: {'; '.join(f'{name}, {x.summary}' for name, x in NOISES.items())}.",
    default=defaults.NOISE,
    choices=tuple(NOISES),
)

SOURCES_OPTION = Option(
    "sources",
    int,
    "Number of sources per configuration.",
    usual=4,
    least=1,
    most=2**NUMBER_BITS - 1,
)

DILUTE = Option(
    "dilute",
    str,
    f"The parts by which each source is divided, besides chirality: {', '.join(DILUTIONS)}.",
    default=UNDILUTED,
    metavar="NAME[,NAME...]",
    choices=(*DILUTIONS, UNDILUTED),
    separator=",",
)

NOISE_SEED = Option(
    "noise_seed", int, "Seed of the noise.", usual=defaults.SEED, least=0, most=2**63 - 1
)

OWN_OPTIONS = (NOISE_OPTION, SOURCES_OPTION, DILUTE, NOISE_SEED)

LEFT_OUT = (SOURCE, SMEAR_SINK, MOMENTA, PROPAGATORS)
"""Options of measurements with quarks that are for hadrons only."""


def _of_quarks(options: Sequence[Option]) -> tuple[Option, ...]:
    return tuple(option for option in options if option not in LEFT_OUT)


@OBSERVABLES.register
@dataclass(frozen=True)
class Condensate(QuarkObservable):
    """Estimates of traces of a quark propagator, with one record for each quark and source.

    The propagator S is the inverse of D + m0, or of D_c + m. A source eta is solved for by its
    chiral parts. As S^dagger = gamma_5 S gamma_5, where a twisted mass changes its sign, the
    solutions S eta also are estimates of Tr S S and of Tr S^dagger S.

    Attributes
    ----------
    quarks : Quarks
        The quarks.
    noise : str
        Name of a registered noise.
    sources : int
        Number of sources on every configuration.
    dilution : tuple of str
        The parts by which each source is divided, besides chirality.
    seed : int
        Seed of the noise.
    colours : int
        Number of colours; 0 if it is not known yet.
    """

    noise: str = defaults.NOISE
    sources: int = SOURCES_OPTION.usual
    dilution: tuple[str, ...] = ()
    seed: int = NOISE_SEED.usual
    colours: int = 0

    name: ClassVar[str] = "condensate"
    summary: ClassVar[str] = "the chiral condensate and its susceptibility, by stochastic sources"
    columns: ClassVar[TableColumns] = COLUMNS
    strict: ClassVar[bool] = True
    smears: ClassVar[bool] = False
    normalisation: ClassVar[str] = (
        "traces over sites, spins and colours for one flavour, divided by the number V of sites, "
        f"{INVERSE}; the condensate <psibar psi> is -<scalar>"
    )
    main_kernel: ClassVar[Kernel | None] = MULTIPLY_SPINORS
    secondary_tables: ClassVar[tuple[SecondaryTable, ...]] = (
        replace(SOLVES, records=lambda x: x.solutions),
        OPERATOR,
    )
    options: ClassVar[tuple[Option, ...]] = (*_of_quarks(quark_options()), *OWN_OPTIONS)
    bench_options: ClassVar[Mapping[str, object]] = {"kappa": "0.12", "sources": 1}

    @classmethod
    def for_lattice(cls, lattice: Lattice, **options: Any) -> Condensate:
        """Return the observable with the given options; see `Observable.for_lattice`."""
        values = check_options(cls.options, options, cls.name)
        settings = {x.name: values.pop(x.name, x.usual) for x in OWN_OPTIONS}
        noise = settings[NOISE_OPTION.name] or defaults.NOISE
        NOISES.check(noise, NOISE_OPTION.flag)
        dilution = dilution_of(settings[DILUTE.name] or UNDILUTED)
        numbers = settings[SOURCES_OPTION.name], dilution, settings[NOISE_SEED.name]
        return cls(Quarks.of_options(lattice, cls.name, values), noise, *numbers)

    @classmethod
    def owners(cls) -> list[tuple[str, tuple[Option, ...]]]:
        """Return what declares the options; see `Observable.owners`."""
        shared = [(name, _of_quarks(options)) for name, options in quark_owners()]
        return [*shared, (cls.name, OWN_OPTIONS)]

    def for_group(self, group: str) -> Condensate:
        """Return the observable for a gauge group; see `Observable.for_group`."""
        super().for_group(group)
        return replace(self, colours=GROUPS[group].colours)

    @property
    def header(self) -> dict[str, str]:
        """Header of the table; see `Observable.header`."""
        divided = ", ".join(("chirality", *self.dilution))
        return {
            **super().header,
            "sources": f"{self.sources} of {self.noise} noise, divided by {divided}",
            NOISE_SEED.name: str(self.seed),
        }

    @property
    def records(self) -> int:
        """Number of records per field."""
        self.quarks.check()
        return len(self.quarks.kinds) * self.sources

    @property
    def warm_up(self) -> Condensate:
        """The same for a heavy quark and one source; see `Observable.warm_up`."""
        return replace(super().warm_up, sources=1)

    @property
    def rehearsed(self) -> Condensate | None:
        """The same with one source, for whose solutions memory is needed; see `rehearsed`."""
        rehearsal = super().rehearsed
        return replace(rehearsal, sources=1) if rehearsal else None

    def _noise_sources(self, digest: int) -> list[NoiseSource]:
        """Return the sources on a configuration, with as many vectors as a point has at most."""
        parts = source_parts(self.dilution, self.colours, self.quarks.lattice.t)
        most = SPINS * self.colours
        return [
            NoiseSource(self.noise, n, self.seed, digest, tuple(parts[first : first + most]), first)
            for n in range(self.sources)
            for first in range(0, len(parts), most)
        ]

    @property
    def solved(self) -> Quarks:
        """The quarks with both signs of their twisted masses, for adjoint propagators."""
        both = {sign * x + 0.0 for x in self.quarks.mus for sign in (1, -1)}  # 0.0, not -0.0
        return replace(self.quarks, mus=tuple(sorted(both)))

    @property
    def solutions(self) -> int:
        """Number of times that solutions are found on a configuration."""
        return len(self.solved.kinds) * len(self._noise_sources(0))

    def _records(self, field: Field, solves: propagators.SolveRecords) -> Iterator[Record]:
        digest = digest_of(lattice_sums(field, PLAQUETTE, values=2))
        sources = self._noise_sources(digest)
        totals = {
            (n, quark): np.zeros(len(COLUMNS) - len(COLUMNS.indices))
            for n in range(self.sources)
            for quark in self.quarks.kinds
        }
        quarks = replace(self.solved, sources=tuple(sources))
        each = zip(sources, propagators.solutions(quarks, field, solves), strict=True)
        for source, (_, solved) in each:
            sums = _traces(source, solved, field)
            for quark in self.quarks.kinds:
                totals[source.number, quark] += sums[quark] / field.lattice.sites
        for (n, quark), values in totals.items():
            numbers = quark if self.quarks.massive else quark[:-1]
            yield (*numbers, n, *values.tolist())


def _traces(
    source: NoiseSource, solved: Mapping[Quark, propagators.QuarkSolution], field: Field
) -> dict[Quark, Array]:
    """Return estimates of the traces, as in the columns of the table, from parts of a source."""
    eta = SpinorField.empty(field, propagators.PRECISION, len(source.parts))
    source.fill(eta, field)
    signs, traces = np.array([part.chirality for part in source.parts]), {}
    turned = eta.like()  # gamma_5 psi
    for quark, solution in solved.items():
        psi, scale = solution.propagator.columns, solution.propagator.normalisation
        CombineChiralities(turned, psi)(0, 0, 0, 1)
        first = Multiply(psi, eta)()
        adjoint = solved[quark._replace(mu=-quark.mu + 0.0)].propagator.columns
        squared = Multiply(turned, adjoint)().mixed.real
        real, imaginary = first.mixed.real, first.mixed.imag
        linear = (real, imaginary, signs * real, signs * imaginary)
        square = scale * scale
        # Sums that are rounded once do not depend on the order of NumPy.
        traces[quark] = np.array(
            [scale * math.fsum(x) for x in linear]
            + [square * math.fsum(sign) for sign in (signs * squared, first.norm2)]
        )
    return traces
