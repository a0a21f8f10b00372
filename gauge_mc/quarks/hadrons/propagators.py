"""Quark propagators: the solutions of the Dirac equation for all spins and colours of a source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gauge_mc.errors import GaugeError
from gauge_mc.fields.field import Field
from gauge_mc.quarks.vectors.spinors import SPINS, SpinorField
from gauge_mc.quarks.vectors.transport import Boundary


@dataclass(frozen=True)
class Propagator:
    """Columns of M^-1: vectors psi with M psi = source, for all spins and colours of a source."""

    columns: SpinorField
    """4 N vectors on all sites, in the order of source spin and source colour, of which colour is
    the fastest.
    """
    kappa: float
    """Hopping parameter of the quark."""
    boundary: Boundary
    """Boundary conditions of the quark."""
    place: tuple[int, int, int, int] = (0, 0, 0, 0)
    """x, y, z and t of the source; momenta and times are counted from there."""

    @classmethod
    def from_numpy(
        cls,
        field: Field,
        array: NDArray[np.complex128],
        kappa: float,
        boundary: complex | Sequence[complex] = -1,
        place: tuple[int, int, int, int] = (0, 0, 0, 0),
        precision: str = "double",
    ) -> Propagator:
        """Return a propagator with given values.

        Parameters
        ----------
        field : Field
            A field of links, which says on which lattice and devices.
        array : ndarray, shape (T, Z, Y, X, 4, N, 4, N)
            ``S[t, z, y, x, spin, colour, source spin, source colour]``, the elements of M^-1.
        kappa, boundary, place
            See `Propagator`; a single number is the boundary condition in t.
        precision : str
            ``double``, ``single`` or ``half``.

        Raises
        ------
        GaugeError
            If the array has the wrong shape.
        """
        columns = SpinorField.from_numpy(field, columns_of(field, array), precision)
        return cls(columns, kappa, Boundary.of(boundary), place)

    def to_numpy(self) -> NDArray[np.complex128]:
        """Return the elements of M^-1, in the order that `from_numpy` takes."""
        return elements_of(self.columns)

    @property
    def field(self) -> Field:
        """A field of links on the same lattice and devices."""
        return self.columns.field

    @property
    def colours(self) -> int:
        """Number of colours N."""
        return self.field.group.colours

    @property
    def normalisation(self) -> float:
        """2 kappa: the factor from M^-1 to the inverse of D + m0 with the bare mass m0."""
        return 2 * self.kappa


def columns_of(field: Field, array: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """Return the columns [vector, t, z, y, x, spin, colour] of elements as `Propagator` has them.

    Raises
    ------
    GaugeError
        If the array has the wrong shape.
    """
    colours = field.group.colours
    shape = (*field.lattice.extents[::-1], SPINS, colours, SPINS, colours)
    if np.shape(array) != shape:
        raise GaugeError(
            f"The propagator has the shape {np.shape(array)}, but on {field.lattice} with "
            f"{field.group.label} it must have the shape {shape} [t, z, y, x, spin, colour, "
            "source spin, source colour]."
        )
    return np.moveaxis(array, (6, 7), (0, 1)).reshape(-1, *shape[:6])


def elements_of(columns: SpinorField) -> NDArray[np.complex128]:
    """Return the elements [t, z, y, x, spin, colour, source spin, source colour] of vectors."""
    vectors = columns.to_numpy()
    split = vectors.reshape(SPINS, columns.field.group.colours, *vectors.shape[1:])
    return np.moveaxis(split, (0, 1), (6, 7))
