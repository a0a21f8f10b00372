"""Benchmark of what a user waits for, in units of what the machine can do.

Runs are carried out in a temporary folder: with configurations, with measurements, in batches. The
bounds are measured in the same benchmark: the sweeps alone, the disk, and the page cache.
"""

from __future__ import annotations

import datetime
import os
import statistics
import subprocess
import tempfile
import time
import timeit
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

from gauge_mc import __version__, defaults
from gauge_mc.benchmarks.timing import (
    Bench,
    BenchResult,
    copy_bandwidth,
    repeatedly,
    seconds_of,
    table_of,
)
from gauge_mc.configurations.reading import open_configuration
from gauge_mc.configurations.writing import stored_by
from gauge_mc.devices import BACKENDS
from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.fields.field import Field
from gauge_mc.formats import FORMATS
from gauge_mc.groups import GROUPS
from gauge_mc.libraries import PYTHON
from gauge_mc.results import documented, result_field
from gauge_mc.run.chain import Batch, Chain
from gauge_mc.run.convert import convert
from gauge_mc.run.directory import Run
from gauge_mc.run.measurement import NO_MEASUREMENT
from gauge_mc.run.open_run import OpenRun
from gauge_mc.run.parameters import NO_FORMAT, Parameters
from gauge_mc.run.session import Session

WARM_UP, SECONDS = 20, 2.0
"""Updates before the timing of a run, and approximate time in seconds of each run."""

BATCHES = (("8x8x8x4", 128), ("16x16x16x4", 14))
"""Small lattices, and the number of them that a scan may have."""

WRITE_REPETITIONS, CHUNK = 5, 2**22
"""Files that are written to find the bandwidth of the disk, and bytes of one write."""

FEWEST_UPDATES, MOST_UPDATES = 50, 5000
FEWEST_CONFIGS, MOST_CONFIGS = 6, 30
"""Smallest and largest numbers of updates and of configurations of a run that is timed."""

UNITS = {"sweeps": "Glink/s", "disk": "GB/s", "page cache": "GB/s"}
"""Units of the bounds, by name."""


@documented
@dataclass(frozen=True)
class Line:
    """A result of the benchmark."""

    name: str = result_field("What was timed.")
    value: float = result_field("The rate or the time.")
    unit: str = result_field("Its unit.")
    share: float | None = result_field("The value divided by its bound, if it has one.", None)
    bound: str = result_field("Name of the bound.", "")


@documented
@dataclass(frozen=True)
class EndToEnd(BenchResult):
    """All results of the benchmark."""

    date: str = result_field("Date in ISO 8601.")
    version: str = result_field("Version of gauge-mc.")
    precision: str = result_field("Precision of the links.")
    config_bytes: int = result_field("Bytes of the links in a configuration file.")
    lines: list[Line] = result_field("The results.")

    def report(self) -> list[Any]:
        """Return a line and a table of the results."""
        from rich.filesize import decimal

        columns = {"what a user waits for": "{0.name}", "rate or time": "{0.value:.3g} {0.unit}"}
        columns |= {"share": "{1}", "of": "{0.bound}"}
        rows = [(x, "" if x.share is None else f"{x.share:.0%}") for x in self.lines]
        table = table_of(columns, rows)
        table.columns[-1].justify = "left"
        return [f"{self.subject}; a configuration has {decimal(self.config_bytes)}", table]


def end_to_end(bench: Bench, precision: str, folder: Path) -> EndToEnd:
    """Time whole runs."""
    shared = {"group": bench.group, "precision": precision, "start": "hot", "format": NO_FORMAT}
    large = Parameters.from_values(
        {**shared, "lattice": str(bench.lattice), "measure": NO_MEASUREMENT, "thermalize": WARM_UP}
    )
    with tempfile.TemporaryDirectory(dir=folder, prefix="gauge-mc-bench-") as name:
        timing = _EndToEndTimer(bench.devices, large, Path(name))
        parts = (timing.runs, timing.files, timing.batches, timing.starts)
        lines, bench = [], bench.of(len(parts))
        for part in parts:
            bench.begin(part.__name__)
            lines += list(part())
    date = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
    heading = *bench.heading, date, __version__, precision
    return EndToEnd(*heading, timing.config_bytes, lines)


