"""Sessions carried out within the process of the tests, and what they have written."""

from contextlib import ExitStack

from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.run.open_run import OpenRun
from gauge_mc.run.session import Session


def never(seconds):
    """Do not stop."""


def nothing(chain):
    """Show nothing."""


def stop_after(updates):
    left = iter(range(updates))
    return lambda seconds: None if next(left, None) is not None else "enough"


def carry_out(run, parameters, device, checkpoint_every=1e9, stop=never, report=nothing):
    """Work on a run; return the chain and why it stopped."""
    (chain,), reason = carry_out_batch([(run, parameters)], device, checkpoint_every, stop, report)
    return chain, reason


def carry_out_batch(runs, device, checkpoint_every=1e9, stop=never, report=nothing):
    """Work on a batch, pairs of run and parameters; return the chains and why they stopped."""
    with ExitStack() as locks:
        opened = []
        for run, p in runs:
            opened.append(OpenRun(run, p, locks.enter_context(run.locked())))
            run.write(p, [])
        devices = DeviceGroup.of(device)
        work = Session(opened, devices, stop, report, checkpoint_every=checkpoint_every)
        reason = work.carry_out()
        return work.batch.chains, reason


def written(path):
    """Read all that a run has written and that must not depend on stops or devices."""
    paths = [*sorted(path.glob("configs/*")), *sorted(path.glob("*.csv"))]
    return {item.name: item.read_bytes() for item in paths}
