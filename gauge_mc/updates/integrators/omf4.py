"""The fourth-order integrator with eleven stages."""

from gauge_mc.updates.integrators import INTEGRATORS, Drift, Integrator, Kick

KICKS = (0.08398315262876693, 0.6822365335719091)
DRIFTS = (0.2539785108410595, -0.03230286765269967)
"""Coefficients of the velocity version with eleven stages; I. P. Omelyan, I. M. Mryglod and R.
Folk, Comput. Phys. Commun. 151 (2003) 272. `tests/updates/test_integrators.py` checks the order."""

BEGIN = (Kick(KICKS[0]), Drift(DRIFTS[0]), Kick(KICKS[1]), Drift(DRIFTS[1]))
MIDDLE = Kick(0.5 - sum(KICKS))


class Omf4(Integrator):
    """The fourth-order integrator of Omelyan, Mryglod and Folk with five forces in a step."""

    name = "omf4"
    summary = "fourth order (OMF4), five forces per step (Comput. Phys. Commun. 151 (2003) 272)"
    order = 4
    step = (*BEGIN, MIDDLE, Drift(1 - 2 * sum(DRIFTS)), MIDDLE, *BEGIN[::-1])


INTEGRATORS.register(Omf4())
