"""Launch bounds of CUDA kernels: the default ones, and those that tuning found fastest."""

from __future__ import annotations

import functools
import hashlib
import json
import re
from dataclasses import astuple, dataclass

from gauge_mc.devices.cache import cache_folder, keep, kept, make_private_folder
from gauge_mc.devices.kernels import Kernel, Variant
from gauge_mc.errors import not_written
from gauge_mc.files.structured import parse_json

REGISTERS = 65536
"""Registers per multiprocessor (all NVIDIA GPUs since 2014)."""

MOST_REGISTERS = 255
"""Maximum number of registers per thread."""


@dataclass(frozen=True)
class Bounds:
    """Launch bounds of a kernel, which limit the number of registers per thread."""

    threads: int
    """Maximum number of threads per block."""
    blocks: int
    """Minimum number of resident blocks per multiprocessor."""

    @property
    def registers(self) -> int:
        """Maximum number of registers per thread, a multiple of eight."""
        return min(MOST_REGISTERS, REGISTERS // (self.threads * self.blocks) // 8 * 8)

    def __str__(self) -> str:
        return f"{self.threads:3} threads per block, {self.blocks:2} resident blocks"


THREADS = (64, 128, 256)
"""Numbers of threads per block that tuning tries."""

REGISTER_LIMITS = (64, 72, 80, 96, 112, 128, 168, 255)
"""Limits for the registers per thread that tuning tries."""


def candidates() -> list[Bounds]:
    """Return launch bounds that differ in the threads per block or the registers per thread."""
    found = {}
    for threads in THREADS:
        for registers in REGISTER_LIMITS:
            bounds = Bounds(threads, max(1, REGISTERS // (threads * registers)))
            found[threads, bounds.registers] = bounds
    return list(found.values())


DEFAULT = Bounds(128, 4)
"""Launch bounds of kernels that do not depend on the group."""


@functools.cache
def default_bounds(variant: Variant) -> Bounds:
    """Return the default launch bounds: of another choice, or the group's for the precision.

    For choices that need more registers, a fifth fewer blocks than the group's are resident.
    """
    for choice in variant.choices:
        if choice.launch_bounds:
            return Bounds(*choice.launch_bounds)
    usual = next((choice.usual_bounds for choice in variant.choices if choice.usual_bounds), None)
    if usual is None:
        return DEFAULT
    threads, blocks = dict(usual)[variant.precision]
    if any(choice.needs_registers for choice in variant.choices):
        blocks = 4 * blocks // 5
    return Bounds(threads, blocks)


class TunedBounds:
    """Launch bounds found fastest on one model of GPU, stored next to the compiled kernels.

    They apply only to the kernel sources with which they were found, and do not change results.

    Parameters
    ----------
    gpu : str
        Name of the GPU model.
    """

    def __init__(self, gpu: str) -> None:
        self._path = cache_folder() / f"bounds-{re.sub(r'[^A-Za-z0-9]+', '-', gpu)}.json"
        self._found = self._read()

    def bounds(self, kernel: Kernel, variant: Variant) -> Bounds:
        """Return the launch bounds found for a kernel, or else the default ones."""
        found = self._found.get(_key(kernel, variant))
        return found or default_bounds(kernel.narrowed(variant))

    def keep(self, kernel: Kernel, variant: Variant, bounds: Bounds) -> None:
        """Store the launch bounds to use for a kernel from now on.

        Raises
        ------
        GaugeError
            If the file cannot be written.
        """
        self._found[_key(kernel, variant)] = bounds
        text = json.dumps({name: astuple(bounds) for name, bounds in self._found.items()}, indent=1)
        try:
            make_private_folder()
        except OSError as error:
            raise not_written(self._path, error) from error
        keep(self._path, text.encode())

    def _read(self) -> dict[str, Bounds]:
        """Read the stored bounds; a missing or damaged file counts as empty."""
        try:
            stored = parse_json(kept(self._path) or b"{}")
            found = {str(name): Bounds(*map(int, two)) for name, two in stored.items()}
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
            return {}
        right = (one.threads in THREADS and 1 <= one.blocks <= REGISTERS for one in found.values())
        return found if all(right) else {}


def _key(kernel: Kernel, variant: Variant) -> str:
    """Return a string that identifies a kernel, its variant and its sources."""
    digest = hashlib.sha256(kernel.digest(variant)).hexdigest()[:16]
    return f"{kernel.name} {kernel.narrowed(variant)} {digest}"
