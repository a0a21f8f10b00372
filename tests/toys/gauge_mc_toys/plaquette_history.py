"""A kind of series of other programs: text with the plaquette of every trajectory."""

from collections.abc import Mapping

import numpy as np

from gauge_mc.files.columns import SWEEP
from gauge_mc.files.foreign import LEFT_OUT, ForeignSeries, ForeignTable
from gauge_mc.quantities.plaquette import Plaquette

HEADING = b"trajectory plaquette\n"


class PlaquetteHistory(ForeignSeries):
    """Histories of a program that has been made up."""

    name = "plaquette-history"
    program = "Lukewarm Start"

    def recognises(self, data: bytes) -> bool:
        """Return whether it begins with the names of the columns."""
        return data.startswith(HEADING)

    def read(self, files: Mapping[int, bytes], lattice: str) -> ForeignTable:
        """Return the numbers of whole lines."""
        *lines, rest = files[0].removeprefix(HEADING).split(b"\n")
        sweeps, plaquettes = np.array([line.split() for line in lines], float).T
        left_out = "The last line is incomplete and was left out." if rest else ""
        return ForeignTable(
            {"observable": Plaquette.name, LEFT_OUT: left_out},
            {SWEEP: sweeps.astype(np.int64), Plaquette.name: plaquettes},
        )


PLAQUETTE_HISTORY = PlaquetteHistory()
