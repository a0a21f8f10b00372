"""Dirac operators.

Each operator has a module of its name, with a subclass of `DiracOperator` that is registered in
`OPERATORS`, and a C++ header in ``cuda_src/dirac`` for its diagonal part.
"""

from __future__ import annotations

import ctypes
import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from gauge_mc import defaults
from gauge_mc.devices.base import Launch, Registers, StreamedDevice, repeated
from gauge_mc.devices.kernels import Choice, Kernel
from gauge_mc.errors import UsageError
from gauge_mc.fields.field import Field
from gauge_mc.options import Option, merged
from gauge_mc.quarks.spinors import SpinorField, in_units
from gauge_mc.quarks.storage import Storage, storage_of
from gauge_mc.quarks.transport import (
    ANTIPERIODIC,
    Boundary,
    Reals,
    Transport,
    VectorsPerThread,
    reals_of,
)
from gauge_mc.registry import Registry, in_words

HOP = Kernel("hop")
DIVIDED, ADDED, WHOLE, SOLVED = map(HOP.constant, ("DIVIDED", "ADDED", "WHOLE", "SOLVED"))
"""Forms of the result of a hop: A^-1 D psi, u + factor A^-1 D psi, A u + factor D psi, and
A^-1 (u + factor D psi)."""


ONE = {
    "double": VectorsPerThread(1, (128, 3)),
    "single": VectorsPerThread(1, (128, 4)),
    "half": VectorsPerThread(1, (128, 4)),
}
"""A thread treats one vector after the other, as always on a CPU, by the type of storage."""

SEVERAL = {
    "double": VectorsPerThread(2, (128, 2)),
    "single": VectorsPerThread(2, (128, 2)),
    "half": VectorsPerThread(2, (128, 3)),
}
"""A thread of a GPU uses a link that it has loaded for several vectors, if their number allows."""


LARGEST = 1e6
"""Largest size of the parameters of operators, whose products single precision can represent."""

MU = Option("mu", float, "Twisted mass, in lattice units.", "0", least=-LARGEST, most=LARGEST)


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


