"""Seeds, couplings and other numbers that differ between the replicas of a field, in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gauge_mc.actions import Coupling
from gauge_mc.devices import Buffer
from gauge_mc.devices.kernels import Choice, Kernel
from gauge_mc.fields.random_field import Random
from gauge_mc.fields.slab_field import SlabField

ONE_REPLICA = Choice.of("replicas", "", "update/replicas.h", "OneReplica")
"""Updates of a field with one replica."""
MANY_REPLICAS = Choice.of("replicas", "replicas", "update/replicas.h", "ManyReplicas")
"""Updates of a field with several replicas, each with its own seed, couplings and steps."""


def couplings_in_memory(
    field: SlabField, kernel: Kernel, choices: Sequence[Choice], couplings: Sequence[Coupling]
) -> Buffer:
    """Return the coefficients of the action of every replica, as a kernel reads them.

    Parameters
    ----------
    field : SlabField
        A field on one device.
    kernel : Kernel
        The kernel of the updates.
    choices : sequence of Choice
        The compile-time choices of the kernel other than the group.
    couplings : sequence of Coupling
        The couplings of every replica.
    """
    kind: Any = kernel.part("ACTION::Coefficients", field.slabs[0].variant(*choices))
    values = [kind(**one.coefficients(field.group)) for one in couplings]
    return in_memory(field, np.frombuffer((kind * len(values))(*values), np.uint8))


def keys_in_memory(field: SlabField, randoms: Sequence[Random]) -> Buffer:
    """Return the keys of the generators of all replicas, as kernels read them."""
    return in_memory(field, np.array([random.stream(0).key for random in randoms], np.uint32))


def in_memory(field: SlabField, data: NDArray[Any]) -> Buffer:
    """Return a copy of an array in the memory of the device of a field."""
    plain, device = data.reshape(-1).view(np.uint8), field.slabs[0].device
    buffer = device.allocate(plain.nbytes)
    device.write(buffer, 0, plain)
    return buffer
