"""Points that a quantity adds to a scan, such as those near the peak of a susceptibility."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from gauge_mc.options import Option, check_named
from gauge_mc.registry import Registry
from gauge_mc.run.parameters import Parameters
from gauge_mc.run.thermalisation import Skip
from gauge_mc.scans.grid import Grid

if TYPE_CHECKING:
    from gauge_mc.scans.scan import Scan


class ScanAddition(ABC):
    """An option of scans that adds points to an existing one."""

    name: str
    """Name of the option."""
    option: Option
    """The option, which is a flag."""

    @abstractmethod
    def points(self, scan: Scan, skip: Skip) -> list[Grid]:
        """Return the points that are added to a scan.

        Parameters
        ----------
        scan : Scan
            The scan, of which only complete runs count.
        skip : int or str
            Last update that is left out, or `AUTO`.

        Raises
        ------
        GaugeError
            If the runs of the scan do not tell.
        """

    def caution(self, parameters: Parameters) -> str | None:
        """Return what runs with some parameters lack for it; None if nothing, or not meant."""
        return None


ADDITIONS: Registry[ScanAddition] = Registry(
    "addition to scans",
    __name__,
    ScanAddition,
    lambda x: check_named(x.name, x.option),
    options=lambda x: (x.option,),
)