class DiracOperator(ABC):
    """A Dirac operator M = A - kappa D on a field, with a part A that is diagonal in the sites.

    D psi(x) = sum over mu of (1 - gamma_mu) U_mu(x) psi(x + mu)
    + (1 + gamma_mu) U_mu(x - mu)^dagger psi(x - mu), with gamma matrices in the DeGrand-Rossi
    basis (``cuda_src/dirac/gamma.h``) and kappa = 1 / (2 m0 + 8).

    Parameters
    ----------
    field : Field
        The links, whose halos must be up to date. They must not change as long as the operator is
        used.
    kappa : float
        The hopping parameter.
    boundary : complex or sequence of complex
        The phase in psi(x + L_t) = phase psi(x), by default antiperiodic, or four phases in x, y,
        z and t, all of modulus 1.

    Raises
    ------
    UsageError
        If a value is invalid.
    """

    name: ClassVar[str]
    parameters: ClassVar[tuple[Option, ...]] = ()
    """The operator's parameters apart from kappa; a value of 0 means that there is no such term."""
    diagonal: ClassVar[Choice]
    """Compile-time selection of A."""

    def __init__(
        self, field: Field, kappa: float, boundary: complex | Sequence[complex] = ANTIPERIODIC
    ) -> None:
        if not math.isfinite(kappa) or kappa < 0:
            raise UsageError(f"kappa is {kappa:g}; give a number that is not negative.")
        self.field, self.kappa = field, float(kappa)
        self.boundary = Boundary.of(boundary)
        self._prepared: dict[tuple[object, ...], PreparedOperator] = {}

    @abstractmethod
    def terms(self, prepared: PreparedOperator, slab: int) -> ctypes.Structure:
        """Return the structure ``Terms`` of A for a slab of this process."""

    def prepared(self, precision: str = "double", reals: int | None = None) -> PreparedOperator:
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
            self._prepared[key] = PreparedOperator(self, storage_of(precision), form)
        return self._prepared[key]

    def apply(
        self,
        array: NDArray[np.complexfloating[Any, Any]],
        dagger: bool = False,
        precision: str | None = None,
        reals: int | None = None,
    ) -> NDArray[np.complex128]:
        """Return M psi, or M^dagger psi.

        Parameters
        ----------
        array : ndarray, shape (T, Z, Y, X, 4, N) or (count, T, Z, Y, X, 4, N)
            ``psi[t, z, y, x, spin, colour]``, or several of them.
        dagger : bool
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
        operator.full(target, source, dagger)
        return target.to_numpy().reshape(np.shape(array))

    def solve(
        self,
        source: NDArray[np.complexfloating[Any, Any]],
        tolerance: float = defaults.TOLERANCE,
        solver: str = defaults.SOLVER,
        **request: Any,
    ) -> NDArray[np.complex128]:
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
            Further attributes of `gauge_mc.quarks.solvers.SolverParameters`.

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
        from gauge_mc.quarks.solvers import SolverParameters, solve

        field, unit = in_units(self.field, source)
        found = solve(self, field, solver, SolverParameters(tolerance=tolerance, **request))
        return (found.x.to_numpy() * unit).reshape(np.shape(source))


class PreparedOperator:
    """A Dirac operator for spinors in one type of storage.

    Parameters
    ----------
    operator : DiracOperator
    storage : Storage
        The storage of spinors, links and terms of A.
    reals : Reals
        The form of the links.
    """

    def __init__(self, operator: DiracOperator, storage: Storage, reals: Reals) -> None:
        self.operator, self.storage = operator, storage
        self.transport = Transport(operator.field, storage, reals, operator.boundary)
        self.choices = (storage.choice, reals.choice, operator.diagonal)

    @cached_property
    def terms(self) -> list[ctypes.Structure]:
        """The structures ``Terms`` of A, one for each slab of this process."""
        return [self.operator.terms(self, n) for n in range(len(self.operator.field.slabs))]

    def made_terms(self, slab: int, **values: Any) -> ctypes.Structure:
        """Return the structure ``DIAGONAL::Terms`` with the given members."""
        variant = self.operator.field.slabs[slab].variant(
            *self.choices, ONE[self.storage.name].choice
        )
        made: ctypes.Structure = HOP.part("DIAGONAL::Terms", variant)(**values)
        return made

    def vectors(self, count: int) -> Choice:
        """Return how many of `count` vectors a thread treats together."""
        several = SEVERAL[self.storage.name]
        cpu = self.operator.field.devices.devices[0].in_host_memory
        together = ONE[self.storage.name] if cpu or count % several.vectors else several
        return together.choice

    def hop(
        self,
        target: SpinorField,
        source: SpinorField,
        parity: int,
        form: int = DIVIDED,
        other: SpinorField | None = None,
        factor: float = 1.0,
        dagger: bool = False,
    ) -> None:
        """Apply the hopping term to the vectors on one parity; the halos of these are updated.

        Parameters
        ----------
        target, source : SpinorField
            The result on the sites of `parity`, and the vectors psi on the others.
        parity : int
        form : int
            `DIVIDED`, `ADDED`, `WHOLE` or `SOLVED`.
        other : SpinorField, optional
            The vectors u on the sites of `parity`, which may be `target`.
        factor : float
        dagger : bool
            Whether to use the adjoints of D and A.
        """
        self.prepare(target, source, parity, form, other, dagger)(factor)

    def prepare(
        self,
        target: SpinorField,
        source: SpinorField,
        parity: int,
        form: int = DIVIDED,
        other: SpinorField | None = None,
        dagger: bool = False,
    ) -> Hop:
        """Return a call that carries out `hop`, given the factor, for repeated use."""
        return Hop(self, target, source, parity, form, other or target, dagger)

    def full(self, target: SpinorField, source: SpinorField, dagger: bool = False) -> None:
        """Compute M source, or M^dagger source, on all sites."""
        for parity in (0, 1):
            self.hop(target, source, parity, WHOLE, source, -self.operator.kappa, dagger)


class Hop:
    """The launches of a hop on all slabs of this process, prepared once for repeated use.

    Parameters
    ----------
    operator, target, source, parity, form, other, dagger
        See `PreparedOperator.hop`.
    """

    def __init__(
        self,
        operator: PreparedOperator,
        target: SpinorField,
        source: SpinorField,
        parity: int,
        form: int,
        other: SpinorField,
        dagger: bool,
    ) -> None:
        self._fields = (target, source, other)  # which own the memory
        self._operator = operator
        self._window = source.window(1 - parity)
        self._choices = (*operator.choices, operator.vectors(source.count))
        self._values = {"s": -1.0 if dagger else 1.0, "form": form, "vectors": source.count}
        self._steps: list[Any] = []
        slabs = range(len(source.slabs))
        self._halo = source.halo if len(source.layouts) > 1 else None
        if not self._halo:
            self._first = [self._launch(n, source.slabs[n].whole(parity)) for n in slabs]
            return
        devices = [slab.device for slab in source.slabs]
        self._streamed = [cast(StreamedDevice, one) for one in devices if one.has_side_stream]
        self._first = [
            self._launch(n, source.slabs[n].interior(parity, 0), devices[n].has_side_stream)
            for n in slabs
            if source.slabs[n].layout.slices > 2
        ]
        self._last = [self._launch(n, source.slabs[n].boundary(parity, 0)) for n in slabs]

    def _launch(self, n: int, part: ctypes.Structure, beside: bool = False) -> Launch:
        target, source, other = self._fields
        slab = source.slabs[n]
        arguments = slab.arguments(
            HOP,
            part,
            *self._choices,
            transport=self._operator.transport.structure(n),
            diagonal=self._operator.terms[n],
            source=source.structure(slab),
            other=other.structure(other.slabs[n]),
            target=target.structure(target.slabs[n]),
            factor=1.0,
            **self._values,
        )
        steps = repeated([arguments], 1)
        self._steps.append(steps)
        kernel = slab.kernel(HOP, *self._choices)
        if beside:
            return lambda: next(kernel.launches(steps, [1], side=True))()
        return kernel.prepared(steps)

    def __call__(self, factor: float = 1.0) -> None:
        """Launch the hop, and the halo exchange of its source beside it."""
        for steps in self._steps:
            steps[0].factor = factor
        if not self._halo:
            for launch in self._first:
                launch()
            return
        for device in self._streamed:
            device.fork()
        self._halo.post(self._window)
        for launch in self._first:
            launch()
        self._halo.wait()
        for launch in self._last:
            launch()
        for device in self._streamed:
            device.join()

    @property
    def registers(self) -> Registers | None:
        """Register usage of the kernel on a GPU."""
        return self._fields[1].slabs[0].kernel(HOP, *self._choices).registers()


def Wilson(
    field: Field,
    kappa: float,
    csw: float = 0.0,
    mu: float = 0.0,
    boundary: complex | Sequence[complex] = ANTIPERIODIC,
) -> DiracOperator:
    """Return the Wilson operator, with the clover term and a twisted mass unless they are 0.

    M = 1 + (i/2) kappa c_SW sigma F + 2 i kappa mu gamma_5 - kappa D, with kappa = 1 / (2 m0 + 8);
    see `DiracOperator`. To solve M x = b, call the operator's `solve`.

    Parameters
    ----------
    field : Field
        The links, which must not change as long as the operator is used.
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
    field: Field,
    kappa: float,
    boundary: complex | Sequence[complex] = ANTIPERIODIC,
    **parameters: float,
) -> DiracOperator:
    """Return the operator with the fewest parameters that has all that are not 0.

    Raises
    ------
    UsageError
        If no operator has these parameters, or a value is invalid.
    """
    needed = {name for name, value in parameters.items() if value != 0}
    for kind in sorted(OPERATORS.values(), key=lambda one: len(one.parameters)):
        names = {option.name for option in kind.parameters}
        if needed <= names:
            values = {name: parameters.get(name, 0.0) for name in names}
            return kind(field, kappa, boundary=boundary, **values)
    raise UsageError(
        f"No Dirac operator has the parameters {in_words(sorted(needed))}; leave out one."
    )


def check_operator(kind: type[DiracOperator]) -> None:
    """Refuse a class of operators that does not take the parameters that it declares.

    Raises
    ------
    ValueError
        If there is a parameter that it does not take, or takes without declaring it.
    """
    merged([(kind.name, kind.parameters)])
    names = [option.name for option in kind.parameters]
    try:
        inspect.signature(kind).bind(None, 0.0, boundary=ANTIPERIODIC, **dict.fromkeys(names, 0.0))
    except TypeError as error:
        raise ValueError(
            f"declares the parameters {in_words(names) or 'none'}, but cannot be made with field, "
            f"kappa, boundary and these ({error})"
        ) from error


OPERATORS: Registry[type[DiracOperator]] = Registry(
    "Dirac operator", __name__, DiracOperator, check_operator
)
