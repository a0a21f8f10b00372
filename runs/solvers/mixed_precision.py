"""Iterations of mixed-precision solvers, as in arXiv:0911.3191 (tables 4 and 5, figure 6).

``python runs/solvers/mixed_precision.py [FILE] [--kappa K,K...] [--tolerance E,E...]`` solves
M x = b for a point source on the links of a file, or on those of ``--lattice`` and ``--beta`` after
``--sweeps`` of the heatbath, and prints two tables.

The first has the iterations for each kappa, precision of true residuals (outer), precision of the
iterations (inner), reals per link, method and reduction: delta of reliable updates, epsilon_in of
defect correction. The first rows of each kappa are solutions in double precision alone. The
tolerance is for the true residual of the even-odd preconditioned system, in the outer precision and
divided by the norm of the right-hand side. ``no`` stands where it is not reached, as below the
rounding errors of an outer residual in single precision.

The second has, for the largest kappa and the smallest reduction, the fraction of the complex
components of the solution on the even sites whose relative deviation from those of a solution to
`EXACT` in double precision is above epsilon.
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from links import add_options, links_of
from numpy.typing import NDArray

from gauge_mc import Wilson, measure
from gauge_mc.errors import GaugeError
from gauge_mc.extensions.quarks.hopping import System
from gauge_mc.extensions.quarks.operators import DiracOperator
from gauge_mc.extensions.quarks.solvers import (
    DEFECT,
    METHODS,
    SOLVERS,
    SolverParameters,
    SolverProgress,
    StagnationError,
)
from gauge_mc.extensions.quarks.solvers.iterations import Residual
from gauge_mc.extensions.quarks.sources import parse_source
from gauge_mc.extensions.quarks.vectors import SPINS, SpinorField
from gauge_mc.quoting import listed, number

EXACT = 1e-14
"""Tolerance of the solution with which components are compared."""

DEVIATIONS = tuple(10.0**-n for n in range(1, 11))
"""The epsilon of the second table."""


@dataclass(frozen=True)
class Precisions:
    """How precisely a solution is computed."""

    outer: str
    """Precision of true residuals."""
    inner: str
    """Precision of the iterations."""
    reals: int
    """Reals per link in the iterations."""
    method: str
    """A key of `METHODS`."""
    reduction: float
    """Factor by which the iterated residual falls before the true one is computed."""

    def __str__(self) -> str:
        words = self.outer, self.inner, self.reals, self.method, f"{self.reduction:g}"
        return ", ".join(map(str, words))


@dataclass(frozen=True)
class Found:
    """A solution on the even sites."""

    x: NDArray[np.complex128]
    """The solution."""
    iterations: int
    """Number of iterations."""
    updates: int
    """Number of true residuals."""


def solved(
    operator: DiracOperator,
    solver: str,
    precisions: Precisions,
    tolerance: float,
    limit: int,
) -> Found | None:
    """Return the solution for a point source at the origin, or None if it is not reached."""
    field, kind = operator.field, SOLVERS[solver]
    columns = SpinorField.empty(field, "double", SPINS * field.group.colours)
    parse_source("point", field.lattice).fill(columns, field)
    source = SpinorField.empty(field, precisions.outer)
    source.copy(columns)
    system = System(operator, source, kind.uses_adjoint)
    outer = Residual(system.reduced, system.preconditioned)
    progress = SolverProgress.begin(1)
    how = precisions.method, precisions.inner, precisions.reals, precisions.reduction
    request = SolverParameters(tolerance, limit, *how)
    reduced = system.reduced_operator(precisions.inner, precisions.reals)
    try:
        kind(outer, reduced, request).improve(tolerance * outer.first, progress)
    except (StagnationError, GaugeError):
        return None
    return Found(outer.y.to_numpy(), int(progress.iterations[0]), progress.updates)


def all_precisions(reals: tuple[int, ...], reductions: tuple[float, ...]) -> Iterator[Precisions]:
    """Yield the rows of the tables."""
    for one in reals:
        for outer, inner in (("double", "single"), ("double", "half"), ("single", "half")):
            for method, reduction in product(METHODS, reductions):
                yield Precisions(outer, inner, one, method, reduction)


def fractions(x: NDArray[np.complex128], exact: NDArray[np.complex128]) -> str:
    """Return the fractions of components with larger deviations than each of `DEVIATIONS`."""
    some = exact != 0
    deviations = np.abs(x - exact)[some] / np.abs(exact[some])
    return ", ".join(f"{(deviations > one).mean():.4g}" for one in DEVIATIONS)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_options(parser)
    parser.add_argument("--kappa", default="0.145,0.150,0.1530")
    parser.add_argument("--csw", type=float, default=0.0)
    parser.add_argument("--solver", default="bicgstab", choices=tuple(SOLVERS))
    parser.add_argument("--tolerance", default="1e-5,1e-10")
    parser.add_argument("--reductions", default="0.1,0.01,0.001")
    parser.add_argument("--reals", default="8,12")
    parser.add_argument("--limit", type=int, default=5000)
    given = parser.parse_args()
    kappas, tolerances, reductions = (
        tuple(sorted(listed(text, number)))
        for text in (given.kappa, given.tolerance, given.reductions)
    )
    reals = tuple(int(one) for one in listed(given.reals, number))
    field = links_of(given)
    rows = [*all_precisions(reals, reductions[::-1])]
    alone = Precisions("double", "double", max(reals), DEFECT, min(EXACT, tolerances[0]) / 10)
    (plaquette,) = measure(field, "plaquette")["plaquette"]
    print(f"# {field.lattice}, plaquette {plaquette:.6f}, csw {given.csw:g}, {given.solver}")
    heads = (f"iterations to {one:g}, true residuals" for one in tolerances)
    print("# kappa, outer, inner, reals, method, reduction,", ", ".join(heads))
    found: dict[Precisions, list[Found | None]] = {}
    for kappa in kappas:
        operator = Wilson(field, kappa, given.csw)
        for one in (alone, *rows):
            how = operator, given.solver, one
            found[one] = [solved(*how, tolerance, given.limit) for tolerance in tolerances]
            said = (f"{x.iterations}, {x.updates}" if x else "no, no" for x in found[one])
            print(f"{kappa:g}, {one},", ", ".join(said))
            sys.stdout.flush()
    exact = solved(operator, given.solver, alone, EXACT, given.limit)
    if exact is None:
        sys.exit(f"There is no solution with a residual of {EXACT:g} to compare with.")
    print(f"# kappa {kappas[-1]:g}: fraction of components that deviate by more than epsilon")
    named = ", ".join(f"{one:g}" for one in DEVIATIONS)
    print(f"# outer, inner, reals, method, reduction, tolerance, {named}")
    for one in rows:
        for tolerance, x in zip(tolerances, found[one], strict=True):
            if x and one.reduction == reductions[0]:
                print(f"{one}, {tolerance:g}, {fractions(x.x, exact.x)}")


if __name__ == "__main__":
    main()
