"""True residuals of solutions, and when they are computed.

Reliable updates and defect correction (M. A. Clark et al., arXiv:0911.3191) iterate in lower
precision, and replace the iterated residual by the true one in double precision now and then.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gauge_mc.extensions.quarks.hopping import Apply, LinearOperator
from gauge_mc.extensions.quarks.preconditioned import Deflation
from gauge_mc.extensions.quarks.solvers.device_iterations import DeviceIterations
from gauge_mc.extensions.quarks.vectors.algebra import Advance, Combine, Multiply
from gauge_mc.extensions.quarks.vectors.spinors import SpinorField
from gauge_mc.updates.monomials import Mask

Norms = NDArray[np.float64]
Counts = NDArray[np.int64]

SLOWEST = 0.99

STAGNATION = 2
"""Number of true residuals in a row of which none is smaller, by the factor `SMALLER`, than the
smallest of its vector before, because of rounding errors."""

SMALLER = 0.8

ROUNDED = 2.0
"""Ratio of the true residual to the iterated one beyond which rounding errors matter."""

LARGEST_GROWTH = 1e3
"""Growth of a residual, since the last true one, beyond which the correction is not used."""


def in_groups(mask: Mask, groups: int) -> Mask:
    """Return the groups of consecutive vectors in which something holds for one of them."""
    return np.asarray(mask.reshape(groups, -1).any(axis=1))


class ResidualWatch:
    """Norms of residuals in a search, from which follows when the true ones are computed.

    Parameters
    ----------
    reduction : float
        See `SolverParameters.falls`.
    most : int
        Largest number of iterations.
    norms, targets : ndarray of float64, shape (count,)
        Norms of the true residuals at the beginning, and those of solutions.
    plateau : int
        See `Solver.plateau`.
    groups : int
        Number of groups of vectors, each of which takes its decisions together: one vector that
        needs its true residual asks for those of its group, which stagnates only if none of its
        residuals becomes smaller.

    Attributes
    ----------
    smallest : ndarray of float64, shape (count,)
        The smallest true residuals so far.
    """

    def __init__(
        self,
        reduction: float,
        most: int,
        norms: Norms,
        targets: Norms,
        plateau: int,
        groups: int,
    ) -> None:
        self._reduction, self._most = reduction, most
        self._targets, self._plateau = targets, plateau
        self._norms = self._highest = self._lowest = self.smallest = norms.copy()
        self._since, self._fails = (np.zeros(groups, np.int64) for _ in range(2))
        self._each = norms.size // groups

    def asks(self, now: Norms, going: Mask, iterations: Counts) -> tuple[Mask, Mask]:
        """Return the groups that need true residuals, and those that do because of the end."""
        self._highest = np.maximum(self._highest, now)
        slower = now < SLOWEST * self._lowest
        self._since = np.where(self._any(slower & going), 0, self._since + 1)
        self._lowest = np.where(slower, now, self._lowest)
        low = (now < self._reduction * self._highest) | (now <= self._targets)
        ended = (self._since >= self._plateau) | (iterations >= self._most)
        grown = now > LARGEST_GROWTH * self._norms
        return self._any((low | grown) & going) | ended, ended

    def run_ahead(
        self,
        ahead: DeviceIterations,
        columns: slice,
        live: Mask,
        norm2: NDArray[Any],
        now: Norms,
        iterations: Counts,
    ) -> bool:
        """Iterate on some vectors as long as nothing has to be decided."""
        since, counts = self._since.repeat(self._each), iterations.repeat(self._each)
        highest, lowest = self._highest.copy(), self._lowest.copy()
        history = {"HIGHEST": highest, "LOWEST": lowest, "SINCE": since, "ITERATIONS": counts}
        limits: dict[str, Any] = {"PLATEAU": self._plateau, "MOST": self._most}
        if self._each > 1:  # no earlier than now is the plateau of all vectors reached
            plateau = counts + self._plateau - since
            limits = {"PLATEAU": np.inf, "MOST": np.minimum(self._most, plateau)}
        rows = (
            limits
            | history
            | {
                "LIVE": live,
                "NORM2": norm2,
                "SQUARES": np.square(now),
                "TARGET": self._targets,
                "GROWN": LARGEST_GROWTH * self._norms,
                "REDUCTION": self._reduction,
                "SLOWEST": SLOWEST,
            }
        )
        some = {name: x[columns] if np.ndim(x) else x for name, x in rows.items()}
        has_begun = ahead.run(**some)
        for name, values in history.items():
            values[columns] = ahead[name]
        self._highest, self._lowest = highest, lowest
        self._since = since.reshape(-1, self._each).min(axis=1)
        norm2[columns] = ahead.complex("NORM2") if np.iscomplexobj(norm2) else ahead["NORM2"]
        iterations[:] = counts.reshape(-1, self._each).max(axis=1)
        if not ahead.knows_residual:
            now[columns] = np.sqrt(ahead["SQUARES"])
        return has_begun

    def usable(self, now: Norms) -> Mask:
        """Return whether corrections with these iterated residuals may be added."""
        return np.asarray(now <= LARGEST_GROWTH * self._norms)

    def take(self, norms: Norms, now: Norms, going: Mask, rounded: Mask, again: Mask) -> None:
        """Take note of the true residuals of some groups."""
        better = self._any(going & (norms < SMALLER * self.smallest))
        # A residual that is as large as the iterated one comes from a peak, not from rounding.
        rounded = rounded | self._any(going & (norms > ROUNDED * now))
        self._fails = np.where(again, np.where(better, 0, self._fails + rounded), self._fails)
        self._since = np.where(again, 0, self._since)
        some = again.repeat(self._each)
        self.smallest = np.where(some, np.minimum(self.smallest, norms), self.smallest)
        self._norms = norms.copy()
        self._highest = np.where(some, norms, self._highest)
        self._lowest = np.where(some, norms, self._lowest)

    @property
    def stagnates(self) -> Mask:
        """Groups whose residuals do not become smaller because of rounding errors."""
        return np.asarray(self._fails >= STAGNATION)

    def _any(self, mask: Mask) -> Mask:
        return in_groups(mask, self._since.size)


class Residual:
    """The current solution y of the preconditioned system, and its true residual.

    Parameters
    ----------
    b : SpinorField
        The right-hand sides on the even sites, in double precision.
    operator : LinearOperator
        The operator in double precision.
    parent : Residual, optional
        Residual of all replicas, whose memory this one shares for those whose right-hand sides are
        b; call `restart` first. By default the memory is new.
    some : range
        Replicas of `parent` that b belongs to.
    deflation : Deflation, optional
        Low modes, along which the solution is completed whenever the true residual is computed.

    Attributes
    ----------
    y, r : SpinorField
        The solutions, and their true residuals.
    norms, first : ndarray of float64, shape (count,)
        The norms of the true residuals, and of the right-hand sides.
    """

    def __init__(
        self,
        b: SpinorField,
        operator: LinearOperator,
        parent: Residual | None = None,
        some: range = range(0),
        deflation: Deflation | None = None,
    ) -> None:
        self.fields: tuple[SpinorField, ...]
        self.norms: Norms
        if parent:
            self.fields = tuple(x.part(some) for x in parent.fields)
            self.norms = parent.norms[some.start : some.stop]
        else:
            self.fields, self.norms = tuple(b.like() for _ in range(4)), np.zeros(b.count)
        self.y, self.r, product, self._more = self.fields
        self._apply: Apply = operator.apply(product, self.y)
        self._subtract = Advance(self.r, product)
        self._add = Combine(self.y, self._more)
        self._begin = self.r.copying(b)
        self._take: dict[int, Apply] = {}
        """Copies of corrections by their identity; the calls keep these."""
        self._b_b = Multiply(b)
        self._deflate = deflation and deflation.correction(operator, self.y, self.r)
        if not parent:
            self.first: Norms = np.sqrt(self._b_b().norm2)
            self.update()
            self._complete(np.zeros(b.count, np.bool_))

    def start_from(self, previous: Residual) -> None:
        """Begin with the solution of the same system in another form, if it is better than 0."""
        if (previous.norms < previous.first).all():
            self.y.copy(previous.y)
            self.update()

    def restart(self) -> None:
        """Begin with y = 0, after the right-hand sides have changed."""
        self._add(0, 0)
        self._begin()
        self.first = np.sqrt(self._b_b().norm2)
        self.norms[:] = self.first

    def forget(self) -> None:
        """Free the memory of all corrections."""
        self._take.clear()

    def add(self, x: SpinorField, converged: Mask) -> None:
        """Add a correction in any precision, except to vectors that are done."""
        if id(x) not in self._take:
            self._take[id(x)] = self._more.copying(x)
        self._take[id(x)]()
        self._add(1, np.where(converged, 0.0, 1.0))
        self.update()
        self._complete(converged)

    def update(self) -> None:
        """Compute the true residual and its norms."""
        self._begin()
        self._apply()
        self._subtract(-1)
        self.norms[:] = np.sqrt(self._subtract.products().norm2)

    def _complete(self, converged: Mask) -> None:
        """Add what solutions that are not done lack along low modes."""
        if self._deflate:
            self._deflate(converged)
            self.update()
