"""What tests of the whole program need of its extensions, from modules of their tests.

The tests of an extension may have such modules, as ``samples``. Nothing is missing without it.
"""

from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any


def samples(module: str = "samples") -> list[ModuleType]:
    """Return the modules of a name of the tests of extensions."""
    found = sorted((Path(__file__).parent / "extensions").glob(f"*/{module}.py"))
    return [import_module(f"tests.extensions.{path.parent.name}.{module}") for path in found]


def all_of(name: str, module: str = "samples") -> list[Any]:
    """Return a thing of all of these modules that have it."""
    return [getattr(one, name) for one in samples(module) if hasattr(one, name)]
