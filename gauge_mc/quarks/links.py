"""The links of a field in another precision."""

from __future__ import annotations

from gauge_mc.devices.kernels import Kernel
from gauge_mc.fields.field import Field
from gauge_mc.quarks.storage import elsewhere, storage_of

COPY_IN_PRECISION = Kernel("copy_in_precision")


def in_precision(field: Field, precision: str) -> Field:
    """Return a field with the same links, without the detour through the memory of the host.

    Parameters
    ----------
    field : Field
        It is returned itself if it has the precision.
    precision : str
        ``single`` or ``double``.

    Raises
    ------
    GaugeError
        If a device has too little memory.
    """
    if field.precision == precision:
        return field
    copy = Field.empty(field.lattice, field.group.name, precision, field.devices)
    for slab, old in zip(copy.slabs, field.slabs, strict=True):
        slab.launch(
            COPY_IN_PRECISION,
            slab.whole(),
            storage_of(precision).choice,
            target=slab.buffer.address,
            source=old.buffer.address,
            elsewhere=elsewhere(old.layout.real.itemsize, slab.layout, old.layout).structure,
        )
    copy.exchange_halo(None)
    return copy
