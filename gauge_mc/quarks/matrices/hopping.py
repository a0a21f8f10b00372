"""The hopping term with the diagonal part of an operator, prepared for spinors in one storage."""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol

from gauge_mc.devices.base import Launch, Registers, repeated, streamed
from gauge_mc.devices.kernels import Choice, Kernel
from gauge_mc.devices.structures import geometry_structure
from gauge_mc.domain.layout import BOTH_PARITIES
from gauge_mc.fields.field import Field
from gauge_mc.quarks.matrices.linear import EVEN, ODD, Apply, LinearOperator, ReducedOperator
from gauge_mc.quarks.vectors.spinors import SpinorField, zeroth
from gauge_mc.quarks.vectors.storage import Storage
from gauge_mc.quarks.vectors.transport import Boundary, Reals, Transport, VectorsPerThread

HOP = Kernel("hop")

DIVIDED, ADDED, WHOLE, SOLVED = map(HOP.constant, ("DIVIDED", "ADDED", "WHOLE", "SOLVED"))
"""Forms of the result of a hop: A^-1 D psi, u + factor A^-1 D psi, A u + factor D psi, and
A^-1 (u + factor D psi)."""

REFLECTED = SOLVED + 1
"""The form gamma_5 (A u + factor D psi), for which there is a kernel of its own."""

RECURRING = REFLECTED + 1
"""The form a older + scale (gamma_5 (A u + factor D psi) + shift u) + c constant; see
`Recurrence`."""

DIRECT = Choice.of("reflection", "", "dirac/direct.h", "Direct")
"""The kernel of all other forms."""
GAMMA5 = Choice.of("reflection", "gamma5", "dirac/reflected.h", "Reflected")
"""The kernel that multiplies by gamma_5."""
RECURRENCE = Choice.of("reflection", "recurrence", "dirac/recurring.h", "Recurring")
"""The kernel that adds other vectors besides."""

KERNELS = {REFLECTED: GAMMA5, RECURRING: RECURRENCE}
"""Forms that have kernels of their own, in which A u + factor D psi is computed first."""

ONE = {
    "double": VectorsPerThread(1, (128, 3)),
    "single": VectorsPerThread(1, (128, 4)),
    "half": VectorsPerThread(1, (128, 4)),
}
"""A thread treats one vector after the other, as always on a CPU, by the type of storage."""

SEVERAL = {
    "double": VectorsPerThread(1, (256, 1), 2),
    "single": VectorsPerThread(1, (512, 1), 2),
    "half": VectorsPerThread(1, (256, 2), 2),
}
"""Threads of a GPU share the vectors of a site, and so its links, if there are several."""


def parities_at_once(source: SpinorField) -> tuple[int, ...]:
    """Return the parities of the launches of a hop from all sites to all sites.

    On one slab it is one launch, where odd sites find links and vectors in the cache that even ones
    have read. Between slabs the halos of one parity travel while the other one is computed.
    """
    return (BOTH_PARITIES,) if len(source.layouts) == 1 else (EVEN, ODD)


class HoppingOperator(ABC):
    """An operator M = A - kappa D, as solvers use it."""

    field: Field
    """The links of the hopping term D."""
    kappa: float
    """Hopping parameter."""
    boundary: Boundary
    """The phases across the boundary."""
    diagonal: Choice
    """Compile-time selection of A, which is diagonal in the sites."""
    fifth: int | None = None
    """Extent of the fifth direction of its spinors, if they have one."""

    @abstractmethod
    def terms(self, prepared: PreparedOperator, slab: int) -> ctypes.Structure:
        """Return the structure ``Terms`` of A for a slab of this process."""

    @abstractmethod
    def prepared(self, precision: str = "double", reals: int | None = None) -> PreparedOperator:
        """Return the operator for spinors of some precision, with links in some form."""

    @abstractmethod
    def reduced(
        self, with_adjoint: bool, precision: str = "double", reals: int | None = None
    ) -> ReducedOperator:
        """Return the operator on the even sites.

        Parameters
        ----------
        with_adjoint : bool
            Whether its adjoint must be known.
        precision, reals
            See `prepared`.
        """


