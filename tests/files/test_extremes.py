"""Every reader of TOML, JSON and CSV is given extreme values: it has a result, or says a sentence.

Those of extensions are in their tests.
"""

import io
import json

import numpy as np
import pytest

from gauge_mc.benchmarks.over import NAMES, SavedBenchmark
from gauge_mc.console import Console
from gauge_mc.devices import cache
from gauge_mc.devices.cuda.kernel import Bounds, TunedBounds
from gauge_mc.devices.kernels import Kernel, Variant
from gauge_mc.fits import fit
from gauge_mc.fits.files import KEPT_FILE, read_fit, tables_of_result
from gauge_mc.groups import GROUPS
from gauge_mc.inspection.contents import info_parts
from gauge_mc.inspection.status import run_status, scan_status
from gauge_mc.inspection.verify import verify
from gauge_mc.quantities.potential.fit import read_result, scale_table
from gauge_mc.run.cards import read_card
from gauge_mc.run.checkpoint import DIGEST_LINE
from gauge_mc.run.directory import Run
from gauge_mc.run.parameters import Parameters
from gauge_mc.run.settings import Execution
from gauge_mc.scans.batch_systems import last_array
from gauge_mc.scans.request import ScanRequest
from gauge_mc.scans.scan import Scan
from gauge_mc.stored.regenerate import StoredChain
from gauge_mc.stored.thinning import thin
from gauge_mc.updates import sweep as plans
from gauge_mc.watch.snapshot import Watcher
from tests.analysis.synthetic_loops import synthetic_loops, write_loops
from tests.calls import make_run
from tests.files.extremes import Case, CsvCase, TomlCase, calls_of_parsers, complaints

pytestmark = pytest.mark.kernels


def run_of(folder):
    """A run that was continued, thinned, and is not complete any more."""
    run = Run(make_run(folder / "run", configs=4, measure="plaquette", thermalize=2))
    thin(run.path, 2, unchecked=True)
    return run


def inspected(path):
    """Everything that looks at a run."""
    run = Run(path)
    return [
        lambda: run_status(run, averages=True),
        lambda: list(info_parts(path)),
        lambda: verify(path),
        lambda: Watcher(path).snapshot(),
        lambda: StoredChain.of(run).work([*StoredChain.of(run).due[:3]]),
        lambda: thin(path, 2, dry_run=True),
    ]


class InRun(Case):
    step = 9

    def make(self):
        self.run = run_of(self.folder)
        self.path = self.run.path / self.name

    def readers(self):
        return inspected(self.run.path)


class RunToml(InRun, TomlCase):
    name = "run.toml"


class Thinned(InRun, TomlCase):
    name = "thinned.toml"


class Lock(InRun):
    name = "lock"


class Log(InRun):
    name = "run.log"

    def text(self):
        return self.path.read_text().splitlines()[-1]


class TableOfRun(InRun, CsvCase):
    name = "plaquette.csv"


class Checkpoint(InRun):
    name = "checkpoint/latest"

    def text(self):
        _, state, self.arrays = self.path.read_bytes().split(b"\n", 2)
        return state.decode()

    def store(self, text):
        self.path.write_bytes(
            b"0" * (DIGEST_LINE - 1) + b"\n" + text.encode() + b"\n" + self.arrays
        )


class Card(TomlCase):
    def make(self):
        parameters = Parameters(measure=("plaquette", "flow:50:to=2"), format="none")
        more = 'threads = 1\ntime_limit = "1:00:00"\n'
        self.path.write_text(more + parameters.to_toml())

    def readers(self):
        def read():
            values = read_card(self.path)
            Parameters.from_values(values).check_observables()
            Execution.from_values(values)

        return [read, lambda: ScanRequest.of(read_card(self.path)).scan().members()]


class ScanToml(TomlCase):
    def make(self):
        parameters = Parameters(measure=("plaquette",))
        scan = Scan(self.folder / "scan", parameters)
        scan = scan.enlarged((2.3, 2.4), (parameters.lattice,), 2)
        scan.make()
        scan.write()
        self.path = scan.toml
        (scan.path / "failed.json").write_text("{}")

    def readers(self):
        def status():
            scan_status(Scan.read(self.path.parent))

        folder = self.path.parent
        looks = (lambda: [*info_parts(folder)], lambda: verify(folder))
        return [status, *looks, lambda: Watcher(folder).snapshot()]


class Failures(Case):
    def make(self):
        ScanToml(self.folder)
        self.path = self.folder / "scan/failed.json"
        self.path.write_text('{"b2.3": "It is broken."}')

    def readers(self):
        return [lambda: Scan(self.path.parent, Parameters()).failures()]


