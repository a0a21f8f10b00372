"""Devices that every kernel is tested on."""

import gc
import os
import re
import signal
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO
from zlib import crc32

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # tests that share the processors wait for none

import numpy as np
import pytest
from hypothesis import settings

from gauge_mc.devices import BACKENDS, Backend, Device
from gauge_mc.devices.cache import cache_folder
from gauge_mc.devices.cpu import compiler
from gauge_mc.devices.cpu.device import CpuDevice
from gauge_mc.errors import GaugeError
from gauge_mc.run import needs
from tests import emulator
from tests.budget import Budget, Meter
from tests.covers import beyond_pairs, beyond_values
from tests.tools.share import is_chosen
from tests.toys.installed import site, toys  # noqa: F401

settings.register_profile("untimed", deadline=None)  # a busy machine may be slow
settings.load_profile("untimed")

LANES = (1, 2, 4, 8, 16)
GPU = pytest.param("cuda", marks=pytest.mark.gpu)
SLOW_GPU = pytest.param("cuda", marks=[pytest.mark.gpu, pytest.mark.slow])
BEST = f"cpu-{LANES[-1]}"
"""The CPU with as many lanes as its registers have."""

DEVICES = [*(pytest.param(f"cpu-{n}", marks=pytest.mark.slow) for n in LANES[:-1]), BEST, GPU]

FEW_LANES = {"cpu-1w", *(f"cpu-{n}" for n in LANES[:-1])} - {"cpu-8"}
"""Kinds of CPUs with fewer lanes."""

KINDS_OF_DEVICES = {"device", "best_device", "fast_device", "device_groups"}
"""Fixtures of tests that run kernels."""

QUICK = {("su3", "double"), ("su3", None), (None, "double"), ("su2", "single")}
"""Groups and precisions that quick tests of kernels are for: others are compiled for slow tests."""

TESTS = Path(__file__).parent

ONCE = ("su2", "single")
"""The group and the precision that one file of a package has in its quick tests."""

LANES_OF_OTHERS = {("su2", "single", "cpu-2"), ("su3", "double", "cpu-1")}
"""Groups, precisions and lanes that are left out, because the other group has these lanes."""

SAME_LANES = ("double", "cpu-8")
"""The precision and the lanes that are left out, because no register has more lanes: these are the
lanes of the best device."""

LANES_FOR_EVERY = "cpu-2"
"""The number of lanes that is marked `every`, because `.ci/run` also tries registers of 16 bytes,
in which double precision has two lanes and single precision four.
"""

OTHER_KINDS = {("su2", "double"), ("su3", "single")}
"""Groups and precisions of which the slow tests of a file have one."""

GROUPS_FOR_EVERY = {("su2", "single", "cpu-4")}
"""Groups, precisions and lanes that are marked `every`, because the other group has these lanes."""

CHOSEN = os.environ.get("CXX")
"""The compiler that the user has chosen."""

