"""Solutions on one lattice or several, each with links of its own, again and again.

Fields of links have one replica for every lattice, and spinor fields one vector on each. Every
vector has its own coefficients, true residuals, history and end, so that its bits are those that it
has alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, partial

import numpy as np

from gauge_mc.extensions.quarks import solvers
from gauge_mc.extensions.quarks.hopping import LinearOperator
from gauge_mc.extensions.quarks.solvers.krylov import NormalGradients, limited, runs
from gauge_mc.extensions.quarks.solvers.residuals import Residual
from gauge_mc.extensions.quarks.vectors.algebra import PairAlgebra
from gauge_mc.extensions.quarks.vectors.spinors import SpinorField, precisions_from
from gauge_mc.quoting import square
from gauge_mc.updates.monomials import Mask, ReplicaProgress

EXACT = "double"
"""Precision of residuals."""

LEAST_PART = 1e-10
"""Part of the product of an earlier solution that must be linearly independent of the others."""


class SolutionHistory:
    """Earlier solutions of A x = b, from which a start is chosen with the smallest residual.

    It is the minimal residual extrapolation of R. C. Brower, T. Ivanenko, A. R. Levi and
    K. N. Orginos, Nucl. Phys. B 484 (1997) 353 (hep-lat/9509012). A start costs as many
    applications of A as there are solutions.

    Parameters
    ----------
    operator : LinearOperator
        The operator A on the even sites, in double precision.
    x, b : SpinorField
        The solution and the right-hand side, in double precision.
    length : int
        Largest number of solutions that are kept.
    """

    def __init__(
        self, operator: LinearOperator, x: SpinorField, b: SpinorField, length: int
    ) -> None:
        self._x, self._b, self._rest = x, b, b.like()
        self._solutions, *basis = ([x.like() for _ in range(length)] for _ in range(3))
        self._pairs = list(zip(*basis, strict=True))
        self._apply = [operator.apply(product, y) for y, product in self._pairs]
        self._algebra, self._newest, self._known = PairAlgebra(), 0, 0

    def clear(self) -> None:
        """Forget all solutions."""
        self._known = 0

    def add(self) -> None:
        """Keep the solution x, in the place of the oldest one if there are too many."""
        if self._solutions:
            self._newest = (self._newest + 1) % len(self._solutions)
            self._known = min(self._known + 1, len(self._solutions))
            self._algebra.combine(self._solutions[self._newest], 0, self._x, 1)

    def extrapolate(self) -> None:
        """Set x to the combination of the solutions with the smallest norm of b - A x.

        The products of the solutions with A are made orthogonal, those of the newest one first.
        """
        combine, products, rest = self._algebra.combine, self._algebra.products, self._rest
        combine(self._x, 0, self._b, 0)
        combine(rest, 0, self._b, 1)
        used: list[tuple[SpinorField, SpinorField]] = []
        for n, (y, image) in enumerate(self._pairs[: self._known]):
            combine(y, 0, self._solutions[self._newest - n], 1)
            self._apply[n]()
            before = products(image).norm2
            for earlier, its_image in used:
                overlap = products(image, its_image).mixed
                combine(image, 1, its_image, -overlap)
                combine(y, 1, earlier, -overlap)
            norm2 = products(image).norm2
            if (norm2 > square(LEAST_PART) * before).all():
                for vector in (y, image):
                    combine(vector, 1 / np.sqrt(norm2), self._b, 0)
                part = products(rest, image).mixed  # since images lose their orthogonality
                combine(self._x, 1, y, part)
                combine(rest, 1, image, -part)
                used.append((y, image))


class RepeatedSystem:
    """A system A x = b on the even sites, which is solved again and again in the same memory.

    Parameters
    ----------
    operator : callable
        Returns A for vectors on some replicas in a precision.
    b : SpinorField
        The right-hand sides on the even sites, in double precision.
    request : SolverParameters
        Limits and precision.
    kind : type of Solver, optional
        The kind of solver, which finds the solutions on one replica after the other. By default
        these are conjugate gradients for a `NormalOperator` on all replicas at once.
    history : int
        Number of earlier solutions on a replica from which a start is extrapolated.
    """

    def __init__(
        self,
        operator: Callable[[range, str], LinearOperator],
        b: SpinorField,
        request: solvers.SolverParameters,
        kind: type[solvers.Solver] | None = None,
        history: int = 0,
    ) -> None:
        self.operator, self._b, self._request, self._kind = operator, b, request, kind
        self._history = history
        self._residuals: dict[range, Residual] = {}
        self._solvers: dict[tuple[str, range], solvers.Solver] = {}

    @cached_property
    def memory(self) -> Residual:
        """The solutions on all replicas with their true residuals."""
        return Residual(self._b, self.operator(range(self._b.replicas), EXACT))

    def residual(self, some: range) -> Residual:
        """Return the solutions on some replicas with their true residuals."""
        if some not in self._residuals:
            system = self._b.part(some), self.operator(some, EXACT)
            limited(self._residuals)[some] = Residual(*system, self.memory, some)
        return self._residuals[some]

    def forget(self) -> None:
        """Forget the solutions from which starts are extrapolated."""
        for history in self._histories:
            history.clear()

    def solve(
        self, tolerance: float, active: Mask, total: ReplicaProgress, extrapolated: bool
    ) -> Mask:
        """Solve the system on some replicas."""
        for some in runs(active):
            self.residual(some).restart()
        targets, progress = tolerance * self.memory.norms, solvers.SolverProgress.begin(active.size)
        bad = active & ~np.isfinite(targets)
        progress.fail(bad, "The right-hand side contains a value that is not a number.")
        remaining = active & ~bad
        histories = self._histories if extrapolated else []
        for n, history in enumerate(histories):
            if remaining[n]:
                history.extrapolate()
                self.residual(range(n, n + 1)).update()
        for inner in precisions_from(self._request.inner):
            parameters = replace(self._request, tolerance=tolerance, inner=inner)
            for some in self._together:
                part = slice(some.start, some.stop)
                if remaining[part].any():
                    solver = self._solver(some, parameters)
                    state = solvers.SolverProgress(progress.iterations[part])
                    search = solvers.SolutionSearch(solver, targets[part], state, remaining[part])
                    remaining[part] = search.run()
                    progress.errors |= {some.start + n: x for n, x in state.errors.items()}
        total.iterations += progress.iterations
        total.errors.update(progress.errors)
        for n, history in enumerate(histories):
            if progress.left(active & ~remaining)[n]:
                history.add()
        return remaining

    @property
    def _together(self) -> list[range]:
        """Replicas for whose solutions a solver iterates together."""
        number = self._b.replicas
        return [range(n, n + 1) for n in range(number)] if self._kind else [range(number)]

    def _solver(self, some: range, request: solvers.SolverParameters) -> solvers.Solver:
        """Return the solver for some replicas in a precision, with its memory."""
        key = request.inner, some
        if key not in self._solvers:
            system = self.residual(some), self.operator(some, request.inner), request
            gradients = partial(NormalGradients, on=self._on)
            self._solvers[key] = (self._kind or gradients)(*system)
        self._solvers[key].request = request
        return self._solvers[key]

    def _on(self, some: range, inner: str) -> tuple[Residual, LinearOperator]:
        return self.residual(some), self.operator(some, inner)

    @cached_property
    def _histories(self) -> list[SolutionHistory]:
        """The earlier solutions on every replica, if they are wanted."""
        length, histories = self._history, []
        for n in range(self._b.replicas if length else 0):
            some = range(n, n + 1)
            vectors = self.memory.y.part(some), self._b.part(some)
            histories.append(SolutionHistory(self.operator(some, EXACT), *vectors, length))
        return histories
