"""A CPU that runs kernels for one slot of one slice after the other, and looks at what they store.

A kernel may store to its own site only. On a CPU with several lanes, a store to a neighbour's place
writes the right numbers for the wrong sites, and with several threads another one may be at work
there. No result shows it on a lattice where one lane is enough.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gauge_mc.devices.cpu.device import CpuDevice
from gauge_mc.devices.kernels import Choice, Kernel
from gauge_mc.devices.source import ARGUMENTS, members
from gauge_mc.domain.slab import BOTH_PARITIES, Slab, work

FIELDS = {"GROUP::Field": "components", "GROUP::AlgebraField": "algebra_components"}
"""Types of arguments that are fields on the links, and what the group calls their components."""


@contextmanager
def own_sites_only() -> Iterator[None]:
    """Let kernels of other packages fail if they store to other sites of a slab on a CPU."""
    launch = Slab.launch

    def watched(
        slab: Slab, kernel: Kernel, over: ctypes.Structure, *choices: Choice, **values: Any
    ) -> None:
        fields = _fields(slab, kernel, choices, values)
        if not fields or over.colours or over.slots:
            return launch(slab, kernel, over, *choices, **values)
        slab.arguments(kernel, over, *choices, **values)  # which may refuse them
        parities = (0, 1) if over.parity == BOTH_PARITIES else (over.parity,)
        slices = range(over.t_begin, over.t_begin + over.slices * over.t_step, over.t_step)
        before = {name: one.copy() for name, one in fields.items()}
        for t, parity, slot in product(slices, parities, range(slab.layout.slots)):
            launch(slab, kernel, work(t, 1, 1, parity, over.mu, slot, 1), *choices, **values)
            slab.device.synchronize()
            for name, one in fields.items():
                before[name][t, parity, :, slot] = one[t, parity, :, slot]
                if (one != before[name]).any():
                    places = np.argwhere((one != before[name]).any(axis=(2, 4))).tolist()
                    raise AssertionError(
                        f"The kernel {kernel.name} stores to other sites of its argument {name}: "
                        f"{places} (slice, parity and slot), while it works on "
                        f"{[t, parity, slot]}."
                    )
        return None

    Slab.launch = watched  # type: ignore[method-assign]
    try:
        yield
    finally:
        Slab.launch = launch  # type: ignore[method-assign]


def _fields(
    slab: Slab, kernel: Kernel, choices: tuple[Choice, ...], values: dict[str, Any]
) -> dict[str, NDArray[np.uint8]]:
    """Return the memory of the fields: [slice][parity][direction][slot][byte]."""
    if not (kernel.folder and isinstance(slab.device, CpuDevice)) or kernel.sums or kernel.shared:
        return {}
    layout, found = slab.layout, {}
    for one in members(ARGUMENTS, kernel.roots(slab.variant(*choices))):
        if one.cpp in FIELDS and values.get(one.name):
            reals = getattr(slab.group, FIELDS[one.cpp])
            shape = (layout.slices_in_memory, 2, 4, layout.slots)
            nbytes = reals * layout.lanes * layout.real.itemsize
            memory = (ctypes.c_uint8 * (int(np.prod(shape)) * nbytes)).from_address(
                values[one.name]
            )
            found[one.name] = np.frombuffer(memory, np.uint8).reshape(*shape, nbytes)
    return found
