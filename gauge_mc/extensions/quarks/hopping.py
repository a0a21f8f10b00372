"""Linear operators: the hopping term, the even-odd preconditioned operator, and its low modes.

A Dirac operator is A - kappa D. The part A that is diagonal in the sites is H + i m gamma_5, where
H is 1 plus the sum of hermitian terms; see `gauge_mc.extensions.quarks.diagonal`. The hopping term
and A are prepared for spinors in one storage.

Along an eigenvector v of Mh^dagger Mh with the eigenvalue a, the solution of Mh x = b has the part
v <v, Mh^dagger b> / a, which needs no iteration. With these parts taken from the residual,
conjugate gradients converge as if the smallest eigenvalues were not there, as long as rounding
errors do not bring them back (A. Stathopoulos and K. Orginos, SIAM J. Sci. Comput. 32 (2010) 439,
arXiv:0707.0131). So they are taken away again whenever the true residual is computed.
"""

from __future__ import annotations

import ctypes
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar, Protocol

import numpy as np

from gauge_mc.arrays import Array
from gauge_mc.devices.base import Launch, Registers, repeated, streamed
from gauge_mc.devices.host import geometry_structure
from gauge_mc.devices.kernels import Choice, Kernel
from gauge_mc.domain.slab import BOTH_PARITIES
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.extensions.quarks.diagonal import DiagonalTerm
from gauge_mc.extensions.quarks.vectors import (
    SPINS,
    STORAGES,
    SpinorField,
    Storage,
    StoredSlab,
    elsewhere,
    empty_slabs,
    in_turn,
    transport,
    zeroth,
)
from gauge_mc.extensions.quarks.vectors.algebra import Advance, Combine, Multiply
from gauge_mc.extensions.quarks.vectors.basis import BasisProducts, CombineBasis
from gauge_mc.fields.field import Field
from gauge_mc.options import Option
from gauge_mc.quoting import square
from gauge_mc.updates.monomials import Mask

Apply = Callable[[], None]
"""A prepared application of an operator to a field."""

Recur = Callable[[float, float, float, float], None]
"""A prepared step of a recurrence, called with a, scale, shift and c; see
`LinearOperator.recurrence`."""

EVEN, ODD = 0, 1


class LinearOperator(ABC):
    """A linear operator on vectors on the sites of one or both parities."""

    parities: tuple[int, ...]
    """The parities of the sites on which it acts."""

    @abstractmethod
    def apply(self, target: SpinorField, source: SpinorField, dagger: bool = False) -> Apply:
        """Return a call that computes the product with the operator, or with its adjoint.

        Parameters
        ----------
        target, source : SpinorField
            Different fields on the sites on which the operator acts.
        dagger : bool
            Whether to apply the adjoint.
        """

    def recurrence(
        self, target: SpinorField, b: SpinorField, older: SpinorField, constant: SpinorField
    ) -> Recur | None:
        """Return a call that computes a step of a recurrence, or None.

        The call sets the target to a older + scale (A + shift) b + c constant, given a, scale,
        shift and c, in fewer passes over memory than one after the other. It is None if the
        operator has no such call.

        Parameters
        ----------
        target, b, older, constant : SpinorField
            Fields on the sites on which the operator acts; the target may be `older`, but not `b`.
        """
        return None


class InexactOperator(LinearOperator):
    """A linear operator whose products are cheaper if they may have larger errors."""

    @abstractmethod
    def allow(self, error: float) -> None:
        """Allow errors of all further products, which have been prepared or not.

        Parameters
        ----------
        error : float
            Largest norm of an error, divided by that of the vector; 0 for the smallest ones.
        """


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
    "double": transport.VectorsPerThread(1, (128, 3)),
    "single": transport.VectorsPerThread(1, (128, 4)),
    "half": transport.VectorsPerThread(1, (128, 4)),
}
"""A thread treats one vector after the other, as always on a CPU, by the type of storage."""