WARNING = re.compile(r"^.*warning: (?!.*(maybe-uninitialized|loop annotation)).*$", re.MULTILINE)
"""Pattern that matches the warnings of C++ compilers. GCC takes vectors whose lanes are set one by
one for uninitialised.
"""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Tests marked `gpu` run without one, and kernels must compile without warnings."""
    parser.addoption("--emulate-gpu", action="store_true", help="run GPU code on the CPU")
    words = "run code for AMD GPUs on the CPU"
    parser.addoption("--emulate-hip", action="store_true", help=words)
    words = "fail if kernels that are compiled give warnings, which depend on the compiler"
    parser.addoption("--forbid-warnings", action="store_true", help=words)
    words = "of the files, take one of so many parts, which the number chooses"
    parser.addoption("--share", metavar="NUMBER/PARTS", help=words)
    words = "a file that is taken in any share"
    parser.addoption("--besides", action="append", default=[], metavar="FILE", help=words)
    words = "fail if tests take more than quick tests may"
    parser.addoption("--budget", action="store_true", help=words)
    words = "write the processor time of every test to a file"
    parser.addoption("--times", type=Path, metavar="FILE", help=words)


def pytest_configure(config: pytest.Config) -> None:
    """Before any test looks for a GPU, and before tests are distributed over processes.

    Each process takes tests from a part of its own: neighbours often need the same kernels, which
    one process would compile while the other waits. Kernels of quick tests are optimised less
    and have functions, since they are compiled for longer than they run.
    """
    # Workers inherit the environment of the process that distributes tests, which runs none.
    alone = hasattr(config, "workerinput") or not getattr(config.option, "numprocesses", None)
    quick = "not slow" in config.option.markexpr
    if alone and quick and not CHOSEN and compiler.candidates():
        os.environ["CXX"] = f"{compiler.candidates()[0]} -Og -fno-inline"
    if getattr(config.option, "dist", None) == "load":
        config.option.dist = "worksteal"
    if config.getoption("--emulate-gpu"):
        emulator.enable()
    if config.getoption("--emulate-hip"):
        emulator.enable_hip()
    config.pluginmanager.register(Meter())
    times = config.getoption("--times")
    if (times or config.getoption("--budget")) and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Budget(times))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let tests of kernels for other groups and precisions than the quick ones be slow.

    Tests that are marked `longer` are slow on CPUs; on GPUs, whose quick tests need not be done
    within a minute, they are not.

    Other numbers of lanes than the best are tried with the quick groups and precisions alone. Of
    these numbers, and of the other groups and precisions, each file has one, and the rest is marked
    `every`; then instances are left out that covers do without. Tests that need a GPU are left out
    where there is none.
    """
    left_out = []
    if "faults" not in config.option.markexpr:  # they take hours, so that they must be asked for
        left_out = [item for item in items if item.get_closest_marker("faults")]
    share, besides = config.getoption("--share"), {*config.getoption("--besides")}
    if share:
        files = {item.nodeid.partition("::")[0] for item in items} - besides
        others = {name for name in files if not is_chosen(name, share)}
        left_out += [item for item in items if item.nodeid.partition("::")[0] in others]
    if not has_gpu():
        left_out += [item for item in items if item.get_closest_marker("gpu")]
    for item in items:
        if item.get_closest_marker("longer") and not item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.slow)
        values = getattr(getattr(item, "callspec", None), "params", {})
        kind = kind_of(item)
        fixtures = {*getattr(item, "fixturenames", ())}
        if "pyerrors" in fixtures:  # which the README's command for tests does not install
            item.add_marker(pytest.mark.slow)
        if values.get("storage") == "single":  # half precision has the same arithmetic
            item.add_marker(pytest.mark.slow)
        if runs_kernels(item) and any(kind) and kind not in QUICK:
            item.add_marker(pytest.mark.slow)
            devices = {values.get(name) for name in ("device", "device_groups", "name")}
            if devices & FEW_LANES:
                left_out.append(item)
            elif "cpu-8" in devices:
                item.add_marker(pytest.mark.every)
        if "device" in fixtures:
            choice = (*kind, values.get("device"))
            if choice in LANES_OF_OTHERS or choice[1:] == SAME_LANES:
                left_out.append(item)
            elif choice[2] in FEW_LANES | {"cpu-8"} and (
                choice in GROUPS_FOR_EVERY
                or choice[2] == LANES_FOR_EVERY
                or values.get("storage") == "single"
            ):
                item.add_marker(pytest.mark.every)
    without = {*left_out}
    items[:] = [item for item in items if item not in without]
    mark_beyond_one_of_a_package(items)
    mark_beyond_one_of_a_file(items)
    mark_beyond_covers(items)
    if "every" not in config.option.markexpr:  # they double the time of the slow tests
        left_out += [item for item in items if item.get_closest_marker("every")]
        items[:] = [item for item in items if not item.get_closest_marker("every")]
    config.hook.pytest_deselected(items=left_out)


def mark_beyond_one_of_a_package(items: Iterable[pytest.Item]) -> None:
    """Let quick tests of one file of a package have the kind `ONCE`; a checksum says which."""
    files = defaultdict(lambda: defaultdict(list))
    for item in items:
        if kind_of(item) == ONCE and runs_kernels(item):
            files[item.path.relative_to(TESTS).parts[0]][item.path.name].append(item)
    for folder, several in files.items():
        names = sorted(several)
        chosen = names[crc32(folder.encode()) % len(names)]
        for item in (one for name in names if name != chosen for one in several[name]):
            item.add_marker(pytest.mark.slow)


def kind_of(item: pytest.Item) -> tuple[str | None, str | None]:
    """Return the group and the precision of a test."""
    values = getattr(getattr(item, "callspec", None), "params", {})
    return values.get("group"), values.get("precision")


def runs_kernels(item: pytest.Item) -> bool:
    """Return whether a test runs kernels."""
    fixtures = {*getattr(item, "fixturenames", ())}
    return bool(KINDS_OF_DEVICES & fixtures) or item.get_closest_marker("kernels") is not None


