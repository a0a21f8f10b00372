"""The gradient flow of a field."""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gauge_mc import flows
from gauge_mc.devices.base import Launch, repeated
from gauge_mc.devices.kernels import Kernel
from gauge_mc.domain.lattice import Lattice
from gauge_mc.domain.slab import Slab
from gauge_mc.errors import GaugeError
from gauge_mc.fields.field import AlgebraField, Field, is_local
from gauge_mc.fields.sums import SlabSums, slices_of_all_slabs
from gauge_mc.flows import Flow
from gauge_mc.quoting import power

CLOVER = Kernel("clover")
LONG_CLOVER = Kernel("long_clover")
LENGTHEN_LINES = Kernel("lengthen_lines")

IMPROVED = {1: 3 / 2, 2: -3 / 5, 3: 1 / 10}
"""Weights of the charges of clovers of l x l loops, which cancel the errors of order a^2 and a^4:
the combination with c5 = 1/10 of P. de Forcrand, M. Garcia Perez and I.-O. Stamatescu,
hep-lat/9701012."""


CHARGE_NORM = 4 * math.pi * math.pi
"""Denominator of the charge density -Tr (F_01 F_23 - F_02 F_13 + F_03 F_12)."""


@dataclass(frozen=True)
class FieldStrength:
    """Action density and topological charge of the time slices of a field."""

    plaquette: NDArray[np.float64]
    """Sums of a^4 E over each slice, from plaquettes: E = 2 sum_p Re Tr (1 - U_p) (arXiv:1006.4518,
    eq. 3.1), of shape (T,).
    """
    clover: NDArray[np.float64]
    """The same from the traceless clover: E = G^a_mu_nu G^a_mu_nu / 4, of shape (T,)."""
    charge: NDArray[np.float64]
    """Topological charge of each slice, from the clover, of shape (T,); see `topological_charge`.
    """
    largest: NDArray[np.float64]
    """Largest Re Tr (1 - U_p) of the plaquettes that begin on each slice, of shape (T,)."""


class LargestValues:
    """Memory in which kernels find the largest value of each time slice of a field.

    Parameters
    ----------
    field : Field
        The links.
    """

    def __init__(self, field: Field) -> None:
        self._devices, self._slabs = field.devices, field.slabs
        self._memory, self._zeros = [], []
        for slab in field.slabs:
            words = np.zeros(slab.layout.slices_in_memory, np.uint32)
            memory, zeros = (slab.device.allocate(words.nbytes) for _ in range(2))
            slab.device.write(zeros, 0, words)
            self._memory.append(memory)
            self._zeros.append(zeros)

    def clear(self) -> None:
        """Set all values to 0."""
        # A copy within the device does not wait for the work issued so far, as a write would.
        for slab, memory, zeros in zip(self._slabs, self._memory, self._zeros, strict=True):
            slab.device.copy(memory, zeros)

    def address(self, number: int) -> int:
        """Return the address of the values of a slab of this process."""
        return self._memory[number].address

    def by_slice(self) -> NDArray[np.float64]:
        """Return the values of all slices of all replicas, rounded to single precision."""
        local = []
        for slab, memory in zip(self._slabs, self._memory, strict=True):
            slices = slab.layout.replicas * slab.layout.slices
            values = slab.device.read(memory, 0, 4 * slices).view(np.float32)
            local.append(values.astype(np.float64).reshape(1, -1, 1))
        return slices_of_all_slabs(self._devices, local)[0, :, 0]


def field_strength(
    field: Field, largest: LargestValues | None = None, anisotropy: float = 1.0
) -> FieldStrength:
    """Return action density and topological charge of a field."""
    largest = largest or LargestValues(field)
    largest.clear()
    sums = [SlabSums(slab, 3, 1, wide=True) for slab in field.slabs]
    for n, slab_sums in enumerate(sums):
        addresses = {"links": slab_sums.slab.buffer.address, "largest": largest.address(n)}
        slab_sums.launch(CLOVER, addresses | {"along_t": anisotropy * anisotropy})
    by_slice = slices_of_all_slabs(field.devices, [s.by_slice() for s in sums])[0]
    plaquette, clover, charge = by_slice.T
    return FieldStrength(2 * plaquette, clover, charge / CHARGE_NORM, largest.by_slice())


