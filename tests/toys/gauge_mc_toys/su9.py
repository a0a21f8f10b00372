"""A group: SU(9), all entries of whose links are stored."""

from gauge_mc.groups import GeneralGroup


class Su9(GeneralGroup):
    """The group SU(9); see ``cuda_src/group/sun.h``."""

    def __init__(self) -> None:
        super().__init__(9, beta=57.5)


SU9 = Su9()
