"""Choices on which kernels of quarks depend, for tests and tools that compile all kernels."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from gauge_mc.devices.kernels import Kernel, Variant
from gauge_mc.extensions.quarks.diagonal import TERMS
from gauge_mc.extensions.quarks.domain_walls import along_of, column_of
from gauge_mc.extensions.quarks.hopping import DIRECT, FORMS, GAMMA5, ONE, RECURRENCE, SEVERAL
from gauge_mc.extensions.quarks.operators import PlainWilson
from gauge_mc.extensions.quarks.vectors import STORAGES
from gauge_mc.extensions.quarks.vectors.transport import (
    ALL_REALS,
    FEW_REALS,
    LINKS_ALONE,
    VectorsPerThread,
    forms_of,
)
from gauge_mc.fields.field import Field
from gauge_mc.groups import GROUPS

CHOICES = {"diagonal": list(FORMS), "term": [one.matrix for one in TERMS.values() if one.matrix]}
"""Choices by kind; see ``tests/tools/compile_cuda.py``."""

SOME_CHOICES = [
    [one.choice for one in STORAGES.values()],
    [FEW_REALS.choice, ALL_REALS.choice],
    [LINKS_ALONE, VectorsPerThread(2).choice],
    [DIRECT, GAMMA5, along_of(0), along_of(4)],
    [column_of(0, 8), column_of(4, 8)],
    *CHOICES.values(),
]
"""Choices among which are all headers; see ``tests/devices/test_kernels.py``."""

COUNTED = ("hop",)
"""Kernels whose instructions are counted; see ``tests/qemu/instructions.py``."""


def launch_counted(field: Field) -> None:
    PlainWilson(field, 0.12).apply(np.ones((*field.lattice.extents[::-1], 4, 3), complex))


def variants_of(kernel: Kernel, choices: Mapping[str, Sequence[Any]]) -> Iterator[Variant]:
    """Yield the variants of a kernel that depends on the type of storage, in its arithmetic.

    All choices are given by their kind; for other kernels there are none.
    """
    if "storage" not in kernel.kinds:
        return
    for group, storage in product(GROUPS.values(), STORAGES.values()):
        together = [one[storage.name].choice for one in (ONE, SEVERAL)]
        forms = [one.choice for one in forms_of(group).values()]
        # Kernel operators are for double precision.
        reflections = [DIRECT, GAMMA5, RECURRENCE] if storage.name == "double" else [DIRECT]
        own = {**choices, "group": [group.choice], "transport": forms, "vectors": together}
        kept = (0,) if storage.norm_bytes else (0, 16)
        own["reflection"] = [*reflections, *map(along_of, (16,) if storage.norm_bytes else kept)]
        own["column"] = [column_of(extent, storage.number_bytes) for extent in kept]
        kinds = [own[kind] for kind in own if kind in kernel.kinds]
        for some in product(*kinds):
            yield Variant(storage.arithmetic, (*some, storage.choice))
            # Nothing strict has the sign of a kernel operator.
            if {GAMMA5, RECURRENCE}.isdisjoint(some):
                yield Variant(storage.arithmetic, (*some, storage.choice), strict=True)
