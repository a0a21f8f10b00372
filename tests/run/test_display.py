"""Progress in a log file: what is said while kernels compile, and times that do not count it."""

import io

import pytest
from rich.console import Console

from gauge_mc.devices import cache
from gauge_mc.devices.cpu.device import CpuDevice
from gauge_mc.fields.sums import ADD_PARTIAL_SUMS, ANY_VARIANT
from gauge_mc.run.state import announced_compilation


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("GAUGE_MC_CACHE", str(tmp_path / "cache"))

    def run_compiler(kernel, unit, command, output):
        output.write_bytes(b"object")
        return ""

    monkeypatch.setattr(cache, "run_compiler", run_compiler)


@pytest.mark.parametrize(
    "form", [{}, {"quiet": True}, {"force_terminal": True}, {"force_jupyter": True}]
)
def test_a_log_file_says_once_that_kernels_are_compiled(empty_cache, monkeypatch, form):
    text = io.StringIO()
    monkeypatch.setattr("rich.jupyter.display", lambda segments, said: text.write(said))
    with announced_compilation(Console(file=text, **form)):
        CpuDevice(1).compile(ADD_PARTIAL_SUMS, ANY_VARIANT)
        cache.clear_cache()
        CpuDevice(1).compile(ADD_PARTIAL_SUMS, ANY_VARIANT)
    said = "" if form else "compiling kernels, which are kept for later commands ...\n"
    assert text.getvalue() == said
    with announced_compilation(Console(file=text)):
        CpuDevice(1).compile(ADD_PARTIAL_SUMS, ANY_VARIANT)
    assert text.getvalue() == said  # it was kept
