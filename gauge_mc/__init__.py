"""Monte Carlo ensembles of SU(2) and SU(3) lattice gauge theory, on CPUs and GPUs."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gauge_mc.devices import open_device
    from gauge_mc.errors import GaugeError, UsageError
    from gauge_mc.field import Field
    from gauge_mc.lattice import Lattice
    from gauge_mc.observables.plaquette import plaquette
    from gauge_mc.observables.polyakov import polyakov_loop
    from gauge_mc.random import Random
    from gauge_mc.ring import Ring, open_ring
    from gauge_mc.updates import heatbath, overrelax

__version__ = "0.1.0"

__all__ = [
    "Field",
    "GaugeError",
    "Lattice",
    "Random",
    "Ring",
    "UsageError",
    "heatbath",
    "open_device",
    "open_ring",
    "overrelax",
    "plaquette",
    "polyakov_loop",
]


def __getattr__(name: str) -> Any:
    """Import public names when first used, so that the command line starts quickly."""
    homes = {
        "open_device": "devices",
        "GaugeError": "errors",
        "UsageError": "errors",
        "Field": "field",
        "Lattice": "lattice",
        "plaquette": "observables.plaquette",
        "polyakov_loop": "observables.polyakov",
        "Random": "random",
        "Ring": "ring",
        "open_ring": "ring",
        "heatbath": "updates",
        "overrelax": "updates",
    }
    if name not in homes:
        raise AttributeError(f"module 'gauge_mc' has no attribute '{name}'")
    return getattr(import_module(f"gauge_mc.{homes[name]}"), name)
