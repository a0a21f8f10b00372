"""Effective propagators of domain-wall quarks in four dimensions, residual mass and currents.

A quark in four dimensions is q = P_- psi_0 + P_+ psi_{L-1}. Its propagator S is the inverse of D_c
+ m with a D_c that does not depend on m, S = (D^-1 - 1) / (1 - m) with the effective operator D =
(1 + m) / 2 + (1 - m) / 2 gamma_5 S_L(H), where S_L is the approximation of the sign by L slices.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gauge_mc.devices.kernels import Kernel
from gauge_mc.errors import UsageError
from gauge_mc.fields.sums import SlabSums, slices_of_all_slabs
from gauge_mc.quarks.domain_walls.fifth_direction import Bidiagonal, FifthMatrix, FifthProduct
from gauge_mc.quarks.domain_walls.walls import WallOperator
from gauge_mc.quarks.hadrons.contractions import Array, meson, spin_tensor
from gauge_mc.quarks.hadrons.propagators import Propagator
from gauge_mc.quarks.matrices.linear import EVEN, ODD
from gauge_mc.quarks.solvers import Solution, SolverParameters, solve
from gauge_mc.quarks.vectors.arithmetic import arithmetic_of
from gauge_mc.quarks.vectors.gamma import GAMMA_5
from gauge_mc.quarks.vectors.spinors import SpinorField
from gauge_mc.quarks.vectors.transport import LINKS_ALONE

JOIN_CHIRALITIES = Kernel("join_chiralities")
WALL_CURRENTS = Kernel("wall_currents")

CURRENTS = WALL_CURRENTS.constant("VALUES")
"""Number of sums: of the axial and of the vector current."""

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
    axial, vector : ndarray of float64, shape (T,), or None
        Sums over columns and space of the conserved currents from t to t + 1, counted from the
        source; see `WallCurrents`. None unless there is a midpoint, and the weights are all 1.
    source : Propagator
        The sources b, as a propagator has its columns.
    solver, inner : str
        The solver and the precision of the last iterations.
    iterations, updates : int
        Numbers of iterations and of reliable updates for all columns together.
    iterated, residual : float
        The largest iterated and true residual of a column; see `gauge_mc.DomainWall.solve`.
    notes : tuple of str
        What the user should know, such as a change of the precision.
    """

    quark: Propagator
    midpoint: Propagator | None
    axial: NDArray[np.float64] | None
    vector: NDArray[np.float64] | None
    source: Propagator
    solver: str
    inner: str
    iterations: int
    updates: int
    iterated: float
    residual: float
    notes: tuple[str, ...]


def effective_propagator(
    operator: WallOperator,
    source: SpinorField,
    solver: str,
    request: SolverParameters,
    place: tuple[int, int, int, int] = (0, 0, 0, 0),
    together: int = 1,
) -> EffectivePropagator:
    """Return the propagator S of a domain-wall quark for some sources.

    By default one column is solved after the other, so that memory holds the fifth direction once.

    Parameters
    ----------
    operator : WallOperator
        The operator.
    source : SpinorField
        The sources in four dimensions on all sites, in double precision.
    solver : str
        Name of a registered solver.
    request : SolverParameters
        Tolerance, limits and precision.
    place : tuple of int
        x, y, z and t of the source.
    together : int
        Largest number of columns that are solved together, each with its own coefficients, so that
        kernels load a link for all of them. The memory of the solver is as many times larger.

    Raises
    ------
    GaugeError
        If the tolerance cannot be reached.
    """
    extent, half = operator.fifth, operator.fifth // 2
    symmetric = extent % 2 == 0 and np.array_equal(operator.weights, operator.weights[::-1])
    quark, middle = source.like(), source.like() if symmetric else None
    currents = WallCurrents(operator) if symmetric and (operator.weights == 1).all() else None
    solved = []
    columns = ColumnSolver(operator, source, solver, request)
    for first in range(0, source.count, together):
        numbers = range(first, min(first + together, source.count))
        found, psi = columns.solve(numbers)
        if currents:
            currents.add(found.x)
        operator.from_solver(psi, found.x)
        for n, of in enumerate(numbers):
            begin = n * extent
            _join(quark, of, psi, begin + extent - 1, begin)
            if middle:
                _join(middle, of, psi, begin + half - 1, begin + half)
        solved.append(replace(found, x=quark))  # the memory of x is free
        del found, psi
    boundary = operator.boundary
    return EffectivePropagator(
        Propagator(quark, NORMALISED, boundary, place),
        Propagator(middle, NORMALISED, boundary, place) if middle else None,
        np.roll(currents.axial, -place[3]) if currents else None,
        np.roll(currents.vector, -place[3]) if currents else None,
        Propagator(source, NORMALISED, boundary, place),
        solved[-1].solver,
        solved[-1].inner,
        sum(one.iterations for one in solved),
        sum(one.updates for one in solved),
        max(float(one.iterated.max()) for one in solved),
        max(float(one.residual.max()) for one in solved),
        tuple(dict.fromkeys(note for one in solved for note in one.notes)),
    )


