"""First touch: memory lies in the NUMA node of the core that writes it first."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator, Sequence

from gauge_mc.devices.cpu.topology import Core


def touch_first(address: int, nbytes: int, cores: Sequence[Core]) -> None:
    """Write zeros to new memory, each part from the core of the thread that will work on it.

    Without effect if all cores are in the same node. The parts are those of a launch that works on
    all slices of a field.

    Parameters
    ----------
    address, nbytes : int
        The memory.
    cores : sequence of Core
        The core of each thread of the team, in order.
    """
    if len({core.node for core in cores}) < 2:
        return
    writers = [
        threading.Thread(target=_write_zeros, args=(core.number, address + begin, end - begin))
        for core, begin, end in parts(nbytes, cores)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()


def parts(nbytes: int, cores: Sequence[Core]) -> Iterator[tuple[Core, int, int]]:
    """Yield every core with the first byte of its part, and the byte after its last one."""
    for n, core in enumerate(cores):
        yield core, nbytes * n // len(cores), nbytes * (n + 1) // len(cores)


def _write_zeros(core: int, address: int, nbytes: int) -> None:
    os.sched_setaffinity(0, {core})  # of this thread alone
    ctypes.memset(address, 0, nbytes)  # releases the interpreter's lock meanwhile
