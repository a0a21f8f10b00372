"""The fourth-order integrator with the gradient of the force."""

from gauge_mc.updates.integrators import INTEGRATORS, Drift, Integrator, Kick

SHIFT = 1 / 24
"""Shift of the links in the middle of a step, in units of the square of the step.

The kick of 2/3 with the potential S - e^2 / 48 |F|^2 that makes the step one of fourth order (S. A.
Chin, Phys. Lett. A 226, 344) has the force F + e^2 / 24 (F.d) F, which is that of the links
exp(e^2 / 24 F) U up to the fourth power of the step e.
"""


class ForceGradient(Integrator):
    """The force-gradient integrator, whose gradient is the force of shifted links.

    M. A. Clark, B. Joo, A. D. Kennedy and P. J. Silva, Phys. Rev. D 84 (2011) 071502; H. Yin and
    R. D. Mawhinney, arXiv:1111.5059. All coefficients are positive.
    """

    name = "force-gradient"
    summary = "fourth order with a force gradient, three forces per step (arXiv:1111.5059)"
    order = 4
    step = (Kick(1 / 6), Drift(0.5), Kick(2 / 3, shift=SHIFT), Drift(0.5), Kick(1 / 6))


INTEGRATORS.register(ForceGradient())
