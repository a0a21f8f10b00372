"""Runs from Python: what ``import gauge_mc`` offers, and that it does the same as the commands."""

import dataclasses
import gc
import inspect
import shutil
import threading
import traceback
import weakref
from collections import namedtuple
from pathlib import Path

import h5py
import numpy as np
import pytest

import gauge_mc
from gauge_mc import (
    Chain,
    Field,
    GaugeError,
    Lattice,
    Parameters,
    Random,
    UsageError,
    convert,
    export,
    fit,
    generate,
    heatbath,
    measure,
    open_device,
    open_device_group,
    overrelax,
    scan,
    verify,
)
from gauge_mc.configurations.reading import open_configuration
from gauge_mc.files.table import SEAL, read_table
from gauge_mc.formats import FORMATS, writable_formats
from gauge_mc.groups import GROUPS
from gauge_mc.observables import Observable
from gauge_mc.quantities.plaquette import Plaquette, plaquette
from gauge_mc.quantities.polyakov.observables import Polyakov, polyakov_loop
from gauge_mc.quantities.potential.observables import WilsonLoops
from gauge_mc.run.checkpoint import read_state
from gauge_mc.run.directory import Run
from tests.calls import call
from tests.conftest import QUICK
from tests.formats.format_params import SOURCES
from tests.formats.format_samples import sample
from tests.run.sessions import written