class _EndToEndTimer:
    """The state of the benchmark."""

    def __init__(self, devices: DeviceGroup, large: Parameters, folder: Path) -> None:
        self._devices, self._large, self._folder = devices, large, folder
        stored = stored_by(defaults.FORMAT, large.lattice, large.group, large.precision)
        self.config_bytes = stored.nbytes
        self._bounds: dict[str, float] = {}
        self._stored = Path()

    def runs(self) -> Iterator[Line]:
        """Time the sweeps alone, and runs that measure or write configurations."""
        devices, p = self._devices, self._large
        yield Line("copy in memory", copy_bandwidth(devices, p.group, p.precision) / 1e9, "GB/s")
        updates = repeatedly(Batch([Chain.begin(p, devices)], 1).update)
        updates(WARM_UP)
        update = seconds_of(devices, updates, SECONDS)[0]
        del updates  # which frees the memory
        yield self._line("sweeps alone", p.links_per_update / update, "sweeps")
        empty = replace(p, configs=1, separation=max(20, round(SECONDS / update)))
        usual = Parameters.from_values({**empty.values(), "measure": ",".join(defaults.MEASURE)})
        runs = {"run without measurements": empty, "run that measures every update": usual}
        for name, run in runs.items():
            yield self._line(name, self._carry_out(run)[0], "sweeps")
        yield self._line("disk, write and sync", self._write_bandwidth(), "disk")
        for separation in (100, 10):
            yield from self._with_configurations(separation, update)

    def _with_configurations(self, separation: int, update: float) -> Iterator[Line]:
        p, each = self._large, self.config_bytes / self._bounds["disk"]
        number = round(4 * SECONDS / max(separation * update, each))
        number = max(FEWEST_CONFIGS, min(number, MOST_CONFIGS))
        writing = replace(p, configs=number, separation=separation, format=defaults.FORMAT)
        paths = sorted(self._carry_out(writing)[1].configs().values())
        # The time at which a file gets its name. The first ones wait for nothing.
        times = [path.stat().st_ctime for path in paths][2:]
        seconds = (times[-1] - times[0]) / (len(times) - 1)
        rate = separation * p.links_per_update / seconds
        yield self._line(f"run, a configuration every {separation} updates", rate, "sweeps")
        files = f"its files, every {separation} updates"
        yield self._line(files, self.config_bytes / seconds, "disk")
        self._stored = paths[-1]

    def files(self) -> Iterator[Line]:
        """Time reading, checking and converting a configuration that is in the page cache."""
        p, path, device = self._large, self._stored, self._devices
        targets = (self._folder / f"converted_{n}" for n in count())
        group, others = GROUPS[p.group], (x for x in FORMATS.values() if x.name != defaults.FORMAT)
        other = next(x.name for x in others if x.suffix and not x.refusal(group, p.precision))

        def read() -> None:
            with path.open("rb", buffering=0) as file:
                memory = bytearray(CHUNK)
                while file.readinto(memory):
                    pass

        def load() -> None:
            Field.load(path, device=device)
            device.synchronize()

        calls: dict[str, tuple[Callable[[], object], str]] = {
            "page cache, read": (read, "page cache"),
            "load a configuration": (load, "page cache"),
            "check a configuration": (lambda: open_configuration(path).check(), "page cache"),
            "convert a configuration": (lambda: convert(path, next(targets), other), "disk"),
        }
        for name, (call, bound) in calls.items():
            call()
            least = min(timeit.repeat(call, number=1, repeat=3))
            yield self._line(name, self.config_bytes / least, bound)

    def batches(self) -> Iterator[Line]:
        """Time one small lattice, and batches of small lattices."""
        busy = BACKENDS[self._devices.devices[0].backend].busy_sites
        for extents, chains in BATCHES:
            usual = {"lattice": extents, "measure": ",".join(defaults.MEASURE)}
            p = Parameters.from_values({**self._large.values(), **usual, "configs": 1})
            for number in dict.fromkeys((1, min(chains, max(1, busy // p.lattice.sites)))):
                title = f"{extents}, {'alone' if number == 1 else f'{number} together'}"
                # Alone, small lattices are slower than others; the time need not be exact.
                updates = round(SECONDS * self._bounds["sweeps"] / (number * p.links_per_update))
                p = replace(p, separation=min(max(FEWEST_UPDATES, updates), MOST_UPDATES))
                rate = self._carry_out(*(replace(p, seed=1 + n) for n in range(number)))[0]
                yield self._line(f"{title}, measured", rate, "sweeps")

    def starts(self) -> Iterator[Line]:
        """Time the command until its first progress, with all kernels compiled and with none."""
        p, backend = self._large, self._devices.devices[0].backend
        words = f"--backend {backend} --group {p.group} --lattice {p.lattice} --configs 1"
        words += " --separation 100000"
        with tempfile.TemporaryDirectory(dir=self._folder) as cache:
            cold = self._first_progress(words, cache)
            warm = statistics.median(self._first_progress(words, cache) for _ in range(3))
        yield Line("first progress, kernels to compile", cold, "s")
        yield Line("first progress, kernels compiled", warm, "s")

    def _first_progress(self, words: str, cache: str) -> float:
        """Return the time until a new run has done its first update."""
        run = self._new_run()
        program = "from gauge_mc.cli import main; main()"
        command = [*PYTHON, "-c", program, "generate", *words.split(), "--quiet"]
        began = time.monotonic()
        child = subprocess.Popen(
            [*command, "--output", str(run.path)],
            env={**os.environ, "GAUGE_MC_CACHE": cache},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            while not run.holder()[0].sweep and child.poll() is None:
                time.sleep(0.005)
            return time.monotonic() - began
        finally:
            child.kill()
            child.wait()

    def _line(self, name: str, rate: float, bound: str) -> Line:
        """Return a rate in units of its bound, which is the first rate with this bound."""
        share: tuple[float | None, str] = (None, "")
        if bound in self._bounds:
            share = rate / self._bounds[bound], bound
        self._bounds.setdefault(bound, rate)
        return Line(name, rate / 1e9, UNITS[bound], *share)

    def _carry_out(self, *members: Parameters) -> tuple[float, Run]:
        """Carry out runs together, and return the link updates per second, and the last run."""
        p, marks = members[0], []

        def report(chain: Chain) -> None:
            if chain.sweep in (p.thermalize, p.updates):
                self._devices.synchronize()
                marks.append(time.monotonic())

        with ExitStack() as locks:
            opened = []
            for member in members:
                run = self._new_run()
                opened.append(OpenRun(run, member, locks.enter_context(run.locked())))
                run.write(member, [])
            Session(opened, self._devices, lambda seconds: None, report).carry_out()
        links = len(members) * p.links_per_update * (p.updates - p.thermalize)
        return links / (marks[1] - marks[0]), run

    def _new_run(self) -> Run:
        return Run(Path(tempfile.mkdtemp(dir=self._folder)) / "run")

    def _write_bandwidth(self) -> float:
        """Return the median rate in bytes/s at which single files are written and synced."""
        path, data = self._folder / "disk", os.urandom(CHUNK)
        chunks = -(-self.config_bytes // CHUNK)

        def write() -> None:
            with path.open("wb", buffering=0) as file:
                for _ in range(chunks):
                    file.write(data)
                os.fsync(file.fileno())

        times = timeit.repeat(write, number=1, repeat=WRITE_REPETITIONS)
        path.unlink()
        return chunks * CHUNK / statistics.median(times)
