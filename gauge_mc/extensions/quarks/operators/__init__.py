"""Dirac operators.

Each operator is a subclass of `QuarkOperator` that is registered in `OPERATORS`. Most of them are
subclasses of `DiracOperator`, which say of which diagonal terms
(`gauge_mc.extensions.quarks.diagonal`) they are composed.
"""

from __future__ import annotations

import ctypes
import inspect
import math
from collections.abc import Mapping, Sequence, Set
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gauge_mc import defaults
from gauge_mc.devices.kernels import Choice
from gauge_mc.errors import UsageError
from gauge_mc.extensions.quarks import hopping
from gauge_mc.extensions.quarks.diagonal import TERMS, Clover, DiagonalTerm, Twist, shared_on
from gauge_mc.extensions.quarks.dynamical.normal_systems import DiagonalDerivative, HoppingForce
from gauge_mc.extensions.quarks.hopping import PreconditionedOperator
from gauge_mc.extensions.quarks.solvers import SolverParameters, solve
from gauge_mc.extensions.quarks.vectors import (
    Complex,
    SpinorField,
    StoredSlab,
    in_units,
    storage_of,
)
from gauge_mc.extensions.quarks.vectors.transport import ANTIPERIODIC, Boundary, Phases, reals_of
from gauge_mc.fields.field import AlgebraField, Field
from gauge_mc.options import Option, check_declared, merged
from gauge_mc.registry import Registry, in_words
from gauge_mc.signatures import checks_types

HOPPING_PARAMETER, QUARK_MASS = "hopping parameter", "mass"
"""The numbers on which the mass of a quark depends, by operator."""

CRITICAL_KAPPA = 0.25
"""Hopping parameter at which Wilson quarks are massless in the limit of strong coupling. It is
smaller for all other couplings."""

INVERSE = "S = 2 kappa M^-1"
"""The normalisation of propagators of most operators."""

MOST_FORCES = 64
"""Number of prepared forces that an operator keeps; monomials need one each."""


class QuarkOperator:
    """A Dirac operator of quarks, as measurements see it.

    Its instances are made with a field of links, the number `quark`, the boundary phases and the
    `parameters`.
    """

    name: ClassVar[str]
    parameters: ClassVar[tuple[Option, ...]] = ()
    """The parameters apart from the number `quark`; most of them are 0 if there is no such term."""
    quark: ClassVar[str] = HOPPING_PARAMETER
    """The number that makes the quark lighter or heavier, the argument after the field."""
    propagator: ClassVar[str] = INVERSE
    """The normalisation of propagators in correlators, for headers of tables."""
    qcdml: ClassVar[Mapping[str, Mapping[str, str]]] = {}
    """Elements of ILDG's QCDml for dynamical quarks, as those of `gauge_mc.actions.Action`."""
    warm_up: ClassVar[Mapping[str, object]] = {}
    """Values of parameters with which a measurement that only compiles the kernels is short."""

    field: Field
    """The links."""
    boundary: Boundary
    """The phases across the boundary."""

    @classmethod
    def check_parameters(cls, **parameters: Any) -> None:
        """Refuse parameters that do not fit, before there are links.

        A subclass whose parameters depend on each other extends this method.
        """
        check_declared(cls.parameters, parameters, f"the operator {cls.name}")

    @classmethod
    def check_masses(cls, masses: Sequence[float], **parameters: Any) -> None:
        """Refuse masses that do not fit to the parameters, before there are links."""

    @classmethod
    def hopping_parameter(cls, **parameters: Any) -> float:
        """Return kappa of an operator whose quarks have a mass, given its parameters."""
        raise NotImplementedError

    @classmethod
    def rehearsed(cls, **parameters: Any) -> dict[str, Any]:
        """Return parameters that need as much memory, and no measurement on the links.

        Rehearsals use them, in which there are no links; see `gauge_mc.devices.rehearsal`.
        """
        return parameters

    @classmethod
    def other_masses(cls, masses: Sequence[float], **parameters: Any) -> dict[str, str]:
        """Return masses in other normalisations, by their formulas, for headers of tables."""
        return {}