TINY = {
    "group": "su3",
    "lattice": "4x4x4x4",
    "precision": "double",
    "thermalize": 2,
    "configs": 3,
    "separation": 3,
    "measure": "plaquette",
}
HOW = {"backend": "cpu", "threads": 1, "progress": False}
UPDATES = 11


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder to work in, where children find what the tests import, installed or not."""
    monkeypatch.setenv("PYTHONPATH", str(Path(gauge_mc.__file__).parent.parent))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def energy(field):
    """Return 1 minus the plaquette: the density of the action."""
    return 1 - plaquette(field)


def loop(field):
    return polyakov_loop(field)


def moments(field):
    value = plaquette(field)
    return {"mean": value, "square": value**2, "loop": polyakov_loop(field), "one": 1}


@dataclasses.dataclass
class Pair:
    first: float
    second: int


def pair(field):
    return Pair(plaquette(field), 2)


Planes = namedtuple("Planes", ["all", "spatial", "temporal"])


def planes(field):
    return Planes(*Plaquette().measure(field))


def slices(field):
    """Return the average of the real trace on every time slice."""
    return np.array([np.trace(u, axis1=-2, axis2=-1).real.mean() for u in field.slices()])


def corner(field):
    return field.to_numpy()[0, 0, 0, 0, :2, :, 0]


FUNCTIONS = [energy, loop, (moments, 2), pair, (planes, 4), slices, (corner, 3)]


def make(path, observables=FUNCTIONS, **values):
    return generate(TINY, output=path, observables=observables, **(HOW | values))


def stop_at(*updates):
    """Return a callback that stops a run after certain updates."""
    return lambda chain: chain.sweep in updates


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """An unbroken run."""
    return make(tmp_path_factory.mktemp("whole") / "run")


# Tables of functions


def test_tables_of_functions_are_those_of_a_hand_made_chain(whole):
    device = open_device("cpu", 1)
    lattice = Lattice.parse(TINY["lattice"])
    field = Field.cold(lattice, "su3", "double", device)
    random = Random.for_field(field)
    expected = {name: [] for name in ("energy", "loop", "moments", "pair", "planes")}
    arrays = {"slices": [], "corner": []}
    for sweep in range(1, UPDATES + 1):
        heatbath(field, 6.0, random)
        overrelax(field, 4)
        done = sweep - TINY["thermalize"]
        if done <= 0:
            continue
        spot, line = plaquette(field), polyakov_loop(field)
        expected["energy"].append((sweep, 1 - spot))
        expected["loop"].append((sweep, line.real, line.imag))
        expected["pair"].append((sweep, spot, 2))
        arrays["slices"].append(slices(field))
        if done % 2 == 0:
            expected["moments"].append((sweep, spot, spot**2, line.real, line.imag, 1))
        if done % 4 == 0:
            expected["planes"].append((sweep, *Plaquette().measure(field)))
        if done % 3 == 0:
            arrays["corner"].append(corner(field))
    tables = whole.tables
    assert tables.keys() == {*expected, *arrays, "plaquette"}
    for name, rows in expected.items():
        found = [column.tolist() for column in tables[name].columns.values()]
        assert list(zip(*found, strict=True)) == rows
    table = tables["slices"]
    assert list(table.columns) == ["sweep", "i", "value"]
    assert np.array_equal(table["value"].reshape(9, 4), arrays["slices"])
    assert np.array_equal(table["i"].reshape(9, 4), [range(4)] * 9)
    assert np.array_equal(table["sweep"].reshape(9, 4)[:, 0], range(3, 12))
    table = whole["corner"]
    assert list(table.columns) == ["sweep", "i", "j", "re", "im"]
    numbers = table["re"] + 1j * table["im"]
    assert np.array_equal(numbers.reshape(3, 2, 3), arrays["corner"])
    assert np.array_equal(table["j"].reshape(3, 2, 3), np.tile(range(3), (3, 2, 1)))


def test_headers_say_what_was_measured_and_of_which_chain(whole):
    header = whole["energy"].header
    assert header["observable"] == "energy"
    assert header["normalisation"] == "Return 1 minus the plaquette: the density of the action."
    assert whole["loop"].header["normalisation"] == "that of the function"
    for name in ("group", "lattice", "beta", "seed", "rng", "version"):
        assert header[name] == whole["plaquette"].header[name]
    for path in whole.path.glob("*.csv"):
        assert path.read_bytes().splitlines()[-1].startswith(SEAL)


@pytest.mark.slow
def test_averages_of_functions_are_shown(whole):
    found = whole.averages
    assert found["energy"].value == pytest.approx(1 - found["plaquette"].value)
    assert found["planes, spatial"].samples == 2
    assert not [name for name in found if name.startswith(("slices", "corner"))]
    for command in ("status", "info", "verify"):
        shown, code = call(command, whole.path)
        assert code == 0, shown
    assert "energy" in call("status", whole.path)[0]


def test_tables_of_functions_are_exported(whole, folder):
    names = export(whole, "run.h5")
    assert set(names) == whole.tables.keys()
    with h5py.File("run.h5") as file:
        for name, table in whole.tables.items():
            assert dict(file[name].attrs) == table.header
            for column, values in table.columns.items():
                assert np.array_equal(file[name][column], values)


@pytest.mark.slow
def test_observables_of_other_kinds(folder):
    class Half(Observable):
        name = "half"
        summary = "half the plaquette"
        columns = ("value",)
        normalisation = "half of the usual one"

        def measure(self, field):
            return (plaquette(field) / 2,)

    class Functor:
        __name__ = "functor"

        def __call__(self, field):
            return 7

    loops = WilsonLoops.for_lattice(
        Lattice.parse(TINY["lattice"]), r_max=1, t_max=2, iterations="0"
    )
    result = make("run", [Half, Functor(), (loops, 9), (Polyakov, 3)])
    assert result["half"].header["normalisation"] == "half of the usual one"
    assert np.array_equal(result["half"]["value"], result["plaquette"]["plaquette"] / 2)
    assert result["functor"]["value"].tolist() == [7] * 9
    assert result["wilson_loops"]["sweep"].tolist() == [11, 11]
    assert result["wilson_loops"]["loop"][0] == pytest.approx(result["plaquette"]["temporal"][-1])
    assert result["polyakov"]["sweep"].tolist() == [5, 8, 11]
    assert str(result.parameters.measure[-1]) == "wilson-loops:9"


def named(name, value=0.5):
    """Return a function of a name that returns a value."""

    def function(field):
        return value

    function.__name__ = name
    return function


@pytest.mark.parametrize(
    ("observables", "sentence"),
    [
        ([lambda field: 1.0], "'<lambda>' needs a name"),
        ([named("a b")], "'a b' needs a name"),
        ([named("plaquette")], "two observables named 'plaquette'"),
        ([named("wilson_loops")], "two observables named 'wilson_loops'"),
        ([named("one"), named("one")], "two observables named 'one'"),
        ([(named("one"), 0)], "cannot be measured after each 0 updates"),
        (["plaquette"], "'plaquette' is not an observable; pass a function"),
        ([named("f", "word")], "f must return numbers"),
        ([named("f", None)], "f must return numbers"),
        ([named("f", [])], "f must return numbers"),
        ([named("f", {"a": "b"})], "f must return numbers, not str"),
        ([named("f", {"a": [1, 2]})], "f must return numbers, not list"),
        ([named("f", {})], "f must return at least one value"),
        ([named("f", {1: 2, "1": 3})], "f must return at least one value, with distinct names"),
        ([named("f", {"sweep": 1})], "cannot have a column 'sweep'"),
        ([named("f", {"i": 1})], "cannot have a column 'i'"),
        ([named("f", {"a,b": 1})], "cannot have a column 'a,b'"),
        ([named("f", np.zeros((1,) * 7))], "f must return numbers"),
    ],
)
def test_observables_that_are_refused(observables, sentence):
    with pytest.raises(UsageError, match=sentence):
        make("run", observables)


# Measuring on fields and on stored configurations


@pytest.mark.slow
def test_functions_are_measured_on_a_field():
    field = Field.hot(Lattice.parse(TINY["lattice"]), "su3", "double", seed=3)
    calls = []

    def counted(field):
        calls.append(field)
        return plaquette(field)

    assert measure(field, counted)["value"] == [plaquette(field)]
    assert len(calls) == 1
    table = measure(field, slices)
    assert table["i"].tolist() == [0, 1, 2, 3]
    assert np.array_equal(table["value"], slices(field))
    assert measure(field, moments)["loop_im"] == [polyakov_loop(field).imag]
    assert measure(field, energy).header["normalisation"] == inspect.getdoc(energy)
    for loops in (WilsonLoops.for_lattice(field.lattice, r_max=1), WilsonLoops):
        options = {"r_max": 1} if loops is WilsonLoops else {}
        expected = measure(field, "wilson-loops", r_max=1)
        found = measure(field, loops, **options)
        assert found.header == expected.header
        assert np.array_equal(found["loop"], expected["loop"])


@pytest.mark.slow
@pytest.mark.parametrize("function", [energy, loop, moments, pair, planes, slices, corner])
def test_functions_on_configurations_are_those_measured_along_the_way(folder, whole, function):
    path = shutil.copytree(whole.path, folder / "run")
    along, found = whole.tables[function.__name__], measure(path, function, **HOW)
    assert list(found.columns) == list(along.columns)
    assert set(found["sweep"]) == {5, 8, 11}
    both = np.isin(along["sweep"], found["sweep"]), np.isin(found["sweep"], along["sweep"])
    for name, column in along.columns.items():
        np.testing.assert_allclose(found[name][both[1]], column[both[0]], rtol=1e-5, atol=1e-6)
    for key in ("observable", "normalisation", "units", "beta", "seed"):
        assert found.header[key] == along.header[key]
    assert (path / f"{function.__name__}_configs.csv").exists()
    assert all(verdict.sound for verdict in verify(path))
    with pytest.raises(UsageError, match="measured in = double precision, not single"):
        measure(path, function, precision="single", **HOW)


@pytest.mark.slow
@pytest.mark.parametrize("devices", ["cpu", "cpu:2"])
def test_measuring_a_function_goes_on_where_it_stopped(folder, devices):
    how = {**HOW, "threads": 2, "devices": devices}
    path = generate(TINY, output="run", **HOW).path
    fails = True

    def rough(field):
        if fails and plaquette(field) == last:
            raise OwnError("it failed")
        return [plaquette(field), 2]

    last = measure(path, "plaquette", **HOW)["plaquette"][-1]
    with pytest.raises(OwnError) as caught:
        measure(path, rough, **how)
    assert traceback.extract_tb(caught.value.__traceback__)[-1].name == "rough"
    assert read_table(path / "rough.csv")["sweep"].tolist() == [5, 5, 8, 8]
    fails = False
    measure(path, rough, **how)
    whole = (path / "rough.csv").read_bytes()
    (path / "rough.csv").write_bytes(whole[: whole.index(b"\n8,1") + 3])
    measure(path, rough, **how)
    assert (path / "rough.csv").read_bytes() == whole
    assert measure(path, rough, output="new.csv", **HOW)["value"][1::2].tolist() == [2] * 3
    assert Path("new.csv").read_bytes() == whole
    generate(TINY, output="run", **{**HOW, "configs": 4})
    assert measure(path, rough, **how)["sweep"][::2].tolist() == [5, 8, 11, 14]
    columns = list(read_table(path / "rough.csv").columns)
    assert columns == ["sweep", "i", "value"]

    def rough(field):  # another function of the same name
        return {"other": 1.0}

    with pytest.raises(GaugeError, match=r"columns sweep,i,value instead of sweep,other"):
        measure(path, rough, **how)
    (config,) = [path for number, path in Run(path).configs().items() if number == 8]
    assert measure([config], energy, **HOW)["sweep"].tolist() == [8]
    assert Path("energy.csv").exists()


def test_a_function_always_returns_as_many_values(folder):
    lengths = iter([2, 2, 2, 2, 3])

    def some(field):
        return np.zeros(next(lengths))

    with pytest.raises(UsageError, match=r"some returned 3 rows .* after 2 .* must return"):
        make("run", [some])
    assert read_state(Run(folder / "run").checkpoint).sweep == 5


# Stopping and continuing


@pytest.mark.slow
def test_on_update_is_called_after_every_update(folder):
    seen = []

    def look(chain):
        assert isinstance(chain, Chain)
        seen.append((chain.sweep, plaquette(chain.field)))

    result = make("run", on_update=look)
    assert [sweep for sweep, _ in seen] == list(range(1, UPDATES + 1))
    assert [value for _, value in seen][2:] == result["plaquette"]["plaquette"].tolist()
    assert result.stopped is None


@pytest.mark.slow
@pytest.mark.parametrize("updates", [(1,), (2, 3, 4, 5), (10,), range(1, UPDATES)])
def test_a_run_stopped_by_on_update_ends_like_one_that_was_not(folder, whole, updates):
    for update in updates:
        result = make("run", on_update=stop_at(*updates))
        assert (result.stopped, result.sweep) == ("on_update", update)
    result = make("run", on_update=stop_at(*updates))
    assert (result.stopped, result.sweep) == (None, UPDATES)
    assert written(result.path) == written(whole.path)


class OwnError(Exception):
    """An error that only the user's program knows."""


