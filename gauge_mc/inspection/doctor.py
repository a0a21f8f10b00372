"""Diagnosis of the machine: devices, compilers and packages that work, and remedies for others."""

from __future__ import annotations

import math
import os
import platform
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module, resources
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from shlex import quote

import numpy as np

from gauge_mc.analysis.timeseries import Estimate, estimate
from gauge_mc.devices import BACKENDS, Backend, Device
from gauge_mc.devices.base import Finding
from gauge_mc.devices.cache import cache_folder, limits, make_private_folder
from gauge_mc.devices.host import allowed_cores
from gauge_mc.devices.kernels import REAL_BYTES
from gauge_mc.domain.lattice import PLAQUETTES, Lattice
from gauge_mc.errors import GaugeError
from gauge_mc.fields.field import Field
from gauge_mc.fields.sums import loop_averages
from gauge_mc.groups import GROUPS
from gauge_mc.libraries import LIBRARIES, OptionalPackage
from gauge_mc.run.generate import generate
from gauge_mc.run.results import RunView
from gauge_mc.storage.links import trace_sums

UPDATES = 700
"""Number of updates with a measurement after each."""

THREADS = 2
"""Maximum number of threads of each of the four runs on the CPU. So small a lattice gains nothing
from more, and threads that wait for each other take much longer if other work takes their cores."""

PULL = 5.0
"""Largest difference in units of its error; one in two million is larger by chance."""

PRECISIONS = ("single", "double")

REMEDY = "gauge-mc doctor --clear-cache"
"""Kernels that were compiled wrongly are compiled anew after this."""


@dataclass(frozen=True)
class KnownAverage:
    """An average that is known from a long run."""

    name: str
    """Its usual symbol."""
    table: str
    """The table that has it."""
    column: str
    """The column of the table."""
    value: float
    """The average."""
    error: float
    """Its error."""
    t: float | None = None
    """The flow time, in lattice units, if the table has several."""

    def of(self, run: RunView) -> Estimate:
        """Return the average of a run."""
        table = run.tables[self.table]
        rows = slice(None) if self.t is None else np.isclose(table["t"], self.t)
        return estimate(table[self.column][rows])


@dataclass(frozen=True)
class KnownEnsemble:
    """An ensemble whose averages are known."""

    parameters: Mapping[str, object]
    """The parameters of a run."""
    averages: Sequence[KnownAverage]
    """The averages."""


@cache
def known_ensembles() -> tuple[KnownEnsemble, ...]:
    """Return the ensembles of ``known_averages.toml``."""
    text = resources.files("gauge_mc.inspection").joinpath("known_averages.toml").read_text()
    content = tomllib.loads(text)
    ensembles = []
    for entry in content["ensembles"]:
        averages = tuple(KnownAverage(**average) for average in entry.pop("known"))
        ensembles.append(KnownEnsemble({**content["parameters"], **entry}, averages))
    return tuple(ensembles)


def examine_physics() -> Iterator[Finding]:
    """Compare averages of every device that works with known ones, which takes half a minute."""
    with ThreadPoolExecutor(max(2, len(allowed_cores()))) as pool:
        checks = [pool.submit(check) for check in _checks()]
        try:
            for check in checks:
                yield check.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _checks() -> Iterator[Callable[[], Finding]]:
    """Yield the comparisons of all devices; they are independent, and compile side by side."""
    for backend in BACKENDS.values():
        try:
            count = backend.count()
        except GaugeError:
            continue  # the usual diagnosis says why
        for ordinal in range(count):
            for ensemble in known_ensembles():
                for precision in PRECISIONS:
                    yield partial(_check, backend, ordinal, ensemble, precision)