def check_kappa(kappa: float) -> None:
    """Refuse a hopping parameter beyond its critical value at every coupling."""
    if kappa >= CRITICAL_KAPPA:
        raise UsageError(
            f"--kappa is {kappa:g}, which is beyond its critical value at every coupling, also "
            f"with a twisted mass; choose one below {CRITICAL_KAPPA:g}."
        )


class DiracOperator(QuarkOperator, hopping.HoppingOperator):
    """A Dirac operator M = A - kappa D on a field, with a part A that is diagonal in the sites.

    D psi(x) = sum over mu of (1 - gamma_mu) U_mu(x) psi(x + mu)
    + (1 + gamma_mu) U_mu(x - mu)^dagger psi(x - mu), with gamma matrices in the DeGrand-Rossi
    basis (``cuda_src/dirac/gamma.h``) and kappa = 1 / (2 m0 + 8).

    Parameters
    ----------
    field : Field
        The links, whose halos must be up to date. Call `refresh` after they have changed.
    kappa : float
        The hopping parameter.
    boundary : complex or sequence of complex
        The phase in psi(x + L_t) = phase psi(x), by default antiperiodic, or four phases in x, y,
        z and t, all of modulus 1.
    *terms : DiagonalTerm
        Terms of A besides 1. A subclass may instead declare a class of its own for all of A as
        `diagonal`, and define the method `terms`.

    Raises
    ------
    UsageError
        If a value is invalid.
    """

    diagonal: Choice = hopping.UNIT
    prepared_kind: ClassVar[type[hopping.PreparedOperator]] = hopping.PreparedOperator
    """How it is applied to spinors in one type of storage."""
    sizes: tuple[float, float] = (1.0, 1.0)
    """An upper bound of the singular values of A, and a lower one, without terms that depend on the
    links."""

    def __init__(
        self, field: Field, kappa: float, boundary: Phases = ANTIPERIODIC, *terms: DiagonalTerm
    ) -> None:
        if not math.isfinite(kappa) or kappa < 0:
            raise UsageError(f"kappa is {kappa:g}; give a number that is not negative.")
        self.field, self.kappa = field, float(kappa)
        self.boundary = Boundary.of(boundary)
        if terms:
            self.diagonal = hopping.form_of(terms)
        self.diagonal_terms = terms
        self.hermitian = hopping.HermitianPart(field, terms)
        self._prepared: dict[tuple[object, ...], hopping.PreparedOperator] = {}
        self._forces: dict[tuple[int, ...], HoppingForce] = {}
        self.refreshed = 0
        """Number of calls of `refresh`, from which one knows whether the links have changed."""

    def terms(self, prepared: hopping.PreparedOperator, slab: int) -> ctypes.Structure:
        """Return the structure ``Terms``; see `HoppingOperator.terms`."""
        if self.diagonal == hopping.UNIT:
            return prepared.made_terms(slab, none=0)
        if self.diagonal == hopping.TWIST:
            return prepared.made_terms(slab, mass=self.hermitian.mass)
        blocks, inverse = (x[slab].buffer.address for x in self.hermitian.stored(prepared.storage))
        mass = self.hermitian.mass
        return prepared.made_terms(slab, blocks=blocks, inverse=inverse, mass=mass)

    def prepared(
        self, precision: str = "double", reals: int | None = None
    ) -> hopping.PreparedOperator:
        """Return the operator for spinors of some precision, with links in some form.

        Parameters
        ----------
        precision : str
            ``double``, ``single`` or ``half``.
        reals : int, optional
            Reals per link: for SU(3) 8, 12 or 18, for SU(2) 4 or 8; by default 12 and 4.

        Raises
        ------
        UsageError
            If the precision or the number of reals is unknown.
        """
        form = reals_of(reals, self.field.group)
        key = (precision, form)
        if key not in self._prepared:
            self._prepared[key] = self.prepared_kind(self, storage_of(precision), form)
        return self._prepared[key]

    def reduced(
        self, with_adjoint: bool, precision: str = "double", reals: int | None = None
    ) -> hopping.PreconditionedOperator:
        """Return the operator on the even sites; see `HoppingOperator.reduced`."""
        return PreconditionedOperator(self.prepared(precision, reals), with_adjoint)

    def refresh(self) -> None:
        """Take over the links of the field, which have changed, wherever they have been used.

        The halos of the field must be up to date. Prepared applications of the operator and what
        solvers hold of it stay valid, and see the new links.
        """
        self.refreshed += 1
        for prepared in self._prepared.values():
            prepared.transport.refresh()
        self.hermitian.refresh()

    def release(self) -> None:
        """Forget what was prepared, so that its memory is free once nobody else uses it.

        An operator and what it has prepared refer to each other, and would else wait for Python's
        search for cycles.
        """
        self._prepared.clear()
        self._forces.clear()

    def add_force(
        self, force: AlgebraField, x: SpinorField, y: SpinorField, weights: Sequence[float]
    ) -> None:
        """Add the force of the action -sum_i weight_i 2 Re X_i^dagger M Y_i at fixed X_i and Y_i.

        Parameters
        ----------
        force : AlgebraField
            The force F is added to it, dP/dt = F for H = -sum of Tr P^2 + S and dU/dt = P U.
        x, y : SpinorField
            The vectors X_i and Y_i on all sites, in double precision, as many of each.
        weights : sequence of float
            The weight of every pair.
        """
        key = id(force), id(x), id(y)  # of objects that the prepared launches keep
        if key not in self._forces:
            if len(self._forces) >= MOST_FORCES:
                self._forces.clear()
            self._forces[key] = HoppingForce(self.prepared(), force, x, y)
        self._forces[key](weights)
        self.add_diagonal_force(force, x, y, weights)

    def add_diagonal_force(
        self, force: AlgebraField, x: SpinorField, y: SpinorField, weights: Sequence[float]
    ) -> None:
        """Add the force of the part A, for operators in which it depends on the links.

        See `add_force`, which has updated the halos of the vectors.

        Raises
        ------
        UsageError
            If a term has no force that is known.
        """
        if self.diagonal == hopping.HERMITIAN:
            derivative = shared_on(self.field, DiagonalDerivative)
            self.add_term_forces(force, derivative.of_pairs(x, y, weights))

    def add_term_forces(self, force: AlgebraField, derivative: Sequence[StoredSlab]) -> None:
        """Add the force of an action, given its derivative with H; see `DiagonalTerm.add_force`."""
        for term in self.diagonal_terms:
            term.add_force(force, self.field, derivative)

    def apply(
        self,
        array: NDArray[np.complexfloating[Any, Any]],
        dagger: bool = False,
        precision: str | None = None,
        reals: int | None = None,
    ) -> Complex:
        """Return M psi, or M^dagger psi.

        Parameters
        ----------
        array : ndarray, shape (T, Z, Y, X, 4, N) or (count, T, Z, Y, X, 4, N)
            ``psi[t, z, y, x, spin, colour]``, or several of them.
        dagger : bool
            Whether to apply the adjoint.
        precision : str, optional
            ``double``, ``single`` or ``half``; by default that of the links.
        reals : int, optional
            See `prepared`.

        Returns
        -------
        ndarray, complex128
            An array of the same shape.

        Raises
        ------
        GaugeError
            If the array has the wrong shape.
        """
        operator = self.prepared(precision or self.field.precision, reals)
        source = SpinorField.from_numpy(self.field, array, operator.storage.name)
        target = source.like()
        operator.apply(target, source, dagger)()
        return target.to_numpy().reshape(np.shape(array))

    def solve(
        self,
        source: NDArray[np.complexfloating[Any, Any]],
        tolerance: float = defaults.TOLERANCE,
        solver: str = defaults.SOLVER,
        **request: Any,
    ) -> Complex:
        """Return the solution x of M x = source.

        Parameters
        ----------
        source : ndarray, shape (T, Z, Y, X, 4, N) or (count, T, Z, Y, X, 4, N)
            ``b[t, z, y, x, spin, colour]``, or several of them, which are solved together.
        tolerance : float
            Largest norm of source - M x, divided by that of the source.
        solver : str
            Name of a solver, such as ``bicgstab``.
        **request : object
            Further attributes of `gauge_mc.extensions.quarks.solvers.SolverParameters`.

        Returns
        -------
        ndarray, complex128
            An array of the same shape. The residual, of the full system and in double precision, is
            at most the tolerance for every vector.

        Raises
        ------
        UsageError
            If a value is invalid.
        GaugeError
            If the tolerance cannot be reached, or the array has the wrong shape.
        """
        field, unit = in_units(self.field, source)
        solution = solve(self, field, solver, SolverParameters(tolerance=tolerance, **request))
        return (solution.x.to_numpy() * unit).reshape(np.shape(source))