@pytest.mark.slow
@pytest.mark.parametrize("error", [OwnError("it failed"), UsageError("It is wrong.")])
@pytest.mark.parametrize("update", [0, 3, 6, 11])
def test_a_function_that_fails_leaves_a_run_that_can_be_continued(folder, whole, update, error):
    """It fails when it is first tried, which leaves no run, or later, when others are measured."""
    calls = []

    def pair(field):
        calls.append(field)
        if len(calls) > 2 * (update > 0) + max(0, update - TINY["thermalize"] - 1):
            raise error
        return Pair(plaquette(field), 2)

    functions = [pair if function is globals()["pair"] else function for function in FUNCTIONS]
    with pytest.raises(type(error)) as caught:
        make("run", functions)
    assert caught.value is error
    assert error.__cause__ is None
    assert traceback.extract_tb(error.__traceback__)[-1].name == "pair"
    if update == 0:
        assert not (folder / "run").exists()
    else:
        saved = read_state(Run(folder / "run").checkpoint)
        assert (saved.sweep, saved.measured) == (update, False)
    result = make("run")
    assert result.sweep == UPDATES
    found, expected = written(result.path), written(whole.path)
    rows = [without_sources(one.pop("pair.csv")) for one in (found, expected)]
    assert found == expected
    assert rows[0] == rows[1]


