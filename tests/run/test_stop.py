"""Stopping in order: at a signal, and before a time limit, by a clock that the tests turn."""

import signal
import threading
from concurrent.futures import Future
from types import SimpleNamespace

import pytest

from gauge_mc.cli import _ending_in_order
from gauge_mc.configurations import writing
from gauge_mc.configurations.writing import IN_FLIGHT
from gauge_mc.devices.cpu.device import CpuDevice
from gauge_mc.run import session
from gauge_mc.run import state as stop
from gauge_mc.run.chain import Batch, Chain
from gauge_mc.run.directory import Run
from gauge_mc.run.parameters import Parameters
from gauge_mc.run.state import SIGNALS, Stop
from tests.run.sessions import carry_out, written

TINY = {"lattice": "4x4x4x4", "thermalize": 1, "configs": 1000, "separation": 7}


@pytest.fixture(scope="module")
def device():
    return CpuDevice(threads=1)


class AtOnce:
    """An executor without a thread, whose time would not be that of the clock."""

    def __init__(self, *arguments):
        pass

    def submit(self, task):
        done = Future()
        done.set_result(task())
        return done

    def shutdown(self):
        pass


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still until its attribute ``now`` is changed."""
    monkeypatch.setattr(writing, "ThreadPoolExecutor", AtOnce)
    made = SimpleNamespace(now=1000.0)
    fake = SimpleNamespace(monotonic=lambda: made.now)
    for module in (writing, session, stop):
        monkeypatch.setattr(module, "time", fake)
    return made


@pytest.fixture
def takes(monkeypatch, clock):
    """Let methods of a chain, or the writing of a configuration, take so many seconds.

    The seconds are numbers, or iterables of them.
    """

    def lasting(seconds, method):
        durations = iter(seconds) if hasattr(seconds, "__iter__") else None

        def slow(*arguments):
            clock.now += next(durations) if durations else seconds
            return method(*arguments)

        return slow

    def set_durations(**seconds):
        for name, value in seconds.items():
            kind = {"write": writing, "update": Batch}.get(name, Chain)
            monkeypatch.setattr(kind, name, lasting(value, getattr(kind, name)))

    return set_durations


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_is_noted(number):
    before = [signal.getsignal(one) for one in SIGNALS]
    with Stop() as reason:
        assert reason(1e9) is None
        signal.raise_signal(number)
        assert reason(0.0) == number.name
    assert [signal.getsignal(one) for one in SIGNALS] == before


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_earlier_signal_whose_exception_was_ignored_is_not_lost():
    """Such as that of a parent that dies while its child imports modules."""

    class Finalized:
        def __del__(self):  # Python ignores exceptions here
            signal.raise_signal(signal.SIGTERM)

    with _ending_in_order():
        Finalized()
        with Stop() as reason:
            assert reason(0.0) == "SIGTERM"
    with Stop() as reason:
        assert reason(0.0) is None


def test_a_second_interrupt_ends_the_process():
    with pytest.raises(KeyboardInterrupt), Stop() as reason:  # noqa: PT012
        signal.raise_signal(signal.SIGINT)
        assert reason(0.0) == "SIGINT"
        signal.raise_signal(signal.SIGINT)


def test_signals_are_left_alone_in_other_threads():
    before, within = [signal.getsignal(one) for one in SIGNALS], []

    def work():
        with Stop(time_limit=0.0) as reason:
            within.append((reason(0.0), [signal.getsignal(one) for one in SIGNALS]))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert within == [("the time limit", before)]


def test_the_time_limit_counts_what_stopping_takes(clock):
    with Stop(time_limit=10.0) as reason:
        assert reason(9.9) is None
        assert reason(10.0) == "the time limit"
        clock.now += 8.0
        assert reason(1.9) is None
        assert reason(2.0) == "the time limit"
        signal.raise_signal(signal.SIGTERM)
        assert reason(2.0) == "SIGTERM"


@pytest.mark.longer
@pytest.mark.parametrize(
    ("update", "save", "write"), [(1, 1, 1), (10, 0.1, 0.1), (0.2, 20, 1), (0.2, 1, 20)]
)
def test_a_run_ends_just_before_its_time_limit(tmp_path, device, clock, takes, update, save, write):
    takes(update=update, save=save, write=write)
    deadline = clock.now + 200
    p, run = Parameters.from_values(TINY), Run(tmp_path / "run")
    chain, reason = carry_out(run, p, device, stop=Stop(200))
    assert reason == "the time limit"
    assert chain.sweep > p.separation  # an update with a configuration is among them
    stopping = update + save + IN_FLIGHT * write
    assert 0 < deadline - clock.now < session.SAFETY * stopping + session.MARGIN


@pytest.mark.longer
def test_a_slow_first_update_is_forgotten(tmp_path, device, clock, takes):
    """It may compile kernels."""

    def seconds():
        yield 90.0
        while True:
            yield 1.0

    takes(update=seconds())
    deadline = clock.now + 400
    p, run = Parameters.from_values({**TINY, "format": "none"}), Run(tmp_path / "run")
    _, reason = carry_out(run, p, device, stop=Stop(400))
    assert reason == "the time limit"
    assert 0 < deadline - clock.now < session.SAFETY + session.MARGIN + 1


def test_nothing_is_done_when_there_is_no_time(tmp_path, device, clock):
    p, run = Parameters.from_values(TINY), Run(tmp_path / "run")
    chain, reason = carry_out(run, p, device, stop=Stop(session.MARGIN / 2))
    assert (chain.sweep, reason) == (0, "the time limit")
    assert run.checkpoint.exists()
    few = Parameters.from_values({**TINY, "configs": 2})
    chain, reason = carry_out(Run(tmp_path / "few"), few, device, stop=Stop(100))
    assert (chain.sweep, reason) == (few.updates, None)


def test_a_run_within_its_time_is_complete(tmp_path, device, clock, takes):
    takes(update=1.0)
    p = Parameters.from_values({**TINY, "configs": 2})
    for limit, name in ((p.updates + 10, "limited"), (1e9, "free")):
        with Stop(limit) as reason:
            chain, why = carry_out(Run(tmp_path / name), p, device, stop=reason)
        assert (chain.sweep, why) == (p.updates, None)
    assert written(tmp_path / "limited") == written(tmp_path / "free")
