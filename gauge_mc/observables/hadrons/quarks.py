"""The quarks of a measurement, and their propagators."""

from __future__ import annotations

import cmath
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gauge_mc import defaults
from gauge_mc.analysis.hadrons.correlators import Quark, describe_quarks
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import UsageError
from gauge_mc.fields.field import Field
from gauge_mc.files.folders import may_be_made
from gauge_mc.observables import Record
from gauge_mc.observables.hadrons.options import (
    BOUNDARY,
    INNER,
    ITERATION_LIMIT,
    KAPPA,
    LINKS,
    METHOD,
    MOMENTA,
    MUS,
    PROPAGATORS,
    SMEAR_SINK,
    SOLVER,
    SOURCE,
    TOLERANCE,
    angles_of,
    momenta_up_to,
    numbers_of,
    operator_owners,
    quark_options,
)
from gauge_mc.options import check_options, merged
from gauge_mc.quarks.contractions import AT_REST, Momentum
from gauge_mc.quarks.links import in_precision
from gauge_mc.quarks.operators import MU, DiracOperator, operator_with
from gauge_mc.quarks.propagator_path import PropagatorPath
from gauge_mc.quarks.propagators import Propagator
from gauge_mc.quarks.solvers import ITERATIONS, RELIABLE, SOLVERS, SolverParameters, solve
from gauge_mc.quarks.sources import Source, parse_source
from gauge_mc.quarks.spinors import SPINS, SpinorField
from gauge_mc.quarks.transport import Boundary
from gauge_mc.smearing import NO_SMEARING, Smearing, make_smearing, smear_option, smearing_options