def without_sources(table):
    """A table without the texts of which functions made its rows; another one made the first."""
    lines = table.splitlines()
    return [one for one in lines if not one.startswith((b"# sources", b"# sha256"))]


@pytest.mark.slow
@pytest.mark.parametrize("update", [1, 5, 11])
def test_a_callback_that_fails_leaves_a_run_that_can_be_continued(folder, whole, update):
    def look(chain):
        if chain.sweep == update:
            raise OwnError("it failed")

    with pytest.raises(OwnError) as caught:
        make("run", on_update=look)
    assert traceback.extract_tb(caught.value.__traceback__)[-1].name == "look"
    assert read_state(Run(folder / "run").checkpoint).sweep == update
    assert not Run(folder / "run").holder()[1]
    assert written(make("run").path) == written(whole.path)


@pytest.mark.slow
def test_a_failure_of_the_program_itself_is_not_saved(folder, whole, monkeypatch):
    """A checkpoint of a device that does not work could replace a good one."""

    def broken(field):
        raise GaugeError("The device failed.")

    with pytest.raises(GaugeError, match="The device failed"):
        make("run", on_update=lambda chain: chain.sweep == 4 and broken(chain.field))
    assert read_state(Run(folder / "run").checkpoint).sweep == 0
    assert written(make("run").path) == written(whole.path)


