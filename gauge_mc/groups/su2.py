"""SU(2): links are stored as the four reals of a quaternion."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from gauge_mc.groups import GROUPS, Group


class SU2(Group):
    """The group SU(2), ``a0 + i a.sigma``; see ``cuda_src/group/su2.h``."""

    name = "su2"
    label = "SU(2)"
    header = "group/su2.h"
    cpp = "SU2"
    beta = 2.5
    launch_bounds: Mapping[str, tuple[int, int]] = MappingProxyType(
        {"single": (256, 4), "double": (128, 4)}
    )


GROUPS.register(SU2())
