"""The libraries of the extra ``analysis``, imported when they are needed."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

from gauge_mc.errors import GaugeError


def load(name: str) -> Any:
    """Import a library of the extra ``analysis``.

    Parameters
    ----------
    name : str
        A module, such as ``"pyerrors"`` or ``"matplotlib.figure"``.

    Raises
    ------
    GaugeError
        If it is not installed, or does not import.
    """
    try:
        with warnings.catch_warnings():  # of one library about another: nothing a user could mend
            warnings.simplefilter("ignore", DeprecationWarning)
            return importlib.import_module(name)
    except ImportError as error:
        library = name.partition(".")[0]
        raise GaugeError(
            f"This needs the Python package {library}, which cannot be imported ({error}); "
            "install it by pip install 'gauge-mc[analysis]'."
        ) from error
