"""Links decorated within hypercubes, the blocks of HYP smearing."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

from gauge_mc.devices import Buffer
from gauge_mc.devices.base import Copy
from gauge_mc.devices.kernels import Kernel
from gauge_mc.domain.slab import Slab
from gauge_mc.fields.field import Field

DECORATE = Kernel("decorate")

DIRECTIONS = 4
"""Number of directions of links."""

MOST_FIELDS = 3
"""Number of fields that hold the links of one level."""

FIELDS = ("decorated links",)
"""Key of the memory for decorated links in `Field.prepared`."""

DecoratedLink = tuple[int, int]
"""Direction mu of a decorated link, and the set S of directions of its staples as bits."""

Places = dict[DecoratedLink, int]
"""Places of decorated links in memory: 4 n + d is the link of direction d of field n."""


@dataclass(frozen=True)
class DecoratedLinks:
    """Links decorated by up to three levels of staples that stay within hypercubes.

    D(mu, S) is the link of direction mu with staples along the directions of the set S. Without
    directions it is U_mu, and else

        D(mu, S) = P[(1 - a) U_mu + a / (2 |S|) sum over rho in S of the two staples that
        D(rho, S - rho) forms around D(mu, S - rho)],

    where a is one parameter per size of S (A. Hasenfratz and F. Knechtli, hep-lat/0103029).

    Calling an instance needs the memory of further fields for the smaller sets: six for all links
    and all directions, two for the links of three directions, five for the links of one direction
    with staples along the three others. It is kept with the target.
    """

    sets: tuple[int, int, int, int]
    """The set S for each direction mu, as bits. The links of a direction with the empty set are
    copied. All other sets have the same size.
    """
    alphas: tuple[float, float, float]
    """The parameters a for three directions, for two and for one."""
    polar: bool = False
    """Whether P is the polar projection, instead of the one with the largest trace."""

    def __call__(self, source: Field, target: Field) -> None:
        """Write the decorated links of `source` to `target`, a different field of its kind."""
        memory = _fields_of(source, target, self._fields)
        lower, places, used = [source], {(mu, 0): mu for mu in range(DIRECTIONS)}, 0
        for level in self._levels:
            last = level is self._levels[-1]
            count = 1 if last else _fields_for(level)
            upper = [target] if last else memory[used : used + count]
            self._launch(source, (lower, places), (upper, level))
            for field in upper:
                field.exchange_halo()
            lower, places, used = upper, level, used + count

    @cached_property
    def _levels(self) -> list[Places]:
        """The decorated links of every level, the lowest level first."""
        top = dict(enumerate(self.sets)).items()
        levels = [{x: x[0] for x in top}]
        while any(rest for _, rest in _below(levels[0])):
            levels.insert(0, {x: place for place, x in enumerate(sorted(_below(levels[0])))})
        return levels

    @cached_property
    def _fields(self) -> int:
        return sum(_fields_for(level) for level in self._levels[:-1])

    def _launch(
        self, source: Field, lower: tuple[list[Field], Places], upper: tuple[list[Field], Places]
    ) -> None:
        """Compute the links of one level from those of the level below."""
        (fields, places), (targets, level) = lower, upper
        size = max(s.bit_count() for _, s in level)
        alpha = self.alphas[-size] if size else 0.0
        values = {
            "keep": 1 - alpha,
            "weight": alpha / (2 * size) if size else 0.0,
            "count": len(level),
            "mu": _filled(mu for mu, _ in level),
            "set": _filled(s for _, s in level),
            "place": _filled(level.values()),
            "below": _table(places),
            "unitary": self.polar,
        }
        # Offsets to neighbours are those in the fields below, whose halos may be deeper.
        for n, slab in enumerate(fields[0].slabs):
            addresses = {
                f"{name}{i}": many[min(i, len(many) - 1)].slabs[n].buffer.address
                for name, many in (("below", fields), ("target", targets))
                for i in range(MOST_FIELDS)
            }
            links = source.slabs[n].buffer.address
            slab.launch(DECORATE, slab.whole(), links=links, **addresses, **values)


def alphas_in_words(alphas: Sequence[float]) -> str:
    """Return parameters in both usual forms, given those for the largest set of directions first.

    An example is ``alpha3 = 0.3 (w = 0.214286 in P[U + w sum of staples])``.
    """
    sizes = range(len(alphas), 0, -1)
    names = ", ".join(f"alpha{DIRECTIONS - size}" for size in sizes)
    values = ", ".join(f"{alpha:.6g}" for alpha in alphas)
    weights = ", ".join(
        f"{alpha / (2 * size * (1 - alpha)):.6g}" if alpha < 1 else "infinity"
        for size, alpha in zip(sizes, alphas, strict=True)
    )
    return f"{names} = {values} (w = {weights} in P[U + w sum of staples])"


def _below(level: Mapping[DecoratedLink, int]) -> set[DecoratedLink]:
    """Return the decorated links of which those of a level consist."""
    parts = set()
    for mu, staples in level:
        for rho in range(DIRECTIONS):
            if staples >> rho & 1:
                rest = staples & ~(1 << rho)
                parts |= {(mu, rest), (rho, rest)}
    return parts


def _fields_for(level: Mapping[DecoratedLink, int]) -> int:
    return -(-len(level) // DIRECTIONS)


def _fields_of(source: Field, target: Field, count: int) -> list[Field]:
    """Return fields for decorated links, which all decorations of a target share."""
    cached = source.prepared.get(FIELDS, [])
    fields = cast(list[Field], target.prepared.setdefault(FIELDS, cached))
    while len(fields) < count:
        fields.append(source.repeated(1))
    return fields


def _filled(numbers: Any) -> ctypes.Array[Any]:
    """Return numbers in the layout of the arguments with one number per decorated link."""
    return (ctypes.c_int * DECORATE.constant("LINKS"))(*numbers)


def _table(places: Places) -> ctypes.Array[Any]:
    """Return places in the layout of the argument ``below`` of the kernel ``decorate``."""
    row = ctypes.c_int * 2**DIRECTIONS

    def rows() -> Iterator[ctypes.Array[Any]]:
        for mu in range(DIRECTIONS):
            yield row(*(places.get((mu, s), 0) for s in range(2**DIRECTIONS)))

    table: ctypes.Array[Any] = (row * DIRECTIONS)(*rows())
    return table


TIME_LINE = Kernel("time_line")

LineMemory = tuple[Slab, Buffer]
"""A slab, and memory of its device."""


@dataclass(frozen=True)
class TimeLines:
    """Products of the links along t, starting at t = 0, for every site in space."""

    slab: Slab
    """The slab along which the links are multiplied."""
    before: Buffer | None
    """Lines up to the first slice of the slab; None for the first slab."""
    after: Buffer | None
    """Lines through the last slice of the slab; None for the last slab."""


def time_lines(field: Field) -> list[TimeLines]:
    """Compute the lines up to every slab, and return those of this process's slabs.

    The lines are in the devices' scratch memory, which the next call overwrites.
    """
    devices, count = field.devices, len(field.layouts)
    lines = [_lines_of(slab, devices.first_slab + n, count) for n, slab in enumerate(field.slabs)]
    local = dict(enumerate(lines, devices.first_slab))
    for number in range(count - 1):
        last, following = local.get(number), local.get(number + 1)
        if last:
            assert last.after is not None
            _follow(last.slab, last.before, last.after)
        origin = (last.slab, last.after) if last and last.after else None
        target = (following.slab, following.before) if following and following.before else None
        hand_on(field, origin, target, number, field.slabs[0].slice_bytes // 4)
    return lines


def complete_lines(field: Field) -> list[LineMemory]:
    """Compute the lines through the whole lattice, for every site in space."""
    *_, last = time_lines(field)
    slab = last.slab
    if slab.layout.times.stop < field.lattice.t:
        return []
    complete = slab.device.scratch("complete lines", slab.slice_bytes // 4)
    _follow(slab, last.before, complete)
    return [(slab, complete)]


def _lines_of(slab: Slab, number: int, count: int) -> TimeLines:
    nbytes = slab.slice_bytes // 4
    before = slab.device.scratch("lines before", nbytes) if number else None
    after = slab.device.scratch("lines after", nbytes) if number < count - 1 else None
    return TimeLines(slab, before, after)


def _follow(slab: Slab, before: Buffer | None, after: Buffer) -> None:
    """Multiply the lines that arrive at a slab with its own."""
    lines = {"before": before.address if before else None, "after": after.address}
    links, slices = slab.buffer.address, slab.layout.slices
    slab.launch(TIME_LINE, slab.first_slices(), links=links, **lines, slices=slices)


def hand_on(
    field: Field, origin: LineMemory | None, target: LineMemory | None, number: int, nbytes: int
) -> None:
    """Copy the end of one slab to the next, which may belong to another process."""
    devices = field.devices
    if origin and target:
        copy = Copy(origin[1].address, target[0].device, target[1].address)
        copy.target.wait(origin[0].device.prepare_copies([copy], nbytes)())
    elif origin:
        data = origin[0].device.read(origin[1], 0, nbytes)
        devices.processes.send(data, devices.process_of(number + 1))
    elif target:
        target[0].device.write(target[1], 0, devices.processes.receive(devices.process_of(number)))
