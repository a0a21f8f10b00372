"""A field that no device stores: its links can be looked at and written.

There is such a field where no kernel can be compiled, or if an extent of its lattice is odd.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gauge_mc.domain.lattice import Lattice
from gauge_mc.domain.slab import Slab, real_type
from gauge_mc.errors import NoKernelsError, UnsupportedError
from gauge_mc.fields.field import Field
from gauge_mc.groups import GROUPS
from gauge_mc.storage import links as host_links


def is_local(slab: Slab, depth: int, compute: Callable[[], bytes]) -> bool:
    """Return whether a result in the first slice has the same bits if links far away change.

    Parameters
    ----------
    slab : Slab
        A whole lattice on one device, whose content is replaced.
    depth : int
        The largest distance in time slices of links that do not change.
    compute : callable
        Returns the result in the first slice, given the links in the slab.
    """
    random, real = np.random.default_rng(1), slab.layout.real
    shape = slab.layout.slices, slab.slice_bytes // real.itemsize
    near, far = (random.uniform(-0.5, 0.5, shape).astype(real) for _ in range(2))
    beyond = near.copy()
    away = slice(depth + 1, len(near) - depth)
    beyond[away] = far[away]
    found = []
    for links in (near, beyond):
        slab.device.write(slab.buffer, 0, links.reshape(-1).view(np.uint8))
        found.append(compute())
    return found[0] == found[1]


ON_DEVICES = {"devices", "slabs", "layouts"}
"""Attributes of a field by which kernels find its links."""


class HostField(Field):
    """Links in NumPy arrays. Whatever needs kernels is refused with the reason why there are none.

    Parameters
    ----------
    lattice, group, precision
        See `Field.empty`.
    slices : iterable of ndarray, shape (Z, Y, X, 4, N, N)
        The matrices of the time slices t = 0, 1, …
    reason : NoKernelsError or UnsupportedError
        The reason: the missing compiler, or a lattice that kernels cannot take.
    """

    def __init__(
        self,
        lattice: Lattice,
        group: str,
        precision: str,
        slices: Iterable[NDArray[np.complex128]],
        reason: NoKernelsError | UnsupportedError,
    ) -> None:
        kind = np.result_type(real_type(precision), np.complex64)
        values = {"lattice": lattice, "group": GROUPS[group], "precision": precision}
        stored = {"_links": [one.astype(kind) for one in slices], "_reason": reason}
        for name, value in (values | stored).items():
            object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        """Refuse what needs a device.

        Raises
        ------
        NoKernelsError, UnsupportedError
            If kernels are to find the links.
        """
        if name in ON_DEVICES:
            reason = vars(self)["_reason"]
            raise type(reason)(str(reason))
        raise AttributeError(name)

    def __repr__(self) -> str:
        return f"<Field {self.group} {self.lattice}, {self.precision} precision, without kernels>"

    def slices(self) -> Iterator[NDArray[np.complex128]]:
        """Return the links as matrices, one time slice at a time; see `Field.slices`."""
        n = self.group.colours
        for links in vars(self)["_links"]:
            matrices = links.reshape(-1, n, n).astype(np.complex128)
            yield host_links.in_group(self.group, matrices).reshape(links.shape)
