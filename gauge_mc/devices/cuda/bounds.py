"""Launch bounds of CUDA kernels: the usual ones, or those that were found fastest on a GPU."""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import astuple, dataclass

from gauge_mc.devices.cache import cache_folder
from gauge_mc.devices.kernels import Kernel, Variant
from gauge_mc.errors import GaugeError
from gauge_mc.groups import GROUPS

REGISTERS = 65536
"""Registers of a multiprocessor (all NVIDIA GPUs since 2014)."""

MOST_REGISTERS = 255
"""Registers that a thread can have."""


@dataclass(frozen=True)
class Bounds:
    """Launch bounds of a kernel, which limit the registers of a thread.

    Attributes
    ----------
    threads : int
        Maximum number of threads of a block.
    blocks : int
        Minimum number of resident blocks per multiprocessor.
    """

    threads: int
    blocks: int

    @property
    def registers(self) -> int:
        """The registers that a thread can have, which come in groups of eight."""
        return min(MOST_REGISTERS, REGISTERS // (self.threads * self.blocks) // 8 * 8)

    def __str__(self) -> str:
        return f"blocks of {self.threads:3}, {self.blocks:2} at once"


THREADS = (64, 128, 256)
"""Threads of a block that tuning tries."""

REGISTER_LIMITS = (64, 72, 80, 96, 112, 128, 168, 255)
"""Registers of a thread that tuning tries."""


def candidates() -> list[Bounds]:
    """Return bounds that differ in threads, or in the registers that they leave a thread."""
    found = {}
    for threads in THREADS:
        for registers in REGISTER_LIMITS:
            bounds = Bounds(threads, max(1, REGISTERS // (threads * registers)))
            found[threads, bounds.registers] = bounds
    return list(found.values())


DEFAULT = Bounds(128, 4)
"""Bounds of kernels that do not depend on the group."""


def usual_bounds(variant: Variant) -> Bounds:
    """Return the bounds that the variant's group declares for its precision."""
    group = next((choice for choice in variant.choices if choice.kind == "group"), None)
    if group is None:
        return DEFAULT
    return Bounds(*GROUPS[group.name].launch_bounds[variant.precision])


class TunedBounds:
    """Bounds that were found fastest on one kind of GPU, stored beside the compiled kernels.

    They hold for the kernel sources that they were found with, and change no result.

    Parameters
    ----------
    gpu : str
        The GPU's name.
    """

    def __init__(self, gpu: str) -> None:
        self._path = cache_folder() / f"bounds-{re.sub(r'[^A-Za-z0-9]+', '-', gpu)}.json"
        self._found = self._read()

    def bounds(self, kernel: Kernel, variant: Variant) -> Bounds:
        """Return the bounds for a kernel: those found for it, or else the usual ones."""
        found = self._found.get(_key(kernel, variant))
        return found or usual_bounds(kernel.narrowed(variant))

    def keep(self, kernel: Kernel, variant: Variant, bounds: Bounds) -> None:
        """Use bounds for a kernel from now on.

        Raises
        ------
        GaugeError
            If the cache cannot be written.
        """
        self._found[_key(kernel, variant)] = bounds
        text = json.dumps({name: astuple(bounds) for name, bounds in self._found.items()}, indent=1)
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            temporary = self._path.with_suffix(f".{os.getpid()}")
            temporary.write_text(text)
            os.replace(temporary, self._path)
        except OSError as error:
            raise GaugeError(
                f"{self._path} cannot be written ({error.strerror}): free some space, or name "
                "another folder in the environment variable GAUGE_MC_CACHE."
            ) from error

    def _read(self) -> dict[str, Bounds]:
        """Read what was stored; ignore a file that is damaged."""
        try:
            stored = json.loads(self._path.read_text())
            return {name: Bounds(*map(int, two)) for name, two in stored.items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return {}


def _key(kernel: Kernel, variant: Variant) -> str:
    """Name a kernel, its variant and its sources."""
    digest = hashlib.sha256(kernel.digest(variant)).hexdigest()[:16]
    return f"{kernel.name} {kernel.narrowed(variant)} {digest}"
