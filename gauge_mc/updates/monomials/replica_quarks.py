"""Terms of the action of quarks for several chains at once, each with links of its own."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from gauge_mc.domain.layout import BOTH_PARITIES
from gauge_mc.domain.slab import work
from gauge_mc.fields.algebra_field import AlgebraField
from gauge_mc.fields.field import Field
from gauge_mc.fields.field_strength import LargestValues
from gauge_mc.fields.random_field import Random
from gauge_mc.fields.sums import SlabSums
from gauge_mc.quarks.forces.normal import OddSites, QuarkSolver
from gauge_mc.quarks.forces.pseudofermions import draw_vectors
from gauge_mc.quarks.forces.replica_solver import ReplicaQuarkSystem
from gauge_mc.quarks.matrices.linear import EVEN
from gauge_mc.quarks.operators import DiracOperator
from gauge_mc.quarks.solvers import Failures, Mask, ReplicaProgress
from gauge_mc.quarks.vectors.algebra import Combine
from gauge_mc.quarks.vectors.spinors import SpinorField
from gauge_mc.updates.energy import Energy, exact_sum, replica_sums
from gauge_mc.updates.monomials import Force
from gauge_mc.updates.monomials.determinant import Determinant
from gauge_mc.updates.monomials.quark_forces import ADD_FORCE, local_norms


class ReplicaTerm(ABC):
    """A term of the action of quarks of several chains; see `QuarkMonomial`.

    Parameters
    ----------
    field : Field
        The links of the operators, one replica for every chain, which
        `gauge_mc.updates.quark_links.QuarkLinks` updates.
    name : str
        Name of the term.

    Attributes
    ----------
    iterations : ndarray of int64, shape (chains,)
        Iterations of solvers of every chain since `draw`.
    """

    def __init__(self, field: Field, name: str) -> None:
        self.field, self.name = field, name
        self.iterations = np.zeros(self.chains, np.int64)
        self._largest = LargestValues(field)

    @property
    def chains(self) -> int:
        """Number of chains."""
        return self.field.layouts[0].replicas

    def draw(self, randoms: Sequence[Random], failures: Failures) -> list[Energy]:
        """Draw the pseudofermions of every chain, and return the values of the term."""
        self.iterations = np.zeros(self.chains, np.int64)
        return self._draw(randoms, failures)

    @abstractmethod
    def _draw(self, randoms: Sequence[Random], failures: Failures) -> list[Energy]:
        """Draw the pseudofermions; see `draw`."""

    @abstractmethod
    def actions(self, failures: Failures) -> list[Energy]:
        """Return the value of the term for every chain; it is arbitrary if a solver has failed."""

    @abstractmethod
    def add_force(self, force: AlgebraField, wanted: Mask, failures: Failures) -> None:
        """Add the forces of some chains; what is added to those of others is arbitrary."""

    def measured(self, chain: int) -> tuple[float, ...]:
        """Return what the term has measured for a chain; see `Monomial.measured`."""
        return ()

    def kick(
        self,
        force: AlgebraField,
        momenta: AlgebraField,
        sizes: Mapping[int, float],
        failures: Failures,
    ) -> dict[int, Force]:
        """Change the momenta of some chains, P <- P + size F.

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
        wanted = np.zeros(self.chains, np.bool_)
        wanted[[*sizes]] = True
        self.add_force(force, failures.left(wanted), failures)
        self._largest.clear()
        found: dict[int, Force] = {}
        acting = failures.left(wanted)
        for some, size in _alike(acting, sizes):
            found |= self._add(force, momenta, some, size)
        if not acting.all():
            force.clear()
        return found

    def _add(
        self, force: AlgebraField, momenta: AlgebraField, some: range, size: float
    ) -> dict[int, Force]:
        """Do the kicks of consecutive chains, whose sizes are the same."""
        slab, lattice = momenta.slabs[0], self.field.lattice
        period = slab.layout.period
        over = work(some.start * period, 1, len(some) * period, BOTH_PARITIES)
        sums = SlabSums(slab, 2, 1, over, wide=True)
        sums.launch(
            ADD_FORCE,
            {
                "momenta": slab.buffer.address,
                "force": force.slabs[0].buffer.address,
                "size": size,
                "largest": self._largest.address(0),
            },
        )
        own = replica_sums(momenta.devices, [sums], len(some))
        largest = self._largest.by_slice().reshape(self.chains, -1)
        found = {}
        for n, (kinetic, squares) in zip(some, np.moveaxis(own, -1, 1), strict=True):
            mean = math.sqrt(exact_sum(squares) / lattice.links)
            found[n] = Force(Energy.of(kinetic), mean, float(largest[n].max()))
        return found

    def _take(self, found: ReplicaProgress, wanted: Mask, failures: Failures) -> None:
        """Count iterations of solutions, and take note of those that there are not."""
        failures.errors.update(found.errors)
        self.iterations += np.where(failures.left(wanted), found.iterations, 0)


