"""Solutions that quark forces need, of Mh Mh^dagger X = phi on the even sites, again and again.

Mh = A_ee - kappa^2 D_eo A_oo^-1 D_oe is what is left of an operator M = A - kappa D when the odd
sites are eliminated (`PreconditionedOperator`). For domain walls it is divided by A_ee.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from gauge_mc import defaults
from gauge_mc.devices.base import Launch, Registers
from gauge_mc.devices.kernels import Kernel
from gauge_mc.devices.source import constants, source_file
from gauge_mc.errors import UsageError
from gauge_mc.extensions.quarks import hopping
from gauge_mc.extensions.quarks.hopping import AdjointOperator, NormalOperator
from gauge_mc.extensions.quarks.solvers import ITERATIONS, SOLVERS, SolverParameters
from gauge_mc.extensions.quarks.solvers.krylov import RepeatedSystem, limited, runs
from gauge_mc.extensions.quarks.vectors import SpinorField
from gauge_mc.extensions.quarks.vectors.algebra import Combine
from gauge_mc.extensions.quarks.vectors.transport import VectorsPerThread
from gauge_mc.fields.field import AlgebraField, Field
from gauge_mc.fields.sums import SlabSums
from gauge_mc.updates.monomials import Mask, ReplicaProgress

PAIR_DERIVATIVE = Kernel("pair_derivative")
DETERMINANT_DERIVATIVE = Kernel("determinant_derivative")
LOG_DETERMINANT = Kernel("log_determinant")


class DiagonalDerivative:
    """Hermitian blocks L of all sites, with dS = Re Tr (L dH) for the hermitian part H of A.

    Every computation replaces L by that of another action.

    Parameters
    ----------
    field : Field
        The links, in double precision.

    Attributes
    ----------
    blocks : tuple of StoredSlab
        L on the devices of this process.
    """

    def __init__(self, field: Field) -> None:
        self.field = field
        self.blocks: hopping.Slabs = hopping.empty_blocks(field, hopping.EXACT)

    def of_pairs(self, x: SpinorField, y: SpinorField, weights: Sequence[float]) -> hopping.Slabs:
        """Return L for the action -sum_i weight_i 2 Re X_i^dagger A Y_i."""
        for first in range(0, x.per_site, MOST_PAIRS):
            factors = list(weights[first : min(first + MOST_PAIRS, x.per_site)])
            for slab, x_slab, y_slab in zip(self.blocks, x.slabs, y.slabs, strict=True):
                slab.launch(
                    PAIR_DERIVATIVE,
                    slab.whole(),
                    hopping.EXACT.choice,
                    x=x.structure(x_slab, first),
                    y=y.structure(y_slab, first),
                    derivative=slab.buffer.address,
                    weights=(*factors, *[0.0] * (MOST_PAIRS - len(factors))),
                    pairs=len(factors),
                    first=first == 0,
                )
        return self.blocks

    def of_determinant(self, part: hopping.HermitianPart, weight: float) -> hopping.Slabs:
        """Return L for the action (weight / 2) sum over the odd sites of ln det (H^2 + m^2)."""
        for slab, blocks, inverse in zip(self.blocks, *part.stored(hopping.EXACT), strict=True):
            slab.launch(
                DETERMINANT_DERIVATIVE,
                slab.whole(),
                hopping.EXACT.choice,
                blocks=blocks.buffer.address,
                inverse=inverse.buffer.address,
                derivative=slab.buffer.address,
                mass=part.mass,
                weight=weight,
            )
        return self.blocks


def log_determinants(part: hopping.HermitianPart) -> list[SlabSums]:
    """Return the sums over the odd sites of ln det (H^2 + m^2), one for each slab."""
    sums = []
    for slab in part.stored(hopping.EXACT)[0]:
        slab_sums = SlabSums(slab, 1, 1, slab.whole(hopping.ODD), choices=(hopping.EXACT.choice,))
        slab_sums.launch(LOG_DETERMINANT, {"blocks": slab.buffer.address, "mass": part.mass})
        sums.append(slab_sums)
    return sums


HOPPING_FORCE = Kernel("hopping_force")

MOST_PAIRS = constants(source_file("dirac/force.h"))["MOST_PAIRS"]
"""Number of pairs of vectors that a launch can treat."""

PAIRS = VectorsPerThread(1, (64, 6)).choice
"""A thread treats one pair of vectors after the other."""


class HoppingForce:
    """The force of -sum_i weight_i 2 Re X_i^dagger M Y_i, in which only the hopping term changes.

    The launches are prepared once for repeated use.

    Parameters
    ----------
    operator : PreparedOperator
        The operator M, for spinors in double precision.
    force : AlgebraField
        The field to which forces F are added; see `gauge_mc.updates.monomials.Monomial.kick`.
    x, y : SpinorField
        The vectors X_i and Y_i on all sites, in double precision, as many of each.
    """

    def __init__(
        self,
        operator: hopping.PreparedOperator,
        force: AlgebraField,
        x: SpinorField,
        y: SpinorField,
    ) -> None:
        self._fields = (force, x, y)  # which own the memory
        self._kappa = operator.operator.kappa
        self._choices = (operator.storage.choice, operator.transport.reals.choice, PAIRS)
        self._launches: list[tuple[int, Any, Launch]] = []
        # The cache of a GPU holds what the threads of a block share for one pair only, and the
        # rounding errors of strict forces must not depend on the device.
        together = x.slabs[0].device.in_host_memory and not x.field.devices.strict
        most = MOST_PAIRS if together else 1
        self._extent = x.fifth or 1
        for first in range(0, x.per_site, most):
            for n in range(len(x.slabs)):
                self._prepare(operator, n, first, min(most, x.per_site - first))

    def _prepare(self, operator: hopping.PreparedOperator, n: int, first: int, pairs: int) -> None:
        """Prepare the launch for some pairs from `first` on, on slab number n of this process."""
        force, x, y = self._fields
        slab = x.slabs[n]
        arguments, launch = slab.prepared(
            HOPPING_FORCE,
            slab.whole(),
            *self._choices,
            transport=operator.transport.structure(n),
            x=x.structure(slab, first),
            y=y.structure(y.slabs[n], first),
            force=force.slabs[n].buffer.address,
            weights=(0.0,) * MOST_PAIRS,
            pairs=pairs,
        )
        self._launches.append((first, arguments, launch))

    def __call__(self, weights: Sequence[float]) -> None:
        """Add the force for the weights of all pairs; the halos of the vectors are updated.

        With a fifth direction every weight is that of all vectors of a pair along it.
        """
        _, x, y = self._fields
        weights = [weight for weight in weights for _ in range(self._extent)]
        for first, arguments, _ in self._launches:
            factors = [self._kappa * weight for weight in weights[first : first + arguments.pairs]]
            arguments.weights = (ctypes.c_double * MOST_PAIRS)(*factors)
        if len(x.layouts) > 1:
            for vectors in {id(x): x, id(y): y}.values():
                vectors.exchange_halo()
        for _, _, launch in self._launches:
            launch()

    @property
    def registers(self) -> Registers | None:
        """Register usage of the kernel on a GPU."""
        return self._fields[1].slabs[0].kernel(HOPPING_FORCE, *self._choices).registers()


FORCE_TOLERANCE = 1e-8
"""Default of the largest residual for forces, with which trajectories of conjugate gradients in
single precision are reversible to 1e-12."""

ACTION_TOLERANCE = 1e-11
"""Default of the largest residual for actions and for pseudofermions."""

MOST_HISTORY = 12
"""Largest number of earlier solutions for a start."""


@dataclass(frozen=True)
class QuarkSolver:
    """How the solutions for quark forces and actions are computed.

    Attributes
    ----------
    solver : str
        Name of a registered solver. One that uses the adjoint, such as conjugate gradients, stands
        for conjugate gradients for Mh Mh^dagger X = phi. Another one solves Mh Y = phi and then
        Mh^dagger X = Y.
    inner : str
        Precision of the iterations; residuals are those of double precision.
    force_tolerance, action_tolerance : float
        Largest norm of a residual, divided by that of the right-hand side, for forces, and for
        actions and pseudofermions. BiCGstab amplifies rounding errors of iterations in single
        precision, so that trajectories are reversible only to about the tolerance for forces, as
        with a `history`.
    iterations : int
        Largest number of iterations of a solve.
    history : int
        Number of earlier solutions of a trajectory from which the start for a force is
        extrapolated; with 0 it is zero. Otherwise forces depend on how the links have been reached,
        so that trajectories are reversible only to about the `force_tolerance`, instead of 1e-5 of
        it: choose 1e-11 for it.
    reduction : float, optional
        See `SolverParameters`.
    """

    solver: str = defaults.QUARK_SOLVER
    inner: str = defaults.INNER
    force_tolerance: float = FORCE_TOLERANCE
    action_tolerance: float = ACTION_TOLERANCE
    iterations: int = ITERATIONS
    history: int = 0
    reduction: float | None = None

    def __post_init__(self) -> None:
        SOLVERS.check(self.solver, "solver")
        if not 0 <= self.history <= MOST_HISTORY:
            raise UsageError(
                f"The history is {self.history}; give the number of earlier solutions from which "
                f"a start is extrapolated, from 0 to {MOST_HISTORY}."
            )
        for tolerance in (self.force_tolerance, self.action_tolerance):
            self.parameters(tolerance)

    def parameters(self, tolerance: float) -> SolverParameters:
        """Return the parameters of a solve."""
        limits = tolerance, self.iterations
        return SolverParameters(*limits, inner=self.inner, reduction=self.reduction)


class OddSites:
    """Set a vector on the odd sites to kappa A_oo^-1 D_oe times its part on the even sites.

    Parameters
    ----------
    operator : HoppingOperator
        The operator A - kappa D.
    vector : SpinorField
        The vector on all sites, in double precision.
    dagger : bool
        Whether to use the adjoints of A and D.
    """

    def __init__(
        self, operator: hopping.HoppingOperator, vector: SpinorField, dagger: bool = False
    ) -> None:
        self._kappa = operator.kappa
        prepared = operator.prepared(vector.storage.name)
        self._hop = prepared.prepare(vector, vector, hopping.ODD, hopping.DIVIDED, dagger=dagger)
        self._scale = Combine(vector, vector, parity=hopping.ODD)

    def __call__(self) -> None:
        """Set the vector on the odd sites."""
        self._hop()
        self._scale(self._kappa, 0)


class NormalPairs:
    """Pairs of vectors X' and Y on all sites, which follow from X and Y on the even ones.

    They have X^dagger (dMh) Y = X'^dagger (dM) Y; see `PreconditionedOperator.left_part`.

    Parameters
    ----------
    operator : HoppingOperator
        The operator M.
    even : SpinorField
        The vectors X on the even sites, in double precision.
    x, y : SpinorField
        The vectors X' and Y on all sites, in double precision, as many of each.
    """

    def __init__(
        self, operator: hopping.HoppingOperator, even: SpinorField, x: SpinorField, y: SpinorField
    ) -> None:
        self._kappa = operator.kappa
        self._take_x = operator.reduced(True).left_part(x, even)
        self._lift_x, self._lift_y = OddSites(operator, x, dagger=True), OddSites(operator, y)
        self._adjoint = operator.prepared().prepare(
            y, x, hopping.EVEN, hopping.WHOLE, x, dagger=True
        )

    def lift(self) -> None:
        """Set both on all sites, given X and Y on the even ones; see `OddSites`."""
        self._take_x()
        self._lift_x()
        self._lift_y()

    def complete(self) -> None:
        """Set X' and Y = Mh^dagger X on all sites, given X on the even ones."""
        self._take_x()
        self._lift_x()
        # M^dagger X' on the even sites, A^dagger X'_e - kappa D^dagger X'_o, is Mh^dagger X.
        self._adjoint(-self._kappa)
        self._lift_y()


