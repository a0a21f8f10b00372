"""Libraries of the extras, imported when they are needed."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

from gauge_mc.errors import GaugeError


def load(name: str, extra: str = "analysis") -> Any:
    """Import a library of an extra.

    Parameters
    ----------
    name : str
        A module, such as ``"pyerrors"`` or ``"matplotlib.figure"``.
    extra : str
        The extra of this package that installs it.

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
            f"install it by pip install 'gauge-mc[{extra}]'."
        ) from error
