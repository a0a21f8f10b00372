"""What a user of Python and of notebooks meets: names, errors and progress."""

import re
import sys
from types import SimpleNamespace

import pytest
import rich.console

import gauge_mc
from gauge_mc import progress
from gauge_mc.devices.cpu.device import CpuDevice
from gauge_mc.errors import GaugeError, UsageError


def test_a_misspelt_name_of_the_package_is_answered_with_the_right_one():
    with pytest.raises(AttributeError, match=r"no attribute 'genrate'; did you mean 'generate'\?$"):
        gauge_mc.genrate  # noqa: B018
    with pytest.raises(AttributeError, match=r"no attribute 'xyz'$") as caught:
        gauge_mc.xyz  # noqa: B018
    assert not caught.value.name  # by which Python would add its own guess


@pytest.mark.kernels
@pytest.mark.parametrize(
    ("call", "right"),
    [
        (lambda field: gauge_mc.fit("potental"), "potential"),
        (lambda field: gauge_mc.fit("potential", "x", levles=3), "--levels"),
        (lambda field: gauge_mc.plot("histroy", "."), "history"),
        (lambda field: gauge_mc.generate(bata=2.3), "beta"),
        (lambda field: gauge_mc.generate(group="su22"), "su2"),
        (lambda field: gauge_mc.scan(anisotrpy=2), "anisotropy"),
        (lambda field: gauge_mc.measure(field, "plaquete"), "plaquette"),
        (lambda field: gauge_mc.measure(field, "wilson-loops", iteratons=3), "--iterations"),
        (lambda field: gauge_mc.measure(field, "wilson-loops", smear="appe"), "ape"),
    ],
)
def test_misspelt_names_are_answered_with_the_right_ones(call, right):
    field = gauge_mc.Field.cold(gauge_mc.Lattice(4, 4, 4, 4), "su2", device=CpuDevice(1))
    with pytest.raises(UsageError, match=rf"did you mean '{right}'\?"):
        call(field)


@pytest.mark.slow
def test_an_error_is_one_line_in_a_notebook(capsys):
    shell = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell()
    shell.run_cell("import gauge_mc; gauge_mc.fit('potental')")
    said = capsys.readouterr()
    assert (said.out + said.err).splitlines() == [
        "UnknownNameError: There is no fit 'potental'; did you mean 'potential'?"
    ]


def test_an_error_shows_control_characters_of_what_it_quotes():
    assert GaugeError("a\x1b[2J\nb")._render_traceback_() == ["GaugeError: a\\x1b[2J b"]


class Notebook:
    """What a notebook shows: its outputs, each a list of its states."""

    def __init__(self):
        self.outputs = []
        self.HTML = str

    def display(self, *shown, display_id=False, **more):
        states = [*map(str, shown)]
        self.outputs.append(states)
        return SimpleNamespace(update=states.append) if display_id else None

    @property
    def bars(self):
        return [states for states in self.outputs if "<progress" in states[0]]


@pytest.fixture
def notebook(monkeypatch):
    shown = Notebook()
    monkeypatch.setitem(sys.modules, "IPython.display", shown)
    ipython = SimpleNamespace(display=shown, get_ipython=lambda: None, version_info=(9,))
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setattr(rich.console, "_is_jupyter", lambda: True)
    monkeypatch.setattr("rich.jupyter.display", lambda segments, text: shown.display(text))
    return shown


@pytest.mark.kernels
def test_a_run_and_a_measurement_have_one_bar_each_in_a_notebook(notebook, tmp_path, monkeypatch):
    monkeypatch.setattr(progress, "LIVE_SECONDS", 0.0)
    monkeypatch.setattr(progress, "PLAIN_LEAST_SECONDS", 0.0)
    tiny = {"lattice": "4x4x4x4", "thermalize": 2, "configs": 4, "separation": 5}
    run = gauge_mc.generate(tiny, output=tmp_path / "run", backend="cpu", threads=1)
    (states,) = notebook.bars
    done = [int(re.search(r"(\d+)/22 updates", state)[1]) for state in states]
    assert done == [*range(23)]
    assert "compiling or loading kernels" in states[0]
    assert "thermalising" in states[1]
    assert "configurations 4/4" in states[-1]
    assert len(notebook.outputs) == 3  # with what is said before and after it
    gauge_mc.measure(run, "plaquette", backend="cpu", threads=1)
    _, states = notebook.bars
    assert len(states) == 1 + 4
    assert "4/4 configurations  configuration 22" in states[-1]
    assert len(notebook.outputs) == 5
    gauge_mc.measure(run, "polyakov", backend="cpu", threads=1, progress=False)
    assert len(notebook.outputs) == 5