@dataclass(frozen=True)
class Quarks:
    """The quarks of a measurement.

    Raises
    ------
    UsageError
        If a value is invalid.
    """

    lattice: Lattice
    """Lattice of the fields."""
    kappas: tuple[float, ...] = ()
    """Hopping parameters, ascending; empty if none has been chosen yet."""
    mus: tuple[float, ...] = (0.0,)
    """Twisted masses, ascending; each is combined with each hopping parameter."""
    parameters: tuple[tuple[str, float], ...] = ()
    """Further parameters of the Dirac operator that are not 0."""
    angles: tuple[float, ...] = (0.0, 0.0, 0.0, 1.0)
    """Boundary conditions psi(x + L) = exp(i pi angle) psi(x) along x, y, z and t."""
    sources: tuple[Source, ...] = ()
    """Sources, which are measured one after the other."""
    smear_sink: bool = False
    """Whether the sink is smeared as the source is."""
    smearing: Smearing | None = None
    """Smearing of the links with which sources and sinks are smeared."""
    momenta: tuple[Momentum, ...] = (AT_REST,)
    """Momenta of the hadrons."""
    solver: str = defaults.SOLVER
    """Name of the solver."""
    request: SolverParameters = field(default_factory=SolverParameters)
    """How to solve."""
    folder: str = ""
    """Folder in which propagators are kept; if it is empty, they are not."""

    def __post_init__(self) -> None:
        SOLVERS.check(self.solver, SOLVER.flag)
        smeared = [one for one in self.sources if one.smears]
        if self.smear_sink and len(smeared) < len(self.sources):
            raise UsageError(f"{SMEAR_SINK.flag} needs a source that is smeared; choose one.")
        if self.smearing and not smeared:
            raise UsageError("--smear is for sources that are smeared; choose one.")
        if smeared and any(angle % 2 for angle in self.angles[:3]):
            raise UsageError(
                "Smeared sources need quarks that are periodic in space; choose another --boundary "
                "or another --source."
            )

    @classmethod
    def of_options(cls, lattice: Lattice, whose: str, options: Mapping[str, Any]) -> Quarks:
        """Return the quarks that options choose, by name.

        Raises
        ------
        UsageError
            If an option is unknown or its value is invalid.
        """
        known = (*quark_options(), smear_option())
        given = check_options((*known, *smearing_options()), options, whose)
        own = {option.name for option in known}
        others = {name: value for name, value in given.items() if name not in own}
        names = [one.name for one in merged(operator_owners())]
        sources = given.get(SOURCE.name, (defaults.SOURCE,))
        return cls(
            lattice,
            numbers_of(given, KAPPA),
            numbers_of(given, MUS) or (0.0,),
            tuple((name, given[name]) for name in names if given.get(name)),
            angles_of(given.get(BOUNDARY.name, "antiperiodic")),
            tuple(parse_source(one, lattice) for one in sources),
            given.get(SMEAR_SINK.name, False),
            make_smearing(given.get("smear", NO_SMEARING), others),
            momenta_up_to(given.get(MOMENTA.name, 0)),
            given.get(SOLVER.name, defaults.SOLVER),
            SolverParameters(
                given.get(TOLERANCE.name, defaults.TOLERANCE),
                given.get(ITERATION_LIMIT.name, ITERATIONS),
                given.get(METHOD.name, RELIABLE),
                given.get(INNER.name, defaults.INNER),
                given.get(LINKS.name),
            ),
            given.get(PROPAGATORS.name, ""),
        )

    @property
    def boundary(self) -> Boundary:
        """The phases of the boundary conditions."""
        return Boundary.of([_phase(angle) for angle in self.angles])

    @property
    def header(self) -> dict[str, str]:
        """Entries for the header of a table."""
        smearing = {"smearing": str(self.smearing)} if self.smearing else {}
        twisted = {MUS.name: _listed(self.mus)} if any(self.mus) else {}
        return {
            "kappa": _listed(self.kappas),
            **twisted,
            **{name: f"{value:g}" for name, value in self.parameters},
            "boundary": f"{','.join(f'{one:g}' for one in self.angles)} (angles in units of pi)",
            "sources": " ".join(self.label(one) for one in self.sources),
            **smearing,
            "tolerance": f"{self.request.tolerance:g}",
        }

    def label(self, source: Source) -> str:
        """Return the text that identifies a source, and its sink if that is smeared."""
        return source.label.replace("@", "-smeared@") if self.smear_sink else source.label

    def check(self) -> None:
        """Refuse to measure without a hopping parameter, or without a folder to write to."""
        if not self.kappas:
            raise UsageError(f"{KAPPA.flag} is missing; give the hopping parameters of the quarks.")
        if self.folder and not may_be_made(Path(self.folder)):
            raise UsageError(
                f"{PROPAGATORS.flag}: no files can be written in a folder {self.folder}; choose "
                "another one."
            )

    @property
    def kinds(self) -> tuple[Quark, ...]:
        """The quarks, with all hopping parameters and twisted masses."""
        return tuple(Quark(*one) for one in product(self.kappas, self.mus))

    def propagators(
        self, field: Field, solves: list[Record]
    ) -> Iterator[tuple[Source, dict[Quark, Propagator]]]:
        """Yield the propagators of all quarks, for one source after the other.

        Within `DeviceGroup.measuring`, hadrons with the same source share them. Those of several
        sources are not kept, because of the memory that they take.

        Parameters
        ----------
        field : Field
            The links.
        solves : list of Record
            Records of `SOLVES` are appended to it.

        Raises
        ------
        GaugeError
            If a solution cannot be found with the residual that was asked for.
        """
        links = self._smeared(field)
        operators = {quark: self._operator(field, quark) for quark in self.kinds}
        for source in self.sources:
            found = {}
            for quark, operator in operators.items():
                solve = partial(self._solve, quark, operator, source, links)
                alone = len(self.sources) == 1
                key = replace(self, kappas=(), mus=(), momenta=()), quark
                once = field.devices.shared.once
                found[quark], record = once(field, key, solve) if alone else solve()
                solves.append(record)
            yield source, found

    def _solve(
        self,
        quark: Quark,
        operator: DiracOperator,
        source: Source,
        links: Field,
    ) -> tuple[Propagator, Record]:
        """Return the propagator of a quark, and its record in `SOLVES`."""
        vectors = SpinorField.empty(operator.field, PRECISION, SPINS * links.group.colours)
        source.fill(vectors, links)
        kept = self._propagator_path(quark, source) if self.folder else None
        found = kept.read(operator, vectors, self.request.tolerance) if kept else None
        if not found:
            found = solve(operator, vectors, self.solver, self.request)
            if kept:
                kept.write(vectors, found.x)
        label = self.label(source)
        for note in found.notes:
            print(f"gauge-mc: {describe_quarks(quark, quark)}, {label}: {note}", file=sys.stderr)
        words = *quark, label, found.solver, found.inner, found.iterations, found.updates
        numbers = float(found.iterated.max()), float(found.residual.max()), found.seconds
        if self.smear_sink:
            source.smear_sink(found.x, links)
        propagator = Propagator(found.x, operator.kappa, operator.boundary, source.place)
        return propagator, (*words, *numbers)

    def _propagator_path(self, quark: Quark, source: Source) -> PropagatorPath:
        """Return the path of a propagator, which depends on all metadata but the tolerance."""
        mass = {MUS.name: repr(quark.mu)} if quark.mu else {}
        own = {"kappa": repr(quark.kappa), **mass, "sources": source.label}
        left_out = ("tolerance", MUS.name)
        known = {name: value for name, value in self.header.items() if name not in left_out}
        return PropagatorPath(Path(self.folder), {**known, **own})

    def _operator(self, field: Field, quark: Quark) -> DiracOperator:
        parameters = {MU.name: quark.mu, **dict(self.parameters)}
        return operator_with(field, quark.kappa, self.boundary.phases, **parameters)

    def _smeared(self, field: Field) -> Field:
        """Return the links with which sources are smeared, in double precision."""
        if not any(one.smears for one in self.sources):
            return field
        field = in_precision(field, PRECISION)
        if self.smearing is None:
            return field
        kind = field.lattice, field.group.name, PRECISION, field.devices
        other, more = Field.empty(*kind), Field.empty(*kind)
        source = field
        for n in range(self.smearing.most or 1):
            target = other if source is not other else more
            self.smearing.iteration(n)(source, target)
            source = target
        return source


