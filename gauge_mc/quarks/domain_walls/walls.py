"""Dirac operators with a fifth direction, as propagators of their quarks see them."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gauge_mc.quarks.matrices.hopping import PreparedHop
from gauge_mc.quarks.operators import DiracOperator
from gauge_mc.quarks.vectors.spinors import SpinorField


class WallOperator(DiracOperator):
    """An operator D5 with coefficients b_s and c_s along a fifth direction.

    Attributes
    ----------
    fifth : int
        The extent of the fifth direction.
    weights, b, c : ndarray of float64, shape (fifth,)
        The weights w_s, and the coefficients with them.
    """

    fifth: int
    weights: NDArray[np.float64]
    b: NDArray[np.float64]
    c: NDArray[np.float64]

    @classmethod
    @abstractmethod
    def has_midpoint(cls, **parameters: Any) -> bool:
        """Return whether there are a midpoint and conserved currents, given the parameters."""

    @abstractmethod
    def to_solver(self, target: SpinorField, right: SpinorField) -> None:
        """Compute the right-hand sides for solvers from those of D5 x = b."""

    @abstractmethod
    def from_solver(self, target: SpinorField, solution: SpinorField) -> None:
        """Compute the solutions of D5 x = b from those that solvers find."""

    @abstractmethod
    def hopping_term(
        self,
        target: SpinorField,
        source: SpinorField,
        parity: int,
        other: SpinorField | None = None,
    ) -> PreparedHop:
        """Return a call that computes D psi, or u + factor D psi, on one parity, for every s.

        Parameters
        ----------
        target, source : SpinorField
            The result, and the vectors psi.
        parity : int
            Parity of the sites of the result.
        other : SpinorField, optional
            The vectors u.
        """