def mark_beyond_one_of_a_file(items: Iterable[pytest.Item]) -> None:
    """Let slow tests of a file have one of the other numbers of lanes, and one of the other kinds.

    Quick tests on GPUs have one of the quick kinds. The checksum of the file's name says which, so
    that all occur in the suite. Tests of a file often need the same kernels, which are then
    compiled for one choice.
    """
    instances = defaultdict(list)
    for item in items:
        values = getattr(getattr(item, "callspec", None), "params", {})
        kind = kind_of(item)
        device = values.get("device", values.get("device_groups"))
        beyond = pytest.mark.every
        if item.get_closest_marker("every") or not KINDS_OF_DEVICES & {*item.fixturenames}:
            continue
        if device in FEW_LANES | {"cpu-8"}:
            choice = device
        elif kind in OTHER_KINDS:
            choice = kind
        elif None not in kind and item.get_closest_marker("gpu"):
            choice, beyond = kind, pytest.mark.slow
        else:
            continue
        instances[function_of(item), type(choice), beyond.name].append((choice, item, beyond))
    for (name, *_), several in instances.items():
        choices = sorted({choice for choice, *_ in several})
        chosen = choices[crc32(name.partition("::")[0].encode()) % len(choices)]
        for choice, item, beyond in several:
            if choice != chosen:
                item.add_marker(beyond)


def mark_beyond_covers(items: Iterable[pytest.Item]) -> None:
    """Let the instances of parametrised tests be slow that a cover does without.

    Quick tests are a cover of all pairs of values, or, if they run kernels, of all values, or one
    instance, with the mark `first_quick`. The mark `every` goes to instances, of these and of slow
    tests, that a larger cover does without: one of all values for tests of kernels, else one of all
    pairs.
    """
    instances = defaultdict(list)
    for item in items:
        if hasattr(item, "callspec") and not item.get_closest_marker("every"):
            on_gpu = item.get_closest_marker("gpu") is not None
            instances[function_of(item), on_gpu].append(item)
    for several in instances.values():
        quick = [one for one in several if not one.get_closest_marker("slow")]
        on_cpus = not several[0].get_closest_marker("gpu")
        if on_cpus and several[0].get_closest_marker("first_quick"):
            for one in quick[1:]:
                one.add_marker(pytest.mark.slow)
            quick = quick[:1]
        with_kernels = runs_kernels(several[0])
        cover = beyond_values if with_kernels else beyond_pairs
        for number in cover([choice_of(one) for one in quick]):
            quick[number].add_marker(pytest.mark.slow)
        slow = [one for one in several if one.get_closest_marker("slow")]
        chosen = [choice_of(one) for one in several if not one.get_closest_marker("slow")]
        for number in cover([choice_of(one) for one in slow], chosen):
            if with_kernels or len(choice_of(slow[number])) > 2:
                slow[number].add_marker(pytest.mark.every)


def function_of(item: pytest.Item) -> str:
    """Return the file and the name of a test without its parameters."""
    return item.nodeid.partition("[")[0]


def choice_of(item: pytest.Function) -> dict[tuple[str, ...], tuple[int, ...]]:
    """Return which element of every parametrisation an instance has.

    Arguments of one parametrisation belong together, and so do group and precision where kernels
    run. Elements are told apart by their identity, since pytest numbers the arguments of all
    instances anew.
    """
    values = item.callspec.params
    together = [names_of(mark) for mark in item.iter_markers("parametrize")]
    separate = {*values}.difference(*together)
    if KINDS_OF_DEVICES & {*item.fixturenames} and {"group", "precision"} <= separate:
        together.append(("group", "precision"))
    alone = [(name,) for name in values if not any(name in names for names in together)]
    return {names: tuple(id(values[name]) for name in names) for names in (*together, *alone)}


def names_of(mark: pytest.Mark) -> tuple[str, ...]:
    """Return the names of the arguments of a parametrisation."""
    names = mark.args[0]
    return (names,) if isinstance(names, str) else tuple(names)


def gpus() -> Backend:
    """Return the backend of the GPUs of this machine, which may be emulated; else the usual one.

    Tests call it ``cuda``, as their parameter.
    """
    numbered = [one for one in BACKENDS.values() if one.numbered]
    for backend in sorted(numbered, key=lambda one: -one.preference):
        with suppress(GaugeError):
            if backend.count():
                return backend
    return BACKENDS["cuda"]


def has_gpu() -> bool:
    """Return whether there is a GPU that works, or an emulated one."""
    with suppress(GaugeError):
        return gpus().count() > 0
    return False


