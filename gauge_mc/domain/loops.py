"""Shapes of closed loops of links, whose traces kernels sum over the lattice."""

from __future__ import annotations

from dataclasses import dataclass

from gauge_mc.devices.kernels import Kernel


@dataclass(frozen=True)
class Loops:
    """All loops of one shape."""

    kernel: Kernel
    """Sum kernel of Re Tr of the loops of each kind, whose only other argument is ``links``."""
    kinds: tuple[int, ...]
    """Number of loops of each kind per site. The first kind is in space, and the others have links
    along t.
    """


PLAQUETTES = Loops(Kernel("plaquette"), (3, 3))
RECTANGLES = Loops(Kernel("rectangles"), (6, 3, 3))
"""Rectangles of 2x1 links: in space, with the short side along t, and with the long side."""
PARALLELOGRAMS = Loops(Kernel("parallelograms"), (4, 12))
"""Loops mu, nu, rho, -mu, -nu, -rho through corners of a cube."""
