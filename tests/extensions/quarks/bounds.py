"""Bounds that options of quarks declare; see ``tests/test_declared_bounds.py``."""

from collections.abc import Callable
from typing import Any

from gauge_mc.domain.lattice import Lattice
from gauge_mc.extensions.quarks.diagonal import LARGEST, TERMS
from gauge_mc.extensions.quarks.operators import OPERATORS
from gauge_mc.extensions.quarks.solvers import REDUCTION, SolverParameters
from gauge_mc.extensions.quarks.spectroscopy.quarks import ITERATION_LIMIT, TOLERANCE
from gauge_mc.fields.field import Field

COMPANIONS = {("domain-wall", "c"): {"b": LARGEST}}

ELSEWHERE = {
    ("domain-wall", "b", 0): "b is 0 and c is 0; give b above 0",
    ("SolverParameters", "tolerance", 1): "from 2.2e-16 to below 1",
}

COMPARED = {"clover-term", "domain-wall", "overlap", "measure mesons", "SolverParameters"}
"""Owners of options with bounds."""


def owners():
    """Yield things with options: their names, these, what makes them, and what accepts values."""
    for name, kind in TERMS.items():
        yield name, kind.parameters, _term(kind), _term(kind)
    for name, kind in OPERATORS.items():
        yield name, kind.parameters, _operator(kind), kind.check_parameters
    solver = (TOLERANCE, ITERATION_LIMIT, REDUCTION)
    yield "SolverParameters", solver, _solver, _solver


def _term(kind: Any) -> Callable[..., object]:
    return lambda **values: kind(0.1, **values)


def _operator(kind: Any) -> Callable[..., object]:
    """Return what makes an operator, which refuses values before it looks at the links."""
    needed = {one.name: 0.0 for one in kind.parameters if one.usual is None and one.kind is float}

    def make(**values: Any) -> object:
        links = Field.cold(Lattice(4, 4, 4, 4), "su3", precision="double")
        return kind(links, 0.1, **{**needed, **values})

    return make


def _solver(tolerance: float = 0.1, limit: int = 1, reduction: float | None = None) -> object:
    return SolverParameters(tolerance, limit, reduction=reduction)
