"""Iterations of conjugate gradients that follow each other without waiting for the host.

Their coefficients stay in the memory of the devices, and the search halts there as soon as the host
has to decide something, such as what to do about a true residual that is due.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gauge_mc.devices.base import Event, Launch, repeated
from gauge_mc.devices.kernels import ANY_VARIANT, Kernel
from gauge_mc.devices.structures import geometry_structure
from gauge_mc.domain.slab import work
from gauge_mc.fields.sums import SUM_BYTES, SlabSums
from gauge_mc.quarks.vectors.algebra import PRODUCTS, GroupSums, OnDevice
from gauge_mc.quarks.vectors.spinors import SpinorField
from gauge_mc.quarks.vectors.storage import StoredSlab

GRADIENT_COEFFICIENTS = Kernel("gradient_coefficients")

CURVATURE, RESIDUAL, DIRECTION = map(
    GRADIENT_COEFFICIENTS.constant, ("CURVATURE", "RESIDUAL", "DIRECTION")
)
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

MIXED, NORM2 = 0, PRODUCTS - 1
"""Numbers of the real part of <w, r> and of <r, r> among the sums."""

UNWATCHED = {
    **dict.fromkeys(("GROWN", "PLATEAU", "MOST"), np.inf),
    **dict.fromkeys(("TARGET", "REDUCTION", "SLOWEST"), -1.0),
    **dict.fromkeys(("HIGHEST", "LOWEST", "SINCE", "ITERATIONS"), 0.0),
}
"""Rows of the state with which a search halts only if it breaks down."""


def row(name: str) -> int:
    """Return the number of a row of the state or of a factor, which the kernel declares."""
    return GRADIENT_COEFFICIENTS.constant(name)


def runs_ahead(vectors: SpinorField) -> bool:
    """Return whether all sums of these vectors are in one process, and all devices connected.

    On several replicas there may be one vector on each.
    """
    several = vectors.vectors > vectors.replicas > 1
    if vectors.field.devices.processes.size > 1 or several:
        return False
    devices = [one.device for one in vectors.slabs]
    connected = all(a.in_host_memory or a.reaches(b) for a in devices for b in devices)
    return connected and len(devices) <= MOST_SLABS


class GradientIterations:
    """Iterations whose numbers are in the memory of the devices; see `runs_ahead`.

    Prepare the launches of an iteration with `factors` and `take`, and let `iterate` be what
    `record` returns.

    Parameters
    ----------
    r : SpinorField
        A field like the residuals.
    parts : tuple of int
        The parts of an iteration in their order, of which one may be two of the kernel together.
        Where the search has halted in a part, launches with its factors do nothing.

    Attributes
    ----------
    iterate : callable
        Launches an iteration.
    state : ndarray of float64, shape (ROWS, vectors)
        The numbers that were last written to the devices or read from the first of them; the kernel
        declares the rows.
    slabs : list of SlabState
        The numbers on the device of every slab.
    """

    def __init__(self, r: SpinorField, parts: tuple[int, ...]) -> None:
        self.iterate: Launch | None = None
        self.state = np.zeros((ROWS, r.count))
        self._devices, self._parts = r.field.devices, parts
        shape = r.count, r.fifth or 1, r.field.lattice.t
        self.slabs = [SlabState(one, parts, *shape) for one in r.slabs]
        self._first = self.slabs[0].device
        self._looks = 1 if self._first.in_host_memory else AHEAD
        self._seen = self._first.pinned_memory(self._looks * HALTS * HALT_BYTES).view(np.int32)

    def factors(self, part: int, **names: str) -> list[OnDevice]:
        """Return factors on every slab after a part, given their names by those of a kernel."""
        return [one.found(part, **names) for one in self.slabs]

    def take(self, part: int, sums: Sequence[GroupSums], product: int = NORM2) -> Launch:
        """Return a call that computes coefficients on all devices from sums of products.

        Parameters
        ----------
        part : int
            One of the parts.
        sums : sequence of GroupSums
            The sums of the products of all vectors.
        product : int
            The number of the sum that is needed.
        """
        slabs, devices = self.slabs, self._devices
        together = len(sums) == len(slabs) == 1

        def launches(stages: int, some: Sequence[GroupSums]) -> list[Launch]:
            return [
                own.launch(part, stages, group.first, group.sums[n], slabs, n, product)
                for group in some
                for n, own in enumerate(slabs)
            ]

        if together:
            return launches(SUMS | COEFFICIENTS, sums)[0]
        adding, taking = launches(SUMS, sums), launches(COEFFICIENTS, sums[:1])

        def call() -> None:
            for launch in adding:
                launch()
            devices.fence()
            for launch in taking:
                launch()

        return call

    def record(self, iterate: Callable[[], object]) -> Launch:
        """Return a call that repeats the launches of an iteration; see `Device.recorded`."""
        return self._first.recorded(iterate, [one.device for one in self.slabs[1:]])

    def run(self, **rows: Any) -> int:
        """Iterate until the search halts, given rows of the state by their names.

        Returns
        -------
        int
            CURVATURE if the search has halted before the step of an iteration, and RESIDUAL if it
            has halted after it. The state is that before this iteration, apart from the sums that
            have been computed in it.
        """
        for name, values in rows.items():
            self.state[row(name)] = values
        self.state[NEXT : NEXT + KEPT] = self.state[:KEPT]
        for slab in self.slabs:
            slab.begin(self.state)
        self._devices.fence()
        waiting = deque(map(self._begin, np.split(self._seen, self._looks)))
        while True:
            event, seen = waiting.popleft()
            event.synchronize()
            if seen.any():
                break
            waiting.append(self._begin(seen))
        halts = self.slabs[0].read(self.state)
        self._devices.synchronize()
        return CURVATURE if halts[0] == HERE else RESIDUAL

    def __getitem__(self, name: str) -> NDArray[np.float64]:
        """Return a row of the state after `run`."""
        return np.asarray(self.state[row(name)])

    def _begin(self, seen: NDArray[np.int32]) -> tuple[Event, NDArray[np.int32]]:
        """Begin an iteration, and to look whether it has halted."""
        assert self.iterate
        self.iterate()
        return self.slabs[0].look(seen), seen


class SlabState:
    """The state of iterations on the device of a slab, where it is the same as on all others.

    Parameters
    ----------
    slab : StoredSlab
        A slab of the vectors.
    parts : tuple of int
        The parts of an iteration.
    vectors, fifth : int
        Number of vectors, and their extent along a fifth direction, or 1.
    slices : int
        Number of time slices of the lattice.
    """

    def __init__(
        self, slab: StoredSlab, parts: tuple[int, ...], vectors: int, fifth: int, slices: int
    ) -> None:
        self.device, self.layout, self._parts = slab.device, slab.layout, parts
        self._vectors, self._fifth, self._slices = vectors, fifth, slices
        self._state_bytes = ROWS * vectors * SUM_BYTES
        self._factor_bytes = 2 * vectors * fifth * SUM_BYTES
        self._sums_bytes = slices * vectors * fifth * SUM_BYTES
        halts, factors = HALTS * HALT_BYTES, FACTORS * self._factor_bytes
        sums = len(parts) * self._sums_bytes
        self._memory = slab.device.allocate(self._state_bytes + halts + factors + sums)
        self._halts = self.state + self._state_bytes
        self._factors = self._halts + halts

    @property
    def state(self) -> int:
        """Address of the state."""
        return self._memory.address

    def row(self, name: str) -> int:
        """Return the address of a row of the state."""
        return self.state + row(name) * self._vectors * SUM_BYTES

    def begin(self, state: NDArray[np.float64]) -> None:
        """Write the state, which has not halted."""
        data = np.append(state.view(np.uint8), np.zeros(HALTS * HALT_BYTES, np.uint8))
        self.device.write(self._memory, 0, data)

    def look(self, seen: NDArray[np.int32]) -> Event:
        """Begin to fetch why the search has halted."""
        return self.device.download(seen.view(np.uint8), self._halts)

    def read(self, state: NDArray[np.float64]) -> NDArray[np.int32]:
        """Wait for all work, read the state, and return why the search has halted."""
        found = self.device.read(self._memory, 0, self._state_bytes + HALTS * HALT_BYTES)
        state[:] = found[: self._state_bytes].view(float).reshape(state.shape)
        return found[self._state_bytes :].view(np.int32)

    def found(self, part: int, **factors: str) -> OnDevice:
        """Return factors of launches that a halt in a part leaves out, by the kernel's names."""
        numbers = {name: row(one) for name, one in factors.items()}
        addresses = {name: self._factors + n * self._factor_bytes for name, n in numbers.items()}
        return OnDevice(addresses, self._halts + self._parts.index(part) * HALT_BYTES)

    def launch(
        self,
        part: int,
        stages: int,
        first: int,
        sums: SlabSums,
        slabs: Sequence[SlabState],
        number: int,
        product: int,
    ) -> Launch:
        """Return a call that carries out stages of a part.

        Parameters
        ----------
        part, stages : int
            The part, and its stages.
        first : int
            The number of the first vector of the kernels whose products are summed.
        sums : SlabSums
            The sums of the products of these.
        slabs : sequence of SlabState
            All slabs.
        number : int
            The number of this one.
        product : int
            The number of the sum that is needed among the products.
        """
        (x, y, z), place = self.layout.extents, self._parts.index(part)
        own = len(self.layout.times)
        by_slice = [one._by_slice(place) for one in slabs]
        arguments = GRADIENT_COEFFICIENTS.arguments(
            ANY_VARIANT,
            geometry=self.layout.geometry,
            work=work(0, 1, 1, parity=0, slots=x // 2, rows=(y, z)),
            partial=sums.described,
            by_slice=(*by_slice, *(0,) * (MOST_SLABS - len(slabs))),
            state=self.state,
            factors=self._factors,
            halted=self._halts,
            part=part,
            stages=stages,
            vectors=self._vectors,
            fifth=self._fifth,
            own_halt=place,
            other_halt=(place or len(self._parts)) - 1,
            first_summed=first,
            summed=sums.slices // own,
            slab=number,
            slabs=len(slabs),
            first=self.layout.times[0],
            slices=own,
            all_slices=self._slices,
            product=product,
            shares=geometry_structure("Shares")(threads=min(own, MOST_SHARES), blocks=1),
        )
        kernel = self.device.kernel(GRADIENT_COEFFICIENTS, ANY_VARIANT)
        return kernel.prepared(repeated([arguments], 1))

    def _by_slice(self, place: int) -> int:
        return self._factors + FACTORS * self._factor_bytes + place * self._sums_bytes
