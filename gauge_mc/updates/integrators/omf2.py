"""The second-order integrator with the smallest norm of its error."""

from gauge_mc.updates.integrators import INTEGRATORS, Drift, Integrator, Kick

LAMBDA = 0.1931833275037836
"""Coefficient of the outer kicks; T. Takaishi and P. de Forcrand, hep-lat/0505020."""


class Omf2(Integrator):
    """The integrator 2MN; I. P. Omelyan, I. M. Mryglod and R. Folk, Comput. Phys. Commun. 151, 272.

    Its energy changes are about ten times smaller than those of a leapfrog with the same step.
    """

    name = "omf2"
    summary = "second-order minimum norm (2MN), two forces per step (hep-lat/0505020)"
    order = 2
    step = (Kick(LAMBDA), Drift(0.5), Kick(1 - 2 * LAMBDA), Drift(0.5), Kick(LAMBDA))


INTEGRATORS.register(Omf2())
