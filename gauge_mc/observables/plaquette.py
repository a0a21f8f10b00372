"""The plaquette."""

from __future__ import annotations

from dataclasses import dataclass

from gauge_mc.field import Field
from gauge_mc.observables.sums import lattice_sums


@dataclass(frozen=True)
class Plaquette:
    """Re Tr U_plaquette / N averaged over the lattice, in [-1, 1].

    Attributes
    ----------
    mean : float
        Over all six planes.
    spatial, temporal : float
        Over the three planes without, and the three with the direction t.
    """

    mean: float
    spatial: float
    temporal: float


def plaquette(field: Field) -> Plaquette:
    """Measure the plaquette of a field."""
    normalisation = 3 * int(field.group[2]) * field.lattice.sites
    spatial, temporal = (float(s) / normalisation for s in lattice_sums(field, "plaquette", 2))
    return Plaquette((spatial + temporal) / 2, spatial, temporal)
