"""A smearing with forward staples only."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from gauge_mc.devices.kernels import Kernel
from gauge_mc.fields.field import Field
from gauge_mc.options import Option
from gauge_mc.smearing import Smearing

FORWARD = Kernel("forward", Path(__file__).parent)


@dataclass(frozen=True)
class Forward(Smearing):
    """The smearing U -> P[U + w sum of the forward staples] of the spatial links."""

    forward_weight: float = 0.3

    name: ClassVar[str] = "forward"
    options: ClassVar[tuple[Option, ...]] = (
        Option("forward_weight", float, "Weight w of the forward staples.", default="0.3"),
    )
    positional: ClassVar[tuple[str, ...]] = ("forward_weight",)

    @classmethod
    def from_options(cls, values: Mapping[str, Any]) -> "Forward":
        """Return the smearing with the given options."""
        return cls(**values)

    def __str__(self) -> str:
        return f"forward staples, w = {self.forward_weight:g}"

    def __call__(self, source: Field, target: Field) -> None:
        """Write the smeared links of `source` to `target`."""
        for slab, other in zip(source.slabs, target.slabs, strict=True):
            addresses = {"source": slab.buffer.address, "target": other.buffer.address}
            slab.launch(FORWARD, slab.whole(), **addresses, weight=self.forward_weight)
        target.exchange_halo()
