"""Iterations of conjugate gradients for light quarks, with and without low modes.

``python runs/solvers/deflation.py [FILE] [--kappa K,K...] [--modes N,N...] [--inner PRECISION]``
solves M x = b for all spins and colours of a point source, on the links of a file, or on those of
``--lattice`` and ``--beta`` after ``--sweeps`` of the heatbath. It prints a row for each kappa and
number of modes: the lowest and the highest eigenvalue among them, the seconds of their search, the
iterations of the solution, its true residual and its seconds.
"""

import argparse
import sys
import time

from links import add_options, links_of

from gauge_mc import Wilson, measure
from gauge_mc.extensions.quarks.modes.mode_files import reduced_modes
from gauge_mc.extensions.quarks.operators import DiracOperator
from gauge_mc.extensions.quarks.solvers import SolverParameters, solve
from gauge_mc.extensions.quarks.sources import parse_source
from gauge_mc.extensions.quarks.vectors import SPINS, STORAGES, SpinorField
from gauge_mc.quoting import listed, number, whole_number


def row(operator: DiracOperator, source: SpinorField, modes: int, request: SolverParameters) -> str:
    """Return the numbers of a solution with some low modes, as text."""
    began, low = time.perf_counter(), None
    if modes:
        low = reduced_modes(operator, modes)
    ends = f"{low.values[0]:.4g}, {low.values[-1]:.4g}" if low else "-, -"
    searched = time.perf_counter() - began
    found = solve(operator, source, "cg", request, low)
    numbers = f"{found.iterations}, {found.residual.max():.2g}, {found.seconds:.1f}"
    return f"{modes}, {ends}, {searched:.1f}, {numbers}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_options(parser)
    parser.add_argument("--kappa", default="0.150,0.1535,0.1550,0.1560")
    parser.add_argument("--csw", type=float, default=0.0)
    parser.add_argument("--modes", default="0,8,16,32")
    parser.add_argument("--inner", default="single", choices=tuple(STORAGES))
    parser.add_argument("--tolerance", type=float, default=1e-10)
    given = parser.parse_args()
    field = links_of(given)
    source = SpinorField.empty(field, "double", SPINS * field.group.colours)
    parse_source("point", field.lattice).fill(source, field)
    request = SolverParameters(given.tolerance, inner=given.inner)
    (plaquette,) = measure(field, "plaquette")["plaquette"]
    print(f"# {field.lattice}, plaquette {plaquette:.6f}, csw {given.csw:g}, inner {given.inner}")
    print("# kappa, modes, lowest, highest, seconds, iterations, residual, seconds of the solution")
    for kappa in listed(given.kappa, number):
        operator = Wilson(field, kappa, given.csw)
        for modes in listed(given.modes, whole_number):
            print(f"{kappa:g},", row(operator, source, modes, request))
            sys.stdout.flush()


if __name__ == "__main__":
    main()
