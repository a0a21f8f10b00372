"""The links that transport spinors, and the boundary conditions of these."""

from __future__ import annotations

import cmath
import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gauge_mc.devices.base import Buffer
from gauge_mc.devices.kernels import Choice
from gauge_mc.devices.source import source_folder, structure
from gauge_mc.domain.layout import Layout
from gauge_mc.errors import UsageError

TRANSPORT = source_folder() / "dirac" / "transport.h"
"""The header that declares the structure ``Transport``."""

FEW_REALS = Choice.of("transport", "few", "dirac/transport.h", "FewReals")
"""Links as the reals that the group stores."""
ALL_REALS = Choice.of("transport", "all", "dirac/transport.h", "AllReals")
"""Links as all entries of their matrices."""

ANTIPERIODIC = -1
"""Boundary condition in t by default, as a system of fermions at a finite temperature has it."""

MODULUS_ERROR = 1e-12
"""Largest deviation of the modulus of a boundary phase from 1."""


@dataclass(frozen=True)
class Boundary:
    """Boundary conditions psi(x + L_mu) = phase_mu psi(x) of spinors.

    Attributes
    ----------
    phases : tuple of complex
        The phases exp(i theta_mu) in the directions x, y, z and t.
    """

    phases: tuple[complex, complex, complex, complex]

    @classmethod
    def of(cls, boundary: complex | Sequence[complex]) -> Boundary:
        """Return the boundary conditions given by the phase in t alone, or by all four phases.

        Raises
        ------
        UsageError
            If there are not one or four numbers of modulus 1.
        """
        given = [1, 1, 1, boundary] if np.ndim(boundary) == 0 else list(boundary)  # type: ignore[arg-type]
        phases = [complex(one) for one in given]
        if len(phases) != 4 or not all(abs(abs(one) - 1) < MODULUS_ERROR for one in phases):
            raise UsageError(
                f"The boundary condition is {boundary}; give the phase in t, such as -1 for "
                "antiperiodic spinors, or four phases in x, y, z and t, all of modulus 1."
            )
        x, y, z, t = phases
        return cls((x, y, z, t))

    @property
    def bits(self) -> int:
        """Bit mu is set if the phase in direction mu is not 1."""
        return sum(1 << mu for mu, phase in enumerate(self.phases) if phase != 1)

    def __str__(self) -> str:
        angles = (cmath.phase(one) / cmath.pi for one in self.phases)
        return ", ".join(f"exp({angle:.6g} pi i)" if angle else "1" for angle in angles)


@dataclass(frozen=True)
class Transport:
    """The links of a slab for kernels that transport spinors.

    Attributes
    ----------
    layout : Layout
    boundary : Boundary
    links : Buffer
        Links in the form of `choice`.
    choice : Choice
        `FEW_REALS` or `ALL_REALS`.
    """

    layout: Layout
    boundary: Boundary
    links: Buffer
    choice: Choice

    @cached_property
    def structure(self) -> ctypes.Structure:
        """The structure ``Transport`` for kernels; it is valid as long as this object exists."""
        phases = self.boundary.phases
        made: ctypes.Structure = structure("Transport", (TRANSPORT,))(
            links=self.links.address,
            re=tuple(one.real for one in phases),
            im=tuple(one.imag for one in phases),
            phases=self.boundary.bits,
            lanes=self._lanes.ctypes.data,
        )
        return made

    @cached_property
    def _lanes(self) -> np.ndarray[tuple[int, ...], np.dtype[np.floating]]:  # type: ignore[type-arg]
        """The phases of a step across an edge: [mu][forward, backward][re, im][lanes]."""
        layout = self.layout
        table = np.zeros((4, 2, 2, layout.lanes), layout.real)
        for mu, phase in enumerate(self.boundary.phases):
            for side in range(2):
                outside = layout.lanes_at_boundary(mu, forward=side == 0)
                table[mu, side, 0] = np.where(outside, phase.real, 1)
                table[mu, side, 1] = np.where(outside, phase.imag, 0)
        return table
