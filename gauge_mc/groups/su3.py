"""SU(3): links are stored as their first two rows."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

from gauge_mc.groups import GROUPS, Group


class SU3(Group):
    """The group SU(3); see ``cuda_src/group/su3.h``."""

    name = "su3"
    label = "SU(3)"
    header = "group/su3.h"
    cpp = "SU3"
    beta = 6.0
    launch_bounds: Mapping[str, tuple[int, int]] = MappingProxyType(
        {"single": (128, 5), "double": (128, 3)}
    )
    # Tc r0 = 0.7457(45) and Tc sqrt(t0) = 0.2489(14), with their errors added in quadrature.
    sqrt_t0: ClassVar[tuple[float, float, str] | None] = (
        0.1669,
        0.0014,
        "r0 = 0.5 fm, with sqrt(t0)/r0 = 0.3338(28) from arXiv:1503.05652",
    )


GROUPS.register(SU3())