class Completion(Protocol):
    """Last step of a hop, which takes its result."""

    @property
    def reflection(self) -> Choice:
        """The compile-time selection."""

    def addends(self, made: type[ctypes.Structure], slab: int) -> ctypes.Structure:
        """Return the structure ``REFLECTION::Addends`` for a slab, given its class."""

    def shares(self, usual: tuple[int, int], sites: int) -> tuple[int, int]:
        """Return how many threads of a block, and how many blocks, share the vectors of a site.

        Parameters
        ----------
        usual : tuple of int
            Those of other hops.
        sites : int
            Number of sites of a launch.
        """


@dataclass(frozen=True)
class Recurrence:
    """The vectors that the form `RECURRING` adds, on the sites of the result."""

    older: SpinorField
    """Vectors, which may be the target; they are not read if their factor is 0."""
    constant: SpinorField
    """Vectors, which are not read if their factor is 0."""

    reflection: ClassVar[Choice] = RECURRENCE

    def addends(self, made: type[ctypes.Structure], slab: int) -> ctypes.Structure:
        """Return the vectors, with factors that are not set yet; see `Completion.addends`."""
        older, constant = (one.structure(one.slabs[slab]) for one in (self.older, self.constant))
        return made(older=older, constant=constant, a=0.0, scale=1.0, shift=0.0, c=0.0)

    def shares(self, usual: tuple[int, int], sites: int) -> tuple[int, int]:
        """Return the usual ones; see `Completion.shares`."""
        return usual


class PreparedHop(Protocol):
    """A hop that has been prepared for repeated use."""

    def __call__(self, factor: float = 1.0) -> None:
        """Carry out the hop with this factor."""

    @property
    def registers(self) -> Registers | None:
        """Register usage of the kernel of the hopping term on a GPU."""


class PreparedOperator(LinearOperator):
    """An operator for spinors in one type of storage.

    Parameters
    ----------
    operator : HoppingOperator
        The operator in double precision.
    storage : Storage
        The storage of spinors, links and terms of A.
    reals : Reals
        The form of the links.
    """

    parities = (EVEN, ODD)

    def __init__(self, operator: HoppingOperator, storage: Storage, reals: Reals) -> None:
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
            *self.choices, ONE[self.storage.name].choice, DIRECT
        )
        made: ctypes.Structure = HOP.part("DIAGONAL::Terms", variant)(**values)
        return made

    def vectors(self, count: int) -> VectorsPerThread:
        """Return how threads treat `count` vectors."""
        several = SEVERAL[self.storage.name]
        cpu = self.operator.field.devices.devices[0].in_host_memory
        alone = cpu or count == 1 or count % several.vectors
        return ONE[self.storage.name] if alone else several

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
            Parity of the sites of the result, 0 (even) or 1 (odd).
        form : int
            `DIVIDED`, `ADDED`, `WHOLE`, `SOLVED` or `REFLECTED`.
        other : SpinorField, optional
            The vectors u on the sites of `parity`, which may be `target`.
        factor : float
            Number by which the hopping term is multiplied.
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
        some: range | None = None,
    ) -> PreparedHop:
        """Return a call that carries out `hop`, given the factor, for repeated use.

        Parameters
        ----------
        target, source, parity, form, other, dagger
            See `hop`.
        some : range, optional
            The replicas on which to do it, whose vectors alone the fields have; by default all.
        """
        return Hop(self, target, source, parity, form, other or target, dagger, some=some)

    def prepare_recurrence(
        self,
        target: SpinorField,
        source: SpinorField,
        parity: int,
        other: SpinorField,
        more: Recurrence,
    ) -> Hop:
        """Return a hop of the form `RECURRING`; see `Hop.set_factors`."""
        return Hop(self, target, source, parity, RECURRING, other, False, more)

    def prepare_term(
        self,
        target: SpinorField,
        source: SpinorField,
        parity: int,
        other: SpinorField | None = None,
        dagger: bool = False,
        some: range | None = None,
    ) -> PreparedHop:
        """Return a call that computes A^-1 D psi, or u + factor A^-1 D psi, in one launch.

        Where A acts along a fifth direction it is left out.
        """
        form = ADDED if other else DIVIDED
        return Hop(self, target, source, parity, form, other or target, dagger, some=some)

    def apply(self, target: SpinorField, source: SpinorField, dagger: bool = False) -> Apply:
        """Return a call that computes M source, or M^dagger source; see `LinearOperator.apply`."""
        hops = [self.prepare(target, source, p, WHOLE, source, dagger) for p in self.parities]

        def call() -> None:
            for hop in hops:
                hop(-self.operator.kappa)

        return call


