"""Overrelaxation sweeps."""

from __future__ import annotations

from gauge_mc import defaults
from gauge_mc.actions import ACTIONS
from gauge_mc.devices.kernels import Kernel
from gauge_mc.fields.field import Field
from gauge_mc.updates.sweep import Sweep, sweep_of

OVERRELAXATION = Kernel("overrelaxation")


def overrelax(field: Field, sweeps: int = 1, action: str = defaults.ACTION) -> None:
    """Reflect every link about its staples, which leaves the action unchanged.

    Parameters
    ----------
    field : Field
        Updated in place.
    sweeps : int
        Number of sweeps, each of which updates every link once.
    action : str
        Name of the action.

    Raises
    ------
    UsageError
        If the action is unknown.
    """
    overrelaxation_sweep(field, action)(sweeps)


def overrelaxation_sweep(field: Field, action: str) -> Sweep:
    """Return the prepared overrelaxation sweep; for the parameters and errors see `overrelax`."""
    chosen = ACTIONS[action]
    # beta multiplies all coefficients and does not affect a reflection.
    coefficients = chosen.coefficients(field.group, beta=1.0)
    key = (OVERRELAXATION, chosen)
    return sweep_of(field, OVERRELAXATION, chosen, [], lambda _: {"action": coefficients}, key)
