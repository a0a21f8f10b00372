"""Heatbath sweeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gauge_mc import defaults
from gauge_mc.actions import ACTIONS, Action
from gauge_mc.devices import Buffer
from gauge_mc.devices.kernels import Choice, Kernel
from gauge_mc.errors import UsageError
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.updates.sweep import Sweep, sweep_of

HEATBATH = Kernel("heatbath")

ONE_REPLICA = Choice.of("replicas", "", "update/replicas.h", "OneReplica")
"""Heatbath of a field with one replica."""
MANY_REPLICAS = Choice.of("replicas", "replicas", "update/replicas.h", "ManyReplicas")
"""Heatbath of a field with several replicas, each with its own seed and coupling."""


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
    heatbath_sweep(field, [beta], [random], action)(sweeps, random.step + 1)
    random.step += sweeps


def heatbath_sweep(
    field: Field, betas: Sequence[float], randoms: Sequence[Random], action: str
) -> Sweep:
    """Return the prepared heatbath sweep of all replicas of a field.

    Parameters
    ----------
    field : Field
    betas : sequence of float
        The coupling of every replica.
    randoms : sequence of Random
        The random numbers of every replica, all with the same number of the sweep. Several ones
        must have adjacent states, see `Random.moved`.
    action : str
        Name of the action.

    Raises
    ------
    UsageError
        See `heatbath`.
    """
    for beta in betas:
        if not beta > 0 or beta == float("inf"):
            raise UsageError(f"beta is {beta}; it must be positive and finite.")
    chosen, first = ACTIONS[action], randoms[0]
    coefficients = [chosen.coefficients(field.group, beta) for beta in betas]
    states = tuple(state.address for state in first.states)
    seeds = tuple(random.seed for random in randoms)
    numbers = tuple(tuple(one.items()) for one in coefficients)
    key = (HEATBATH, chosen, first.choice, seeds, states, numbers)
    several = len(betas) > 1
    choices = [first.choice, MANY_REPLICAS if several else ONE_REPLICA]
    memory = _replicas(field, chosen, choices, coefficients, randoms) if several else ()

    def values(number: int) -> dict[str, object]:
        keys, actions = (one.address for one in memory) if memory else (None, None)
        return {
            "stream": first.stream(number),
            "action": coefficients[0],
            "keys": keys,
            "actions": actions,
        }

    return sweep_of(field, HEATBATH, chosen, choices, values, key, memory)


def _replicas(
    field: Field,
    action: Action,
    choices: Sequence[Choice],
    coefficients: Sequence[Mapping[str, float]],
    randoms: Sequence[Random],
) -> list[Buffer]:
    """Return the seeds and the couplings of the replicas in the memory of the device."""
    slab = field.slabs[0]
    kind: Any = HEATBATH.part("ACTION::Coefficients", slab.variant(action.choice, *choices))
    actions = (kind * len(coefficients))(*(kind(**values) for values in coefficients))
    keys = np.array([random.stream(0).key for random in randoms], np.uint32)
    memory = []
    for data in (keys.reshape(-1).view(np.uint8), np.frombuffer(actions, np.uint8)):
        memory.append(slab.device.allocate(data.nbytes))
        slab.device.write(memory[-1], 0, data)
    return memory
