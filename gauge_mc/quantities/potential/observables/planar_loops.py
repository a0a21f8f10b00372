"""Rectangular Wilson loops on axis in planes in space and in planes with the direction t."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

from gauge_mc.devices.kernels import Kernel
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import UsageError
from gauge_mc.fields.field import Field
from gauge_mc.fields.field_strength import LENGTHEN_LINES
from gauge_mc.fields.sums import SlabSums, total
from gauge_mc.files.columns import Column, TableColumns
from gauge_mc.observables import OBSERVABLES, Measurer, Observable, Record
from gauge_mc.options import Option, check_options

PLANAR_LOOPS = Kernel("planar_loops")
COPY_LINKS = Kernel("copy_links")

SPACE, TIME = "space", "time"
"""Values of the column ``plane``: both sides are in space, or one is along t."""

LOOPS = {SPACE: 6, TIME: 3}
"""Number of loops per site: ordered pairs of directions in space, or directions in space."""

R_MAX, T_MAX = 6, 24
"""Default of the largest extents, on lattices that are at least twice as large."""


@OBSERVABLES.register
@dataclass(frozen=True)
class PlanarLoops(Observable):
    """Wilson loops of the links as they are, whose sides in space and along t are treated alike.

    W(r, t) has a side of r links in space and one of t links, in space as well or along t. Loops in
    both kinds of planes determine the anisotropy of the lattice.

    Raises
    ------
    UsageError
        If an extent is not between 1 and half the lattice.
    """

    lattice: Lattice
    """Extents of the lattice."""
    r_max: int
    """Largest extent in space, at most half the lattice."""
    t_max: int
    """Largest extent along t, at most half the lattice."""

    name: ClassVar[str] = "planar-loops"
    summary: ClassVar[str] = "Wilson loops on axis in space and along t, not smeared"
    columns: ClassVar[TableColumns] = TableColumns(
        Column(
            "plane",
            str,
            f"`{SPACE}` if both sides are in space, `{TIME}` if one is along t",
            index=True,
        ),
        Column("r", int, "extent of the side in space, in links", index=True),
        Column("t", int, "extent of the other side, in links", index=True),
        Column("loop", float, "W(r, t), averaged over all sites and directions"),
    )
    normalisation: ClassVar[str] = "Re Tr / N averaged over sites and directions"
    units: ClassVar[str] = "r and t in links"
    strict: ClassVar[bool] = True
    on_copies: ClassVar[bool] = True
    options: ClassVar[tuple[Option, ...]] = (
        Option("r_max", int, "Largest distance R.", f"{R_MAX}, or half the lattice"),
        Option("t_max", int, "Largest time T.", f"{T_MAX}, or half the lattice"),
    )

    def __post_init__(self) -> None:
        limits = {"r_max": min(self.lattice.extents[:3]), "t_max": self.lattice.t}
        for name, extent in limits.items():
            if not 1 <= getattr(self, name) <= extent // 2:
                raise UsageError(
                    f"{name} is {getattr(self, name)}; on {self.lattice} choose it between 1 and "
                    f"{extent // 2}, half the lattice."
                )

    @classmethod
    def for_lattice(cls, lattice: Lattice, **options: Any) -> PlanarLoops:
        """Return the observable with the given options; see `Observable.for_lattice`."""
        given = check_options(cls.options, options, cls.name)
        r_max = given.get("r_max", min(R_MAX, min(lattice.extents[:3]) // 2))
        return cls(lattice, r_max, given.get("t_max", min(T_MAX, lattice.t // 2)))

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels of the lines and of the loops."""
        return (COPY_LINKS, LENGTHEN_LINES, PLANAR_LOOPS)

    @property
    def extents(self) -> list[tuple[str, int, int]]:
        """Plane, r and t of the records."""
        across = range(1, self.r_max + 1)
        along = range(1, self.t_max + 1)
        return [
            *((SPACE, r, t) for r, t in product(across, across)),
            *((TIME, r, t) for r, t in product(across, along)),
        ]

    @property
    def records(self) -> int:
        """Number of records per field."""
        return len(self.extents)

    @property
    def header(self) -> dict[str, str]:
        """Header of the table; see `Observable.header`."""
        return {**super().header, "r_max": str(self.r_max), "t_max": str(self.t_max)}

    def measurer(self, like: Field) -> Measurer:
        """Return a function that measures fields like this one.

        It owns the memory of max(r_max, t_max) further fields.
        """
        return _LoopLines(self, like)


class _LoopLines:
    """Measurement of planar loops, which owns the lines of every length."""

    def __init__(self, loops: PlanarLoops, like: Field) -> None:
        self._loops = loops
        kind = (like.lattice, like.group.name, like.precision, like.devices)
        longest = max(loops.r_max, loops.t_max)
        self._lines = [Field.empty(*kind, above=loops.t_max) for _ in range(longest)]

    def __call__(self, field: Field) -> list[Record]:
        """Return the records of a field."""
        self._make_lines(field)
        launched = [one for one in self._loops.extents if one[0] == TIME or one[1] <= one[2]]
        sums = [SlabSums(slab, 1, len(launched)) for slab in self._lines[0].slabs]
        for plane, r, t in launched:
            pairs = zip(sums, self._lines[r - 1].slabs, self._lines[t - 1].slabs, strict=True)
            for one, lines, others in pairs:
                values = {
                    "lines": lines.buffer.address,
                    "others": others.buffer.address,
                    "r": r,
                    "s": t,
                    "along_t": int(plane == TIME),
                }
                one.launch(PLANAR_LOOPS, values)
        norm = field.group.colours * field.lattice.sites
        rows = total(self._lines[0], sums)[:, 0].tolist()
        found = {one: row / (norm * LOOPS[one[0]]) for one, row in zip(launched, rows, strict=True)}
        return [
            (plane, r, t, found[plane, *(sorted((r, t)) if plane == SPACE else (r, t))])
            for plane, r, t in self._loops.extents
        ]

    def _make_lines(self, field: Field) -> None:
        """Make the lines of every length, those of one link first."""
        for number, (kernel, values) in enumerate(self._steps(field)):
            lines = self._lines[number]
            for n, slab in enumerate(lines.slabs):
                slab.launch(kernel, slab.whole(), **values(n))
            lines.exchange_halo(depth=None)

    def _steps(self, field: Field) -> Iterator[tuple[Kernel, Any]]:
        """Yield the kernel that makes the lines of each length, and its arguments on a slab."""

        def address(one: Field, n: int) -> int:
            return one.slabs[n].buffer.address

        yield (
            COPY_LINKS,
            lambda n: {
                "source": address(field, n),
                "target": address(self._lines[0], n),
                "directions": 15,
            },
        )
        for length in range(1, len(self._lines)):
            shorter, longer = self._lines[length - 1 : length + 1]
            yield (
                LENGTHEN_LINES,
                lambda n, length=length, shorter=shorter, longer=longer: {
                    "links": address(self._lines[0], n),
                    "lines": address(shorter, n),
                    "longer": address(longer, n),
                    "length": length,
                },
            )