def improved_charge(field: Field, spare: Field, charge: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the topological charge from clovers of 1x1, 2x2 and 3x3 loops, for each time slice."""
    total = IMPROVED[1] * charge
    lines = field
    for length in (2, 3):
        for slab, old, new in zip(field.slabs, lines.slabs, spare.slabs, strict=True):
            fields = {"links": slab.buffer.address, "lines": old.buffer.address}
            fields["longer"] = new.buffer.address
            slab.launch(LENGTHEN_LINES, slab.whole(), **fields, length=length - 1)
        spare.exchange_halo(depth=None)
        lines = spare
        sums = [SlabSums(slab, 1, 1) for slab in field.slabs]
        for slab_sums, slab in zip(sums, spare.slabs, strict=True):
            slab_sums.launch(LONG_CLOVER, {"lines": slab.buffer.address, "length": length})
        by_slice = slices_of_all_slabs(field.devices, [s.by_slice() for s in sums])[0, :, 0]
        total = total + IMPROVED[length] * by_slice / (CHARGE_NORM * length**4)
    return total


FLOW_STAGE = Kernel("flow_stage")
FLOW_FORCE = Kernel("flow_force")
ZEUTHEN_STAGE = Kernel("zeuthen_stage")
FLOW_ERROR = Kernel("flow_error")

KEEP = (0.0, -17 / 32, -32 / 27)
MOVE = (1 / 4, 8 / 9, 3 / 4)
"""Coefficients of the third-order scheme of arXiv:1006.4518, appendix C, in 2N storage: stage k
does A <- KEEP[k] A + step Z(W), W <- exp(MOVE[k] A) W."""

STAGES = len(MOVE)

STABLE = 2.4
"""Largest product of the step and the rate at which the fastest modes decay. The scheme is unstable
if it exceeds 2.51."""

HALO = 3
"""Halo depth of the fields, for clovers of loops with sides of up to three links."""

ROUNDING = 1e-9
"""Relative rounding error of flow times that is ignored when steps are counted."""

SAFETY = 0.95
"""Factor of a new adaptive step (arXiv:1301.4388, eq. D.8)."""

LARGEST_FACTOR = 2.0
"""Largest ratio of successive adaptive steps."""

SMALLEST_STEP = 1e-7
"""Adaptive steps that become smaller end the flow, because the tolerance cannot be reached."""

TEST_STEP = 0.01
"""Step with which the halo depth of a flow is tried."""

_tried: set[tuple[object, ...]] = set()
"""Flows of other packages, with kinds of fields, whose halo depth this process has tried."""

MOST_PREPARED = 64
"""Number of step sizes whose launches are kept; adaptive steps nearly always have a new size."""


def largest_step(flow: Flow) -> float:
    """Return the largest step with which the scheme is stable."""
    return STABLE / flow.fastest


class GradientFlow:
    """The gradient flow of fields of one kind, with the memory that it needs.

    This is two fields of links and one of algebra elements (2/3 of the size of a field for SU(3),
    the same size for SU(2)). Adaptive steps need one more of each, and the Zeuthen flow one more
    field of algebra elements.

    Parameters
    ----------
    flow : Flow
        The flow equation, with its force.
    like : Field
        A field of the same kind as those that will flow. It is not changed.
    adaptive : bool
        Whether `advance` will be called with a tolerance.

    Raises
    ------
    GaugeError
        If the device does not have enough memory, or a flow of another package depends on links
        beyond its halo depth.
    """

    def __init__(self, flow: Flow, like: Field, adaptive: bool = False) -> None:
        check_depth(flow, like)
        self.flow = flow
        kind = (like.lattice, like.group.name, like.precision, like.devices)
        make = partial(Field.empty, *kind, above=HALO, below=HALO)
        self._fields = [make(), make()]
        self._begin = make() if adaptive else None
        self._now = 0
        self._momenta = AlgebraField.like(self.field)
        self._estimate = AlgebraField.like(self.field) if adaptive else None
        self._force = AlgebraField.like(self.field) if flow.corrected else None
        self._largest = LargestValues(self.field) if adaptive else None
        self._prepared: dict[tuple[float, int, int], list[Launch]] = {}
        self.t = 0.0

    @property
    def field(self) -> Field:
        """The links at flow time `t`; later steps overwrite them."""
        return self._fields[self._now]

    @property
    def spare(self) -> Field:
        """A field with arbitrary content, which the next step overwrites."""
        return self._fields[1 - self._now]

    def start(self, field: Field) -> None:
        """Copy the links of a field, and set t = 0."""
        self.field.copy(field)
        self.field.exchange_halo(depth=None)
        self.t = 0.0

    def step(self, size: float) -> None:
        """Advance by one step of the third-order scheme; t is in lattice units."""
        for stage in range(STAGES):
            key = (size, stage, self._now)
            if key not in self._prepared:
                if len(self._prepared) >= 2 * STAGES * MOST_PREPARED:
                    self._prepared.clear()
                self._prepared[key] = list(self._launches(size, stage))
            for launch in self._prepared[key]:
                launch()
            self._now = 1 - self._now
            self.field.exchange_halo(self.flow.halo_depth)
        self.t += size

    def advance(self, to: float, step: float, tolerance: float | None = None) -> float:
        """Advance to the flow time `to`."""
        if tolerance is None:
            count = math.ceil((to - self.t) / step * (1 - ROUNDING))
            sizes = [(to - self.t) / count] * count if count else []
            for size in sizes:
                self.step(size)
            self.t = to
            return step
        while self.t < to:
            size = min(step, to - self.t)
            last = size == to - self.t
            error = self._try(size)
            factor = min(
                SAFETY * power(tolerance / error, 1 / 3) if error else math.inf, LARGEST_FACTOR
            )
            proposed = min(size * factor, largest_step(self.flow))
            if error > tolerance:
                assert self._begin is not None
                self.field.copy(self._begin)
                self.field.exchange_halo(self.flow.halo_depth)
                self.t -= size
                if proposed < SMALLEST_STEP:
                    raise GaugeError(
                        f"The gradient flow does not reach the tolerance {tolerance:g} with steps "
                        f"of {size:.1e}; choose a larger one, or double precision."
                    )
                step = proposed
                continue
            # A step that was shortened to end at `to` says little about longer ones.
            step = max(step, proposed) if last else proposed
            if last:
                self.t = to
        return step

    def _try(self, size: float) -> float:
        """Do a step, and return the distance to the embedded scheme."""
        assert self._begin is not None
        assert self._largest is not None
        self._begin.copy(self.field)
        self.step(size)
        self._largest.clear()
        assert self._estimate is not None
        slabs = zip(self.field.slabs, self._begin.slabs, self._estimate.slabs, strict=True)
        for n, (slab, begin, estimate) in enumerate(slabs):
            fields = {"before": begin.buffer.address, "after": slab.buffer.address}
            outputs = {"estimate": estimate.buffer.address, "largest": self._largest.address(n)}
            slab.launch(FLOW_ERROR, slab.whole(), **fields, **outputs)
        return float(self._largest.by_slice().max())

    def _launches(self, size: float, stage: int) -> Iterator[Launch]:
        """Yield calls that carry out a stage on all slabs, apart from the halo exchange."""
        values = {
            "keep": KEEP[stage],
            "step": size,
            "step_along_t": size / (self.flow.anisotropy * self.flow.anisotropy),
            "move": MOVE[stage],
            "last": stage == STAGES - 1,
        }
        kernel = ZEUTHEN_STAGE if self.flow.corrected else FLOW_STAGE
        choices = () if self.flow.corrected else (self.flow.action,)
        forces, stages = [], []
        estimate = self._estimate if stage == 1 else None
        for n, source in enumerate(self.field.slabs):
            more: dict[str, Any] = {"action": _filled(FLOW_FORCE, source, self.flow)}
            if self._force:
                force = {"force": self._force.slabs[n].buffer.address}
                arguments = {"links": source.buffer.address, **force, **more}
                forces.append(_launch(FLOW_FORCE, source, (self.flow.action,), arguments))
                more = force
            fields = {
                "source": source.buffer.address,
                "target": self.spare.slabs[n].buffer.address,
                "momenta": self._momenta.slabs[n].buffer.address,
                "estimate": estimate.slabs[n].buffer.address if estimate else None,
            }
            variant = source.variant(*choices)
            arguments = {
                "fields": kernel.part("Flowing", variant)(**fields),
                "stage": kernel.part("Stage", variant)(**values),
                **more,
            }
            stages.append(_launch(kernel, source, choices, arguments))
        yield from forces
        if self._force:
            yield self._force.exchange_halo
        yield from stages


def check_depth(flow: Flow, like: Field) -> None:
    """Check that the force of a flow does not depend on links beyond its halo depth.

    One stage of a step is carried out on a lattice with few time slices, twice: with other links
    far away from the first slice, the result there must have the same bits. Flows of this package
    are not checked here, because its tests do it, and no flow is checked twice.
    """
    module, kind = type(flow).__module__, (like.group.name, like.precision, like.slabs[0].device)
    key = (type(flow), flow.action, flow.halo_depth, *kind)
    if module == flows.__name__ or key in _tried:
        return
    _tried.add(key)  # the test is a flow as well
    x, y, z, _ = like.lattice.extents
    small = Field.empty(Lattice(x, y, z, 2 * flow.halo_depth + 4), *kind)
    test = GradientFlow(flow, small)
    (slab,) = test.field.slabs

    def result() -> bytes:
        next(test._launches(TEST_STEP, 0))()  # which does not read the momenta
        (moved,) = (test._force or test.spare).slabs
        return slab.device.read(moved.buffer, 0, moved.slice_bytes).tobytes()

    if not is_local(slab, flow.halo_depth, result):
        _tried.remove(key)
        raise GaugeError(
            f"The flow {flow.name} ({sys.modules[module].__file__ or module}) depends on links "
            f"more than {flow.halo_depth} time slices away; correct its halo_depth."
        )


def _filled(kernel: Kernel, slab: Slab, flow: Flow) -> ctypes.Structure:
    """Return the coefficients of the action of a flow as a structure."""
    kind = kernel.part("ACTION::Coefficients", slab.variant(flow.action))
    return kind(**flow.coefficients)


def _launch(kernel: Kernel, slab: Slab, choices: tuple[Any, ...], values: dict[str, Any]) -> Launch:
    """Return a call that runs a kernel on the whole slab."""
    arguments = repeated([slab.arguments(kernel, slab.whole(), *choices, **values)], 1)
    return next(iter(slab.kernel(kernel, *choices).launches(arguments, [1])))
