"""Optional libraries, imported when they are needed."""

from __future__ import annotations

import importlib
import sys
import warnings
from typing import Any, NamedTuple

from gauge_mc.errors import GaugeError

PYTHON = (sys.executable, "-P")
"""Words that begin the command of another Python, which must not execute files of the folder that
it is started in."""


class OptionalPackage(NamedTuple):
    """A package that some commands need."""

    extra: str
    """Name of the extra of this package that installs it."""
    purpose: str
    """Purpose, as ``gauge-mc doctor`` says it."""


LIBRARIES = {
    "matplotlib": OptionalPackage("analysis", "plots"),
    "scipy": OptionalPackage("analysis", "fits"),
    "pyerrors": OptionalPackage("pyerrors", "export to pyerrors"),
    "h5py": OptionalPackage("hdf5", "files in HDF5"),
    "pyarrow": OptionalPackage("parquet", "tables in Parquet"),
    "pandas": OptionalPackage("notebook", "tables of pandas"),
    "xarray": OptionalPackage("notebook", "labelled arrays"),
    "gvar": OptionalPackage("notebook", "numbers with errors"),
    "mpi4py": OptionalPackage("mpi", "several processes"),
    "ziglang": OptionalPackage("zig", "a C++ compiler from a wheel"),
}
"""Optional packages."""


def load(name: str, whose: str = "This needs") -> Any:
    """Import a module of an optional package.

    Parameters
    ----------
    name : str
        Name of the module, such as ``"pyerrors"`` or ``"matplotlib.figure"``.
    whose : str
        Subject and verb of the error message.

    Raises
    ------
    GaugeError
        If the package is not installed or cannot be imported.
    """
    try:
        # Libraries warn about each other, which a user of this package cannot change.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            return importlib.import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise GaugeError(
            f"{whose} the Python package {package}, which cannot be imported ({error}); "
            f"install it by pip install 'gauge-mc[{LIBRARIES[package].extra}]'."
        ) from error