SEVERAL = {
    "double": transport.VectorsPerThread(1, (256, 1), 2),
    "single": transport.VectorsPerThread(1, (512, 1), 2),
    "half": transport.VectorsPerThread(1, (256, 2), 2),
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
    boundary: transport.Boundary
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
    ) -> PreconditionedOperator:
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

    def addends(self, kind: type[ctypes.Structure], slab: int) -> ctypes.Structure:
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

    def addends(self, kind: type[ctypes.Structure], slab: int) -> ctypes.Structure:
        """Return the vectors, with factors that are not set yet; see `Completion.addends`."""
        older, constant = (x.structure(x.slabs[slab]) for x in (self.older, self.constant))
        return kind(older=older, constant=constant, a=0.0, scale=1.0, shift=0.0, c=0.0)

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

    def __init__(self, operator: HoppingOperator, storage: Storage, reals: transport.Reals) -> None:
        self.operator, self.storage = operator, storage
        self.transport = transport.Transport(operator.field, storage, reals, operator.boundary)
        self.choices = (storage.choice, reals.choice, operator.diagonal)

    @cached_property
    def terms(self) -> list[ctypes.Structure]:
        """The structures ``Terms`` of A, one for each slab of this process."""
        return [self.operator.terms(self, n) for n in range(len(self.operator.field.slabs))]

    def made_terms(self, slab: int, **values: Any) -> ctypes.Structure:
        """Return the structure ``DIAGONAL::Terms`` with the given members."""
        choices = *self.choices, ONE[self.storage.name].choice, DIRECT
        variant = self.operator.field.slabs[slab].variant(*choices)
        structure: ctypes.Structure = HOP.part("DIAGONAL::Terms", variant)(**values)
        return structure

    def vectors(self, count: int) -> transport.VectorsPerThread:
        """Return how threads treat `count` vectors."""
        several = SEVERAL[self.storage.name]
        cpu = self.operator.field.devices.devices[0].in_host_memory
        single = cpu or count == 1 or count % several.vectors
        return ONE[self.storage.name] if single else several

    def prepare(
        self,
        target: SpinorField,
        source: SpinorField,
        parity: int,
        form: int = DIVIDED,
        addend: SpinorField | None = None,
        dagger: bool = False,
        some: range | None = None,
    ) -> PreparedHop:
        """Return a call that applies the hopping term to vectors, given a factor of the term.

        The halos of the vectors are updated by every call.

        Parameters
        ----------
        target, source : SpinorField
            The result on the sites of `parity`, and the vectors psi on the others.
        parity : int
            Parity of the sites of the result, 0 (even) or 1 (odd).
        form : int
            `DIVIDED`, `ADDED`, `WHOLE`, `SOLVED` or `REFLECTED`.
        addend : SpinorField, optional
            The vectors u on the sites of `parity`, which may be `target`.
        dagger : bool
            Whether to use the adjoints of D and A.
        some : range, optional
            The replicas on which to do it, whose vectors alone the fields have; by default all.
        """
        return Hop(self, target, source, parity, form, addend or target, dagger, some=some)

    def prepare_term(
        self,
        target: SpinorField,
        source: SpinorField,
        parity: int,
        addend: SpinorField | None = None,
        dagger: bool = False,
        some: range | None = None,
    ) -> PreparedHop:
        """Return a call that computes A^-1 D psi, or u + factor A^-1 D psi, in one launch.

        Where A acts along a fifth direction it is left out.
        """
        form = ADDED if addend else DIVIDED
        return Hop(self, target, source, parity, form, addend or target, dagger, some=some)

    def apply(self, target: SpinorField, source: SpinorField, dagger: bool = False) -> Apply:
        """Return a call that computes M source, or M^dagger source; see `LinearOperator.apply`."""
        hops = [self.prepare(target, source, p, WHOLE, source, dagger) for p in self.parities]
        return in_turn(*(partial(hop, -self.operator.kappa) for hop in hops))


