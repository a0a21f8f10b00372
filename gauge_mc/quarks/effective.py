"""Effective propagators of domain-wall quarks in four dimensions, and the residual mass.

A quark in four dimensions is q = P_- psi_0 + P_+ psi_{L-1}. Its propagator S is the inverse of D_c
+ m with a D_c that does not depend on m, S = (D^-1 - 1) / (1 - m) with the effective operator D =
(1 + m) / 2 + (1 - m) / 2 gamma_5 S_L(H), where S_L is the approximation of the sign by L slices.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gauge_mc.devices.kernels import Kernel
from gauge_mc.errors import UsageError
from gauge_mc.quarks.contractions import Array, meson, spin_tensor
from gauge_mc.quarks.fifth_direction import Bidiagonal, FifthMatrix, FifthProduct
from gauge_mc.quarks.gamma import GAMMA_5
from gauge_mc.quarks.linear import EVEN, ODD
from gauge_mc.quarks.operators.domain_wall import DomainWall
from gauge_mc.quarks.propagators import Propagator
from gauge_mc.quarks.solvers import SolverParameters, solve
from gauge_mc.quarks.spinors import SpinorField

JOIN_CHIRALITIES = Kernel("join_chiralities")

BOTH = (EVEN, ODD)

NORMALISED = 0.5
"""The hopping parameter for which a propagator is not multiplied by 2 kappa in correlators."""


@dataclass(frozen=True)
class EffectivePropagator:
    """A propagator of a domain-wall quark.

    Attributes
    ----------
    quark : Propagator
        The columns q of S; its hopping parameter is such that correlators use S as it is.
    midpoint : Propagator or None
        P_- psi_{L/2} + P_+ psi_{L/2-1} for the same sources; None if L is odd, or if the weights
        are not those of the reflected fifth direction.
    iterations : int
        Number of iterations for all columns together.
    residual : float
        The largest residual of a column; see `DomainWall.solve`.
    notes : tuple of str
        What the user should know, such as a change of the precision.
    """

    quark: Propagator
    midpoint: Propagator | None
    iterations: int
    residual: float
    notes: tuple[str, ...]


def effective_propagator(
    operator: DomainWall,
    source: SpinorField,
    solver: str,
    request: SolverParameters,
    place: tuple[int, int, int, int] = (0, 0, 0, 0),
) -> EffectivePropagator:
    """Return the propagator S of a domain-wall quark for some sources.

    One column is solved after the other, so that memory holds the fifth direction once.

    Parameters
    ----------
    operator : DomainWall
        The operator.
    source : SpinorField
        The sources in four dimensions on all sites, in double precision.
    solver : str
        Name of a registered solver.
    request : SolverParameters
        Tolerance, limits and precision.
    place : tuple of int
        x, y, z and t of the source.

    Raises
    ------
    GaugeError
        If the tolerance cannot be reached.
    """
    extent, half = operator.fifth, operator.fifth // 2
    symmetric = extent % 2 == 0 and np.array_equal(operator.weights, operator.weights[::-1])
    quark, middle = source.like(), source.like() if symmetric else None
    right = SpinorField.empty(source.field, source.storage.name, fifth=extent)
    psi = right.like()
    iterations, residual, notes = 0, 0.0, dict[str, None]()
    for n in range(source.count):
        physical_source(operator, right, source, n)
        operator.to_solver(psi, right)
        found = solve(operator, psi, solver, request)
        operator.from_solver(psi, found.x)
        _join(quark, n, psi, extent - 1, 0)
        if middle:
            _join(middle, n, psi, half - 1, half)
        iterations += found.iterations
        residual = max(residual, float(found.residual.max()))
        notes.update(dict.fromkeys(found.notes))
    boundary = operator.boundary
    return EffectivePropagator(
        Propagator(quark, NORMALISED, boundary, place),
        Propagator(middle, NORMALISED, boundary, place) if middle else None,
        iterations,
        residual,
        tuple(notes),
    )


def physical_source(operator: DomainWall, target: SpinorField, source: SpinorField, n: int) -> None:
    """Set a vector with a fifth direction to the source of the quark q.

    It is (1 - c D_w) of a vector that has the upper components of the source at s = 0 and the lower
    ones at s = L - 1.

    Parameters
    ----------
    operator : DomainWall
        The operator.
    target : SpinorField
        One vector with the fifth direction, which is 0 elsewhere than at both ends.
    source : SpinorField
        Vectors in four dimensions.
    n : int
        Number of the vector of `source`.
    """
    last = operator.fifth - 1
    for s in range(1, last):
        _join(target, s, source, None, None)
    _join(target, 0, source, n, n if last == 0 else None)
    if last:
        _join(target, last, source, None, n)
    if not operator.c.any():
        return
    product, scale = target.like(), 2 * operator.kappa
    for parity in BOTH:
        operator.hopping_term(product, target, parity, target)(-operator.kappa)  # 2 kappa D_w
    minus_c = FifthMatrix(
        Bidiagonal.diagonal(-operator.c / scale),
        Bidiagonal.diagonal(np.ones(operator.fifth)),
        0.0,
    )
    FifthProduct(minus_c).prepare(target, product, BOTH, target)()


def _join(
    target: SpinorField, to: int, source: SpinorField, up: int | None, down: int | None
) -> None:
    """Set a vector in memory to the upper components of one vector, and the lower ones of another.

    None stands for the vector 0.
    """
    for n, slab in enumerate(source.slabs):
        slab.launch(
            JOIN_CHIRALITIES,
            slab.whole(),
            source.storage.choice,
            target=target.structure(target.slabs[n]),
            source=source.structure(slab),
            to=to,
            up=-1 if up is None else up,
            down=-1 if down is None else down,
        )


def midpoint_correlator(found: EffectivePropagator) -> Array:
    """Return the correlator of the pseudoscalar density J_5q at the midpoint with the pion's.

    Returns
    -------
    ndarray, shape (T,), complex128
        The correlator at every distance in time from the source, positive as that of the pion.

    Raises
    ------
    UsageError
        If there is no midpoint, because the extent of the fifth direction is odd, or because the
        weights are not those of the reflected direction.
    """
    if found.midpoint is None:
        raise UsageError(
            "The midpoint needs an even number of slices, and weights that are the same from both "
            "ends; choose them so."
        )
    return _pseudoscalar(found.midpoint)


def residual_mass(found: EffectivePropagator) -> NDArray[np.float64]:
    """Return m_res(t), the ratio of `midpoint_correlator` to the correlator of the pion.

    It becomes constant at times at which the pion dominates (hep-lat/0007038).

    Returns
    -------
    ndarray, shape (T,), float64
        The ratio at every distance in time from the source.

    Raises
    ------
    UsageError
        See `midpoint_correlator`.
    """
    return np.asarray(midpoint_correlator(found).real / _pseudoscalar(found.quark).real)


def _pseudoscalar(quark: Propagator) -> Array:
    return meson(spin_tensor(quark, quark), GAMMA_5, GAMMA_5)
