"""Products of links along t through all slabs of a field."""

from __future__ import annotations

from dataclasses import dataclass

from gauge_mc.devices import Buffer
from gauge_mc.devices.base import Copy
from gauge_mc.devices.kernels import Kernel
from gauge_mc.domain.slab import Slab
from gauge_mc.fields.field import Field

TIME_LINE = Kernel("time_line")

Place = tuple[Slab, Buffer]
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


def complete_lines(field: Field) -> list[Place]:
    """Compute the lines through the whole lattice, for every site in space.

    Returns
    -------
    list of (Slab, Buffer)
        The last slab and its lines, if it belongs to this process; otherwise nothing. The lines are
        in the scratch memory of the device, which the next call overwrites.
    """
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
    field: Field, origin: Place | None, target: Place | None, number: int, nbytes: int
) -> None:
    """Copy the end of one slab to the next, which may belong to another process.

    Parameters
    ----------
    field : Field
        The field to which the slabs belong.
    origin, target : (Slab, Buffer) or None
        Memory of the slab and of the next one; None if that belongs to another process.
    number : int
        Number of the slab.
    nbytes : int
        Number of bytes to copy.
    """
    devices = field.devices
    if origin and target:
        copy = Copy(origin[1].address, target[0].device, target[1].address)
        copy.target.wait(origin[0].device.prepare_copies([copy], nbytes)())
    elif origin:
        data = origin[0].device.read(origin[1], 0, nbytes)
        devices.processes.send(data, devices.process_of(number + 1))
    elif target:
        target[0].device.write(target[1], 0, devices.processes.receive(devices.process_of(number)))