@pytest.mark.slow
def test_a_run_is_continued_with_the_same_observables_only(folder, whole):
    path = shutil.copytree(whole.path, folder / "run")
    more = {"configs": 4}
    for observables in ([*FUNCTIONS, named("new")], [*FUNCTIONS[1:], (energy, 5)]):
        with pytest.raises(UsageError, match=r"has measure = corner:3,energy,.*, not"):
            make(path, observables, **more)
    with pytest.raises(UsageError, match="measures 'corner', an observable defined in Python"):
        generate(output=path, **more, **HOW)
    said, code = call("generate", "--output", path, "--configs", 4)
    assert code == 2
    assert said.startswith("gauge-mc: ")  # and nothing about a run that continues
    assert "continue the run from Python with the same observables" in said
    assert written(path) == written(whole.path)
    assert call("generate", "--output", path)[1] == 0  # there is nothing to do
    longer = generate(output=path, observables=FUNCTIONS, **more, **HOW)
    assert longer.sweep == UPDATES + TINY["separation"]
    assert written(path) == written(make("longer", **more).path)


def test_parameters_of_a_result_make_the_same_run(folder, whole):
    again = generate(whole.parameters, output="again", observables=FUNCTIONS, **HOW)
    assert again.parameters == whole.parameters
    assert written(again.path) == written(whole.path)
    with pytest.raises(UsageError, match="no observable 'corner'"):
        generate(whole.parameters, output="other", **HOW)
    assert not (folder / "other").exists()


# What is asked for, and what is shown


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["options", "mapping", "parameters", "card", "mixed"])
def test_parameters_may_be_given_in_any_form(folder, kind):
    call("generate", *words(output="expected", **TINY), "--threads", 1, "--backend", "cpu")
    (folder / "card.toml").write_text(Parameters(**TINY).to_toml())
    if kind == "options":
        result = generate(output="run", **TINY, **HOW)
    elif kind == "mixed":
        options = {"lattice": Lattice(4, 4, 4, 4), "measure": ["plaquette"], "devices": None}
        result = generate({**TINY, "lattice": "8"}, output="run", **options, **HOW)
    else:
        given = {"mapping": TINY, "parameters": Parameters(**TINY), "card": folder / "card.toml"}
        result = generate(given[kind], output="run", **HOW)
    assert written(result.path) == written(folder / "expected")


def words(**values):
    """Make options of values by name."""
    return [word for key, value in values.items() for word in (f"--{key}", str(value))]


@pytest.mark.slow
def test_the_default_place_is_that_of_the_command(folder):
    result = generate(TINY, **HOW)
    assert str(result.path) == "runs/su3_b6_4x4x4x4_double"
    assert verify() == verify(result)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: generate(bata=2.5), "no parameter 'bata'; did you mean 'beta'"),
        (lambda: generate({"latice": "4"}), "no parameter 'latice'; did you mean 'lattice'"),
        (lambda: generate(beta="2.5"), "beta must be a number, not '2.5'"),
        (lambda: generate(lattice=[4, 4, 4]), "does not have the form XxYxZxT"),
        (lambda: generate(time_limit=60), "'60' is not of the form HH:MM:SS"),
        (lambda: generate(measure=["plaquette", "plaquette:2"]), "names an observable twice"),
        (lambda: generate("none.toml"), "The run card none.toml cannot be read"),
        (lambda: Parameters(lattice=4), "lattice must be a string, not 4"),
        (lambda: scan(bata=2.5), "no parameter 'bata'"),
        (lambda: scan({"lattices": "4"}), "no parameter 'lattices'"),
        (lambda: measure("none", "plaquette"), "none"),
        (lambda: measure(None, "energy"), "There are no runs in runs"),
        (lambda: fit("potential"), "There are no runs and no scans in runs"),
        (lambda: verify(), "There are no runs and no scans in runs"),
        (lambda: verify("none"), "There is no file or directory none"),
        (lambda: export("none", "x.h5"), "There is no run none"),
    ],
)
def test_wrong_requests_are_refused_in_one_sentence(folder, call, sentence):
    with pytest.raises(GaugeError, match=sentence) as caught:
        call()
    assert "\n" not in str(caught.value)
    assert not list(folder.iterdir())


