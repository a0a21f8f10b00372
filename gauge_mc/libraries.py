"""Optional libraries, imported when they are needed."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

from gauge_mc.errors import GaugeError


def load(name: str, extra: str = "analysis", whose: str = "This needs") -> Any:
    """Import an optional library.

    Parameters
    ----------
    name : str
        Name of a module, such as ``"pyerrors"`` or ``"matplotlib.figure"``.
    extra : str
        Name of the extra of this package that installs the library.
    whose : str
        Subject and verb of the error message.

    Raises
    ------
    GaugeError
        If the library is not installed or cannot be imported.
    """
    try:
        # Libraries warn about each other, which a user of this package cannot change.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            return importlib.import_module(name)
    except ImportError as error:
        library = name.partition(".")[0]
        raise GaugeError(
            f"{whose} the Python package {library}, which cannot be imported ({error}); "
            f"install it by pip install 'gauge-mc[{extra}]'."
        ) from error
