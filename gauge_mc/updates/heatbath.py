"""Heatbath sweeps."""

from __future__ import annotations

from gauge_mc import defaults
from gauge_mc.actions import ACTIONS
from gauge_mc.devices.kernels import Kernel
from gauge_mc.errors import UsageError
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.updates.sweep import Sweep, sweep_of

HEATBATH = Kernel("heatbath")


def heatbath(
    field: Field,
    beta: float,
    random: Random,
    sweeps: int = 1,
    action: str = defaults.ACTION,
) -> None:
    """Draw every link anew from its distribution given all the others.

    The distribution in an SU(2) subgroup is sampled as in Kennedy and Pendleton, with a proposal
    that is seldom rejected at any beta (``cuda_src/update/heatbath.h``); larger groups are updated
    in the SU(2) subgroups of Cabibbo and Marinari.

    Parameters
    ----------
    field : Field
        Updated in place.
    beta : float
        The coupling 2 N / g^2 > 0.
    random : Random
        Advances by one step a sweep.
    sweeps : int
        How often every link is updated.
    action : str
        The name of the action.

    Raises
    ------
    UsageError
        If beta is not positive, or there is no such action.
    """
    heatbath_sweep(field, beta, random, action)(sweeps, random.step + 1)
    random.step += sweeps


def heatbath_sweep(field: Field, beta: float, random: Random, action: str) -> Sweep:
    """Prepare heatbath sweeps; parameters and errors as of `heatbath`."""
    if not beta > 0 or beta == float("inf"):
        raise UsageError(f"beta is {beta}; it must be positive.")
    chosen, choice = ACTIONS[action], random.choice
    coefficients = chosen.coefficients(field.group, beta)
    states = tuple(state.address for state in random.states)
    key = (HEATBATH, chosen, choice, random.seed, states, *coefficients.items())

    def values(number: int) -> dict[str, object]:
        return {"stream": random.stream(number), "action": coefficients}

    return sweep_of(field, HEATBATH, chosen, [choice], values, key)
