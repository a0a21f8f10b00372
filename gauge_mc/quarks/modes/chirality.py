"""The hermitian Wilson operator gamma_5 M, and combinations of vectors with gamma_5."""

from __future__ import annotations

import ctypes
import math

from gauge_mc.devices.base import Launch, repeated
from gauge_mc.devices.kernels import Kernel
from gauge_mc.errors import UsageError
from gauge_mc.quarks.matrices.hermitian import HERMITIAN, UNIT
from gauge_mc.quarks.matrices.hopping import (
    REFLECTED,
    PreparedOperator,
    Recurrence,
    parities_at_once,
)
from gauge_mc.quarks.matrices.linear import EVEN, ODD, Apply, LinearOperator, Recur
from gauge_mc.quarks.operators import HOPPING_PARAMETER, DiracOperator
from gauge_mc.quarks.vectors.spinors import SpinorField

COMBINE_CHIRALITIES = Kernel("combine_chiralities")

BOTH = (EVEN, ODD)


class HermitianOperator(LinearOperator):
    """Q = gamma_5 M on all sites, with the Wilson operator M = A - kappa D.

    It is hermitian, and costs as much as M: the last step of a hop multiplies by gamma_5. Since
    M / (2 kappa) is the Wilson operator with the bare mass m0 = 1 / (2 kappa) - 4, Q / (2 kappa) is
    H = gamma_5 (D_w - rho) with rho = -m0.

    Parameters
    ----------
    prepared : PreparedOperator
        M, for spinors in one type of storage.

    Raises
    ------
    UsageError
        If gamma_5 M is not hermitian, as with a twisted mass or a fifth direction.
    """

    parities = BOTH

    def __init__(self, prepared: PreparedOperator) -> None:
        operator = prepared.operator
        if (
            not isinstance(operator, DiracOperator)
            or operator.quark != HOPPING_PARAMETER
            or operator.prepared_kind is not PreparedOperator
            or operator.diagonal not in (UNIT, HERMITIAN)
            or operator.hermitian.mass != 0
        ):
            raise UsageError(
                "gamma_5 times the operator is not hermitian; choose a Wilson operator without a "
                "twisted mass."
            )
        self.prepared = prepared

    def apply(self, target: SpinorField, source: SpinorField, dagger: bool = False) -> Apply:
        """Return a call that computes the product; see `LinearOperator.apply`."""
        kappa = self.prepared.operator.kappa
        parities = parities_at_once(source)
        hops = [self.prepared.prepare(target, source, p, REFLECTED, source) for p in parities]

        def call() -> None:
            for hop in hops:
                hop(-kappa)

        return call

    def shifted(
        self, target: SpinorField, source: SpinorField, older: SpinorField, constant: SpinorField
    ) -> Recur:
        """Return a call that computes a older + scale (Q + shift) source + c constant."""
        kappa, more = self.prepared.operator.kappa, Recurrence(older, constant)
        prepare, parities = self.prepared.prepare_recurrence, parities_at_once(source)
        hops = [prepare(target, source, p, source, more) for p in parities]

        def call(a: float, scale: float, shift: float, c: float) -> None:
            for hop in hops:
                hop.set_factors(a, scale, shift, c)
                hop(-kappa)

        return call


class SquaredOperator(LinearOperator):
    """The square of a hermitian operator on all sites, with memory that applications share.

    Parameters
    ----------
    one : LinearOperator
        The hermitian operator.
    """

    def __init__(self, one: LinearOperator) -> None:
        self.one, self.parities = one, one.parities
        self._spare: dict[tuple[str, int], SpinorField] = {}

    def between(self, like: SpinorField) -> SpinorField:
        """Return the vectors that are computed between both applications."""
        key = like.storage.name, like.count
        if key not in self._spare:
            self._spare[key] = like.like()
        return self._spare[key]

    def apply(self, target: SpinorField, source: SpinorField, dagger: bool = False) -> Apply:
        """Return a call that computes the product; see `LinearOperator.apply`."""
        between = self.between(source)
        first, second = self.one.apply(between, source), self.one.apply(target, between)

        def call() -> None:
            first()
            second()

        return call

    def recurrence(
        self, target: SpinorField, b: SpinorField, older: SpinorField, constant: SpinorField
    ) -> Recur | None:
        """Return a call that computes a step; see `LinearOperator.recurrence`.

        Q^2 + shift is (Q - tau) (Q + tau) with tau^2 = -shift, where both factors need no more
        vectors than Q. So the shift must not be above 0.
        """
        if not isinstance(self.one, HermitianOperator):
            return None
        between = self.between(b)
        first = self.one.shifted(between, b, between, between)
        second = self.one.shifted(target, between, older, constant)

        def call(a: float, scale: float, shift: float, c: float) -> None:
            tau = math.sqrt(-shift)
            first(0, 1, tau, 0)
            second(a, scale, -tau, c)

        return call


class CombineChiralities:
    """p = (a + b gamma_5) p + (c + d gamma_5) r; a field with the factors 0 is not read.

    Parameters
    ----------
    p, r : SpinorField
        The vectors p and r of the formula, as many of each; p changes.
    """

    def __init__(self, p: SpinorField, r: SpinorField) -> None:
        self._fields = (p, r)  # which own the memory
        self._launches: list[tuple[ctypes.Structure, Launch]] = []
        for number, slab in enumerate(p.slabs):
            arguments = slab.arguments(
                COMBINE_CHIRALITIES,
                slab.whole(p.launched),
                p.storage.choice,
                p=p.structure(slab),
                r=r.structure(r.slabs[number]),
                upper_p=0.0,
                upper_r=0.0,
                lower_p=0.0,
                lower_r=0.0,
                vectors=p.vectors,
            )
            step = repeated([arguments], 1)
            kernel = slab.kernel(COMBINE_CHIRALITIES, p.storage.choice)
            self._launches.append((step[0], kernel.prepared(step)))

    def __call__(self, a: float, b: float, c: float, d: float) -> None:
        """Carry out the combination."""
        for arguments, launch in self._launches:
            for name, value in (
                ("upper_p", a + b),
                ("upper_r", c + d),
                ("lower_p", a - b),
                ("lower_r", c - d),
            ):
                setattr(arguments, name, value)
            launch()