PRECISION = "double"
"""Precision of sources and solutions."""


def _phase(angle: float) -> complex:
    """Return exp(i pi angle), exactly for whole angles."""
    return (-1.0) ** int(angle) + 0j if angle == int(angle) else cmath.exp(1j * math.pi * angle)


def _listed(numbers: Sequence[float]) -> str:
    return ",".join(f"{one:g}" for one in numbers)


def propagator(
    field: Field, kappa: float, source: str = defaults.SOURCE, mu: float = 0.0, **options: Any
) -> NDArray[np.complex128]:
    """Return a quark propagator, the solution of the Dirac equation for all spins and colours.

    Parameters
    ----------
    field : Field
        The links.
    kappa : float
        Hopping parameter.
    source : str
        The source as on the command line, such as ``point:0,0,0,0`` or ``wall:0``.
    mu : float
        Twisted mass.
    **options : object
        Further options of ``gauge-mc measure mesons``, such as `csw`, `boundary`,
        `smear_sink`, `solver`, `tolerance` or the folder `propagators`.

    Returns
    -------
    ndarray, shape (T, Z, Y, X, 4, N, 4, N), complex128
        ``S[t, z, y, x, spin, colour, source spin, source colour]``: the elements of M^-1 times the
        source, with gamma matrices in the DeGrand-Rossi basis.

    Raises
    ------
    UsageError
        If an option is unknown or its value is invalid.
    GaugeError
        If the residual cannot be reached.
    """
    given = {
        **options,
        KAPPA.name: repr(float(kappa)),
        MUS.name: repr(float(mu)),
        SOURCE.name: (source,),
    }
    quarks = Quarks.of_options(field.lattice, "propagator", given)
    ((_, found),) = quarks.propagators(field, [])
    (only,) = found.values()
    return only.to_numpy()