class ColumnSolver:
    """Solutions with a fifth direction for columns of a source, in memory that is used again.

    Parameters
    ----------
    operator, source, solver, request
        See `effective_propagator`.
    """

    def __init__(
        self, operator: WallOperator, source: SpinorField, solver: str, request: SolverParameters
    ) -> None:
        self._operator, self._source = operator, source
        self._solver, self._request = solver, request
        self._right: SpinorField | None = None

    def solve(self, numbers: range) -> tuple[Solution, SpinorField]:
        """Return what the solver finds for some columns together, and memory for D5^-1 b."""
        operator, source, count = self._operator, self._source, len(numbers)
        if self._right is None or self._right.count != count:
            kind = source.field, source.storage.name, count
            self._right = None  # before there is other memory
            self._right = SpinorField.empty(*kind, fifth=operator.fifth)
            self._psi = self._right.like()
        physical_source(operator, self._right, source, numbers)
        operator.to_solver(self._psi, self._right)
        return solve(operator, self._psi, self._solver, self._request), self._psi


def physical_source(
    operator: WallOperator, target: SpinorField, source: SpinorField, numbers: range
) -> None:
    """Set vectors with a fifth direction to sources of the quark q.

    It is (1 - c D_w) of a vector that has the upper components of the source at s = 0 and the lower
    ones at s = L - 1.

    Parameters
    ----------
    operator : WallOperator
        The operator.
    target : SpinorField
        As many vectors with the fifth direction, which are 0 elsewhere than at both ends.
    source : SpinorField
        Vectors in four dimensions.
    numbers : range
        Numbers of the vectors of `source`.
    """
    set_ends(target, source, numbers)
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


def set_ends(target: SpinorField, source: SpinorField, numbers: range) -> None:
    """Set vectors with a fifth direction to upper components at s = 0 and lower ones at s = L - 1.

    Parameters
    ----------
    target : SpinorField
        Vectors with a fifth direction.
    source : SpinorField
        Vectors in four dimensions.
    numbers : range
        Numbers of the vectors of `source` with these components, as many as `target` has.
    """
    extent = target.fifth or 1
    for n, of in enumerate(numbers):
        for s in range(extent):
            ends = of if s == 0 else None, of if s == extent - 1 else None
            _join(target, n * extent + s, source, *ends)


class WallCurrents:
    """The conserved currents of a domain-wall quark with the pion, at rest.

    The sum over s of the axial current from x to x + t is, with the columns y = (b + c L) psi of a
    solution,

        A(x) = sum_s e_s Re y_{L-1-s}(x)^dagger gamma_5 (gamma_t - 1) U_t(x) y_s(x + t) / (b + c),

    where e_s is -1 for s < L / 2 and 1 for others. It fulfils

        A(t) - A(t - 1) = 2 m P(t) + 2 J_5q(t),

    summed over space, on every configuration and at any L, with the correlators P of the pion and
    J_5q of the midpoint, at times at which the source is not; unless c is 0, nor at the next ones,
    to which D_w spreads the source. The vector current, with 1 in place of e_s and the imaginary
    part, does not depend on t between such times. For Shamir's operator it is that of V. Furman and
    Y. Shamir, Nucl. Phys. B439 (1995) 54, hep-lat/9405004.

    Parameters
    ----------
    operator : WallOperator
        The operator, with an even extent of the fifth direction and the weights 1.

    Attributes
    ----------
    axial, vector : ndarray of float64, shape (T,)
        The sums over all columns so far, by t on the lattice.
    """

    def __init__(self, operator: WallOperator) -> None:
        self._scale = -1 / float(operator.b[0] + operator.c[0])
        self._transport = operator.prepared().transport
        self.axial, self.vector = (np.zeros(operator.field.lattice.t) for _ in range(2))

    def add(self, y: SpinorField) -> None:
        """Add the currents of columns, given the solutions that the solver has found."""
        if len(y.layouts) > 1:
            y.exchange_halo()
        local, extent = [], y.fifth or 1
        for n, slab in enumerate(y.slabs):
            choices = y.storage.choice, self._transport.reals.choice, LINKS_ALONE
            sums = SlabSums(slab, CURRENTS, y.count, choices=choices, wide=True)
            transport = self._transport.structure(n)
            columns = [y.structure(slab, extent * column) for column in range(y.count)]
            steps = ({"transport": transport, "y": one, "extent": extent} for one in columns)
            sums.launch(WALL_CURRENTS, *steps)
            local.append(sums.by_slice())
        for found in slices_of_all_slabs(y.field.devices, local):
            self.axial += self._scale * found[:, 0]
            self.vector += self._scale * found[:, 1]


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


def contact_correlator(found: EffectivePropagator) -> NDArray[np.float64]:
    """Return Re <b, S b>, summed over spins, colours and space, of all 4 N columns.

    Its sum over t is m times that of the pion's correlator plus that of the midpoint's, at any
    extent of the fifth direction, and defines the residual mass for any weights (T.-W. Chiu,
    arXiv:1205.6151).

    Returns
    -------
    ndarray, shape (T,), float64
        The sum at every distance in time from the source, which is 0 where no source b is.
    """
    tensor = spin_tensor(found.quark, found.source)
    einsum = arithmetic_of(found.quark.field.devices.strict).einsum
    return np.asarray(einsum("tijij->t", tensor).real)


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
