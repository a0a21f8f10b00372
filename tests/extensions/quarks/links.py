"""Fields with given links, and calculations on devices that divide a lattice."""

import numpy as np

from gauge_mc.domain.lattice import Lattice
from gauge_mc.fields.field import Field
from tests.domain.conftest import open_group


def field_of(links, devices=None, precision="double"):
    """The field with some links, whose extents and group are those of the array."""
    lattice, group = Lattice(*links.shape[3::-1]), f"su{links.shape[-1]}"
    return Field.from_slices(lattice, group, links, precision, devices)


def replicas_of(links, devices=None):
    """Fields with some links each, and one field with a replica for each of them."""
    singles = [field_of(one, devices) for one in links]
    whole = singles[0].repeated(len(singles))
    for replica, one in zip(whole.replicas, singles, strict=True):
        replica.copy(one)
    return singles, whole


def largest_difference(found, expected):
    """The largest difference in units of the largest size."""
    return np.abs(found - expected).max() / np.abs(expected).max()


def check_divisions(kind, divisions, calculate):
    """Check that arrays have the same bytes on devices that divide a lattice in several ways."""
    results = []
    for slices in divisions:
        devices = open_group(kind, slices)
        results.append([np.asarray(array).tobytes() for array in calculate(devices)])
        devices.close()
    assert all(result == results[0] for result in results[1:])
