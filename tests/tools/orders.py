"""Say how often orders of the work of emulated GPUs find a missing wait.

Waits are left out one at a time, in calculations on two and four emulated GPUs. A missing wait is
found if the bytes are not those of one GPU, or if memory is accessed that is not there any more.

    python -m tests.tools.orders [SEEDS]
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

from gauge_mc.devices.base import Device
from gauge_mc.devices.cuda import kernel
from gauge_mc.devices.cuda.device import CudaDevice
from gauge_mc.devices.cuda.driver import load_driver
from gauge_mc.domain.halo import HaloExchange
from tests import emulator
from tests.domain.conftest import open_group
from tests.emulator import orders

DIVISIONS = ((12,), (4, 8), (2, 4, 3, 3))


def no_arrivals(exchange: HaloExchange) -> None:
    """Forget the events of copies that arrive, and those of other processes."""
    for lists in (exchange._sent, exchange._awaited, exchange._arrivals):
        lists.clear()


def own_work_only(buffer: kernel.CudaBuffer) -> None:
    """Wait for the GPU whose memory is freed, but not for others."""
    users, contexts = buffer._wait.args  # type: ignore[attr-defined]
    own = [one for one in users if one._context is buffer.allocation._context]
    buffer._wait.func(own, contexts)  # type: ignore[attr-defined]


def one_event_too_few(exchange: HaloExchange) -> None:
    """Wait for all copies that arrive but for the last one."""
    del exchange._arrivals[-1:]
    WAIT(exchange)


def nothing(*_: object) -> None:
    """Do not wait."""


WAIT = HaloExchange.wait

MISSING: dict[str, tuple[object, str, Callable[..., object]]] = {
    "nothing": (HaloExchange, "wait", WAIT),
    "for halos": (HaloExchange, "wait", no_arrivals),
    "for the last of the halos": (HaloExchange, "wait", one_event_too_few),
    "before work beside it": (CudaDevice, "fork", nothing),
    "for work beside it": (CudaDevice, "join", nothing),
    "before memory is freed": (kernel.CudaBuffer, "__del__", nothing),
    "for other GPUs before that": (kernel.CudaBuffer, "__del__", own_work_only),
}
"""The waits that are left out, in words, and what takes their place."""

CALCULATIONS = ("heatbath", "hmc omf2", "wilson", "reduction", "products")


@contextmanager
def without(name: str) -> Iterator[None]:
    """Leave out a wait."""
    owner, attribute, instead = MISSING[name]
    with patch.object(owner, attribute, instead):
        yield


def differs(calculation: str, kind: str, slices: Sequence[int], expected: bytes) -> bool:
    """Return whether a calculation gives other bytes, or none."""
    devices = open_group(kind, tuple(slices))
    try:
        found = orders.scenarios()[calculation](devices)
    except Exception:  # of any kind that the emulator or the program raises
        found = b""
    forget(devices.devices)
    return found != expected


def forget(devices: Sequence[Device]) -> None:
    """Let all work end, whether it fails or not."""
    schedule = load_driver()._schedule
    while schedule.ready:
        try:
            schedule.step()
        except Exception:
            continue
    gc.collect()
    for device in devices:
        device.close()


def main(seeds: int) -> None:
    """Print how many calculations find each missing wait, for each order."""
    emulator.enable()
    driver = load_driver()
    expected = {
        name: orders.scenarios()[name](open_group("cuda", DIVISIONS[0])) for name in CALCULATIONS
    }
    tried = [(order, 1) for order in orders.EXTREMES if order != "random"]
    tried += [("random", seed) for seed in range(seeds)]
    for missing in MISSING:
        for calculation in CALCULATIONS:
            found: dict[str, list[bool]] = {}
            for order, seed in tried:
                for kind in ("cuda", "cuda-sent"):
                    for slices in DIVISIONS[1:]:
                        with ExitStack() as stack:
                            stack.enter_context(orders.order_of(driver, order, seed))
                            stack.enter_context(without(missing))
                            one = differs(calculation, kind, slices, expected[calculation])
                        found.setdefault(order, []).append(one)
            words = ", ".join(f"{order} {sum(f)}/{len(f)}" for order, f in found.items())
            print(f"without waiting {missing}, {calculation}: {words}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