def open_by_name(name: str, threads: int = 2) -> Device:
    """A CPU with at most so many lanes, or the GPU; skips the test where there is none."""
    if name.startswith("cpu"):
        return CpuDevice(threads, lanes=int(name[4:]))
    try:
        return gpus().open()
    except GaugeError as error:
        pytest.skip(str(error))


@pytest.fixture
def pyerrors():
    return pytest.importorskip("pyerrors")


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> Device:
    """Every device, the CPU with every number of lanes."""
    return open_by_name(request.param)


@pytest.fixture(params=[BEST, GPU])
def best_device(request: pytest.FixtureRequest) -> Device:
    """The CPU with all its lanes, and the GPU.

    The CPU has one thread, since two wait for each other on processors that several tests share.
    `device` has two.
    """
    return open_by_name(request.param, threads=1)


@pytest.fixture(params=[BEST, SLOW_GPU])
def fast_device(request: pytest.FixtureRequest) -> Device:
    """The same, but the GPU only in slow tests: an emulated one would take long for averages."""
    return open_by_name(request.param, threads=1)


@pytest.fixture
def gpu() -> Device:
    """The GPU; skips where there is none."""
    return open_by_name("cuda")


@pytest.fixture
def usual_compiler(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Compile kernels as for users, whose numbers are pinned."""
    monkeypatch.setenv("CXX", CHOSEN or "")
    compiler.find_compiler.cache_clear()
    yield
    compiler.find_compiler.cache_clear()


@pytest.fixture
def no_lost_memory(recwarn: pytest.WarningsRecorder) -> Iterator[None]:
    """Memory of a GPU that is not freed in its thread is lost: let no test lose any.

    Memory that earlier tests have left is freed first, in this thread. Otherwise Python may free it
    in a thread of the test.
    """
    gc.collect()
    recwarn.clear()
    yield
    gc.collect()
    assert not [one for one in recwarn if "out-of-thread" in str(one.message)]


@pytest.fixture(params=["su2", "su3"])
def group(request: pytest.FixtureRequest) -> str:
    """Both groups."""
    return request.param


@pytest.fixture(params=["single", "double"])
def precision(request: pytest.FixtureRequest) -> str:
    """Both precisions."""
    return request.param


@pytest.fixture
def rng() -> np.random.Generator:
    """Numbers for random fields, the same in every run."""
    return np.random.default_rng(20100824)


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return Path(__file__).resolve().parent.parent


@pytest.fixture(autouse=True, scope="session")
def _short_trials():
    """Let forecasts try updates for a shorter time than users have."""
    usual = needs.TEST_SECONDS
    needs.TEST_SECONDS = 0.02
    yield
    needs.TEST_SECONDS = usual


@pytest.fixture
def sketched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write figures without drawing them, which takes most of their time: only their marks."""
    from matplotlib.figure import Figure

    from gauge_mc.plots.figures.files import MARKS

    def savefig(figure: Figure, file: BinaryIO, **options: object) -> None:
        file.write(MARKS[options["format"]] + bytes(1000))

    monkeypatch.setattr(Figure, "savefig", savefig)
    monkeypatch.setattr(Figure, "draw_without_rendering", lambda figure: None)


@pytest.fixture(autouse=True, scope="session")
def _usual_hangup():
    """Let SIGHUP have its usual effect, which `nohup` takes from all processes that it starts."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture(autouse=True, scope="session")
def _compile_without_warnings(request: pytest.FixtureRequest) -> Iterator[None]:
    """Kernels that are compiled during the tests give no warnings, with `--forbid-warnings`."""
    folder, began = cache_folder(), time.time()
    yield
    asked = request.config.getoption("--forbid-warnings") and folder.is_dir()
    reports = folder.glob("*.txt") if asked else ()
    texts = [one.read_text() for one in reports if one.stat().st_mtime >= began]
    found = {match[0] for text in texts for match in WARNING.finditer(text)}
    assert not found, "Kernels compile with warnings:\n" + "\n".join(sorted(found))


@pytest.fixture(autouse=True, scope="session")
def _leave_nothing_in_the_checkout(root: Path) -> Iterator[None]:
    """Tests write to folders of their own, where commands with relative names must run."""
    before = visible(root)
    yield
    left = visible(root) - before
    assert not left, f"Tests have left files in the checkout: {', '.join(sorted(left))}"


def visible(root: Path) -> set[str]:
    """Return what is in the checkout and in its folder of runs, but for hidden files."""
    found = (*root.glob("[!.]*"), *root.glob("runs/[!.]*"))
    return {str(path.relative_to(root)) for path in found}
