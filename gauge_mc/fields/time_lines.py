"""Products of links along t through all slabs of a field."""

from __future__ import annotations

from dataclasses import dataclass

from gauge_mc.devices import Buffer
from gauge_mc.devices.base import Copy
from gauge_mc.devices.kernels import Kernel
from gauge_mc.domain.slab import Slab
from gauge_mc.fields.field import Field

TIME_LINE = Kernel("time_line")


@dataclass(frozen=True)
class TimeLines:
    """Products of the links along t, starting at t = 0, for every site in space.

    Attributes
    ----------
    slab : Slab
    before : Buffer or None
        Lines up to the first slice of the slab; None for the first slab.
    after : Buffer
        Lines through the last slice of the slab.
    """

    slab: Slab
    before: Buffer | None
    after: Buffer


def time_lines(field: Field, through_last: bool = True) -> list[TimeLines]:
    """Compute the lines through all slabs, and return those of this process's slabs.

    The lines are in the devices' scratch memory, which the next call overwrites.

    Parameters
    ----------
    field : Field
    through_last : bool
        Whether the lines through the last slab are needed; otherwise its `TimeLines.after` has
        arbitrary content.
    """
    devices = field.devices
    lines = [_lines_of(slab, devices.first_slab + n) for n, slab in enumerate(field.slabs)]
    local = dict(enumerate(lines, devices.first_slab))
    for number in range(len(field.layouts)):
        is_last = number + 1 == len(field.layouts)
        if number in local and (through_last or not is_last):
            _follow(local[number])
        if not is_last:
            _hand_on(field, local.get(number), local.get(number + 1), number)
    return lines


def _lines_of(slab: Slab, number: int) -> TimeLines:
    nbytes = slab.layout.replicas * slab.slice_bytes // 4
    before = slab.device.scratch("lines before", nbytes) if number else None
    return TimeLines(slab, before, slab.device.scratch("lines after", nbytes))


def _follow(lines: TimeLines) -> None:
    slab = lines.slab
    slab.launch(
        TIME_LINE,
        slab.first_slices(),
        links=slab.buffer.address,
        before=lines.before.address if lines.before else None,
        after=lines.after.address,
        slices=slab.layout.slices,
    )


def _hand_on(
    field: Field, last: TimeLines | None, following: TimeLines | None, number: int
) -> None:
    """Copy the lines at the end of one slab to the next, which may belong to another process."""
    devices, nbytes = field.devices, field.slabs[0].slice_bytes // 4
    if last and following:
        assert following.before is not None
        copy = Copy(last.after.address, following.slab.device, following.before.address)
        copy.target.wait(last.slab.device.prepare_copies([copy], nbytes)())
    elif last:
        data = last.slab.device.read(last.after, 0, nbytes)
        devices.processes.send(data, devices.process_of(number + 1))
    elif following:
        assert following.before is not None
        data = devices.processes.receive(devices.process_of(number))
        following.slab.device.write(following.before, 0, data)
