"""A flow: that of the Iwasaki action."""

from collections.abc import Mapping

from gauge_mc.devices.kernels import Choice
from gauge_mc.flows import Flow

C1 = -0.331
COEFFICIENTS = {"beta_over_n": 1, "c0": 1 - 8 * C1, "c1": C1}


class IwasakiFlow(Flow):
    """The flow of the action of Y. Iwasaki, arXiv:1111.7054, with rectangles, c1 = -0.331."""

    name = "iwasaki"
    formula = "force of the Iwasaki action, c0 = 3.648, c1 = -0.331"
    action = Choice.of("action", "Rectangles", "action/rectangles.h", "Rectangles")
    coefficients: Mapping[str, float] = COEFFICIENTS
    halo_depth = 2
    fastest = 16 * (1 - 8 * C1)
    rectangle = C1


IWASAKI = IwasakiFlow()