@checks_types
def Wilson(
    field: Field, kappa: float, csw: float = 0.0, mu: float = 0.0, boundary: Phases = ANTIPERIODIC
) -> DiracOperator:
    """Return the Wilson operator, with the clover term and a twisted mass unless they are 0.

    M = 1 + (i/2) kappa c_SW sigma F + 2 i kappa mu gamma_5 - kappa D, with kappa = 1 / (2 m0 + 8);
    see `DiracOperator`. To solve M x = b, call the operator's `solve`.

    Parameters
    ----------
    field : Field
        The links; call the operator's `refresh` after they have changed.
    kappa : float
        The hopping parameter.
    csw : float
        Coefficient c_SW of the clover term.
    mu : float
        Twisted mass.
    boundary : complex or sequence of complex
        The phase in psi(x + L_t) = phase psi(x), or four phases in x, y, z and t.

    Raises
    ------
    UsageError
        If a value is invalid.
    """
    return operator_with(field, kappa, boundary, csw=csw, mu=mu)


def operator_with(
    field: Field, kappa: float, boundary: Phases = ANTIPERIODIC, **parameters: float
) -> DiracOperator:
    """Return the operator with the fewest parameters that has all that are not 0.

    If no operator has them, it is composed of the terms that have them.
    """
    names = {name for name, value in parameters.items() if value != 0}
    if operator := kind_with(names):
        arguments = {
            option.name: parameters.get(option.name, 0.0) for option in operator.parameters
        }
        return operator(field, kappa, boundary=boundary, **arguments)
    terms = [
        (kind, {option.name: parameters.get(option.name, 0.0) for option in kind.parameters})
        for kind in TERMS.values()
        if names & {option.name for option in kind.parameters}
    ]
    if names - {name for _, values in terms for name in values}:
        raise UsageError(
            f"No Dirac operator has the parameters {in_words(sorted(names))}; leave out one."
        )
    return DiracOperator(field, kappa, boundary, *(kind(kappa, **values) for kind, values in terms))


