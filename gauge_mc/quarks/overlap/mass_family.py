"""Dirac operators whose solutions for several masses are found together."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gauge_mc.fields.field import Field
from gauge_mc.files.columns import TableColumns
from gauge_mc.files.table import Value
from gauge_mc.quarks.hadrons.propagators import Propagator
from gauge_mc.quarks.operators import QUARK_MASS, QuarkOperator
from gauge_mc.quarks.solvers import SolverParameters
from gauge_mc.quarks.vectors.spinors import SpinorField


@dataclass(frozen=True)
class FamilySolution:
    """Propagators of quarks with several masses from one source.

    Attributes
    ----------
    propagators : tuple of Propagator
        The propagators, in the order of the masses.
    iterations, updates : int
        Numbers of iterations, and of corrections by the true residual, for all columns together.
    iterated, residuals : ndarray of float64, shape (masses,)
        The largest iterated and true residual of a column, divided by the norm of the source.
    """

    propagators: tuple[Propagator, ...]
    iterations: int
    updates: int
    iterated: NDArray[np.float64]
    residuals: NDArray[np.float64]


class MassFamily(QuarkOperator):
    """A Dirac operator that is made for one or several masses, and solves for all of them together.

    Attributes
    ----------
    masses : tuple of float
        The masses, in the order in which they were given.
    """

    quark = QUARK_MASS
    solver: ClassVar[str]
    """Name of the solver, which cannot be chosen."""
    together: ClassVar[int]
    """Default of the largest number of columns that are solved for at once."""
    columns: ClassVar[TableColumns]
    """Columns that describe the operator on a field of links, without the update."""

    field: Field
    masses: tuple[float, ...]

    @abstractmethod
    def record(self) -> tuple[Value, ...]:
        """Return the values of `columns`."""

    @abstractmethod
    def propagators(
        self,
        source: SpinorField,
        request: SolverParameters,
        place: tuple[int, int, int, int] = (0, 0, 0, 0),
        together: int | None = None,
        progress: Callable[[str], None] = lambda line: None,
    ) -> FamilySolution:
        """Return the propagators of all masses.

        Parameters
        ----------
        source : SpinorField
            The 4 N vectors of a source on all sites, in double precision.
        request : SolverParameters
            The largest true residual of a column, and the largest number of iterations.
        place : tuple of int
            x, y, z and t of the source.
        together : int, optional
            Largest number of columns that are solved for at once; by default that of the class.
        progress : callable
            Called with a line whenever some columns have been solved for.

        Raises
        ------
        ConvergenceError
            If the residual cannot be reached.
        """
