"""The action of a field, from the averages of its loops."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gauge_mc import defaults
from gauge_mc.actions import Action, Coupling
from gauge_mc.arguments import checks_types
from gauge_mc.domain.loops import Loops
from gauge_mc.fields.field import Field
from gauge_mc.fields.sums import lattice_sums


@checks_types
def action_density(
    field: Field, beta: float, action: str | Action = defaults.ACTION, **options: float
) -> float:
    """Return the action of a field, divided by the number of sites; 0 if all links are 1.

    Parameters
    ----------
    field : Field
        A field of one replica, whose halos are up to date.
    beta : float
        The coupling; 2 N / g^2 for most actions.
    action : str or Action
        The action or its name.
    **options : float
        Options of the action by name, such as ``anisotropy`` or ``c1``.

    Raises
    ------
    UsageError
        If the action is unknown, declares no loops, or an option is invalid.
    """
    coupling = Coupling.of(beta, action, **options)
    averages = {one: loop_averages(field, one) for one in coupling.action.loops}
    return float(coupling.density(averages))


def loop_averages(field: Field, loops: Loops) -> NDArray[np.float64]:
    """Return the averages of Re Tr U / N over the loops of each kind."""
    sums = lattice_sums(field, loops.kernel, values=len(loops.kinds))
    return normalised(sums, loops, field.group.colours, field.lattice.sites)


def normalised(
    sums: NDArray[np.float64], loops: Loops, colours: int, sites: int
) -> NDArray[np.float64]:
    """Return averages over loops of each kind, given the sums along the last axis."""
    return np.asarray(sums / (np.array(loops.kinds) * colours * sites))
