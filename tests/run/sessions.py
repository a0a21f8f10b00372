"""Sessions carried out within the process of the tests, and what they have written."""

from contextlib import ExitStack

from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.run import session
from gauge_mc.run.functions import Catalogue
from gauge_mc.run.request import ChainTask, SessionPlan


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
    parameters = runs[0][1]
    observables = Catalogue.of(parameters.lattice, ()).chosen(parameters)
    devices = DeviceGroup.of(device)
    with ExitStack() as locks:
        tasks = []
        for run, p in runs:
            tasks.append(ChainTask(run, locks.enter_context(run.locked()), p))
            run.write(p, [])
        work = SessionPlan(tuple(tasks), observables, devices, checkpoint_every, stop, report)
        return session.carry_out(work)


def written(path):
    """Read all that a run has written and that must not depend on stops or devices."""
    paths = [*sorted(path.glob("configs/*")), *sorted(path.glob("*.csv"))]
    return {item.name: item.read_bytes() for item in paths}
