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
    """Draw every link from its conditional distribution, given all other links.

    In SU(2) subgroups, the method of Kennedy and Pendleton is used, with a proposal that is rarely
    rejected unless beta is small (``cuda_src/update/heatbath.h``). Larger groups are updated in
    their SU(2) subgroups, following Cabibbo and Marinari.

    Parameters
    ----------
    field : Field
        Updated in place.
    beta : float
        The coupling 2 N / g^2 > 0.
    random : Random
        The random numbers; `random.step` increases by one per sweep.
    sweeps : int
        Number of sweeps, each of which updates every link once.
    action : str
        Name of the action.

    Raises
    ------
    UsageError
        If beta is not positive and finite, or the action is unknown.
    """
    heatbath_sweep(field, beta, random, action)(sweeps, random.step + 1)
    random.step += sweeps


def heatbath_sweep(field: Field, beta: float, random: Random, action: str) -> Sweep:
    """Return the prepared heatbath sweep; for the parameters and errors see `heatbath`."""
    if not beta > 0 or beta == float("inf"):
        raise UsageError(f"beta is {beta}; it must be positive and finite.")
    chosen, choice = ACTIONS[action], random.choice
    coefficients = chosen.coefficients(field.group, beta)
    states = tuple(state.address for state in random.states)
    key = (HEATBATH, chosen, choice, random.seed, states, *coefficients.items())

    def values(number: int) -> dict[str, object]:
        return {"stream": random.stream(number), "action": coefficients}

    return sweep_of(field, HEATBATH, chosen, [choice], values, key)
