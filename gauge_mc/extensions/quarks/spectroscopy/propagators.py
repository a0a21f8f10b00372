"""Propagators of the quarks of a measurement, from a solver or from files."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from gauge_mc import defaults
from gauge_mc.errors import ConvergenceError
from gauge_mc.extensions.quarks.diagonal import MU
from gauge_mc.extensions.quarks.hopping import DEFLATE, Deflation
from gauge_mc.extensions.quarks.modes.mode_files import reduced_modes
from gauge_mc.extensions.quarks.operators import DiracOperator, domain_wall, operator_with
from gauge_mc.extensions.quarks.solvers import ITERATIONS, solve
from gauge_mc.extensions.quarks.solvers.overlap import MassFamily
from gauge_mc.extensions.quarks.sources import SourceVectors
from gauge_mc.extensions.quarks.spectroscopy.contractions import Propagator
from gauge_mc.extensions.quarks.spectroscopy.correlators import Quark, describe_quarks
from gauge_mc.extensions.quarks.spectroscopy.propagator_files import STRICTLY, PropagatorPath
from gauge_mc.extensions.quarks.spectroscopy.quarks import KAPPA, MUS, SOURCE, Quarks
from gauge_mc.extensions.quarks.vectors import Complex, SpinorField
from gauge_mc.extensions.quarks.vectors.transport import in_precision
from gauge_mc.fields.field import Field
from gauge_mc.observables import Record
from gauge_mc.signatures import checks_types

PRECISION = "double"
"""Precision of sources and solutions."""

SILENCE = 10.0
"""Time in seconds that work takes before lines about its progress are printed, and between them."""


class SolveRecords(list[Record]):
    """Records of the table of solutions, together with those of the table of operators.

    Attributes
    ----------
    operators : list of Record
        The record of a field with the properties of the operator of the quarks.
    """

    def __init__(self) -> None:
        super().__init__()
        self.operators: list[Record] = []


def propagators(
    quarks: Quarks, field: Field, solves: SolveRecords
) -> Iterator[tuple[SourceVectors, dict[Quark, Propagator]]]:
    """Yield the propagators of all quarks, for one source after the other.

    Within `DeviceGroup.measuring`, hadrons with the same source share them. Those of several
    sources are not kept, because of the memory that they take.

    Parameters
    ----------
    quarks : Quarks
        The quarks.
    field : Field
        The links.
    solves : SolveRecords
        Records of the secondary tables are appended to it.

    Raises
    ------
    GaugeError
        If a solution cannot be found with the residual that was asked for.
    """
    for source, solution in solutions(quarks, field, solves):
        yield source, {quark: x.propagator for quark, x in solution.items()}


class QuarkSolution(NamedTuple):
    """The propagator of a quark from a source."""

    propagator: Propagator
    """The propagator, with the sink smeared if that was asked for."""
    record: Record
    """The record in `SOLVES`."""
    effective: domain_wall.EffectivePropagator | None = None
    """The midpoint and the currents of domain-wall quarks."""


def solutions(
    quarks: Quarks, field: Field, solves: SolveRecords
) -> Iterator[tuple[SourceVectors, dict[Quark, QuarkSolution]]]:
    """Yield the propagators with what is known besides; see `propagators`."""
    links = _smeared(quarks, field)
    if quarks.family:
        yield from _solutions_of_family(quarks, field, links, solves)
        return
    operators = {quark: _operator(quarks, field, quark) for quark in quarks.kinds}
    low = {quark: cache(partial(_low_modes, quarks, o)) for quark, o in operators.items()}
    try:
        for source in quarks.sources:
            solved = {}
            for quark, operator in operators.items():
                measure = partial(_solve, quarks, quark, operator, source, links, low[quark])
                single = len(quarks.sources) == 1
                key = _own(quarks, quark.m), quark
                once = field.devices.shared.once
                with _naming(quark, quarks.label(source)):
                    solved[quark] = once(field, key, measure) if single else measure()
                solves.append(solved[quark].record)
            yield source, solved
    finally:
        for operator in operators.values():
            operator.release()


def _own(quarks: Quarks, mass: float | None = None) -> Quarks:
    """Return all on which the propagator of one mass depends, or those of all masses."""
    massive = quarks.massive
    if massive and mass is not None:
        massive = massive.with_mass(mass)
    return replace(quarks, kappas=(), massive=massive, mus=(), momenta=())


def _solutions_of_family(
    quarks: Quarks, field: Field, links: Field, solves: SolveRecords
) -> Iterator[tuple[SourceVectors, dict[Quark, QuarkSolution]]]:
    """Yield the propagators of quarks whose masses are solved for together."""
    once = field.devices.shared.once
    massive, phases = quarks.massive, quarks.boundary(field.devices.strict).phases
    assert massive

    def made() -> tuple[MassFamily, Record]:
        lines, began = _ProgressLines("operator"), time.perf_counter()
        operator = massive.made(field, massive.masses, phases)
        assert isinstance(operator, MassFamily)
        record = operator.record()
        lines(f"{operator.name}, prepared in {time.perf_counter() - began:.1f} s")
        return operator, record

    operator, record = once(field, (massive, phases), made)
    solves.operators.append(record)
    for source in quarks.sources:
        measure = partial(_solve_family, quarks, operator, source, links)
        single = len(quarks.sources) == 1
        solved = once(field, _own(quarks), measure) if single else measure()
        solves.extend(x.record for x in solved.values())
        yield source, solved


def _solve_family(
    quarks: Quarks, operator: MassFamily, source: SourceVectors, links: Field
) -> dict[Quark, QuarkSolution]:
    """Return the propagators of all masses from a source."""
    began, label = time.perf_counter(), quarks.label(source)
    vectors = SpinorField.empty(operator.field, PRECISION, source.count(links.group.colours))
    source.fill(vectors, links)
    lines = _ProgressLines(f"{operator.name} quarks, {label}")
    arguments = quarks.request, source.place, quarks.together, lines
    solution = operator.propagators(vectors, *arguments)
    each = (time.perf_counter() - began) / len(solution.propagators)
    solutions = {}
    for n, (quark, propagator) in enumerate(zip(quarks.kinds, solution.propagators, strict=True)):
        if quarks.smear_sink:
            source.smear_sink(propagator.columns, links)
        words = *quark, label, operator.solver, PRECISION, solution.iterations, solution.updates
        numbers = float(solution.iterated[n]), float(solution.residuals[n]), each
        solutions[quark] = QuarkSolution(propagator, (*words, *numbers))
    return solutions


def _solve(
    quarks: Quarks,
    quark: Quark,
    operator: DiracOperator,
    source: SourceVectors,
    links: Field,
    low: Callable[[], Deflation | None],
) -> QuarkSolution:
    vectors = SpinorField.empty(operator.field, PRECISION, source.count(links.group.colours))
    source.fill(vectors, links)
    if isinstance(operator, domain_wall.DomainWall):
        return _solve_walls(quarks, quark, operator, source, vectors, links)
    strict = links.devices.strict
    path = _propagator_path(quarks, quark, source, strict) if quarks.folder else None
    solution = path.read(operator, vectors, quarks.request.tolerance) if path else None
    if not solution:
        solution = solve(operator, vectors, quarks.solver, quarks.request, low())
        if path:
            path.write(vectors, solution.x)
    label = quarks.label(source)
    _say(solution.notes, quark, label)
    words = *quark, label, solution.solver, solution.inner, solution.iterations, solution.updates
    numbers = float(solution.iterated.max()), float(solution.residual.max()), solution.seconds
    if quarks.smear_sink:
        source.smear_sink(solution.x, links)
    propagator = Propagator(solution.x, operator.kappa, operator.boundary, source.place)
    return QuarkSolution(propagator, (*words, *numbers))


def _low_modes(quarks: Quarks, operator: DiracOperator) -> Deflation | None:
    """Return the low modes with which solutions are deflated, if there are any."""
    if not quarks.deflate:
        return None
    lines, began = _ProgressLines("low modes"), time.perf_counter()
    low_modes = reduced_modes(operator, quarks.deflate, quarks.stored_modes or None)
    lines(f"{quarks.deflate} at kappa = {operator.kappa:g}, in {time.perf_counter() - began:.1f} s")
    return low_modes


def _solve_walls(
    quarks: Quarks,
    quark: Quark,
    operator: domain_wall.DomainWall,
    source: SourceVectors,
    vectors: SpinorField,
    links: Field,
) -> QuarkSolution:
    """Return the effective propagator of a domain-wall quark."""
    began, label = time.perf_counter(), quarks.label(source)
    arguments = quarks.solver, quarks.request, source.place, quarks.together
    x = domain_wall.effective_propagator(operator, vectors, *arguments)
    _say(x.notes, quark, label)
    seconds = time.perf_counter() - began
    if quarks.smear_sink:
        source.smear_sink(x.quark.columns, links)
    words = *quark, label, x.solver, x.inner, x.iterations, x.updates
    return QuarkSolution(x.quark, (*words, x.iterated, x.residual, seconds), x)


@contextmanager
def _naming(quark: Quark, label: str) -> Iterator[None]:
    """Name the quark and the source in the error of a solution that is not found."""
    try:
        yield
    except ConvergenceError as error:
        raise ConvergenceError(f"{describe_quarks(quark, quark)}, {label}: {error}") from error


def _say(notes: Sequence[str], quark: Quark, label: str) -> None:
    """Say on standard error what the user should know about a solution."""
    for note in notes:
        print(f"gauge-mc: {describe_quarks(quark, quark)}, {label}: {note}", file=sys.stderr)


class _ProgressLines:
    """Lines on standard error about work that takes long, not more often than `SILENCE`.

    Parameters
    ----------
    subject : str
        The work.
    """

    def __init__(self, subject: str) -> None:
        self._what, self._said = subject, time.monotonic()

    def __call__(self, line: str) -> None:
        now = time.monotonic()
        if now - self._said >= SILENCE:
            self._said = now
            print(f"gauge-mc: {self._what}: {line}", file=sys.stderr)


def _propagator_path(
    quarks: Quarks, quark: Quark, source: SourceVectors, strict: bool
) -> PropagatorPath:
    """Return the path of a propagator, which depends on all metadata but the tolerance.

    The path of a strict propagator depends on all that may change a bit of the solution.
    """
    mass = {MUS.name: repr(quark.mu)} if quark.mu else {}
    labels = {"kappa": repr(quark.kappa), **mass, "sources": source.label}
    if strict:
        request = replace(quarks.request, iterations=ITERATIONS)  # which change no solution
        # Versions without this option named the same files.
        reduction = (request.reduction,) if request.reduction else ()
        labels[STRICTLY] = repr(
            (quarks.parameters, quarks.angles, quarks.solver, request, *reduction)
        )
    left_out = ("tolerance", MUS.name, DEFLATE.name)
    metadata = {name: value for name, value in quarks.header.items() if name not in left_out}
    return PropagatorPath(Path(quarks.folder), {**metadata, **labels})


def _operator(quarks: Quarks, field: Field, quark: Quark) -> DiracOperator:
    phases = quarks.boundary(field.devices.strict).phases
    if quarks.massive:
        operator = quarks.massive.made(field, quark.m, phases)
        assert isinstance(operator, DiracOperator)
        return operator
    parameters = {MU.name: quark.mu, **dict(quarks.parameters)}
    return operator_with(field, quark.kappa, phases, **parameters)


def _smeared(quarks: Quarks, field: Field) -> Field:
    """Return the links with which sources are smeared, in double precision."""
    if not any(source.smears for source in quarks.sources):
        return field
    field = in_precision(field, PRECISION)
    if quarks.smearing is None:
        return field
    kind = field.lattice, field.group.name, PRECISION, field.devices
    buffer, more = Field.empty(*kind), Field.empty(*kind)
    source = field
    for n in range(quarks.smearing.most or 1):
        target = buffer if source is not buffer else more
        quarks.smearing.iteration(n)(source, target)
        source = target
    return source


@checks_types
def propagator(
    field: Field, kappa: float, source: str = defaults.SOURCE, mu: float = 0.0, **options: Any
) -> Complex:
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
    numbers = {KAPPA.name: repr(float(kappa)), MUS.name: repr(float(mu))}
    settings = {**options, **numbers, SOURCE.name: (source,)}
    quarks = Quarks.of_options(field.lattice, "propagator", settings)
    ((_, by_quark),) = propagators(quarks, field, SolveRecords())
    (only,) = by_quark.values()
    return only.to_numpy()