class Hop:
    """The launches of a hop on all slabs of this process, prepared once for repeated use.

    Parameters
    ----------
    operator, target, source, parity, form, addend, dagger
        See `PreparedOperator.prepare`.
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
        addend: SpinorField,
        dagger: bool,
        more: Completion | None = None,
        some: range | None = None,
    ) -> None:
        self._fields, self._more = (target, source, addend), more  # which own the memory
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
        self.added: list[Any] = []
        """The structures ``REFLECTION::Addends`` of all launches, which may be changed."""
        self._factors: tuple[float, ...] = ()
        slabs, self._halo = list(enumerate(source.slabs)), None
        if len(source.layouts) == 1:
            self._first = [self._launch(n, slab.whole(parity, some=some)) for n, slab in slabs]
            return
        self._halo, self._window = source.halo, source.window(1 - parity)
        self._streamed = streamed(slab.device for slab in source.slabs)
        self._first = [
            self._launch(n, slab.interior(parity, 0), slab.device.has_side_stream)
            for n, slab in slabs
            if slab.layout.slices > 2
        ]
        self._last = [self._launch(n, slab.boundary(parity, 0)) for n, slab in slabs]

    def _launch(self, n: int, part: ctypes.Structure, beside: bool = False) -> Launch:
        target, source, addend = self._fields
        slab = source.slabs[n]
        sites = part.slices * slab.layout.slots * (2 if part.parity == BOTH_PARITIES else 1)
        threads, blocks = self._vectors.shares(source.per_site, sites)
        if self._more:
            threads, blocks = self._more.shares((threads, blocks), sites)
        kind = HOP.part("REFLECTION::Addends", slab.variant(*self._choices))
        arguments = slab.arguments(
            HOP,
            part,
            *self._choices,
            transport=self._operator.transport.structure(n),
            diagonal=self._operator.terms[n],
            reflection=self._more.addends(kind, n) if self._more else kind(none=0),
            source=source.structure(slab, self._zeroth),
            other=addend.structure(addend.slabs[n], self._zeroth),
            target=target.structure(target.slabs[n], self._zeroth),
            factor=1.0,
            shares=geometry_structure("Shares")(threads, blocks),
            **self._values,
        )
        steps = repeated([arguments], 1)
        self._steps.append(steps)
        self.added.append(steps[0].reflection)
        kernel = slab.kernel(HOP, *self._choices)
        if beside:
            return lambda: next(kernel.launches(steps, [1], side=True))()
        return kernel.prepared(steps)

    def set_factors(self, a: float, scale: float, shift: float, c: float) -> None:
        """Set the numbers of the form `RECURRING`."""
        if (a, scale, shift, c) != self._factors:
            self._factors = a, scale, shift, c
            for added in self.added:
                added.a, added.scale, added.shift, added.c = self._factors

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


ADD_TERM = Kernel("add_term")
INVERT_BLOCKS = Kernel("invert_blocks")
CONVERT_BLOCKS = Kernel("convert_blocks")

EXACT = STORAGES["double"]
"""Storage in which the hermitian part and its inverse are computed, whatever the precision."""

UNIT = Choice.of("diagonal", "Unit", "dirac/unit.h", "Unit")
TWIST = Choice.of("diagonal", "Twist", "dirac/twist.h", "Twist")
HERMITIAN = Choice.of("diagonal", "Hermitian", "dirac/hermitian.h", "Hermitian")
FORMS = (UNIT, TWIST, HERMITIAN)
"""The forms 1, 1 + i m gamma_5 and H + i m gamma_5 of A."""

Slabs = tuple[StoredSlab, ...]
"""Hermitian blocks of all sites on the devices of this process."""


def form_of(terms: Sequence[DiagonalTerm]) -> Choice:
    """Return the form of A that needs least memory and has all terms."""
    if any(term.matrix for term in terms):
        return HERMITIAN
    return TWIST if terms else UNIT


def empty_blocks(field: Field, storage: Storage) -> Slabs:
    """Return hermitian blocks of all sites, which are zero."""
    reals = (SPINS // 2 * field.group.colours) ** 2
    return empty_slabs(field, storage.layouts(field), 2 * storage.bytes(reals))


class HermitianPart:
    """H and (H^2 + m^2)^-1, which is H^-1 if m is 0, on all sites and in any storage.

    Parameters
    ----------
    field : Field
        The links, whose halos must be up to date. Call `refresh` after they have changed.
    terms : sequence of DiagonalTerm
        The terms of H and m.

    Attributes
    ----------
    mass : float
        The number m.
    """

    def __init__(self, field: Field, terms: Sequence[DiagonalTerm]) -> None:
        self._field, self.mass = field, math.fsum(term.mass for term in terms)
        self._terms = [(term.matrix, term.coefficients) for term in terms if term.matrix]
        self._stored: dict[Storage, tuple[Slabs, Slabs]] = {}

    def stored(self, storage: Storage) -> tuple[Slabs, Slabs]:
        """Return H and its inverse."""
        if storage not in self._stored:
            if storage != EXACT:
                self.stored(EXACT)
            empty = empty_blocks(self._field, storage), empty_blocks(self._field, storage)
            self._stored[storage] = empty
            self._compute(storage)
        return self._stored[storage]

    def refresh(self) -> None:
        """Compute what has been used anew, after the links have changed."""
        for storage in self._stored:  # in double precision first
            self._compute(storage)

    def _compute(self, storage: Storage) -> None:
        """Compute H and its inverse, by conversion unless the storage is `EXACT`."""
        if storage != EXACT:
            self._convert(storage)
            return
        field = transport.in_precision(self._field, EXACT.arithmetic)
        for links, blocks, inverse in zip(field.slabs, *self._stored[EXACT], strict=True):
            for n, (matrix, values) in enumerate(self._terms):
                variant = blocks.variant(EXACT.choice, matrix)
                blocks.launch(
                    ADD_TERM,
                    blocks.whole(),
                    EXACT.choice,
                    matrix,
                    links=links.buffer.address,
                    term=ADD_TERM.part("TERM::Coefficients", variant)(**values),
                    blocks=blocks.buffer.address,
                    first=n == 0,
                )
            blocks.launch(
                INVERT_BLOCKS,
                blocks.whole(),
                EXACT.choice,
                blocks=blocks.buffer.address,
                inverse=inverse.buffer.address,
                mass=self.mass,
            )
            blocks.device.synchronize()

    def _convert(self, storage: Storage) -> None:
        for mine, exact in zip(self._stored[storage], self._stored[EXACT], strict=True):
            for slab, old in zip(mine, exact, strict=True):
                slab.launch(
                    CONVERT_BLOCKS,
                    slab.whole(),
                    storage.choice,
                    target=slab.buffer.address,
                    source=old.buffer.address,
                    elsewhere=elsewhere(EXACT.number_bytes, slab.layout, old.layout).structure,
                )


class PreconditionedOperator(LinearOperator):
    """The rest of M = A - kappa D on the even sites when the odd sites are eliminated.

    It is divided by A_ee, or not; then it has an adjoint of the same form.

    Parameters
    ----------
    prepared : PreparedOperator
        The operator M on all sites.
    with_adjoint : bool
        Whether it is the second, whose adjoint can be applied.

    Attributes
    ----------
    divided : bool
        Whether it is 1 - kappa^2 A_ee^-1 D_eo A_oo^-1 D_oe, rather than this times A_ee.
    some : range or None
        The replicas on which it acts; None stands for all.
    vectors_moved : int
        Number of vectors on one parity that the kernels of a product read or write.
    """

    parities = (EVEN,)
    vectors_moved = 5  # two hops, the second one with the source

    def __init__(self, prepared: PreparedOperator, with_adjoint: bool) -> None:
        self._prepared, self.divided = prepared, not with_adjoint
        self.some: range | None = None
        self._spare: dict[int, SpinorField] = {}

    def _odd(self, source: SpinorField) -> SpinorField:
        """Return memory for vectors on the odd sites, which all products share."""
        each = source.count // source.replicas
        if each not in self._spare:
            kind = self._prepared.operator.field, source.storage.name, each, ODD, source.fifth
            self._spare[each] = SpinorField.empty(*kind)
        return self._spare[each].part(self.some) if self.some else self._spare[each]

    def left_part(self, target: SpinorField, source: SpinorField) -> Apply:
        """Return a call that computes the even part of a vector of which forces follow.

        It is a vector X' on all sites with X^dagger (dMh) Y = X'^dagger (dM) Y for vectors X and Y
        on the even sites, whose odd parts follow from the even ones (see `OddSites` in
        `dynamical.normal_systems`): X itself, which is copied, or A^-dagger X if Mh is divided by
        A.

        Parameters
        ----------
        target : SpinorField
            X' on all sites, of which the even ones are set.
        source : SpinorField
            X on the even sites.
        """
        return partial(Combine(target, source, parity=EVEN), 0, 1)

    def on(self, some: range) -> LinearOperator:
        """Return the operator for vectors on some replicas alone, in the same memory."""
        operator = copy(self)
        operator.some = some
        return operator

    def apply(self, target: SpinorField, source: SpinorField, dagger: bool = False) -> Apply:
        """Return a call that computes the product; see `LinearOperator.apply`."""
        if dagger and self.divided:
            raise ValueError("The form of this operator has no adjoint; declare that it is used.")
        odd, prepare, some = self._odd(source), self._prepared.prepare, self.some
        first = prepare(odd, source, ODD, DIVIDED, dagger=dagger, some=some)
        form = ADDED if self.divided else WHOLE
        second = prepare(target, odd, EVEN, form, source, dagger, some)
        kappa2 = square(self._prepared.operator.kappa, source.field.devices.strict)
        return in_turn(first, partial(second, -kappa2))


class NormalOperator(LinearOperator):
    """The product B B^dagger of an operator B.

    Parameters
    ----------
    operator : LinearOperator
        The operator B.
    between : SpinorField, optional
        Memory for vectors between the factors; by default it is new.
    """

    def __init__(self, operator: LinearOperator, between: SpinorField | None = None) -> None:
        self.operator, self.parities = operator, operator.parities
        self._spare = {(between.storage, between.count): between} if between else {}

    def between(self, like: SpinorField) -> SpinorField:
        """Return the vectors that are computed between both applications."""
        key = like.storage, like.count
        if key not in self._spare:
            self._spare[key] = like.like()
        return self._spare[key]

    def apply(self, target: SpinorField, source: SpinorField, dagger: bool = False) -> Apply:
        """Return a call that computes the product; see `LinearOperator.apply`."""
        between = self.between(source)
        first = self.operator.apply(between, source, dagger=True)
        return in_turn(first, self.operator.apply(target, between))


class AdjointOperator(LinearOperator):
    """The adjoint of an operator on the even sites.

    Parameters
    ----------
    operator : LinearOperator
        The operator.
    """

    parities = (EVEN,)

    def __init__(self, operator: LinearOperator) -> None:
        self.operator = operator

    def apply(self, target: SpinorField, source: SpinorField, dagger: bool = False) -> Apply:
        """Return a call that computes the product; see `LinearOperator.apply`."""
        return self.operator.apply(target, source, not dagger)


class System:
    """M x = b in double precision, and its reduction to the even sites.

    Parameters
    ----------
    operator : HoppingOperator
        The operator M.
    source : SpinorField
        The right-hand sides b on all sites, in double precision.
    with_adjoint : bool
        See `PreconditionedOperator`.
    """

    def __init__(self, operator: HoppingOperator, source: SpinorField, with_adjoint: bool) -> None:
        self.operator, self.with_adjoint = operator, with_adjoint
        self.exact = operator.prepared(source.storage.name)
        self.preconditioned = self.reduced_operator(source.storage.name)
        self.norms = norms_of(source)
        self.b, self.x, self._product = (source.like() for _ in range(3))
        self._apply = self.exact.apply(self._product, self.x)
        self._scale(self.b, source, 1 / self.units)
        self.reduced = source.like(parity=EVEN)
        # The right-hand sides of the preconditioned system.
        hop, kappa, odd = self.exact.prepare, operator.kappa, self.b.like(parity=ODD)
        hop(odd, self.x, ODD, SOLVED, self.b)(0.0)
        hop(self.reduced, odd, EVEN, SOLVED, self.b)(kappa)
        if not self.preconditioned.divided:
            hop(self.reduced, odd, EVEN, WHOLE, self.reduced)(0.0)

    def reduced_operator(self, precision: str, reals: int | None = None) -> PreconditionedOperator:
        """Return the operator on the even sites; see `HoppingOperator.prepared`."""
        return self.operator.reduced(self.with_adjoint, precision, reals)

    @property
    def units(self) -> Array:
        """The norms of the sources, or 1 for those that are 0. `b` is the source divided by it."""
        return np.where(self.norms > 0, self.norms, 1.0)

    def _scale(self, to: SpinorField, origin: SpinorField, factor: Array) -> None:
        for parity in (EVEN, ODD):
            Combine(to, origin, parity=parity)(0, factor)

    def complete(self, even: SpinorField) -> None:
        """Set `x` to the solution for `b`, given the solution on the even sites."""
        Combine(self.x, even, parity=EVEN)(0, 1)
        self.exact.prepare(self.x, even, ODD, SOLVED, self.b)(self.operator.kappa)

    def take(self, solution: SpinorField) -> None:
        """Set `x` to a solution for the sources that is known already."""
        self._scale(self.x, solution, 1 / self.units)

    def residual_norms(self) -> Array:
        """Return the norms of b - M x on all sites."""
        self._apply()
        norms2 = np.zeros(self.x.count)
        for parity in (EVEN, ODD):
            step = Advance(self._product, self.b, parity=parity)
            step(-1)
            norms2 += step.products().norm2
        return np.asarray(np.sqrt(norms2))

    def scaled_solution(self) -> SpinorField:
        """Return the solution for the sources."""
        solution = self.x.like()
        self._scale(solution, self.x, self.units)
        return solution


def norms_of(field: SpinorField) -> Array:
    """Return the norms of the vectors of a field."""
    return np.asarray(np.sqrt(Multiply(field)().norm2))


MOST_DEFLATED = 500
"""Largest number of modes, to catch typing errors."""

DEFLATE = Option(
    "deflate",
    int,
    "Number of low modes of the preconditioned operator along which solutions need no iteration, "
    "for each kappa; they are looked for first.",
    default="none",
    least=1,
    most=MOST_DEFLATED,
)

DEVIATION = 0.01
"""Largest deviation of Mh^dagger Mh times the sum of all modes from what the eigenvalues say, as a
part of it. Its usual size is the residual of the modes divided by their eigenvalues."""


@dataclass(frozen=True)
class Deflation:
    """Low modes of Mh^dagger Mh, along which solutions of Mh x = b are known.

    Raises
    ------
    UsageError
        If there are not as many eigenvalues as vectors, or one is not positive.
    """

    values: Array
    """The eigenvalues, of shape (number,)."""
    vectors: SpinorField
    """The orthonormal eigenvectors on the even sites, in double precision."""

    def __post_init__(self) -> None:
        if self.values.shape != (self.vectors.count,) or not (self.values > 0).all():
            raise UsageError(
                f"There are {self.vectors.count} modes with the eigenvalues {self.values}; give "
                "one eigenvalue above 0 for each of them."
            )

    def check(self, operator: LinearOperator) -> None:
        """Refuse modes of another operator, for which a sum of all of them is not a sum of modes.

        Parameters
        ----------
        operator : LinearOperator
            Mh in double precision, with its adjoint.

        Raises
        ------
        GaugeError
            If Mh^dagger Mh multiplies the sum of the modes by anything but the eigenvalues.
        """
        total, between, image = (self.vectors.like(count=1) for _ in range(3))
        combine = CombineBasis(total, 0, self.vectors)
        combine(np.ones(self.values.size, np.complex128), 0.0)
        operator.apply(between, total)()
        operator.apply(image, between, dagger=True)()
        combine(self.values.astype(np.complex128), 0.0)
        Combine(image, total)(1, -1)
        if not norms_of(image)[0] <= DEVIATION * norms_of(total)[0]:
            raise GaugeError(
                "The low modes are not those of this operator; compute them for its links and "
                "parameters."
            )

    def correction(
        self, operator: LinearOperator, y: SpinorField, r: SpinorField
    ) -> Callable[[Mask], None]:
        """Return a call that adds what solutions lack along the modes, unless they are done.

        Parameters
        ----------
        operator : LinearOperator
            Mh in double precision, with its adjoint.
        y, r : SpinorField
            The solutions so far, and their residuals.
        """
        image, numbers = r.like(), range(y.count)
        apply = operator.apply(image, r, dagger=True)
        products = [BasisProducts(self.vectors, image, n, self.vectors.count) for n in numbers]
        combine = [CombineBasis(y, n, self.vectors) for n in numbers]

        def add(converged: Mask) -> None:
            apply()
            for n in np.flatnonzero(~converged).tolist():
                combine[n](products[n]() / self.values)

        return add
