"""The force of the hopping term of a Dirac operator on the momenta."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from gauge_mc.devices.base import Launch, Registers, repeated
from gauge_mc.devices.kernels import Kernel
from gauge_mc.devices.source import constants, source_folder
from gauge_mc.fields.algebra_field import AlgebraField
from gauge_mc.quarks.matrices.hopping import PreparedOperator
from gauge_mc.quarks.vectors.spinors import SpinorField
from gauge_mc.quarks.vectors.transport import VectorsPerThread

HOPPING_FORCE = Kernel("hopping_force")

MOST_PAIRS = constants(source_folder() / "dirac" / "force.h")["MOST_PAIRS"]
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
        self, operator: PreparedOperator, force: AlgebraField, x: SpinorField, y: SpinorField
    ) -> None:
        self._fields = (force, x, y)  # which own the memory
        self._kappa = operator.operator.kappa
        self._choices = (operator.storage.choice, operator.transport.reals.choice, PAIRS)
        self._steps: list[Any] = []
        self._launches: list[Launch] = []
        # The cache of a GPU holds what the threads of a block share for one pair only, and the
        # rounding errors of strict forces must not depend on the device.
        together = x.slabs[0].device.in_host_memory and not x.field.devices.strict
        most = MOST_PAIRS if together else 1
        self._extent = x.fifth or 1
        for first in range(0, x.per_site, most):
            for n in range(len(x.slabs)):
                self._prepare(operator, n, first, min(most, x.per_site - first))

    def _prepare(self, operator: PreparedOperator, n: int, first: int, pairs: int) -> None:
        """Prepare the launch for some pairs from `first` on, on slab number n of this process."""
        force, x, y = self._fields
        slab = x.slabs[n]
        arguments = slab.arguments(
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
        steps = repeated([arguments], 1)
        self._steps.append((first, steps))
        self._launches.append(slab.kernel(HOPPING_FORCE, *self._choices).prepared(steps))

    def __call__(self, weights: Sequence[float]) -> None:
        """Add the force for the weights of all pairs; the halos of the vectors are updated.

        With a fifth direction every weight is that of all vectors of a pair along it.
        """
        _, x, y = self._fields
        weights = [one for one in weights for _ in range(self._extent)]
        for first, steps in self._steps:
            own = [self._kappa * one for one in weights[first : first + steps[0].pairs]]
            steps[0].weights = (ctypes.c_double * MOST_PAIRS)(*own)
        if len(x.layouts) > 1:
            for vectors in {id(x): x, id(y): y}.values():
                vectors.exchange_halo()
        for launch in self._launches:
            launch()

    @property
    def registers(self) -> Registers | None:
        """Register usage of the kernel on a GPU."""
        return self._fields[1].slabs[0].kernel(HOPPING_FORCE, *self._choices).registers()
