"""Heatbath sweeps and overrelaxation sweeps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from gauge_mc import defaults
from gauge_mc.actions import Action, Coupling
from gauge_mc.devices import Buffer
from gauge_mc.devices.kernels import Kernel
from gauge_mc.errors import UsageError
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.signatures import checks_types
from gauge_mc.updates.checks import check_independence
from gauge_mc.updates.sweep import (
    MANY_REPLICAS,
    ONE_REPLICA,
    Sweep,
    couplings_in_memory,
    keys_in_memory,
    norms_of,
)

HEATBATH = Kernel("heatbath")


@checks_types
def heatbath(
    field: Field,
    beta: float,
    random: Random,
    sweeps: int = 1,
    action: str | Action = defaults.ACTION,
    **options: float,
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
        The coupling; 2 N / g^2 for most actions.
    random : Random
        The random numbers; `random.step` increases by one per sweep.
    sweeps : int
        Number of sweeps, each of which updates every link once.
    action : str or Action
        The action or its name.
    **options : float
        Options of the action by name, such as ``anisotropy`` or ``c1``.

    Raises
    ------
    UsageError
        If beta is not positive and finite, the action is unknown, or an option is invalid.
    """
    coupling = Coupling.of(beta, action, **options)
    heatbath_sweep(field, [coupling], [random])(sweeps, random.step + 1)
    random.step += sweeps


def heatbath_sweep(
    field: Field,
    couplings: Sequence[Coupling],
    randoms: Sequence[Random],
    version: int = defaults.CHAIN_VERSION,
) -> Sweep:
    """Return the prepared heatbath sweep of all replicas of a field."""
    for coupling in couplings:
        if not coupling.beta > 0 or coupling.beta == float("inf"):
            raise UsageError(f"beta is {coupling.beta}; it must be positive and finite.")
        coupling.check_precision(field.group, field.precision)
    norms = norms_of(field.precision, version)
    action, first, several = couplings[0].action, randoms[0], len(couplings) > 1
    check_independence(field, action, OVERRELAXATION, norms)
    choices = (first.choice, MANY_REPLICAS if several else ONE_REPLICA, norms)
    states = tuple(state.address for state in first.states)
    seeds = tuple(random.seed for random in randoms)
    coefficients = [coupling.coefficients(field.group) for coupling in couplings]
    numbers = tuple(tuple(x.items()) for x in coefficients)
    key = (HEATBATH, norms, action, first.choice, seeds, states, numbers)
    if key not in field.prepared:
        memory: tuple[Buffer, ...] = ()
        keys, actions = None, None
        if several:
            all_choices = (*action.choices, *choices)
            actions_memory = couplings_in_memory(field, HEATBATH, all_choices, coefficients)
            memory = (keys_in_memory(field, randoms), actions_memory)
            keys, actions = (buffer.address for buffer in memory)
        shared = {"action": coefficients[0], "keys": keys, "actions": actions}
        values = [{"stream": first.stream(n), **shared} for n in range(len(field.slabs))]
        field.prepared[key] = Sweep(field, HEATBATH, action, choices, values, memory)
    return cast(Sweep, field.prepared[key])


OVERRELAXATION = Kernel("overrelaxation")


@checks_types
def overrelax(
    field: Field, sweeps: int = 1, action: str | Action = defaults.ACTION, **options: float
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
    overrelaxation_sweep(field, [Coupling.of(1.0, action, **options).action])(sweeps)


def overrelaxation_sweep(
    field: Field, actions: Sequence[Action], version: int = defaults.CHAIN_VERSION
) -> Sweep:
    """Return the prepared overrelaxation sweep of all replicas of a field, given their actions."""
    # beta multiplies all coefficients and does not affect a reflection.
    coefficients = [Coupling(1.0, action).coefficients(field.group) for action in actions]
    action, norms = actions[0], norms_of(field.precision, version)
    check_independence(field, action, OVERRELAXATION, norms)
    several = len(set(actions)) > 1
    key = (OVERRELAXATION, norms, *(actions if several else actions[:1]))
    if key not in field.prepared:
        choices = (*action.choices, norms)
        memory = (
            couplings_in_memory(field, OVERRELAXATION, choices, coefficients) if several else None
        )
        values = {"action": coefficients[0], "actions": memory.address if memory else None}
        each = [values] * len(field.slabs)
        field.prepared[key] = Sweep(field, OVERRELAXATION, action, [norms], each, memory)
    return cast(Sweep, field.prepared[key])