def kind_with(names: Set[str]) -> type[DiracOperator] | None:
    """Return the operator with the fewest parameters that has those of the names, if there is one.

    The parameters are those apart from the hopping parameter.
    """
    kinds = sorted(hopping_operators().values(), key=lambda o: len(o.parameters))
    return next((kind for kind in kinds if names <= {each.name for each in kind.parameters}), None)


def operators_of(number: str) -> dict[str, type[QuarkOperator]]:
    """Return the registered operators whose quarks have this number, such as a mass, by name."""
    return {name: kind for name, kind in OPERATORS.items() if kind.quark == number}


def dirac_operators() -> dict[str, type[DiracOperator]]:
    """Return the registered operators with a hopping term, by name."""
    return {name: kind for name, kind in OPERATORS.items() if issubclass(kind, DiracOperator)}


def hopping_operators() -> dict[str, type[DiracOperator]]:
    """Return those of them whose quarks have a hopping parameter, by name."""
    kinds = dirac_operators().items()
    return {name: kind for name, kind in kinds if kind.quark == HOPPING_PARAMETER}


def parameters_by_owner(
    noun: str, kinds: Mapping[str, Any]
) -> list[tuple[str, tuple[Option, ...]]]:
    """Return the parameters of operators or of their terms, with words for their owners."""
    return [(f"the {noun} {name}", kind.parameters) for name, kind in kinds.items()]