class Hop:
    """The launches of a hop on all slabs of this process, prepared once for repeated use.

    Parameters
    ----------
    operator, target, source, parity, form, other, dagger
        See `PreparedOperator.hop`.
    more : Completion, optional
        Last step, which takes the result.
    some : range, optional
        The replicas on which to do it, whose vectors alone the fields have; by default all.
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
        more: Completion | None = None,
        some: range | None = None,
    ) -> None:
        self._fields, self._more = (target, source, other), more  # which own the memory
        self._operator = operator
        self._zeroth = zeroth(source, some)
        self._vectors = operator.vectors(source.per_site)
        reflection = more.reflection if more else KERNELS.get(form, DIRECT)
        self._choices = (*operator.choices, self._vectors.choice, reflection)
        self._values = {
            "s": -1.0 if dagger else 1.0,
            "form": WHOLE if form in KERNELS else form,
            "vectors": source.per_site,
        }
        self._steps: list[Any] = []
        self._added: list[Any] = []
        self._factors: tuple[float, ...] = ()
        slabs = range(len(source.slabs))
        self._halo = None
        if len(source.layouts) > 1:
            self._halo, self._window = source.halo, source.window(1 - parity)
        else:
            self._first = [self._launch(n, source.slabs[n].whole(parity, some=some)) for n in slabs]
            return
        devices = [slab.device for slab in source.slabs]
        self._streamed = streamed(devices)
        self._first = [
            self._launch(n, source.slabs[n].interior(parity, 0), devices[n].has_side_stream)
            for n in slabs
            if source.slabs[n].layout.slices > 2
        ]
        self._last = [self._launch(n, source.slabs[n].boundary(parity, 0)) for n in slabs]

    def _launch(self, n: int, part: ctypes.Structure, beside: bool = False) -> Launch:
        target, source, other = self._fields
        slab = source.slabs[n]
        sites = part.slices * slab.layout.slots * (2 if part.parity == BOTH_PARITIES else 1)
        threads, blocks = self._vectors.shares(source.per_site, sites)
        if self._more:
            threads, blocks = self._more.shares((threads, blocks), sites)
        arguments = slab.arguments(
            HOP,
            part,
            *self._choices,
            transport=self._operator.transport.structure(n),
            diagonal=self._operator.terms[n],
            reflection=self._addends(n),
            source=source.structure(slab, self._zeroth),
            other=other.structure(other.slabs[n], self._zeroth),
            target=target.structure(target.slabs[n], self._zeroth),
            factor=1.0,
            shares=geometry_structure("Shares")(threads=threads, blocks=blocks),
            **self._values,
        )
        steps = repeated([arguments], 1)
        self._steps.append(steps)
        self._added.append(steps[0].reflection)
        kernel = slab.kernel(HOP, *self._choices)
        if beside:
            return lambda: next(kernel.launches(steps, [1], side=True))()
        return kernel.prepared(steps)

    def _addends(self, n: int) -> ctypes.Structure:
        """Return the structure ``REFLECTION::Addends`` for a slab."""
        slab = self._fields[1].slabs[n]
        made = HOP.part("REFLECTION::Addends", slab.variant(*self._choices))
        return self._more.addends(made, n) if self._more else made(none=0)

    def set_factors(self, a: float, scale: float, shift: float, c: float) -> None:
        """Set the numbers of the form `RECURRING`."""
        factors = a, scale, shift, c
        if factors == self._factors:
            return
        self._factors = factors
        for added in self._added:
            added.a, added.scale, added.shift, added.c = factors

    @property
    def added(self) -> Sequence[Any]:
        """The structures ``REFLECTION::Addends`` of all launches, which may be changed."""
        return self._added

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
