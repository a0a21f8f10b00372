"""Iterations of conjugate gradients that follow each other without waiting for the host.

Their coefficients stay in the memory of the devices, and the search halts there as soon as a vector
needs its true residual. What is done then is in `replica_solver`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gauge_mc.devices.base import Event, Launch, repeated
from gauge_mc.devices.kernels import ANY_VARIANT, Kernel
from gauge_mc.devices.structures import geometry_structure
from gauge_mc.domain.slab import work
from gauge_mc.fields.sums import SUM_BYTES, SlabSums
from gauge_mc.quarks.matrices.linear import LinearOperator
from gauge_mc.quarks.solvers import Norms
from gauge_mc.quarks.vectors.algebra import (
    MOST_VECTORS,
    PRODUCTS,
    Advance,
    Combine,
    Multiply,
    OnDevice,
)
from gauge_mc.quarks.vectors.spinors import SpinorField
from gauge_mc.quarks.vectors.storage import StoredSlab

GRADIENT_COEFFICIENTS = Kernel("gradient_coefficients")

CURVATURE, RESIDUAL = map(GRADIENT_COEFFICIENTS.constant, ("CURVATURE", "RESIDUAL"))
"""Parts of an iteration, after which the search may halt."""

SUMS, COEFFICIENTS = map(GRADIENT_COEFFICIENTS.constant, ("SUMS", "COEFFICIENTS"))
"""Stages of a part, between which devices wait for each other."""

ROWS, NEXT, KEPT, FACTORS, HALTS, HERE, MOST_SLABS = map(
    GRADIENT_COEFFICIENTS.constant,
    ("ROWS", "NEXT", "KEPT", "FACTORS", "HALTS", "HERE", "MOST_SLABS"),
)

HALT_BYTES = 4
"""Bytes of an integer that says why the search has halted, 0 if it has not."""

MOST_SHARES = 32
"""Largest number of threads that share the sums over the slices of a vector."""

AHEAD = 2
"""Number of iterations that GPUs have been given when the host looks whether the first has halted.
"""


def row(name: str) -> int:
    """Return the number of a row of the state or of a factor, which the kernel declares."""
    return GRADIENT_COEFFICIENTS.constant(name)


def runs_ahead(vectors: SpinorField) -> bool:
    """Return whether all sums of these vectors are in one process, and each a single launch."""
    if vectors.field.devices.processes.size > 1 or (vectors.fifth and vectors.replicas > 1):
        return False
    devices = [one.device for one in vectors.slabs]
    connected = all(a.in_host_memory or a.reaches(b) for a in devices for b in devices)
    return connected and vectors.vectors <= MOST_VECTORS and len(devices) <= MOST_SLABS


class GradientIterations:
    """Iterations for B B^dagger x = b, prepared once for repeated use; see `runs_ahead`.

    Parameters
    ----------
    operator : LinearOperator
        The operator B.
    r, x, p, q, t : SpinorField
        Residual, correction, direction, q = B^dagger p and t = B q.

    Attributes
    ----------
    state : ndarray of float64, shape (ROWS, vectors)
        The numbers that were last written to the devices or read from the first of them; the kernel
        declares the rows.
    """

    def __init__(
        self,
        operator: LinearOperator,
        r: SpinorField,
        x: SpinorField,
        p: SpinorField,
        q: SpinorField,
        t: SpinorField,
    ) -> None:
        self.state = np.zeros((ROWS, r.count))
        self._vectors = r, x, p, q, t  # which own the memory
        self._devices = r.field.devices
        shape = r.count, r.fifth or 1, r.field.lattice.t
        self._slabs = [_SlabState(one, *shape) for one in r.slabs]
        first = self._slabs[0].device
        self._looks = 1 if first.in_host_memory else AHEAD
        self._seen = first.pinned_memory(self._looks * HALTS * HALT_BYTES).view(np.int32)
        apply_adjoint, apply = operator.apply(q, p, dagger=True), operator.apply(t, q)
        multiply = Multiply(q)
        steps = [one.found(CURVATURE, a="ALPHA", c="STEP") for one in self._slabs]
        turns = [one.found(RESIDUAL, a="BETA") for one in self._slabs]
        step, turn = Advance(r, t, x, p, found=steps), Combine(p, r, found=turns)
        take_curvature = self._part(CURVATURE, multiply.sums)
        take_residual = self._part(RESIDUAL, step.sums)

        def iterate() -> None:
            apply_adjoint()
            multiply.launch()
            take_curvature()
            apply()
            step(0)
            take_residual()
            turn(0, 1)

        self._iterate = first.recorded(iterate, [one.device for one in self._slabs[1:]])

    def run(self, **rows: Norms | float) -> int:
        """Iterate until the search halts, given rows of the state by their names.

        Returns
        -------
        int
            The part of an iteration after which it has halted. The state is that before this
            iteration, apart from the squared norms that have been computed in it.
        """
        for name, values in rows.items():
            self.state[row(name)] = values
        self.state[NEXT : NEXT + KEPT] = self.state[:KEPT]
        for slab in self._slabs:
            slab.begin(self.state)
        self._devices.fence()
        waiting = deque(map(self._begin, np.split(self._seen, self._looks)))
        while True:
            event, seen = waiting.popleft()
            event.synchronize()
            if seen.any():
                break
            waiting.append(self._begin(seen))
        halts = self._slabs[0].read(self.state)
        self._devices.synchronize()
        return CURVATURE if halts[0] == HERE else RESIDUAL

    def __getitem__(self, name: str) -> Norms:
        """Return a row of the state after `run`."""
        return np.asarray(self.state[row(name)])

    def _begin(self, seen: NDArray[np.int32]) -> tuple[Event, NDArray[np.int32]]:
        """Begin an iteration, and to look whether it has halted."""
        self._iterate()
        return self._slabs[0].look(seen), seen

    def _part(self, part: int, sums: Sequence[SlabSums]) -> Launch:
        """Return a call that computes coefficients on all devices from the sums of products."""
        together, slabs = len(sums) == 1, self._slabs
        stages = [SUMS | COEFFICIENTS] if together else [SUMS, COEFFICIENTS]
        launches = [
            [slabs[n].launch(part, stage, own, slabs, n) for n, own in enumerate(sums)]
            for stage in stages
        ]

        def call() -> None:
            for launch in launches[0]:
                launch()
            if not together:
                self._devices.fence()
                for launch in launches[1]:
                    launch()

        return call


class _SlabState:
    """The state of iterations on the device of a slab, where it is the same as on all others.

    Parameters
    ----------
    slab : StoredSlab
        A slab of the vectors.
    vectors, fifth : int
        Number of vectors, and their extent along a fifth direction, or 1.
    slices : int
        Number of time slices of the lattice.
    """

    def __init__(self, slab: StoredSlab, vectors: int, fifth: int, slices: int) -> None:
        self.device, self._layout = slab.device, slab.layout
        self._vectors, self._fifth, self._slices = vectors, fifth, slices
        self._state_bytes = ROWS * vectors * SUM_BYTES
        self._factor_bytes = 2 * vectors * fifth * SUM_BYTES
        self._sums_bytes = slices * vectors * fifth * SUM_BYTES
        sums = len((CURVATURE, RESIDUAL)) * self._sums_bytes
        halts, factors = HALTS * HALT_BYTES, FACTORS * self._factor_bytes
        self._memory = slab.device.allocate(self._state_bytes + halts + factors + sums)
        self._halts = self._memory.address + self._state_bytes
        self._factors = self._halts + halts

    def begin(self, state: Norms) -> None:
        """Write the state, which has not halted."""
        data = np.append(state.view(np.uint8), np.zeros(HALTS * HALT_BYTES, np.uint8))
        self.device.write(self._memory, 0, data)

    def look(self, seen: NDArray[np.int32]) -> Event:
        """Begin to fetch why the search has halted."""
        return self.device.download(seen.view(np.uint8), self._halts)

    def read(self, state: Norms) -> NDArray[np.int32]:
        """Wait for all work, read the state, and return why the search has halted."""
        found = self.device.read(self._memory, 0, self._state_bytes + HALTS * HALT_BYTES)
        state[:] = found[: self._state_bytes].view(float).reshape(state.shape)
        return found[self._state_bytes :].view(np.int32)

    def found(self, halt: int, **factors: str) -> OnDevice:
        """Return factors of launches that a halt leaves out, by the kernel's names for them."""
        numbers = {name: row(one) for name, one in factors.items()}
        addresses = {name: self._factors + n * self._factor_bytes for name, n in numbers.items()}
        return OnDevice(addresses, self._halts + halt * HALT_BYTES)

    def launch(
        self, part: int, stages: int, sums: SlabSums, slabs: Sequence[_SlabState], number: int
    ) -> Launch:
        """Return a call that carries out stages of a part.

        Parameters
        ----------
        part, stages : int
            The part, and its stages.
        sums : SlabSums
            The sums of products.
        slabs : sequence of _SlabState
            All slabs.
        number : int
            The number of this one.
        """
        x, y, z = self._layout.extents
        own = len(self._layout.times)
        arguments = GRADIENT_COEFFICIENTS.arguments(
            ANY_VARIANT,
            geometry=self._layout.geometry,
            work=work(0, 1, 1, parity=0, slots=x // 2, rows=(y, z)),
            partial=sums.described,
            by_slice=(*(one._by_slice(part) for one in slabs), *(0,) * (MOST_SLABS - len(slabs))),
            state=self._memory.address,
            factors=self._factors,
            halted=self._halts,
            part=part,
            stages=stages,
            vectors=self._vectors,
            fifth=self._fifth,
            slab=number,
            slabs=len(slabs),
            first=self._layout.times[0],
            slices=own,
            all_slices=self._slices,
            product=PRODUCTS - 1,
            shares=geometry_structure("Shares")(
                threads=min(own * self._fifth, MOST_SHARES), blocks=1
            ),
        )
        kernel = self.device.kernel(GRADIENT_COEFFICIENTS, ANY_VARIANT)
        return kernel.prepared(repeated([arguments], 1))

    def _by_slice(self, part: int) -> int:
        return self._factors + FACTORS * self._factor_bytes + part * self._sums_bytes