def hopping_parameters() -> list[tuple[str, tuple[Option, ...]]]:
    """Return the parameters of operators with a hopping parameter and of terms, by owner."""
    operators = parameters_by_owner("Dirac operator", hopping_operators())
    return operators + parameters_by_owner("term of Dirac operators", TERMS)


def check_operator(kind: type[QuarkOperator]) -> None:
    """Refuse a class of operators that does not take the parameters that it declares."""
    merged([(kind.name, kind.parameters)])
    names = [option.name for option in kind.parameters]
    try:
        inspect.signature(kind).bind(None, 0.0, boundary=ANTIPERIODIC, **dict.fromkeys(names, 0.0))
    except TypeError as error:
        raise ValueError(
            f"declares the parameters {in_words(names) or 'none'}, but cannot be made with field, "
            f"kappa, boundary and these ({error})"
        ) from error


OPERATORS: Registry[type[QuarkOperator]] = Registry(
    "Dirac operator", __name__, QuarkOperator, check_operator
)


@OPERATORS.register
class PlainWilson(DiracOperator):
    """M = 1 - kappa D.

    Parameters
    ----------
    field, kappa, boundary
        See `DiracOperator`.
    """

    name = "wilson"
    qcdml: ClassVar = {"wilsonQuarkAction": {"kappa": "kappa"}}

    def __init__(self, field: Field, kappa: float, boundary: Phases = ANTIPERIODIC) -> None:
        super().__init__(field, kappa, boundary)


@OPERATORS.register
class WilsonClover(DiracOperator):
    """M = 1 + (i/2) kappa c_SW sigma F + 2 i kappa mu gamma_5 - kappa D.

    Parameters
    ----------
    field, kappa, boundary
        See `DiracOperator`.
    csw : float
        The coefficient c_SW of the clover term; see `Clover`.
    mu : float
        The twisted mass.
    """

    name = "wilson-clover"
    parameters: ClassVar[tuple[Option, ...]] = (*Clover.parameters, *Twist.parameters)
    qcdml: ClassVar = {
        "cloverQuarkAction": {"kappa": "kappa", "cSW": "csw"},
        "wilsonCloverTmQuarkAction": {"kappa": "kappa", "mu": "mu", "cSW": "csw"},
    }

    def __init__(
        self,
        field: Field,
        kappa: float,
        csw: float,
        mu: float = 0.0,
        boundary: Phases = ANTIPERIODIC,
    ) -> None:
        super().__init__(field, kappa, boundary, Clover(kappa, csw), Twist(kappa, mu))


@OPERATORS.register
class TwistedMass(DiracOperator):
    """M = 1 + 2 i kappa mu gamma_5 - kappa D.

    Parameters
    ----------
    field, kappa, boundary
        See `DiracOperator`.
    mu : float
        The twisted mass, with the sign of the up quark.
    """

    name = "twisted-mass"
    parameters: ClassVar[tuple[Option, ...]] = Twist.parameters
    qcdml: ClassVar = {"wilsonTmQuarkAction": {"kappa": "kappa", "mu": "mu"}}

    def __init__(
        self, field: Field, kappa: float, mu: float, boundary: Phases = ANTIPERIODIC
    ) -> None:
        super().__init__(field, kappa, boundary, Twist(kappa, mu))
