"""Terms of the part of Dirac operators that is diagonal in the sites.

This part is A = H + i m gamma_5. Each term has a module of its name, with a subclass of
`DiagonalTerm` that is registered in `TERMS`. It adds to the number m, or it adds a hermitian matrix
per site to H, which is 1 without terms; that has a C++ header in ``cuda_src/dirac``. An operator is
composed of any terms. What it costs to apply does not depend on their number, because the sum of
the matrices is stored.
"""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

from gauge_mc.devices.kernels import Choice
from gauge_mc.errors import UsageError
from gauge_mc.fields.algebra_field import AlgebraField
from gauge_mc.fields.field import Field
from gauge_mc.options import Option
from gauge_mc.quarks.vectors.storage import StoredSlab
from gauge_mc.registry import Registry, in_words

LARGEST = 1e6
"""Largest size of the parameters of operators, whose products single precision can represent."""

MU = Option(
    "mu", float, "Twisted mass, in lattice units.", "0", least=-LARGEST, most=LARGEST, symbol="μ"
)


class DiagonalTerm(ABC):
    """A term of the part of a Dirac operator that is diagonal in the sites.

    A subclass is made with kappa and with its parameters by name.
    """

    name: ClassVar[str]
    """Name of the term."""
    parameters: ClassVar[tuple[Option, ...]]
    """The parameters apart from kappa; the term is zero if they are."""
    matrix: ClassVar[Choice | None] = None
    """The C++ class that adds the term to H; see ``cuda_src/dirac/term.h``. None for a term that
    adds only to m.
    """
    mass: float = 0.0
    """The number that the term adds to m."""
    coefficients: Mapping[str, float] = {}
    """The members of the structure ``Coefficients`` of the C++ class."""

    @abstractmethod
    def __init__(self, kappa: float, **parameters: float) -> None:
        """Set `mass` or `coefficients`."""

    def add_force(
        self, force: AlgebraField, links: Field, derivative: Sequence[StoredSlab]
    ) -> None:
        """Add the force of an action, given its derivative with H.

        A term of H that depends on the links overrides this method; terms of m have no force.

        Parameters
        ----------
        force : AlgebraField
            The force F is added to it; see `gauge_mc.updates.monomials.Monomial.kick`.
        links : Field
            The links, in double precision, with their halos.
        derivative : sequence of StoredSlab
            Hermitian blocks L of all sites, with dS = Re Tr (L dH).

        Raises
        ------
        UsageError
            If the term is one of H, and its force is not known.
        """
        if self.matrix:
            raise UsageError(
                f"The force of the term {self.name} is not known, so that quarks with it cannot "
                "move links; leave it out."
            )


def finite(what: str, value: float) -> float:
    """Return a parameter.

    Raises
    ------
    UsageError
        If it is not a finite number.
    """
    if not math.isfinite(value):
        raise UsageError(f"{what} is {value}; give a number.")
    return float(value)


def check_term(kind: type[DiagonalTerm]) -> None:
    """Refuse a class of terms that does not take the parameters that it declares.

    Raises
    ------
    ValueError
        If there is a parameter that it does not take, or takes without declaring it.
    """
    names = [option.name for option in kind.parameters]
    try:
        inspect.signature(kind).bind(0.0, **dict.fromkeys(names, 0.0))
    except TypeError as error:
        raise ValueError(
            f"declares the parameters {in_words(names)}, but cannot be made with kappa and these "
            f"({error})"
        ) from error


TERMS: Registry[type[DiagonalTerm]] = Registry(
    "term of Dirac operators", __name__, DiagonalTerm, check_term
)