def _check(backend: Backend, ordinal: int, ensemble: KnownEnsemble, precision: str) -> Finding:
    """Compare the averages of one ensemble on one device."""
    label = f"{backend.label} {ordinal}" if backend.numbered else backend.label
    subject = f"{label}, {ensemble.parameters['group']} in {precision} precision"
    devices = f"{ordinal}," if backend.numbered else None
    threads = None if backend.numbered else max(1, min(THREADS, backend.available_threads() // 4))
    try:
        measured = averages(ensemble, precision, UPDATES, backend.name, devices, threads)
    except GaugeError as error:
        return Finding(subject, False, str(error), backend.remedy)
    return compare(subject, ensemble, measured)


def averages(
    ensemble: KnownEnsemble,
    precision: str,
    updates: int,
    backend: str,
    devices: str | None = None,
    threads: int | None = None,
    seed: int = 1,
) -> list[Estimate]:
    """Return the averages of a run of an ensemble, in a folder that is removed.

    Parameters
    ----------
    ensemble : KnownEnsemble
        The ensemble.
    precision : str
        Precision of the links.
    updates : int
        Number of updates that are measured.
    backend : str
        Name of the backend.
    devices : str, optional
        The devices, as for ``--devices``.
    threads : int, optional
        Number of CPU threads.
    seed : int
        Seed of the random numbers.

    Raises
    ------
    GaugeError
        If the run cannot be carried out.
    """
    schedule = {"configs": updates, "separation": 1, "format": "none"}
    values = {**ensemble.parameters, "precision": precision, "seed": seed, **schedule}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run"
        run = generate(
            values, output=path, progress=False, backend=backend, devices=devices, threads=threads
        )
        return [a.of(run) for a in ensemble.averages]


def compare(subject: str, ensemble: KnownEnsemble, measured: Sequence[Estimate]) -> Finding:
    """Return whether averages agree with those that are known."""
    wrong, largest = [], 0.0
    for mean, average in zip(measured, ensemble.averages, strict=True):
        pull = abs(mean.value - average.value) / math.hypot(mean.error, average.error)
        largest = max(largest, pull)
        if not pull <= PULL:  # which NaN is not either
            wrong.append(f"{average.name} is {mean} and should be {average.value:.6g}")
    if wrong:
        return Finding(subject, False, f"averages are wrong: {', '.join(wrong)}", REMEDY)
    first = f"{ensemble.averages[0].name} {measured[0]}"
    words = f"{len(measured)} averages are within {largest:.1f} errors of those known"
    return Finding(subject, True, f"{first}; {words}")


SAMPLE = Lattice(8, 8, 8, 4)
"""Lattice on which devices are tested. It fills all lanes of the widest registers."""

ROUNDING = 1e-5
"""Maximum deviation from unitarity of links in single precision, per matrix element."""


COMPILE_SECONDS = 120.0
"""Time in seconds within which a kernel must be compiled for a test."""


def examine() -> Iterator[Finding]:
    """Test the backends and their devices, the kernel cache and the optional packages."""
    usual = limits["compile"]
    limits["compile"] = min(usual, COMPILE_SECONDS)
    try:
        yield Finding("Python", True, platform.python_version())
        yield _cache()
        for backend in BACKENDS.values():
            yield from backend.findings()
            yield from _devices(backend)
        for name, library in LIBRARIES.items():
            yield _package(name, library)
    finally:
        limits["compile"] = usual


def _cache() -> Finding:
    folder, another = cache_folder(), "export GAUGE_MC_CACHE=FOLDER"
    try:
        make_private_folder()
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        return Finding("kernel cache", False, f"{folder}: {error.strerror}", another)
    except GaugeError as error:
        is_owner = folder.is_dir() and folder.stat().st_uid == os.geteuid()
        mended = f"chmod 700 {quote(str(folder))}" if is_owner else another
        return Finding("kernel cache", False, str(error), mended)
    kernels = sum(name.endswith(".txt") for name in os.listdir(folder))
    clear = "gauge-mc doctor --clear-cache removes them"
    return Finding("kernel cache", True, f"{folder}, {kernels} kernels; {clear}")


def _devices(backend: Backend) -> Iterator[Finding]:
    """Test every device of a backend."""
    try:
        count = backend.count()
    except GaugeError as error:
        if backend.is_here():
            yield Finding(backend.label, False, str(error), backend.remedy)
        return
    for ordinal in range(count):
        subject = f"{backend.label} {ordinal}" if backend.numbered else backend.label
        yield _device(subject, partial(backend.open, ordinal), backend.remedy)


def _device(subject: str, make: Callable[[], Device], remedy: str) -> Finding:
    """Test a device by compiling and running kernels in both precisions."""
    try:
        device = make()
        wrong = [_wrong(precision, device) for precision in REAL_BYTES]
    except GaugeError as error:
        return Finding(subject, False, str(error), remedy)
    return Finding(subject, not any(wrong), next(filter(None, wrong), device.name), remedy)


def _wrong(precision: str, device: Device) -> str:
    """Return what is wrong with links or with their plaquette; empty if nothing is."""
    field = Field.hot(SAMPLE, next(iter(GROUPS)), precision, device)
    links, colours = field.to_numpy(), field.group.colours
    products = links @ links.conj().swapaxes(-1, -2)
    if not np.abs(products - np.eye(colours)).max() < ROUNDING:
        return f"links in {precision} precision are not unitary"
    slices = links.reshape(SAMPLE.t, -1, 4, colours, colours)
    pairs = zip(slices, np.roll(slices, -1, axis=0), strict=True)
    sums = [trace_sums(SAMPLE.extents[:3], *pair)[:2].sum() for pair in pairs]
    plaquette = loop_averages(field, PLAQUETTES).mean()
    if not abs(plaquette - sum(sums) / (6 * SAMPLE.sites * colours)) < ROUNDING:
        return f"the plaquette in {precision} precision is wrong"
    return ""


def _package(name: str, library: OptionalPackage) -> Finding:
    remedy = f"pip install 'gauge-mc[{library.extra}]'"
    subject = f"{name} ({library.purpose})"
    try:
        release = version(name)
        import_module(name)
    except PackageNotFoundError:
        return Finding(subject, False, "not installed", remedy)
    except ImportError as error:
        return Finding(subject, False, f"does not load: {error}", remedy)
    return Finding(subject, True, release)
