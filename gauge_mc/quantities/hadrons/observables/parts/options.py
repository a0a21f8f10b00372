"""Options of all measurements with quarks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import product
from typing import Any

from gauge_mc import defaults
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import UsageError
from gauge_mc.numbers import number
from gauge_mc.options import Option, merged
from gauge_mc.quantities.hadrons.observables.parts.quark_masses import EXAMPLE, QuarkMasses
from gauge_mc.quarks.diagonal import LARGEST, MU, TERMS
from gauge_mc.quarks.hadrons.contractions import Momentum
from gauge_mc.quarks.matrices.deflation import DEFLATE
from gauge_mc.quarks.modes.mode_files import STORED_MODES
from gauge_mc.quarks.operators import hopping_operators
from gauge_mc.quarks.overlap.solver import TOGETHER as OVERLAP_TOGETHER
from gauge_mc.quarks.solvers import (
    ITERATIONS,
    LEAST_TOLERANCE,
    METHODS,
    REDUCTION,
    RELIABLE,
    SOLVERS,
)
from gauge_mc.quarks.sources import SOURCES
from gauge_mc.quarks.vectors.angles import BOUNDARY, IMAGINARY_MU
from gauge_mc.quarks.vectors.storage import STORAGES

KAPPA = Option(
    "kappa",
    str,
    "Hopping parameters, such as 0.1530,0.1550.",
    "those of the run",
    metavar="K[,K...]",
    least=1 / LARGEST,
    most=LARGEST,
    each=float,
)

QUARK = Option(
    "quark",
    str,
    "Instead of kappa: an operator whose quarks have a mass, its parameters and the masses, such "
    f"as {EXAMPLE}.",
    metavar="OPERATOR:PARAMETERS",
    items=QuarkMasses,
)

MUS = Option(
    MU.name,
    str,
    "Twisted masses, in lattice units, each with each kappa.",
    MU.default,
    "M[,M...]",
    least=-LARGEST,
    most=LARGEST,
    each=float,
)

SOURCE = Option(
    "source",
    str,
    "Source: "
    + ", or ".join(f"{name}:{one.parameters} for {one.summary}" for name, one in SOURCES.items())
    + ". Several are measured one after the other.",
    f"{defaults.SOURCE} at the origin",
    "NAME:PARAMETERS",
    choices=tuple(SOURCES),
    repeated=True,
)

SMEAR_SINK = Option("smear_sink", bool, "Smear the sink in the same way as the source.")

MOST_TOGETHER = 1000
"""Largest number of right-hand sides together, to catch typing errors."""

MOST_MOMENTUM = 100
"""Largest squared momentum, to catch typing errors."""

MOMENTA = Option(
    "p2_max",
    int,
    "Largest n² of the momenta 2πn/L, with n for x, y and z.",
    "0",
    least=0,
    most=MOST_MOMENTUM,
)

SOLVER = Option(
    "solver",
    str,
    "Solver of the Dirac equation.",
    f"{defaults.SOLVER}, or {defaults.WALL_SOLVER} with --quark or --deflate",
    choices=tuple(SOLVERS),
)

INNER = Option(
    "inner", str, "Precision of the solver's iterations.", defaults.INNER, choices=tuple(STORAGES)
)

METHOD = Option(
    "method", str, "How lower precision is combined with double.", RELIABLE, choices=tuple(METHODS)
)

LINKS = Option("links", int, "Stored reals per link: 8, 12 or 18 for SU(3).", "12, or 4 for SU(2)")

TOLERANCE = Option(
    "tolerance",
    float,
    "Largest norm of the true residual relative to the source.",
    f"{defaults.TOLERANCE:g}",
    least=LEAST_TOLERANCE,
    most=1,
)

ITERATION_LIMIT = Option("limit", int, "Largest number of iterations.", f"{ITERATIONS}", least=1)

TOGETHER = Option(
    "together",
    int,
    "Spins and colours that are solved together for quarks with a mass, whose memory is as many "
    "times larger.",
    f"1 for domain walls, {OVERLAP_TOGETHER} for overlap quarks",
    least=1,
    most=MOST_TOGETHER,
)

PROPAGATORS = Option(
    "propagators",
    str,
    "Folder of propagators, before the sink is smeared: those that it has are read, and the others "
    "are written there.",
    metavar="FOLDER",
    folder=True,
)


def operator_owners() -> list[tuple[str, tuple[Option, ...]]]:
    """Return all Dirac operators and their terms, with their parameters apart from mu.

    They are named as in messages.
    """
    operators = hopping_operators()
    return [
        (f"the {what} {name}", tuple(p for p in one.parameters if p.name != MU.name))
        for what, kinds in (("Dirac operator", operators), ("term of Dirac operators", TERMS))
        for name, one in kinds.items()
    ]


def quark_owners() -> list[tuple[str, tuple[Option, ...]]]:
    """Return what declares options of measurements with quarks, with the options of each."""
    before = (KAPPA, QUARK, MUS)
    after = (BOUNDARY, IMAGINARY_MU, SOURCE, SMEAR_SINK, MOMENTA)
    solving = (SOLVER, INNER, METHOD, REDUCTION, LINKS, TOLERANCE, ITERATION_LIMIT, TOGETHER)
    hadrons, kept = "all hadrons", (DEFLATE, STORED_MODES, PROPAGATORS)
    return [(hadrons, before), *operator_owners(), (hadrons, (*after, *solving, *kept))]


def quark_options() -> tuple[Option, ...]:
    """Return the options of all measurements with quarks."""
    return merged(quark_owners())


def numbers_of(given: Mapping[str, Any], option: Option) -> tuple[float, ...]:
    """Return the different numbers that an option gives, ascending; none if it is not given.

    Raises
    ------
    UsageError
        If something is not a number, or is outside of the bounds of the option.
    """
    return (
        tuple(sorted({*option.numbers(given[option.name], number)})) if option.name in given else ()
    )


def momenta_up_to(square: int, lattice: Lattice) -> tuple[Momentum, ...]:
    """Return all momenta with at most this square, the smaller ones first.

    Raises
    ------
    UsageError
        If one of their components is above half the lattice, where it is the same as a smaller one.
    """
    largest = math.isqrt(square)
    half = min(lattice.extents[:3]) // 2
    if largest > half:
        raise UsageError(
            f"{MOMENTA.flag} is {square}, but n and n - L are the same momentum on {lattice}; give "
            f"at most {(half + 1) ** 2 - 1}."
        )
    found = product(range(-largest, largest + 1), repeat=3)
    inside = [(x, y, z) for x, y, z in found if x * x + y * y + z * z <= square]
    return tuple(sorted(inside, key=lambda p: (sum(n * n for n in p), p)))