class ReplicaTwoFlavours(ReplicaTerm):
    """The term of `TwoFlavours` for several chains.

    Parameters
    ----------
    operator, request, number, name
        See `gauge_mc.updates.monomials.two_flavours.TwoFlavours`.
    """

    def __init__(
        self, operator: DiracOperator, request: QuarkSolver, number: int, name: str
    ) -> None:
        super().__init__(operator.field, name)
        self._operator, self._request, self._number = operator, request, number
        self._system = ReplicaQuarkSystem(operator, request)
        self._eta = SpinorField.empty(operator.field, parity=EVEN)
        self._multiply = self._system.reduced().apply(self._system.phi, self._eta)

    def _draw(self, randoms: Sequence[Random], failures: Failures) -> list[Energy]:
        """Draw phi = Mh eta, for normal random vectors eta; see `ReplicaTerm.draw`."""
        draw_all(self._eta, randoms, self._number, failures)
        self._multiply()
        return local_norms(self._eta)

    def actions(self, failures: Failures) -> list[Energy]:
        """Return |Mh^-1 phi|^2; see `ReplicaTerm.actions`."""
        wanted = failures.left(everywhere(self.chains))
        found = self._system.solve(self._request.action_tolerance, wanted)
        self._take(found, wanted, failures)
        return local_norms(self._system.y)

    def add_force(self, force: AlgebraField, wanted: Mask, failures: Failures) -> None:
        """Add the forces; see `ReplicaTerm.add_force`."""
        system = self._system
        self._take(system.solve(self._request.force_tolerance, wanted), wanted, failures)
        self._operator.add_force(force, system.x, system.y, [1.0])


class ReplicaDeterminant(ReplicaTerm):
    """The term of `Determinant` for several chains.

    Parameters
    ----------
    operator, flavours, name
        See `gauge_mc.updates.monomials.determinant.Determinant`.
    """

    def __init__(self, operator: DiracOperator, flavours: int, name: str) -> None:
        super().__init__(operator.field, name)
        self._determinant = Determinant(operator, flavours, name)

    def _draw(self, randoms: Sequence[Random], failures: Failures) -> list[Energy]:
        """Draw nothing; see `ReplicaTerm.draw`."""
        return self.actions(failures)

    def actions(self, failures: Failures) -> list[Energy]:
        """Return the value of the term for every chain."""
        return self._determinant.actions()

    def add_force(self, force: AlgebraField, wanted: Mask, failures: Failures) -> None:
        """Add the forces of all chains."""
        self._determinant.add_force(force)


class ReplicaRatio(ReplicaTerm):
    """The term of `Ratio` for several chains.

    Parameters
    ----------
    light, heavy, request, number, name
        See `gauge_mc.updates.monomials.ratio.Ratio`.
    """

    def __init__(
        self,
        light: DiracOperator,
        heavy: DiracOperator,
        request: QuarkSolver,
        number: int,
        name: str,
    ) -> None:
        super().__init__(light.field, name)
        self._light, self._heavy = light, heavy
        self._request, self._number = request, number
        self._system = ReplicaQuarkSystem(light, request)
        self._drawing = ReplicaQuarkSystem(heavy, request)
        self._eta = SpinorField.empty(light.field, parity=EVEN)
        # phi and X on all sites, whose odd parts are those of the heavy operator.
        self._phi, self._x = (SpinorField.empty(light.field) for _ in range(2))
        self._lift_phi = OddSites(heavy, self._phi)
        self._lift_x = OddSites(heavy, self._x, dagger=True)
        self._copy_x = Combine(self._x, self._system.x, parity=EVEN)
        self._copy_phi = Combine(self._phi, self._drawing.y, parity=EVEN)
        self._multiply_eta = self._system.reduced().apply(self._drawing.phi, self._eta)
        self._multiply_phi = self._drawing.reduced().apply(self._system.phi, self._phi)

    def _draw(self, randoms: Sequence[Random], failures: Failures) -> list[Energy]:
        """Draw phi = Mh2^-1 Mh1 eta, for normal random eta; see `ReplicaTerm.draw`."""
        wanted = draw_all(self._eta, randoms, self._number, failures)
        self._multiply_eta()
        found = self._drawing.solve(self._request.action_tolerance, wanted)
        self._take(found, wanted, failures)
        self._copy_phi(0, 1)
        return local_norms(self._eta)

    def actions(self, failures: Failures) -> list[Energy]:
        """Return |Mh1^-1 Mh2 phi|^2; see `ReplicaTerm.actions`."""
        self._multiply_phi()
        wanted = failures.left(everywhere(self.chains))
        found = self._system.solve(self._request.action_tolerance, wanted)
        self._take(found, wanted, failures)
        return local_norms(self._system.y)

    def add_force(self, force: AlgebraField, wanted: Mask, failures: Failures) -> None:
        """Add the forces; see `ReplicaTerm.add_force` and `Ratio.add_force`."""
        self._multiply_phi()
        system = self._system
        self._take(system.solve(self._request.force_tolerance, wanted), wanted, failures)
        self._light.add_force(force, system.x, system.y, [1.0])
        self._copy_x(0, 1)
        self._lift_x()
        self._lift_phi()
        self._heavy.add_force(force, self._x, self._phi, [-1.0])


def everywhere(chains: int) -> NDArray[np.bool_]:
    """Return the mask of all chains."""
    return np.ones(chains, np.bool_)


def draw_all(
    vectors: SpinorField, randoms: Sequence[Random], number: int, failures: Failures
) -> Mask:
    """Draw the vectors of the chains without failures as `draw_vectors` does, and return these."""
    wanted = failures.left(np.ones(vectors.replicas, np.bool_))
    for n in np.flatnonzero(wanted).tolist():
        own = vectors.part(range(n, n + 1)) if vectors.replicas > 1 else vectors
        draw_vectors(own, randoms[n], number)
    return wanted


def _alike(wanted: Mask, sizes: Mapping[int, float]) -> Iterator[tuple[range, float]]:
    """Yield consecutive chains whose kicks have the same size, with this size."""
    numbers = enumerate(np.flatnonzero(wanted).tolist())
    for (_, size), group in groupby(numbers, lambda one: (one[1] - one[0], sizes[one[1]])):
        own = [n for _, n in group]
        yield range(own[0], own[-1] + 1), size
