"""Overrelaxation sweeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gauge_mc import defaults
from gauge_mc.actions import Action, Coupling
from gauge_mc.arguments import checks_types
from gauge_mc.devices.kernels import Kernel
from gauge_mc.fields.field import Field
from gauge_mc.updates.chain_versions import norms_of
from gauge_mc.updates.independence import check_independence
from gauge_mc.updates.replicas import couplings_in_memory
from gauge_mc.updates.sweep import Sweep, sweep_of

OVERRELAXATION = Kernel("overrelaxation")


@checks_types
def overrelax(
    field: Field,
    sweeps: int = 1,
    action: str | Action = defaults.ACTION,
    **options: float,
) -> None:
    """Reflect every link about its staples, which leaves the action unchanged.

    Parameters
    ----------
    field : Field
        Updated in place.
    sweeps : int
        Number of sweeps, each of which updates every link once.
    action : str or Action
        The action or its name.
    **options : float
        Options of the action by name, such as ``anisotropy`` or ``c1``.

    Raises
    ------
    UsageError
        If the action is unknown, or an option is invalid.
    """
    overrelaxation_sweep(field, [Coupling.of(1.0, action, **options)])(sweeps)


def overrelaxation_sweep(
    field: Field, couplings: Sequence[Coupling], version: int = defaults.CHAIN_VERSION
) -> Sweep:
    """Return the prepared overrelaxation sweep of all replicas of a field.

    Parameters
    ----------
    field : Field
        Links to update, with one replica per chain.
    couplings : sequence of Coupling
        The couplings of every replica, whose kernels are the same.
    version : int
        Version of the chain.

    Raises
    ------
    UsageError
        See `overrelax`.
    """
    # beta multiplies all coefficients and does not affect a reflection.
    relative = tuple(replace(one, beta=1.0) for one in couplings)
    first = relative[0]
    chosen, coefficients = first.action, first.coefficients(field.group)
    norms = norms_of(field.precision, version)
    check_independence(field, first, OVERRELAXATION, norms)
    several = len(set(relative)) > 1
    memory = None
    if several:
        choices = (*chosen.choices, norms)
        memory = couplings_in_memory(field, OVERRELAXATION, choices, relative)
    values = {"action": coefficients, "actions": memory.address if memory else None}
    key = (OVERRELAXATION, norms, chosen, relative if several else first)
    return sweep_of(field, OVERRELAXATION, chosen, [norms], lambda _: values, key, memory)