class QuarkSystem:
    """The solutions X = (Mh Mh^dagger)^-1 phi and Y = Mh^-1 phi of an operator, and its memory.

    The operator's links may change between solves; call its `refresh` then.

    Parameters
    ----------
    operator : HoppingOperator
        The operator M, on links of one lattice, which may be divided, or of several replicas.
    request : QuarkSolver
        Tolerances, limits and precision.

    Attributes
    ----------
    phi : SpinorField
        The right-hand sides on the even sites, which the caller sets.
    even : SpinorField
        X on the even sites after `solve`.
    x, y : SpinorField
        X' and Y on all sites after `solve`, with X'_o = kappa A_oo^-dagger (D^dagger)_oe X'_e and
        Y_o = kappa A_oo^-1 D_oe Y_e, where X'_e is X unless Mh is divided by A (`NormalPairs`).
        Then dS = -2 Re X'^dagger (dM) Y for S = phi^dagger (Mh Mh^dagger)^-1 phi.
    """

    def __init__(self, operator: hopping.HoppingOperator, request: QuarkSolver) -> None:
        self._operator, self._request = operator, request
        empty = partial(SpinorField.empty, operator.field, fifth=operator.fifth)
        self.phi, self.even = (empty(parity=hopping.EVEN) for _ in range(2))
        self.x, self.y = (empty() for _ in range(2))
        self._reduced: dict[str, hopping.PreconditionedOperator] = {}
        self._copied: dict[range, list[Combine]] = {}
        self._pairs = NormalPairs(operator, self.even, self.x, self.y)

    def reduced(self, precision: str = hopping.EXACT.name) -> hopping.PreconditionedOperator:
        """Return Mh for spinors of some precision."""
        if precision not in self._reduced:
            self._reduced[precision] = self._operator.reduced(True, precision)
        return self._reduced[precision]

    def forget(self) -> None:
        """Begin a new trajectory: forget the solutions from which starts are extrapolated."""
        for system in self._systems:
            system.forget()

    def solve(self, tolerance: float, active: Mask, both: bool = True) -> ReplicaProgress:
        """Compute X and Y on all sites of some replicas, from earlier solutions if possible.

        Or compute Y alone on the even sites, from no earlier solutions.
        """
        progress = ReplicaProgress.begin(active.size)
        normal, *direct = self._systems
        going, stuck = active, np.zeros_like(active) if direct else active
        for system in direct[: 1 + both]:
            stagnated = system.solve(tolerance, going, progress, both)
            going, stuck = progress.left(going & ~stagnated), stuck | stagnated
        if stuck.any():
            progress.fail(
                normal.solve(tolerance, stuck, progress, both and not direct),
                f"The residual of a quark's solution does not become {tolerance:g} of the source: "
                "choose a larger tolerance.",
            )
            self._copy_x(0, 1)
            self._pairs.complete()
        if direct:
            for some in runs(going):
                for copy in self._copies(some)[: 1 + both]:
                    copy(0, 1)
            if both:
                self._pairs.lift()
        return progress

    @cached_property
    def _systems(self) -> list[RepeatedSystem]:
        """Mh Mh^dagger X = phi, then Mh Y = phi and Mh^dagger X = Y if these are solved first."""
        between = self.phi.like()

        def normal(some: range, precision: str) -> hopping.LinearOperator:
            spare = between.part(some) if precision == hopping.EXACT.name else None
            return NormalOperator(self.reduced(precision).on(some), spare)

        def direct(some: range, precision: str) -> hopping.LinearOperator:
            return self.reduced(precision).on(some)

        def adjoint(some: range, precision: str) -> hopping.LinearOperator:
            return AdjointOperator(self.reduced(precision).on(some))

        kind, history = SOLVERS[self._request.solver], self._request.history
        request = self._request.parameters(self._request.force_tolerance)
        if kind.uses_adjoint:
            return [RepeatedSystem(normal, self.phi, request, history=history)]
        first = RepeatedSystem(direct, self.phi, request, kind, history)
        second = RepeatedSystem(adjoint, first.memory.y, request, kind, history)
        return [RepeatedSystem(normal, self.phi, request), first, second]

    @cached_property
    def _copy_x(self) -> Combine:
        return Combine(self.even, self._systems[0].memory.y)

    def _copies(self, some: range) -> list[Combine]:
        """Return the copies of the solutions Y and X of two systems on some replicas."""
        if some not in self._copied:
            pairs = zip((self.y, self.even), self._systems[1:], strict=True)
            combines = [
                Combine(a.part(some), b.memory.y.part(some), parity=hopping.EVEN) for a, b in pairs
            ]
            limited(self._copied)[some] = combines
        return self._copied[some]
