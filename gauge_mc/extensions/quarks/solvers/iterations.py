"""Iterations of solvers that follow each other without waiting for the host, and true residuals.

The coefficients of the iterations stay in the memory of the devices, and the search halts there as
soon as the host has to decide something, such as what to do about a true residual that is due.

Reliable updates and defect correction (M. A. Clark et al., arXiv:0911.3191) iterate in lower
precision, and replace the iterated residual by the true one in double precision now and then.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gauge_mc.arrays import Array, Integers
from gauge_mc.devices.base import Event, Launch, repeated, streamed
from gauge_mc.devices.host import geometry_structure
from gauge_mc.devices.kernels import ANY_VARIANT, Kernel
from gauge_mc.devices.source import constants, source_file
from gauge_mc.domain.slab import work
from gauge_mc.extensions.quarks.hopping import Apply, Deflation, LinearOperator
from gauge_mc.extensions.quarks.vectors import Complex, SpinorField, StoredSlab, algebra, in_turn
from gauge_mc.fields.sums import SUM_BYTES, SlabSums
from gauge_mc.updates.monomials import Mask

GRADIENT_COEFFICIENTS = Kernel("gradient_coefficients")

COMMON = constants(source_file("dirac/iterations.h"))
"""Constants of all kernels that compute coefficients."""

RESIDUAL = COMMON["RESIDUAL"]
"""The part of an iteration that decides about true residuals."""

CURVATURE, DIRECTION = map(GRADIENT_COEFFICIENTS.constant, ("CURVATURE", "DIRECTION"))
"""Other parts of conjugate gradients, after which the search may halt, too."""

END = RESIDUAL | DIRECTION
"""Both at once, where no kernel has to be launched between them."""

SUMS, COEFFICIENTS = COMMON["SUMS"], COMMON["COEFFICIENTS"]
"""Stages of a part, between which devices wait for each other."""

NEXT, KEPT, HALTS, HERE, MOST_SLABS, MOST_SUMS = (
    COMMON[name] for name in ("NEXT", "KEPT", "HALTS", "HERE", "MOST_SLABS", "MOST_SUMS")
)

EXACTLY = replace(ANY_VARIANT, strict=True)
"""The variant of kernels whose numbers are those of the host on every device."""

HALT_BYTES = 4
"""Bytes of an integer that says why the search has halted, 0 if it has not."""

MOST_SHARES = 32
"""Largest number of threads that share the sums over the slices of a vector."""

AHEAD = 2
"""Number of iterations that GPUs have been given when the host looks whether the first has halted.
"""

LAUNCH_SECONDS = 25e-6
"""Time for which GPUs wait for the host in every iteration if they have been given one alone."""

REAL, MIXED, NORM2, EVERY = (slice(*x) for x in ((0, 1), (0, 2), (2, 3), (0, algebra.PRODUCTS)))
"""Places of the real part of <w, r>, of this product, of <r, r> and of all among the sums."""

UNWATCHED = {
    **dict.fromkeys(("GROWN", "PLATEAU", "MOST"), np.inf),
    **dict.fromkeys(("TARGET", "REDUCTION", "SLOWEST"), -1.0),
    **dict.fromkeys(("HIGHEST", "LOWEST", "SINCE", "ITERATIONS"), 0.0),
}
"""Rows of the state with which a search halts only if it breaks down."""


@cache
def constants_of(kernel: Kernel) -> dict[str, int]:
    """Return the constants of a kernel that computes coefficients, by name.

    Rows of the state and factors are among them.
    """
    return constants(kernel.source, *COMMON.items())


def runs_ahead(vectors: SpinorField) -> bool:
    """Return whether all sums of these vectors are in one process, and all devices connected.

    On several replicas there may be one vector on each.
    """
    several = vectors.vectors > vectors.replicas > 1
    if vectors.field.devices.processes.size > 1 or several:
        return False
    devices = [slab.device for slab in vectors.slabs]
    connected = all(a.in_host_memory or a.reaches(b) for a in devices for b in devices)
    return connected and len(devices) <= MOST_SLABS


class DeviceIterations:
    """Iterations whose coefficients are in the memory of the devices; see `runs_ahead`.

    Prepare the launches of an iteration with `factors` and `take`, and let `iterate` be what
    `record` returns.

    Parameters
    ----------
    r : SpinorField
        A field like the residuals.
    parts : tuple of int
        The parts of an iteration in their order, of which one may be two of the kernel together.
        Where the search has halted in a part, launches with its factors do nothing.
    kernel : Kernel
        The kernel that computes the coefficients.
    arithmetic : int, optional
        How it multiplies and divides complex numbers, if it has such.

    Attributes
    ----------
    iterate : callable
        Launches an iteration.
    state : ndarray of float64, shape (ROWS, vectors)
        The numbers that were last written to the devices or read from the first of them; the kernel
        declares the rows.
    slabs : list of SlabState
        The numbers on the device of every slab.
    knows_residual : bool
        Whether the last search has halted after the squared norms of new residuals were computed,
        which are in the row SQUARES.
    """

    def __init__(
        self,
        r: SpinorField,
        parts: tuple[int, ...],
        kernel: Kernel = GRADIENT_COEFFICIENTS,
        arithmetic: int | None = None,
    ) -> None:
        self.iterate: Launch | None = None
        self.knows_residual = False
        self._rows = constants_of(kernel)
        self.state = np.zeros((self._rows["ROWS"], r.count))
        self._devices, self._parts = r.field.devices, parts
        shape = r.count, r.fifth or 1, r.field.lattice.t
        self.slabs = [SlabState(slab, parts, kernel, arithmetic, *shape) for slab in r.slabs]
        self._first = self.slabs[0].device
        self._seen = self._first.pinned_memory(HALTS * HALT_BYTES).view(np.int32)
        self._last_run = 0.0, 1

    def factors(self, part: int, **names: str) -> list[algebra.OnDevice]:
        """Return factors on every slab after a part, given their names by those of a kernel."""
        return [slab.factors(part, **names) for slab in self.slabs]

    def take(self, part: int, sums: Sequence[algebra.GroupSums], products: slice = NORM2) -> Launch:
        """Return a call that computes coefficients on all devices from sums of products."""
        slabs = self.slabs

        def launches(stages: int, some: Sequence[algebra.GroupSums]) -> list[Launch]:
            return [
                slab.launch(
                    part, stages, group.first, group.sums[n], slabs, n, products, self._seen
                )
                for group in some
                for n, slab in enumerate(slabs)
            ]

        if len(sums) == len(slabs) == 1:
            return launches(SUMS | COEFFICIENTS, sums)[0]
        adding, taking = launches(SUMS, sums), launches(COEFFICIENTS, sums[:1])
        return in_turn(*adding, self._devices.fence, *taking)

    def beside(self, some: Sequence[Launch], launches: Sequence[Launch]) -> Launch:
        """Return a call that launches some kernels to run at the same time as others.

        They do on devices that can do so.
        """
        devices = streamed(slab.device for slab in self.slabs)

        def call() -> None:
            for device in devices:
                device.fork()
                device.swap_streams()
            try:
                for launch in some:
                    launch()
            finally:
                for device in devices:
                    device.swap_streams()
            for launch in launches:
                launch()
            for device in devices:
                device.join()

        return call

    def record(self, iterate: Callable[[], object]) -> Launch:
        """Return a call that repeats the launches of an iteration; see `Device.recorded`."""
        return self._first.recorded(iterate, [slab.device for slab in self.slabs[1:]])

    def run(self, **rows: Any) -> bool:
        """Iterate until the search halts, given rows of the state by their names.

        Then the state is that before the iteration in which it has halted, apart from what has been
        computed in this iteration.
        """
        for name, values in rows.items():
            n = self._rows[name]
            if np.iscomplexobj(values):
                self.state[n], self.state[n + 1] = values.real, values.imag
            else:
                self.state[n] = values
        self.state[NEXT : NEXT + KEPT] = self.state[:KEPT]
        for slab in self.slabs:
            slab.begin(self.state)
        self._seen[:] = 0
        self._devices.fence()
        before, began = self["ITERATIONS"], time.monotonic()
        waiting = deque(self._begin() for _ in range(self.given_at_once))
        while True:
            waiting.popleft().synchronize()
            if self._seen.any():
                break
            waiting.append(self._begin())
        halts = self.slabs[0].read(self.state)
        self._devices.synchronize()
        count = 1 + int((self["ITERATIONS"] - before).max())
        self._last_run = time.monotonic() - began, count
        halted_in: int = halts.tolist().index(HERE)
        self.knows_residual = any(part & RESIDUAL for part in self._parts[: halted_in + 1])
        return halted_in > 0

    @property
    def given_at_once(self) -> int:
        """Number of iterations that devices have been given when the host looks.

        More than one saves the time in which the host looks and launches, in every iteration, but
        when the search has halted, an iteration is carried out in vain.
        """
        seconds, count = self._last_run
        is_long = seconds / count > count * LAUNCH_SECONDS
        return 1 if self._first.in_host_memory or is_long else AHEAD

    def __getitem__(self, name: str) -> Array:
        """Return a row of the state after `run`."""
        return np.array(self.state[self._rows[name]])

    def complex(self, name: str) -> Complex:
        """Return complex numbers, which have two rows, after `run`."""
        n, numbers = self._rows[name], np.empty(self.state.shape[1], np.complex128)
        numbers.real, numbers.imag = self.state[n], self.state[n + 1]
        return numbers

    def _begin(self) -> Event:
        """Begin an iteration; return an event at its end."""
        assert self.iterate
        self.iterate()
        return self._first.event()


class SlabState:
    """The state of iterations on the device of a slab, where it is the same as on all others.

    Parameters
    ----------
    slab : StoredSlab
        A slab of the vectors.
    parts, kernel, arithmetic
        See `DeviceIterations`.
    vectors, fifth : int
        Number of vectors, and their extent along a fifth direction, or 1.
    slices : int
        Number of time slices of the lattice.
    """

    def __init__(
        self,
        slab: StoredSlab,
        parts: tuple[int, ...],
        kernel: Kernel,
        arithmetic: int | None,
        vectors: int,
        fifth: int,
        slices: int,
    ) -> None:
        self.device, self.layout, self._parts = slab.device, slab.layout, parts
        self._kernel, self._arithmetic, self._rows = kernel, arithmetic, constants_of(kernel)
        self._vectors, self._fifth, self._slices = vectors, fifth, slices
        self._state_bytes = self._rows["ROWS"] * vectors * SUM_BYTES
        self._factor_bytes = 2 * vectors * fifth * SUM_BYTES
        self._sums_bytes = MOST_SUMS * slices * vectors * fifth * SUM_BYTES
        halts, factors = HALTS * HALT_BYTES, self._rows["FACTORS"] * self._factor_bytes
        sums = len(parts) * self._sums_bytes
        self._memory = slab.device.allocate(self._state_bytes + halts + factors + sums)
        self.state = self._memory.address
        """Address of the state."""
        self._halts = self.state + self._state_bytes
        self._factors = self._halts + halts
        self.by_slice = self._factors + factors
        """Address of the sums by slices, one part after the other."""

    def row(self, name: str) -> int:
        """Return the address of a row of the state."""
        return self.state + self._rows[name] * self._vectors * SUM_BYTES

    def begin(self, state: Array) -> None:
        """Write the state, which has not halted."""
        data = np.append(state.view(np.uint8), np.zeros(HALTS * HALT_BYTES, np.uint8))
        self.device.write(self._memory, 0, data)

    def read(self, state: Array) -> NDArray[np.int32]:
        """Wait for all work, read the state, and return why the search has halted."""
        buffer = self.device.read(self._memory, 0, self._state_bytes + HALTS * HALT_BYTES)
        state[:] = buffer[: self._state_bytes].view(float).reshape(state.shape)
        return buffer[self._state_bytes :].view(np.int32)

    def factors(self, part: int, **factors: str) -> algebra.OnDevice:
        """Return factors of launches that a halt in a part leaves out, by the kernel's names."""
        first, nbytes, rows = self._factors, self._factor_bytes, self._rows
        addresses = {name: first + rows[number] * nbytes for name, number in factors.items()}
        return algebra.OnDevice(addresses, self._halts + self._parts.index(part) * HALT_BYTES)

    def launch(
        self,
        part: int,
        stages: int,
        first: int,
        sums: SlabSums,
        slabs: Sequence[SlabState],
        number: int,
        products: slice,
        halts: NDArray[np.int32],
    ) -> Launch:
        """Return a call that carries out stages of a part."""
        (x, y, z), place = self.layout.extents, self._parts.index(part)
        slices, many = len(self.layout.times), products.stop * len(self.layout.times) * self._fifth
        by_slice = [slab.by_slice + place * self._sums_bytes for slab in slabs]
        variant = ANY_VARIANT if self._arithmetic is None else EXACTLY
        arguments = self._kernel.arguments(
            variant,
            geometry=self.layout.geometry,
            work=work(0, 1, 1, parity=0, slots=x // 2, rows=(y, z)),
            partial=sums.described,
            by_slice=(*by_slice, *(0,) * (MOST_SLABS - len(slabs))),
            state=self.state,
            factors=self._factors,
            halted=self._halts,
            seen=halts.ctypes.data if number == 0 else 0,
            part=part,
            stages=stages,
            vectors=self._vectors,
            fifth=self._fifth,
            own_halt=place,
            other_halt=(place or len(self._parts)) - 1,
            first_summed=first,
            summed=sums.slices // slices,
            slab=number,
            slabs=len(slabs),
            first=self.layout.times[0],
            slices=slices,
            all_slices=self._slices,
            product=products.start,
            sums=products.stop - products.start,
            arithmetic=self._arithmetic or 0,
            shares=geometry_structure("Shares")(min(many, MOST_SHARES), 1),
        )
        kernel = self.device.kernel(self._kernel, variant)
        return kernel.prepared(repeated([arguments], 1))


Norms = Array
Counts = Integers

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
        self, reduction: float, most: int, norms: Norms, targets: Norms, plateau: int, groups: int
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
        norms = {"NORM2": norm2, "SQUARES": np.square(now), "GROWN": LARGEST_GROWTH * self._norms}
        limits |= {"TARGET": self._targets, "REDUCTION": self._reduction, "SLOWEST": SLOWEST}
        rows = {"LIVE": live, **norms, **limits, **history}
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
        self._subtract = algebra.Advance(self.r, product)
        self._add = algebra.Combine(self.y, self._more)
        self._begin = self.r.copying(b)
        self._take: dict[int, Apply] = {}
        """Copies of corrections by their identity; the calls keep these."""
        self._b_b = algebra.Multiply(b)
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
