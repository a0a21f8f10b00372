"""The leapfrog."""

from gauge_mc.updates.integrators import INTEGRATORS, Drift, Integrator, Kick


class Leapfrog(Integrator):
    """The leapfrog; L. Verlet, Phys. Rev. 159 (1967) 98."""

    name = "leapfrog"
    summary = "leapfrog, one force per step (Phys. Rev. 159 (1967) 98)"
    order = 2
    step = (Kick(0.5), Drift(1.0), Kick(0.5))


INTEGRATORS.register(Leapfrog())