@pytest.mark.slow
def test_progress_is_shown_unless_it_is_switched_off(folder, capfd):
    for how in ({"progress": False}, {"quiet": True}, {}):
        result = generate(TINY, output=f"run{len(how)}", backend="cpu", threads=1, **how)
        measure(result, "polyakov", backend="cpu", threads=1, progress=not how)
        scan(TINY, beta=5.7, output=f"s{len(how)}", backend="cpu", **how)
        shown = capfd.readouterr()
        assert shown.err == ""
        if how:
            assert shown.out == ""
            for path in ("run1", "s1"):
                shutil.rmtree(path)
    for words in ("run0 begins", "3 configurations", "polyakov on 3 configurations", "s0"):
        assert words in shown.out


def in_threads(*calls):
    """Make calls at the same time, each in a thread; return their results, or raise an error."""
    results, errors = [None] * len(calls), []

    def work(number, call):
        try:
            results[number] = call()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=pair) for pair in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for error in errors:
        raise error
    return results


@pytest.mark.slow
@pytest.mark.parametrize("how", [{}, {"devices": "cpu:2", "threads": 2}])
def test_runs_in_other_threads(folder, whole, how):
    before = set(threading.enumerate())

    def work(path):
        make(path, on_update=stop_at(4), **how)
        return make(path, **how)

    results = in_threads(lambda: work(folder / "a"), lambda: work(folder / "b"))
    for result in results:
        assert result.sweep == UPDATES
        assert written(result.path) == written(whole.path)
    assert set(threading.enumerate()) <= before


@pytest.mark.gpu
def test_runs_on_a_gpu_in_other_threads(folder, gpu, no_lost_memory):
    gpu.close()
    how = {**TINY, "backend": gpu.backend, "progress": False, "observables": [energy, slices]}
    expected = generate(output="expected", **how)
    for _ in range(2):
        (path,) = in_threads(lambda: generate(output="run", **how).path)
        assert written(path) == written(expected.path)
        shutil.rmtree("run")


@pytest.mark.slow
@pytest.mark.parametrize("devices", ["cpu", "cpu:2", pytest.param("1", marks=pytest.mark.gpu)])
def test_memory_is_freed_when_a_run_ends(folder, devices, request):
    """At once, and not when Python next looks for objects that refer to each other."""
    backend = "cpu"
    if devices == "1":
        gpu = request.getfixturevalue("gpu")
        backend = gpu.backend
        gpu.close()
    memory = []

    def look(chain):
        memory.extend(weakref.ref(slab.buffer) for slab in chain.field.slabs)

    gc.disable()
    try:
        make("run", on_update=look, backend=backend, devices=devices)
        assert memory
        assert not [buffer() for buffer in memory if buffer()]
    finally:
        gc.enable()


@pytest.mark.slow
def test_a_run_at_work_can_be_looked_at(folder):
    """Which must not release its lock."""
    states = []

    def look(chain):
        if chain.sweep == 7:
            states.extend(Run(folder / "run").holder()[1] for _ in range(2))
            states.extend(verdict.sound for verdict in verify("run"))
            states.append(call("status", "run")[1] == 0)

    make("run", on_update=look)
    assert len(states) > 5
    assert all(states)


# What a result is


# Fields and files

KINDS_OF_FILES = {*QUICK, ("su3", "single"), ("su4", "single"), ("su8", "double")}
"""Groups and precisions of which the others are left to the mark `every`."""


