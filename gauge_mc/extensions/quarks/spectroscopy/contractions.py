"""Correlators of mesons and baryons from quark propagators.

Propagators are normalised as the inverse of the Dirac operator with the bare mass m0,
S = 2 kappa M^-1. All sums over a time slice are in double precision and in an order that depends on
the lattice alone. Times and positions are counted from the source.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import permutations, product
from typing import Any

import numpy as np

from gauge_mc.devices.base import Buffer
from gauge_mc.devices.kernels import Kernel
from gauge_mc.errors import GaugeError
from gauge_mc.extensions.quarks.vectors import SPINS, Complex, SpinorField, basis
from gauge_mc.extensions.quarks.vectors.transport import Boundary
from gauge_mc.fields.field import Field
from gauge_mc.fields.sums import SlabSums, slices_of_all_slabs
from gauge_mc.quoting import root_of_unity


@dataclass(frozen=True)
class Propagator:
    """Columns of M^-1: vectors psi with M psi = source, for all spins and colours of a source."""

    columns: SpinorField
    """4 N vectors on all sites, in the order of source spin and source colour, of which colour is
    the fastest.
    """
    kappa: float
    """Hopping parameter of the quark."""
    boundary: Boundary
    """Boundary conditions of the quark."""
    place: tuple[int, int, int, int] = (0, 0, 0, 0)
    """x, y, z and t of the source; momenta and times are counted from there."""

    @classmethod
    def from_numpy(
        cls,
        field: Field,
        array: Complex,
        kappa: float,
        boundary: complex | Sequence[complex] = -1,
        place: tuple[int, int, int, int] = (0, 0, 0, 0),
        precision: str = "double",
    ) -> Propagator:
        """Return a propagator with given values."""
        columns = SpinorField.from_numpy(field, columns_of(field, array), precision)
        return cls(columns, kappa, Boundary.of(boundary), place)

    def to_numpy(self) -> Complex:
        """Return the elements of M^-1, in the order that `from_numpy` takes."""
        return elements_of(self.columns)

    @property
    def field(self) -> Field:
        """A field of links on the same lattice and devices."""
        return self.columns.field

    @property
    def normalisation(self) -> float:
        """2 kappa: the factor from M^-1 to the inverse of D + m0 with the bare mass m0."""
        return 2 * self.kappa


def columns_of(field: Field, array: Complex) -> Complex:
    """Return columns [vector, t, z, y, x, spin, colour] of elements as `Propagator` has them."""
    colours = field.group.colours
    shape = (*field.lattice.extents[::-1], SPINS, colours, SPINS, colours)
    if np.shape(array) != shape:
        raise GaugeError(
            f"The propagator has the shape {np.shape(array)}, but on {field.lattice} with "
            f"{field.group.label} it must have the shape {shape} [t, z, y, x, spin, colour, "
            "source spin, source colour]."
        )
    return np.moveaxis(array, (6, 7), (0, 1)).reshape(-1, *shape[:6])


def elements_of(columns: SpinorField) -> Complex:
    """Return the elements [t, z, y, x, spin, colour, source spin, source colour] of vectors."""
    vectors = columns.to_numpy()
    split = vectors.reshape(SPINS, columns.field.group.colours, *vectors.shape[1:])
    return np.moveaxis(split, (0, 1), (6, 7))


QUARK_PAIRS = Kernel("quark_pairs")
BARYONS = Kernel("baryons")


Momentum = tuple[int, int, int]
"""Components in units of 2 pi over the extent."""

AT_REST = (0, 0, 0)

SPIN_RANGE = range(SPINS)


def _waves_on_devices(like: Propagator, momentum: Momentum) -> dict[Any, Buffer]:
    """Return `_waves` in the memory of each device; nothing if all numbers are 1."""
    buffers: dict[Any, Buffer] = {}
    if momentum == AT_REST:
        return buffers
    waves = np.ascontiguousarray(_waves(like, momentum))
    for device in dict.fromkeys(slab.device for slab in like.columns.slabs):
        buffers[device] = device.allocate(waves.nbytes)
        device.write(buffers[device], 0, waves)
    return buffers


def _waves(like: Propagator, momentum: Momentum) -> Complex:
    """Return exp(-i p (x - x0)) on the sites of a time slice, shape (Z, Y, X).

    Lattice and x0 are those of a propagator, and p is in units of 2 pi over the extents. On strict
    devices the numbers are rounded once.
    """
    extents = like.field.lattice.extents[:3]
    z, y, x = np.indices(extents[::-1])
    steps = [p * (n - x0) for p, n, x0 in zip(momentum, (x, y, z), like.place, strict=False)]
    pairs = [*zip(steps, extents, strict=True)]
    if not like.field.devices.strict:
        return np.asarray(np.exp(-2j * np.pi * sum(step / extent for step, extent in pairs)))
    order = math.lcm(*extents)
    turns = sum(-step * (order // extent) for step, extent in pairs)
    numbers, places = np.unique(np.mod(turns, order), return_inverse=True)
    roots = np.array([complex(*root_of_unity(int(n), order)) for n in numbers])
    return np.asarray(roots[places].reshape(np.shape(x)))


def _sums(
    kernel: Kernel,
    values: int,
    quarks: Mapping[str, Propagator],
    momentum: Momentum,
    launches: Sequence[Mapping[str, Any]],
) -> Complex:
    """Return sums over the sites of every time slice, counted from the source."""
    first = next(iter(quarks.values()))
    waves = _waves_on_devices(first, momentum)
    storage, field = first.columns.storage, first.field
    local = []
    for n, slab in enumerate(first.columns.slabs):
        sums = SlabSums(slab, 2 * values, len(launches), choices=(storage.choice,), wide=True)
        columns = {name: quark.columns for name, quark in quarks.items()}
        spinors = {name: column.structure(column.slabs[n]) for name, column in columns.items()}
        fixed = {**spinors, "waves": waves[slab.device].address if waves else 0}
        sums.launch(kernel, *({**fixed, **launch} for launch in launches))
        local.append(sums.by_slice())
    totals = slices_of_all_slabs(field.devices, local).view(np.complex128)
    return np.roll(totals, -first.place[3], axis=1)


def spin_tensor(first: Propagator, second: Propagator, momentum: Momentum = AT_REST) -> Complex:
    """Return the sum over x and colours of exp(-i p (x - x0)) S1[i a, j b] conj(S2[k a, l b]).

    All mesons of these quarks follow from it; see `meson`.
    """
    sinks = QUARK_PAIRS.constant("SINK_SPINS")
    launches = [
        {"sink": sink, "first_spin": j, "second_spin": m}
        for sink, j, m in product(range(0, SPINS, sinks), SPIN_RANGE, SPIN_RANGE)
    ]
    quarks = {"first": first, "second": second}
    sums = _sums(QUARK_PAIRS, sinks * SPINS, quarks, momentum, launches)
    split = sums.reshape(SPINS // sinks, SPINS, SPINS, -1, sinks, SPINS)
    tensor = split.transpose(3, 0, 4, 1, 5, 2).reshape(-1, SPINS, SPINS, SPINS, SPINS)
    return np.asarray(first.normalisation * second.normalisation * tensor)


def meson(
    tensor: Complex, sink: basis.Matrix, source: basis.Matrix, strict: bool = False
) -> Complex:
    """Return the correlator of q̄1 sink q2 at t with the adjoint of q̄1 source q2 at 0.

    It is -Tr [sink S2(x, 0) adjoint(source) S1(0, x)] with S1(0, x) = gamma_5 S1(x, 0)^dagger
    gamma_5, which holds if M is gamma_5-Hermitian, and thus for a twisted mass if S1 has the
    opposite one. The average of the correlator is positive for equal matrices.
    """
    end, begin = basis.GAMMA_5 @ sink, basis.adjoint(source) @ basis.GAMMA_5
    einsum = basis.arithmetic_of(strict).einsum
    return np.asarray(-einsum("ki,tijkl,jl->t", end, tensor, begin, optimize=True))


def meson_correlators(first: Complex, second: Complex | None = None) -> dict[str, Complex]:
    """Return the correlators of mesons at rest from quark propagators, with NumPy.

    They are those of the observable, but without the factors 2 kappa, and t is that of the lattice.

    Parameters
    ----------
    first, second : ndarray, shape (T, Z, Y, X, 4, N, 4, N)
        Propagators of antiquark and quark from the same source, as `gauge_mc.propagator` returns
        them; by default both are the first.

    Returns
    -------
    dict of str to ndarray, shape (T,), complex128
        A correlator for each of the sixteen matrices, at source and sink.
    """
    partner = first if second is None else second
    tensor = np.stack(
        [
            np.einsum("xiajb,xkalb->ijkl", *(x[t].reshape(-1, *x.shape[4:]) for x in pair))
            for t, pair in ((t, (partner, first.conj())) for t in range(len(first)))
        ]
    )
    return {name: meson(tensor, gamma, gamma) for name, gamma in basis.SIXTEEN.items()}


def diquark(
    first: Propagator, second: Propagator, gamma: basis.Matrix, momentum: Momentum
) -> Complex:
    """Return the correlator of q1^T C gamma q2, antisymmetric in two colours, for SU(2).

    M is the same for quarks and antiquarks up to a change of basis, if the boundary phases are real
    and there is no twisted mass. The correlator then is that of the meson q̄1 gamma q2.
    """
    sink = basis.CONJUGATION @ gamma
    end = basis.GAMMA[3] @ sink.conj() @ basis.GAMMA[3]
    pairs = [(int(i), int(j)) for i, j in np.argwhere(end)]
    baryon_sums = _baryon_sums(
        (first, second, second), sink, momentum, [(i, j, 0) for i, j in pairs]
    )
    weights = np.array([end[pair] for pair in pairs])
    scale = first.normalisation * second.normalisation
    correlator = scale * _arithmetic(first).einsum("n,nt->t", weights, baryon_sums[:, :, 0])
    return _continued(correlator, (first, second))


def nucleon(up: Propagator, down: Propagator, momentum: Momentum = AT_REST) -> Complex:
    """Return the correlator of epsilon_abc (u_a^T C gamma_5 d_b) u_c, for SU(3)."""
    gamma = basis.CONJUGATION @ basis.GAMMA_5
    return _three_quarks((up, down, up), gamma, gamma, momentum, ((0, 1, 2), (2, 1, 0)))


def delta(quark: Propagator) -> Complex:
    """Return the correlator of epsilon_abc (u_a^T C gamma_i u_b) u_c with spin 3/2, at rest.

    It is the sum over i and j of (delta_ij - gamma_i gamma_j / 3) C_ji, for SU(3).
    """
    total: Any = 0
    vectors = [basis.CONJUGATION @ x for x in basis.GAMMA[:3]]
    orders = tuple(permutations(SPIN_RANGE[:3]))
    for j, sink in enumerate(vectors):
        tensor = _triple_tensor(quark, sink)
        for i, source in enumerate(vectors):
            contracted = _contracted(tensor, source, orders, _arithmetic(quark))
            projector = (i == j) * np.eye(SPINS) - basis.GAMMA[i] @ basis.GAMMA[j] / 3
            total = total + _arithmetic(quark).matmul(projector, contracted)
    two_kappa, strict = quark.normalisation, quark.field.devices.strict
    scale = two_kappa * two_kappa * two_kappa if strict else two_kappa**3
    return _continued(scale * total, (quark, quark, quark))


def of_parity(correlator: Complex, parity: int, strict: bool = False) -> Complex:
    """Return parity Tr [(1 + parity gamma_t)/2 C(t)], whose average is positive at small t."""
    projector = parity * (np.eye(SPINS) + parity * basis.GAMMA[3]) / 2
    return np.asarray(basis.arithmetic_of(strict).einsum("kl,tlk->t", projector, correlator))


Spins = tuple[int, int, int]
"""Spins of the three quarks at the source."""


def _three_quarks(
    quarks: tuple[Propagator, Propagator, Propagator],
    sink: basis.Matrix,
    source: basis.Matrix,
    momentum: Momentum,
    orders: Sequence[tuple[int, ...]],
) -> Complex:
    """Return a correlator, given the orders in which quarks of the source end at the sink."""
    end = basis.GAMMA[3] @ source.conj() @ basis.GAMMA[3]
    every = product(np.argwhere(end), SPIN_RANGE, orders)
    spins = sorted({_ordered((int(i), int(j), k), order) for (i, j), k, order in every})
    tensor = np.zeros((SPINS, SPINS, SPINS, _extent(quarks[0]), SPINS), np.complex128)
    for spin, values in zip(spins, _baryon_sums(quarks, sink, momentum, spins), strict=True):
        tensor[spin] = values
    scale = float(np.prod([quark.normalisation for quark in quarks]))
    contracted = _contracted(tensor, source, orders, _arithmetic(quarks[0]))
    return _continued(scale * contracted, quarks)


def _arithmetic(quark: Propagator) -> basis.Arithmetic:
    return basis.arithmetic_of(quark.field.devices.strict)


def _extent(quark: Propagator) -> int:
    return quark.field.lattice.t


def _ordered(spins: Spins, order: Sequence[int]) -> Spins:
    first, second, third = (spins[n] for n in order)
    return first, second, third


def _triple_tensor(quark: Propagator, sink: basis.Matrix) -> Complex:
    """Return the sums for all spins of three equal quarks, given a symmetric matrix at the sink."""
    spins = [(i, j, k) for i, j, k in product(*3 * [SPIN_RANGE]) if i <= j]
    tensor = np.zeros((SPINS, SPINS, SPINS, _extent(quark), SPINS), np.complex128)
    sums = _baryon_sums((quark, quark, quark), sink, AT_REST, spins)
    for (i, j, k), values in zip(spins, sums, strict=True):
        tensor[i, j, k] = tensor[j, i, k] = values
    return tensor


def _contracted(
    tensor: Complex,
    source: basis.Matrix,
    orders: Iterable[tuple[int, ...]],
    arithmetic: basis.Arithmetic,
) -> Complex:
    """Contract the spins of the source, shape (T, 4, 4) with the elements [t, k, k']."""
    end = basis.GAMMA[3] @ source.conj() @ basis.GAMMA[3]
    total: Any = 0
    for order in orders:
        names = "".join("ijk"[n] for n in order)
        total = total + arithmetic.einsum(f"{names}tm,ij->tmk", tensor, end)
    return np.asarray(total)


def _baryon_sums(
    quarks: tuple[Propagator, Propagator, Propagator],
    sink: basis.Matrix,
    momentum: Momentum,
    spins: Sequence[Spins],
) -> Complex:
    """Return the sums of the kernel for some spins at the source, shape (spins, T, 4)."""
    names = ("first", "second", "third")
    parts = {"re": tuple(sink.real.ravel()), "im": tuple(sink.imag.ravel())}
    launches = [
        {**parts, **{f"{name}_spin": spin for name, spin in zip(names, s, strict=True)}}
        for s in spins
    ]
    values = BARYONS.constant("VALUES") // 2
    return _sums(BARYONS, values, dict(zip(names, quarks, strict=True)), momentum, launches)


def _continued(correlator: Complex, quarks: Sequence[Propagator]) -> Complex:
    """Continue a correlator across the boundary in time, as if the source were at t = 0.

    The part that was beyond the last slice of the lattice is multiplied by the phases of the
    quarks, with which a propagator continues there.
    """
    multiply = _arithmetic(quarks[0]).multiply
    phases: list[Any] = [quark.boundary.phases[3] for quark in quarks]
    begin = _extent(quarks[0]) - quarks[0].place[3]
    continued = np.array(correlator)
    continued[begin:] = multiply(continued[begin:], reduce(multiply, phases))
    return continued
