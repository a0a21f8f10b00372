"""Plug-ins that fail: one sentence with the file and the line, and no traceback."""

import importlib
import shlex
import sys

import pytest

from gauge_mc.files.table import write_table
from gauge_mc.registry import WHOLE
from tests.calls import call, call_apart, make_run

pytestmark = pytest.mark.usefixtures("toys")


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_table(tmp_path / "some.csv", {}, ("sweep", "trace"), enumerate([0.3, 0.4], 1))
    return "some.csv"


@pytest.fixture
def fit(toys):
    return importlib.import_module("gauge_mc_toys.mean_trace").MeanTraceFit


def bad_line(self, *words, **options):
    return None + 1


def too_few(self):
    return None


def as_method(function):
    """A function as if it were written in the module of the toy, as the method of its fit."""
    module = importlib.import_module("gauge_mc_toys.mean_trace")
    made = type(function)(function.__code__, vars(module))
    made.__qualname__ = "MeanTraceFit.carry_out"
    return made


@pytest.mark.parametrize(
    ("function", "offset", "reason"),
    [
        (bad_line, 1, "TypeError: unsupported operand type(s) for +: 'NoneType' and 'int'"),
        (too_few, 0, "takes 1 positional argument but 2 were given"),
    ],
)
def test_the_place_of_the_error_is_said(table, fit, monkeypatch, function, offset, reason):
    monkeypatch.setattr(fit, "carry_out", as_method(function))
    shown, code = call("fit", "mean-trace", table)
    line = function.__code__.co_firstlineno + offset
    assert code == 1
    assert f"The package gauge-mc-toys fails in {__file__}, line {line} (TypeError: " in shown
    assert reason in shown
    assert shown.count("\n") == 1


def test_the_whole_traceback_can_be_seen(table, fit, monkeypatch):
    monkeypatch.setattr(fit, "carry_out", as_method(bad_line))
    shown, _ = call("fit", "mean-trace", table)
    (setting,) = [word for word in shlex.split(shown.replace("'", "")) if "TRACEBACK" in word]
    name, value = setting.split("=")
    assert name == WHOLE
    monkeypatch.setenv(name, value)
    with pytest.raises(TypeError, match="unsupported operand"):
        call_apart("fit", "mean-trace", table)


@pytest.mark.kernels
@pytest.mark.parametrize("words", [("measure", "link-trace", "run"), ("generate", "--output", "b")])
def test_an_observable_that_fails_is_named(tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module("gauge_mc_toys.link_trace")
    for name in ("measurer", "recorder"):
        monkeypatch.setattr(module.LinkTrace, name, as_method(bad_line))
    if words[0] == "measure":
        make_run("run")
    else:
        tiny = ("--lattice", "4x4x4x4", "--configs", 1, "--thermalize", 0)
        words = (*words, *tiny, "--measure", "link-trace", "--quiet")
    _, shown, code = call_apart(*words, "--backend", "cpu", "--threads", 1)
    assert code == 1
    line = bad_line.__code__.co_firstlineno + 1
    assert f"The package gauge-mc-toys fails in {__file__}, line {line} (TypeError: " in shown
    assert "Traceback" not in shown


def test_a_module_that_cannot_be_imported_is_named_with_its_line(site, table, monkeypatch):
    file = site / "gauge_mc_toys" / "mean_trace.py"
    text = file.read_text()
    monkeypatch.delitem(sys.modules, "gauge_mc_toys.mean_trace", raising=False)
    try:
        file.write_text("\nNOTHING = None + 1\n")
        shown, code = call("fit", "mean-trace", table)
    finally:
        file.write_text(text)
        importlib.invalidate_caches()
    assert code == 1
    assert f"'int' in {file}, line 2); repair or uninstall that package." in shown


def test_errors_of_the_program_itself_are_raised(table, monkeypatch):
    def fail(*words, **more):
        return None + 1

    monkeypatch.setattr("gauge_mc.cli.results.fit_all", fail)
    with pytest.raises(TypeError, match="unsupported operand"):
        call_apart("fit", "mean-trace", table)