@pytest.mark.slow
@pytest.mark.kernels
@pytest.mark.parametrize(
    ("group", "precision"),
    [
        pytest.param(
            name, precision, marks=() if (name, precision) in KINDS_OF_FILES else pytest.mark.every
        )
        for name in sorted(GROUPS)
        for precision in ("single", "double")
        if precision == "double" or name not in ("su5", "su6", "su7")
    ],
)
def test_fields_go_to_files_and_back(folder, group, precision):
    device = open_device("cpu", 1)
    field = Field.hot(Lattice(4, 6, 8, 4), group, precision, device, seed=3)
    formats = [
        name
        for name in writable_formats()
        if FORMATS[name].refusal(GROUPS[group], precision) is None
    ]
    assert {"ildg", "nersc"} <= set(formats)
    (folder / "again").mkdir()
    for name in formats:
        field.save(f"links.{name}", name, provenance={"ensemble_id": "mine"})
        found = Field.load(f"links.{name}", device=device)
        assert (found.lattice, found.group, found.precision) == (
            field.lattice,
            field.group,
            precision,
        )
        assert open_configuration(f"links.{name}").header.format == name
        tolerance = {"single": 1e-6, "double": 1e-15}[precision]
        np.testing.assert_allclose(found.to_numpy(), field.to_numpy(), rtol=0, atol=tolerance)
        assert plaquette(found) == pytest.approx(plaquette(field), abs=tolerance)
        found.save(f"again/links.{name}", name, provenance={"ensemble_id": "mine"})
        first, second = (folder / place / f"links.{name}" for place in ("", "again"))
        assert first.read_bytes() == second.read_bytes()
        other = Field.load(f"links.{name}", "double", open_device_group("cpu:2"))
        assert other.precision == "double"
        np.testing.assert_allclose(other.to_numpy(), field.to_numpy(), rtol=0, atol=tolerance)
    refused = sorted(set(FORMATS) - set(formats))
    assert {"milc", "openqcd"} & {*refused}
    for name in refused:
        with pytest.raises(UsageError, match="choose ildg"):
            field.save("none", name)
    assert not (folder / "none").exists()


def test_damaged_files_are_not_loaded(folder, whole):
    path = next(iter(whole.configs.values()))
    data = bytearray(path.read_bytes())
    data[-3000] ^= 1
    (folder / "damaged").write_bytes(data)
    with pytest.raises(GaugeError, match="damaged is damaged"):
        Field.load("damaged")
    with pytest.raises(GaugeError, match="none cannot be read"):
        Field.load("none")


# The same as the commands


@pytest.mark.slow
def test_measure_does_what_the_command_does(folder, whole):
    ours, theirs = (shutil.copytree(whole.path, folder / name) for name in ("ours", "theirs"))
    options = {"r_max": 1, "t_max": 2, "iterations": "0,2", "off_axis": False}
    table = measure(ours, "wilson-loops", **options, **HOW)
    given = ["--r-max", 1, "--t-max", 2, "--iterations", "0,2", "--backend", "cpu", "--quiet"]
    assert call("measure", "wilson-loops", theirs, *given) == ("", 0)
    data = (ours / "wilson_loops.csv").read_bytes()
    assert data == (theirs / "wilson_loops.csv").read_bytes()
    assert {name: column.tolist() for name, column in table.columns.items()} == {
        name: column.tolist()
        for name, column in read_table(theirs / "wilson_loops.csv").columns.items()
    }
    files = list(whole.configs.values())
    measure(files, "wilson-loops", output="files.csv", **options, **HOW)
    assert call("measure", "wilson-loops", *files, "--output", "called.csv", *given)[1] == 0
    assert (folder / "files.csv").read_bytes() == (folder / "called.csv").read_bytes()


