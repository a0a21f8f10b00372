"""Terms of the part of Dirac operators that is diagonal in the sites.

This part is A = H + i m gamma_5. Each term is a subclass of `DiagonalTerm` that is registered in
`TERMS`. It adds to the number m, or it adds a hermitian matrix per site to H, which is 1 without
terms; that has a C++ header in ``cuda_src/dirac``. An operator is composed of any terms. What it
costs to apply does not depend on their number, because the sum of the matrices is stored.
"""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, TypeVar, cast

from gauge_mc.devices.kernels import Choice, Kernel
from gauge_mc.domain.halo import HaloExchange, SliceRange, transfers_of
from gauge_mc.errors import UsageError
from gauge_mc.extensions.quarks.vectors import STORAGES, StoredSlab, empty_slabs
from gauge_mc.fields.field import AlgebraField, Field
from gauge_mc.options import Option, check_declared
from gauge_mc.registry import Registry, in_words

LARGEST = 1e6
"""Largest size of the parameters of operators, whose products single precision can represent."""

MU = Option(
    "mu",
    float,
    "Twisted mass, in lattice units.",
    default="0",
    least=-LARGEST,
    most=LARGEST,
    symbol="μ",
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


def finite(name: str, value: float) -> float:
    """Return a parameter."""
    if not math.isfinite(value):
        raise UsageError(f"{name} is {value}; give a number.")
    return float(value)


def check_term(kind: type[DiagonalTerm]) -> None:
    """Refuse a class of terms that does not take the parameters that it declares."""
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


T = TypeVar("T")


def shared_on(field: Field, kind: Callable[[Field], T]) -> T:
    """Return an object of a kind that all operators on a field of links share."""
    if (kind,) not in field.prepared:
        field.prepared[kind,] = kind(field)
    return cast(T, field.prepared[kind,])


CLOVER_PLANES = Kernel("clover_planes")
CLOVER_FORCE = Kernel("clover_force")

EXACT = STORAGES["double"]
"""Storage of the derivative."""

PLANES = 6
"""Number of planes of a site."""


class CloverForce:
    """Memory for the derivative of an action with the clovers of all sites, and their force.

    Parameters
    ----------
    field : Field
        The links, in double precision.
    """

    def __init__(self, field: Field) -> None:
        self._field = field
        layouts, reals = EXACT.layouts(field), (field.group.colours**2 + 1) // 2 * 2
        self._planes = empty_slabs(field, layouts, PLANES * EXACT.bytes(reals))
        self._halo = None
        if len(layouts) > 1:
            self._halo = HaloExchange(field.devices, self._planes, transfers_of(layouts, 1))

    def add(self, force: AlgebraField, derivative: Sequence[StoredSlab], factor: float) -> None:
        """Add the force of an action, given its derivative with the clover term."""
        for slab, blocks in zip(self._planes, derivative, strict=True):
            slab.launch(
                CLOVER_PLANES,
                slab.whole(),
                EXACT.choice,
                derivative=blocks.buffer.address,
                planes=slab.buffer.address,
                factor=factor,
            )
        if self._halo:
            self._halo.post(SliceRange(0, self._planes[0].slice_bytes))
            self._halo.wait()
        for slab, links, algebra in zip(self._planes, self._field.slabs, force.slabs, strict=True):
            slab.launch(
                CLOVER_FORCE,
                slab.whole(),
                EXACT.choice,
                links=links.buffer.address,
                planes=slab.buffer.address,
                force=algebra.buffer.address,
            )


CSW = Option(
    "csw", float, "Coefficient c_SW of the clover term.", default="0", least=-LARGEST, most=LARGEST
)


@TERMS.register
class Clover(DiagonalTerm):
    """(i/2) kappa c_SW sum over mu, nu of sigma_mu_nu F_mu_nu.

    It removes the errors of order a at tree level for c_SW = 1; see ``cuda_src/dirac/clover.h``.

    Parameters
    ----------
    kappa : float
        The hopping parameter.
    csw : float
        The coefficient c_SW.
    """

    name = "clover-term"
    parameters: ClassVar[tuple[Option, ...]] = (CSW,)
    matrix = Choice.of("term", "Clover", "dirac/clover.h", "Clover")

    def __init__(self, kappa: float, csw: float) -> None:
        check_declared(self.parameters, {CSW.name: csw}, "the clover term")
        self.coefficients = {"factor": kappa * csw}

    def add_force(
        self, force: AlgebraField, links: Field, derivative: Sequence[StoredSlab]
    ) -> None:
        """Add the force of an action; see `DiagonalTerm.add_force`."""
        shared_on(links, CloverForce).add(force, derivative, self.coefficients["factor"])


@TERMS.register
class Twist(DiagonalTerm):
    """2 i kappa mu gamma_5.

    Parameters
    ----------
    kappa : float
        The hopping parameter.
    mu : float
        The twisted mass, with the sign of the up quark.
    """

    name = "twist"
    parameters: ClassVar[tuple[Option, ...]] = (MU,)

    def __init__(self, kappa: float, mu: float) -> None:
        check_declared(self.parameters, {MU.name: mu}, "the twisted mass")
        self.mass = 2 * kappa * mu
