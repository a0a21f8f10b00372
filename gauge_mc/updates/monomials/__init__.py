"""Monomials: the terms of the action in whose force the momenta of hybrid Monte Carlo move.

Each monomial is a subclass of `Monomial` that is registered in `MONOMIALS`. A run has the gauge
action, the monomials of its quarks, and those that it names.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from gauge_mc.devices.kernels import Kernel
from gauge_mc.errors import ConvergenceError
from gauge_mc.fields.field import AlgebraField, Field
from gauge_mc.fields.gradient_flow import LargestValues
from gauge_mc.fields.random_field import Random
from gauge_mc.fields.sums import SlabSums
from gauge_mc.files.columns import Column
from gauge_mc.options import Option
from gauge_mc.registry import Registry
from gauge_mc.updates.momenta import Energy, exact_sum, replica_sums

ADD_FORCE = Kernel("add_force")

GAUGE = "gauge"
"""Name of the gauge action among the terms of a run."""


Mask = NDArray[np.bool_]
"""Which of several replicas or vectors are meant."""


@dataclass
class Failures:
    """Replicas on which a solver has failed, and which are then left out.

    Attributes
    ----------
    errors : dict of int to ConvergenceError
        Why there is no solution, by the number of the replica.
    """

    errors: dict[int, ConvergenceError] = field(default_factory=dict, kw_only=True)

    def left(self, some: Mask) -> Mask:
        """Return those of some replicas on which none has failed."""
        running = some.copy()
        running[[*self.errors]] = False
        return running

    def check(self) -> None:
        """Refuse to go on without a solution."""
        for error in self.errors.values():
            raise error


@dataclass
class ReplicaProgress(Failures):
    """Solutions on several replicas so far, each of which is found or fails alone.

    Attributes
    ----------
    iterations : ndarray of int64, shape (replicas,)
        Number of iterations.
    """

    iterations: NDArray[np.int64]

    @classmethod
    def begin(cls, replicas: int) -> Self:
        """Return that of solutions that have not begun."""
        return cls(np.zeros(replicas, np.int64))

    def fail(self, some: Mask, reason: str) -> None:
        """Take note of why there are no solutions on some replicas."""
        for n in np.flatnonzero(some).tolist():
            self.errors[n] = ConvergenceError(reason)


class Force(NamedTuple):
    """Sizes of a force at the end of a trajectory, and the kinetic energy after its last kick.

    Attributes
    ----------
    kinetic : Energy
        -Tr P^2 summed over all links.
    mean : float
        Root of the mean over all links of |F|^2 = -2 Tr F^2.
    largest : float
        Largest |F|, rounded to single precision.
    """

    kinetic: Energy
    mean: float
    largest: float


class Monomial(ABC):
    """A term of the action, for one chain or for several.

    Parameters
    ----------
    field : Field
        The links on which the term depends, one replica for every chain, which
        `gauge_mc.updates.terms.TermLinks` updates, with their halos.
    title : str
        Name of the term, which no other one of the run has; columns of the table are named after
        it.
    **values : object
        Values of its options.

    Attributes
    ----------
    iterations : ndarray of int64, shape (chains,)
        Iterations of solvers of every chain since `draw`.
    """

    name: ClassVar[str]
    """Name by which the user chooses the monomial."""
    summary: ClassVar[str]
    """Short description, for help texts and the reference documentation."""
    options: ClassVar[tuple[Option, ...]] = ()
    """Its options. One without a usual value must be given."""
    qcdml: ClassVar[Mapping[str, Mapping[str, str]]] = {}
    """Elements of ILDG's QCDml for the term, as those of `gauge_mc.actions.Action`."""
    representation: ClassVar[str] = "fundamental"
    """Representation of the links in the term, as QCDml names it."""
    columns: ClassVar[tuple[Column, ...]] = ()
    """Columns of what it measures, in addition to those of all terms; see `measured`."""
    chosen_by: ClassVar[str] = "monomials"
    """Option of a run that chooses it."""
    solves: ClassVar[bool] = False
    """Whether it has solvers, which may fail."""
    vectors: ClassVar[int] = 1
    """Largest number of vectors on the even or odd sites, in double precision, for which a chain
    needs memory."""

    def __init__(self, field: Field, title: str, **values: Any) -> None:
        self.field, self.title, self.values = field, title, values
        self.iterations = np.zeros(self.chains, np.int64)
        self._largest = LargestValues(field)

    @property
    def chains(self) -> int:
        """Number of chains."""
        return self.field.layouts[0].replicas

    def draw(self, randoms: Sequence[Random], failures: Failures) -> list[Energy]:
        """Draw the fields on which the term depends besides the links, if there are any.

        Parameters
        ----------
        randoms : sequence of Random
            The random numbers of every chain.
        failures : Failures
            Chains for which nothing is drawn, to which those are added in which a solver fails.

        Returns
        -------
        list of Energy
            The value of the term for every chain; it is arbitrary if a solver has failed.
        """
        self.iterations[:] = 0
        return self._draw(randoms, failures)

    def _draw(self, randoms: Sequence[Random], failures: Failures) -> list[Energy]:
        """Draw fields; see `draw`. By default the term depends on the links only."""
        return self.actions(failures)

    @abstractmethod
    def actions(self, failures: Failures) -> list[Energy]:
        """Return the value of the term for every chain; it is arbitrary if a solver has failed."""

    @abstractmethod
    def add_force(self, force: AlgebraField, wanted: Mask, failures: Failures) -> None:
        """Add the forces F of some chains; what is added to those of others is arbitrary.

        With it dU/dt = P U and dP/dt = F(U) conserve -Tr P^2 + S(U).
        """

    def _left(self, failures: Failures) -> Mask:
        """Return the chains in which no solver has failed."""
        return failures.left(np.ones(self.chains, np.bool_))

    def _take(self, progress: ReplicaProgress, mask: Mask, failures: Failures) -> None:
        """Count iterations of solutions, and take note of those that there are not."""
        failures.errors.update(progress.errors)
        self.iterations += np.where(failures.left(mask), progress.iterations, 0)

    def measured(self, chain: int) -> tuple[float, ...]:
        """Return values of `columns` for a chain."""
        return ()

    def kick(
        self,
        force: AlgebraField,
        momenta: AlgebraField,
        sizes: Mapping[int, float],
        failures: Failures,
    ) -> dict[int, Force]:
        """Change the momenta of some chains, P <- P + size F(U).

        Parameters
        ----------
        force : AlgebraField
            Memory for the forces, which are 0 before and after.
        momenta : AlgebraField
            The momenta.
        sizes : mapping of int to float
            The sizes of the kicks by the number of the chain.
        failures : Failures
            Chains without force, to which those are added in which a solver fails.

        Returns
        -------
        dict of int to Force
            The size of the forces and the kinetic energy, by the number of the chain.
        """
        mask = np.zeros(self.chains, np.bool_)
        mask[[*sizes]] = True
        mask = failures.left(mask)
        forces: dict[int, Force] = {}
        if not mask.any():
            return forces
        self.add_force(force, mask, failures)
        self._largest.clear()
        acting = failures.left(mask)
        for some, size in alike({n: sizes[n] for n in np.flatnonzero(acting).tolist()}):
            forces |= self._add(force, momenta, some, size)
        if not acting.all():
            force.clear()
        return forces

    def _add(
        self, force: AlgebraField, momenta: AlgebraField, some: range, size: float
    ) -> dict[int, Force]:
        """Do the kicks of consecutive chains, whose sizes are the same."""
        sums = [SlabSums(slab, 2, 1, slab.whole(some=some), wide=True) for slab in momenta.slabs]
        for n, slab_sums in enumerate(sums):
            fields = {
                "momenta": slab_sums.slab.buffer.address,
                "force": force.slabs[n].buffer.address,
            }
            largest = self._largest.address(n)
            slab_sums.launch(ADD_FORCE, {**fields, "size": size, "largest": largest})
        totals = replica_sums(momenta.devices, sums, len(some))
        most = self._largest.by_slice().reshape(self.chains, -1)
        forces = {}
        for n, (kinetic, squares) in zip(some, np.moveaxis(totals, -1, 1), strict=True):
            mean = math.sqrt(exact_sum(squares) / self.field.lattice.links)
            forces[n] = Force(Energy.of(kinetic), mean, float(most[n].max()))
        return forces


def alike(sizes: Mapping[int, float]) -> Iterator[tuple[range, float]]:
    """Yield ranges of consecutive chains with one size, given sizes by ascending numbers."""
    for (_, size), group in groupby(enumerate(sizes.items()), lambda x: (x[1][0] - x[0], x[1][1])):
        chains = [n for _, (n, _) in group]
        yield range(chains[0], chains[-1] + 1), size


MONOMIALS: Registry[type[Monomial]] = Registry("monomial", __name__, Monomial)