def test_measuring_a_field_gives_what_is_in_the_table(whole):
    device = open_device("cpu", 1)
    table = measure(whole, "plaquette", output="plaquette.csv", **HOW)
    for row, path in enumerate(whole.configs.values()):
        field = Field.load(path, device=device)
        found = measure(field, "plaquette")
        assert list(found.columns) == ["plaquette", "spatial", "temporal"]
        assert [column.tolist() for column in found.columns.values()] == [
            [table[name][row]] for name in found.columns
        ]
    loops = measure(field, "wilson-loops", r_max=1, t_max=2, smear="none")
    assert len(loops) == 2
    assert loops["t"].tolist() == [1, 2]
    assert loops["loop"][0] == pytest.approx(found["temporal"][0], abs=1e-6)
    with pytest.raises(UsageError, match="--rmax is not an option of wilson-loops"):
        measure(field, "wilson-loops", rmax=1)


@pytest.mark.slow
def test_scan_does_what_the_command_does(folder):
    result = scan(
        TINY, beta=[5.6, 5.8], lattice=[Lattice(4, 4, 4, 4)], chains=2, output="ours",
        backend="cpu", progress=False,
    )  # fmt: skip
    assert (result.runs, result.complete, result.stopped, result.failures) == (4, 4, None, {})
    grid = ["--beta", "5.6,5.8", "--lattice", "4x4x4x4", "--chains", 2, "--output", "theirs"]
    shared = words(**{name: value for name, value in TINY.items() if name != "lattice"})
    shown, code = call("scan", *grid, *shared, "--backend", "cpu", "--quiet")
    assert (shown, code) == ("", 0)
    for file in ("scan.csv", "scan.toml"):
        assert (folder / "ours" / file).read_bytes() == (folder / "theirs" / file).read_bytes()
    runs = sorted(path.name for path in (folder / "ours").glob("b*"))
    assert len(runs) == 4
    for name in runs:
        assert written(folder / "ours" / name) == written(folder / "theirs" / name)
    assert result.table["beta"].tolist() == [5.6, 5.8]
    assert {one.sound for one in verify(result)} == {True}
    more = scan(beta="5.7", output="ours", backend="cpu", progress=False)
    assert (more.runs, more.complete) == (6, 6)


@pytest.mark.parametrize("to", ["nersc", "hdf5"])
def test_convert_does_what_the_command_does(folder, whole, to):
    source = whole.configs[8]
    found = convert(source, "ours", to, precision="double")
    assert call("convert", source, "theirs", "--to", to, "--precision", "double")[1] == 0
    assert (folder / "ours").read_bytes() == (folder / "theirs").read_bytes()
    assert (found.header.format, found.header.precision) == (to, "double")
    links = np.stack(list(found.slices()))
    assert np.array_equal(links, np.stack(list(open_configuration(source).slices())))
    with pytest.raises(UsageError, match="ours already exists"):
        convert(source, folder / "ours", to)


@pytest.mark.parametrize(
    ("observable", "options", "sentence"),
    [
        (lambda field: 1.0, {}, "'<lambda>' needs a name"),
        (named("wilson_loops"), {}, "two observables named 'wilson_loops'"),
        (energy, {"r_max": 1}, "--r-max is not an option of energy"),
        (Plaquette(), {"r_max": 1}, "--r-max is not an option of plaquette"),
        (WilsonLoops, {"r_mx": 1}, "--r-mx is not an option of wilson-loops"),
        ((energy, 2), {}, "is not an observable; pass a function of a field"),
        (7, {}, "7 is not an observable"),
        ("energy", {}, "no observable 'energy'"),
        (named("f", "word"), {}, "f must return numbers, not str"),
    ],
)
def test_observables_that_cannot_be_measured(whole, observable, options, sentence):
    field = Field.cold(Lattice.parse(TINY["lattice"]), "su3", device=open_device("cpu", 1))
    for target in (field, whole):
        with pytest.raises(UsageError, match=sentence):
            measure(target, observable, **(HOW if target is whole else {}), **options)
    assert not list(whole.path.glob("[fw]*.csv"))


@pytest.mark.first_quick
@pytest.mark.parametrize("source", SOURCES, ids="-".join)
def test_files_of_all_formats_are_loaded(folder, source):
    links, data = sample(*source)
    (folder / "file").write_bytes(data)
    field = Field.load("file", device=open_device("cpu", 1))
    assert (field.group.name, field.precision) == source[1:]
    tolerance = {"single": 1e-6, "double": 1e-14}[source[2]]
    np.testing.assert_allclose(field.to_numpy(), links, rtol=0, atol=tolerance)
