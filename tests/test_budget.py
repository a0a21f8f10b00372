"""The budget of quick tests."""

from types import SimpleNamespace

import pytest

from tests import budget
from tests.budget import ANYWHERE, KERNELS, SECONDS, Budget


def report(name, seconds, compiled=False):
    return SimpleNamespace(when="call", nodeid=name, seconds=seconds, compiled=compiled)


def test_tests_that_take_too_long_are_named_unless_they_compile(monkeypatch):
    monkeypatch.setattr(budget, "kernels", lambda: 0)
    one = Budget()
    for name, seconds, compiled in (("a", 0.9, False), ("b", 1.2, False), ("c", 1.4, True)):
        one.pytest_runtest_logreport(report(name, seconds * SECONDS, compiled))
    one.pytest_runtest_logreport(SimpleNamespace(when="call", nodeid="of a worker that crashed"))
    assert one.above(SECONDS) == [f"b takes {1.2 * SECONDS:.1f} s"]


def test_kernels_are_counted_if_the_cache_was_empty(monkeypatch):
    for before, said in (
        (0, [f"{KERNELS + 1} kernels were compiled, and {KERNELS} may be"]),
        (7, []),
    ):
        monkeypatch.setattr(budget, "kernels", lambda number=before: number)
        one = Budget()
        monkeypatch.setattr(budget, "kernels", lambda: KERNELS + 1)
        assert one.above(SECONDS) == said


@pytest.mark.parametrize("much", [True, False])
def test_the_session_fails_if_anything_is_too_much(monkeypatch, much):
    monkeypatch.setattr(budget, "kernels", lambda: 0)
    one, session = Budget(), SimpleNamespace(exitstatus=pytest.ExitCode.OK)
    one.pytest_runtest_logreport(report("a", ANYWHERE * (1.1 if much else 0.9)))
    one.pytest_sessionfinish(session)
    assert (session.exitstatus == pytest.ExitCode.TESTS_FAILED) == much
