"""Low modes of the even-odd preconditioned operator, for solutions of light quarks."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from gauge_mc.errors import UsageError
from gauge_mc.options import check_declared
from gauge_mc.quarks.forces.normal import AdjointOperator, NormalOperator
from gauge_mc.quarks.matrices.deflation import DEFLATE, Deflation
from gauge_mc.quarks.matrices.linear import EVEN
from gauge_mc.quarks.modes.kept_low_modes import kept_low_modes
from gauge_mc.quarks.modes.low_modes import LowModeRequest, LowModes, low_modes, random_vector
from gauge_mc.quarks.modes.mode_files import ModePath
from gauge_mc.quarks.modes.spectrum import norm_bound
from gauge_mc.quarks.operators import DiracOperator
from gauge_mc.quarks.vectors.spinors import SpinorField

DEFLATED = 1e-9
"""Residual of the modes, as a part of the norm of Mh^dagger Mh. Parts of solutions that they miss
are found when the true residual is computed, as it is several times for a usual tolerance."""


def reduced_modes(
    operator: DiracOperator,
    number: int,
    folder: str | os.PathLike[str] | None = None,
    seed: int = 1,
) -> Deflation:
    """Return the lowest eigenvectors of Mh^dagger Mh, with which `solve` deflates.

    Parameters
    ----------
    operator : DiracOperator
        The operator M, without a fifth direction.
    number : int
        Number of modes.
    folder : path, optional
        Folder in which modes are kept: those of these links and parameters are read, if they are
        eigenvectors with the residuals that they had, and are else written there.
    seed : int
        Seed of the vectors with which searches begin.

    Raises
    ------
    UsageError
        If the number is invalid, the lattice has too few modes, or there is a fifth direction.
    GaugeError
        If the search fails, or the folder cannot be written.
    """
    check_declared((DEFLATE,), {DEFLATE.name: number})
    if operator.fifth:
        raise UsageError(
            f"{DEFLATE.flag} is for operators in four dimensions, and this one has a fifth "
            "direction; leave it out."
        )
    reduced = operator.reduced(True)
    square = NormalOperator(AdjointOperator(reduced))
    start = random_vector(SpinorField.empty(operator.field, "double", parity=EVEN), seed)
    norm = norm_bound(square, start)

    def search() -> LowModes:
        request = LowModeRequest(number, norm, DEFLATED, seed)
        return low_modes(square, start, request)

    own = {"number": str(number), "seed": str(seed), "tolerance": repr(DEFLATED)}
    path = None
    if folder:
        metadata = {"modes": "reduced", **identity(operator), **own}
        path = ModePath(Path(folder), metadata, EVEN)
    found = kept_low_modes(square, operator.field, path, search, norm)
    return Deflation(found.values, found.vectors)


def identity(operator: DiracOperator) -> Mapping[str, str]:
    """Return all on which an operator depends besides the links, as text by name."""
    terms = {
        type(one).__name__: f"{one.mass!r} {dict(one.coefficients)!r}"
        for one in operator.diagonal_terms
    }
    return {
        "operator": type(operator).__name__,
        "kappa": repr(operator.kappa),
        "boundary": repr(operator.boundary.phases),
        **terms,
    }
