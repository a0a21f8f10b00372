"""The links of a field in another precision."""

from __future__ import annotations

from gauge_mc.fields.field import Field
from gauge_mc.quarks.vectors.storage import storage_of
from gauge_mc.quarks.vectors.transport import FEW_REALS, convert_links


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
    convert_links(field, copy.slabs, storage_of(precision), FEW_REALS)
    copy.exchange_halo(None)
    return copy
