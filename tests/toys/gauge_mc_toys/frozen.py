"""A group with as many colours as SU(2), which has another name and another heatbath."""

from pathlib import Path

from gauge_mc.devices.kernels import Choice
from gauge_mc.groups import SU2


class Frozen(SU2):
    """SU(2), whose links are drawn as at infinite beta."""

    name = "frozen"
    label = "frozen SU(2)"
    law = Choice.of("law", "frozen", Path(__file__).with_name("coldest.h"), "Coldest")


FROZEN = Frozen()
