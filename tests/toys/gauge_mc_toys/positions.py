"""An integrator: the leapfrog that begins and ends with a drift."""

from gauge_mc.updates.integrators import Drift, Integrator, Kick


class Positions(Integrator):
    """The leapfrog of positions, with one force per step."""

    name = "positions"
    summary = "leapfrog that begins with a drift"
    order = 2
    step = (Drift(0.5), Kick(1.0), Drift(0.5))


POSITIONS = Positions()
