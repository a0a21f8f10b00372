"""SU(2): links are stored as the four reals of a quaternion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gauge_mc.groups import GROUPS, Components, Group, Matrices


class SU2(Group):
    """The group SU(2), ``a0 + i a.sigma``; see ``cuda_src/group/su2.h``."""

    name = "su2"
    label = "SU(2)"
    header = "group/su2.h"
    cpp = "SU2"
    beta = 2.5
    launch_bounds: ClassVar[Mapping[str, tuple[int, int]]] = {
        "single": (256, 4),
        "double": (128, 4),
    }

    def matrices(self, components: Components) -> NDArray[np.complex128]:
        """Return the matrices [[a0 + i a3, a2 + i a1], [-a2 + i a1, a0 - i a3]]."""
        a = np.moveaxis(np.asarray(components, np.float64), -1, 0)
        top = np.stack([a[0] + 1j * a[3], a[2] + 1j * a[1]], axis=-1)
        bottom = np.stack([-top[..., 1].conj(), top[..., 0].conj()], axis=-1)
        return np.stack([top, bottom], axis=-2)

    def stored(self, matrices: Matrices) -> NDArray[np.float64]:
        """Return the quaternions (a0, a1, a2, a3)."""
        a, b = matrices[..., 0, 0], matrices[..., 0, 1]
        return np.stack([a.real, b.imag, b.real, a.imag], axis=-1).astype(np.float64)


GROUPS.register(SU2())