class FitResult(Case):
    step = 60

    def make(self):
        write_loops(self.folder / "wilson_loops.csv", synthetic_loops(np.random.default_rng(1), 40))
        fit("potential", self.folder)
        self.path = self.folder / "potential.json"

    def readers(self):
        def shown():
            Console(file=io.StringIO(), width=200).print(scale_table(read_result(self.path)))

        own = (lambda: read_fit(self.path), lambda: tables_of_result(self.path))
        return [*own, shown]


class KeptOptions(Case):
    def make(self):
        write_loops(self.folder / "wilson_loops.csv", synthetic_loops(np.random.default_rng(1), 40))
        fit("creutz", self.folder, skip=1, keep=True)
        self.path = self.folder / KEPT_FILE

    def readers(self):
        return [lambda: fit("creutz", self.folder)]


class SubmittedJobs(Case):
    def make(self):
        self.path = self.folder / "jobs/1/submitted.json"
        self.path.parent.mkdir(parents=True)
        self.path.write_text('{"system": "slurm", "job": "1234"}')

    def readers(self):
        return [lambda: last_array(self.folder / "jobs")]


class BenchResult(Case):
    def make(self):
        kernels = [{"name": "heatbath", "ns_per_link": 12.5}, {"name": "copy", "ns_per_link": 1}]
        self.path.write_text(json.dumps({**dict.fromkeys(NAMES, "a word"), "kernels": kernels}))

    def readers(self):
        return [lambda: SavedBenchmark.read(self.path)]


SU2 = Variant("single", (GROUPS["su2"].choice,))


class LaunchBounds(Case):
    """A file of the cache, which is taken as it is by `kept` if it has its digest."""

    def make(self):
        self.path = cache.make_private_folder() / "bounds-GPU.json"
        TunedBounds("GPU").keep(Kernel("copy"), SU2, Bounds(256, 2))

    def text(self):
        return cache.kept(self.path).decode()

    def store(self, text):
        cache.keep(self.path, text.encode())

    def readers(self):
        return [lambda: TunedBounds("GPU").bounds(Kernel("copy"), SU2)]


class RememberedPlan(LaunchBounds):
    def make(self):
        self.path = cache.make_private_folder() / f"plan-{24 * '0'}.json"
        plans._write(self.path, "key", plans.Plan(2, plans.Wavefront(2, 3)))

    def readers(self):
        return [lambda: plans._read(self.path, "key", 2, [plans.Wavefront(2, 3)])]


CASES = {
    RunToml: ["run.directory.Run.read"],
    Thinned: ["stored.thinning.read_rules"],
    Lock: ["run.lock.read_holder"],
    Log: ["run.log.LogEntry.read"],
    TableOfRun: [],
    Checkpoint: ["run.checkpoint.parse_state"],
    Card: ["run.cards.read_card"],
    ScanToml: ["scans.scan.Scan.read"],
    Failures: ["scans.scan.Scan.failures"],
    FitResult: [
        "quantities.potential.fit.read_result",
        "fits.files",
        "fits.files.read_fit",
        "fits.files.tables_of_result",
    ],
    KeptOptions: ["fits.files._kept_in"],
    SubmittedJobs: ["scans.batch_systems.last_array"],
    BenchResult: ["benchmarks.over.SavedBenchmark.read", "benchmarks.over"],
    LaunchBounds: ["devices.cuda.kernel.TunedBounds._read"],
    RememberedPlan: ["updates.sweep._read"],
}
"""The kinds of files, with the functions that call a parser for them."""

OWN = {
    "files.structured": "the parsers themselves",
    "cli.__init__._generate": "from the process that has started this one",
    "inspection.doctor.known_ensembles": "a file of the package",
}
"""Modules with other calls."""


@pytest.mark.slow
def test_every_reader_is_tried():
    found = {name for name in calls_of_parsers() if not name.startswith("extensions.")}
    others = {name for name in found if any(name.startswith(one) for one in OWN)}
    assert {one.partition(".")[0] for one in found} >= {"run", "scans", "fits"}
    assert found - others == {name for names in CASES.values() for name in names}


@pytest.mark.slow
@pytest.mark.parametrize(
    "every", [False, pytest.param(True, marks=[pytest.mark.slow, pytest.mark.every])]
)
@pytest.mark.parametrize("kind", CASES, ids=lambda kind: kind.__name__)
def test_extreme_values_are_read_or_refused_in_a_sentence(tmp_path, monkeypatch, kind, every):
    """All of them in three times as many places as the quick test, which takes one in each."""
    if issubclass(kind, LaunchBounds):
        monkeypatch.setenv("GAUGE_MC_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    wrong = complaints(kind(tmp_path), every)
    assert not wrong, wrong
