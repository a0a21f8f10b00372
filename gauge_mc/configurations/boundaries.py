"""Boundary conditions that other programs leave in the links of the last time slice.

Only periodic lattices can be read, but a file with other boundaries is not damaged. They are looked
for by NumPy, and only in a file that does not pass its checks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gauge_mc.fields.averages import normalised
from gauge_mc.fields.file_links import TOLERANCE
from gauge_mc.files.averages import Averages
from gauge_mc.storage import host_links
from gauge_mc.storage.links import Block, StoredLinks

TEMPORAL = 3
"""Number of the direction t among the four links of a site."""


@dataclass(frozen=True)
class LastSlice:
    """The last time slice of a file.

    Attributes
    ----------
    stored : StoredLinks
        How the file stores the links; `host_links.readable` must be true.
    block, following : Block
        The blocks of the last time slice and of the first one.
    """

    stored: StoredLinks
    block: Block
    following: Block

    @property
    def signs_show(self) -> bool:
        """Whether -1 times an element of SU(N) is not in SU(N) again, as for odd N."""
        return self.stored.group.colours % 2 == 1

    def misfit(self) -> str:
        """Return what the links along t are, or an empty text if no boundary explains a misfit.

        All other links of the slice must then be in SU(N), and all those along t of one kind.
        """
        stored = self.stored
        with np.errstate(all="ignore"):  # numbers of a damaged file
            links = host_links.decode(stored, self._gathered()).copy()
            temporal = links[TEMPORAL::4]
            if not temporal.any():
                temporal[:] = np.eye(stored.group.colours)
                words = "0, as those of open boundaries, and only periodic lattices can be read"
            elif self.signs_show:
                temporal *= -1
                words = (
                    f"-1 times those of {stored.group.label}, as with antiperiodic phases in the "
                    "links; write the file without them"
                )
            else:
                return ""
            fits = host_links.first_outside(links, TOLERANCE) is None
        t = stored.lattice.t - 1
        return f"its links along t of the last time slice {t} are {words}" if fits else ""

    def without_signs(self, averages: Averages) -> Averages | None:
        """Return averages over the links, with those along t of this slice multiplied by -1.

        Only then does a row that the file does not have follow with the right sign from the others.
        Returns None if links with signs would not be in the group, which is seen before.
        """
        stored, group = self.stored, self.stored.group
        all_rows = stored.rows in (None, group.colours)
        if stored.order.reaches_back or (self.signs_show and all_rows):
            return None
        own = self._gathered()
        reals = own.view(stored.dtype).copy().reshape(len(own), -1)
        reals[TEMPORAL::4] *= -1
        first = host_links.gather(stored, 0, self.following, None)
        with np.errstate(all="ignore"):  # numbers of a damaged file
            before, after, above = (
                host_links.in_group(group, host_links.decode(stored, one))
                for one in (own, reals.view(np.uint8), first)
            )
            extents = stored.lattice.extents[:3]
            sums = [host_links.trace_sums(extents, one, above) for one in (before, after)]
        change = normalised(sums[1] - sums[0], group.colours, stored.lattice.sites)
        return Averages(
            averages.mean + change.mean,
            averages.spatial + change.spatial,
            averages.temporal + change.temporal,
            averages.link_trace + change.link_trace,
        )

    def _gathered(self) -> host_links.Bytes:
        return host_links.gather(self.stored, self.stored.lattice.t - 1, self.block, self.following)
