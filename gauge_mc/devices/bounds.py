"""Launch bounds of CUDA kernels: those found fastest on a GPU, or else the usual ones."""

from __future__ import annotations

import json
import os
import re
from dataclasses import astuple, dataclass

from gauge_mc.devices.source import Variant, cache_folder, source_digest
from gauge_mc.errors import GaugeError

REGISTERS = 65536
"""Of a multiprocessor."""


@dataclass(frozen=True)
class Bounds:
    """What bounds the registers of a thread.

    Attributes
    ----------
    threads : int
        Of a block at most.
    blocks : int
        That a multiprocessor is to hold at least.
    """

    threads: int
    blocks: int

    @property
    def registers(self) -> int:
        """That a thread can have."""
        return min(255, REGISTERS // (self.threads * self.blocks) // 8 * 8)


USUAL = {
    ("su2", "single"): Bounds(256, 4),
    ("su2", "double"): Bounds(128, 4),
    ("su3", "single"): Bounds(128, 5),
    ("su3", "double"): Bounds(128, 3),
}
"""What was fastest on an H200 for the updates."""


class Tuned:
    """Bounds that were found for the kernels of one kind of GPU, kept beside compiled kernels.

    They hold for the present kernel sources, and change no result.

    Parameters
    ----------
    gpu : str
        Its name.
    """

    def __init__(self, gpu: str) -> None:
        self._path = cache_folder() / f"bounds-{re.sub(r'[^A-Za-z0-9]+', '-', gpu)}.json"
        self._sources = source_digest().hex()
        self._found = self._read()

    def bounds(self, kernel: str, variant: Variant) -> Bounds:
        """Return the bounds for a kernel."""
        usual = USUAL[variant.group, variant.precision]
        return self._found.get(_name(kernel, variant), usual)

    def keep(self, kernel: str, variant: Variant, bounds: Bounds) -> None:
        """Keep bounds for a kernel from now on.

        Raises
        ------
        GaugeError
            If the cache cannot be written.
        """
        self._found[_name(kernel, variant)] = bounds
        found = {name: astuple(bounds) for name, bounds in self._found.items()}
        text = json.dumps({"sources": self._sources, "bounds": found}, indent=1)
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
        """Read what was kept for these sources; anything else is as good as nothing."""
        try:
            kept = json.loads(self._path.read_text())
            if kept["sources"] != self._sources:
                return {}
            return {name: Bounds(*map(int, two)) for name, two in kept["bounds"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return {}


def _name(kernel: str, variant: Variant) -> str:
    return f"{kernel} {variant.group} {variant.precision} {variant.random} {variant.luxury}"
