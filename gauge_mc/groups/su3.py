"""SU(3): links are stored as their first two rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from gauge_mc.groups import GROUPS, Group


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


GROUPS.register(SU3())
