"""SU(3): links are stored as their first two rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gauge_mc.groups import GROUPS, Components, Group, Matrices


class SU3(Group):
    """The group SU(3); see ``cuda_src/group/su3.h``."""

    name = "su3"
    label = "SU(3)"
    header = "group/su3.h"
    cpp = "SU3"
    beta = 6.0
    launch_bounds: ClassVar[Mapping[str, tuple[int, int]]] = {
        "single": (128, 5),
        "double": (128, 3),
    }

    def matrices(self, components: Components) -> NDArray[np.complex128]:
        """Return matrices whose third row is the conjugate of the cross product of the others."""
        reals = np.ascontiguousarray(components, dtype=np.float64)
        rows = reals.view(np.complex128).reshape(*reals.shape[:-1], 2, 3)
        third = np.cross(rows[..., 0, :], rows[..., 1, :]).conj()
        return np.concatenate([rows, third[..., np.newaxis, :]], axis=-2)

    def stored(self, matrices: Matrices) -> NDArray[np.float64]:
        """Return the real and imaginary parts of the first two rows."""
        rows = np.ascontiguousarray(matrices[..., :2, :], dtype=np.complex128)
        return rows.reshape(*rows.shape[:-2], 6).view(np.float64)


GROUPS.register(SU3())
