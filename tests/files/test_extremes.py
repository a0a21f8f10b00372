"""Every reader of TOML, JSON and CSV is given extreme values: it has a result, or says a sentence.

The work is bounded by counting calls of functions, and of generators, not by time.
"""

import ast
import io
import itertools
import json
import re
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import tomli_w

import gauge_mc
from gauge_mc import publish
from gauge_mc.benchmarks.saved import NAMES, SavedBenchmark
from gauge_mc.console import Console
from gauge_mc.devices import cache
from gauge_mc.devices.cuda.bounds import Bounds, TunedBounds
from gauge_mc.devices.kernels import Kernel, Variant
from gauge_mc.errors import GaugeError
from gauge_mc.files.structured import parse_json, parse_toml
from gauge_mc.fits import fit
from gauge_mc.fits.shared.files import read_fit
from gauge_mc.fits.shared.fitted_tables import tables_of_result
from gauge_mc.groups import GROUPS
from gauge_mc.inspection.contents import info_parts
from gauge_mc.inspection.status import run_status, scan_status
from gauge_mc.inspection.verify import checks_of, verify
from gauge_mc.papers import reproduce
from gauge_mc.papers.cards import read_paper
from gauge_mc.papers.comparison import ComparedEntry, Comparison, UsedEnsemble, read_comparison
from gauge_mc.publication.checks import check_kernels, make_again, published_chain
from gauge_mc.publication.record import read_configurations
from gauge_mc.publication.workflow import kept_fits
from gauge_mc.quantities.potential.fits.parts.report import fit_table
from gauge_mc.quantities.potential.fits.potential import read_result
from gauge_mc.quoting import sentence
from gauge_mc.run.cards import read_card
from gauge_mc.run.checkpoint import DIGEST_LINE
from gauge_mc.run.directory import Run
from gauge_mc.run.execution import Execution
from gauge_mc.run.parameters import Parameters
from gauge_mc.run.regeneration import StoredChain
from gauge_mc.run.thinning import thin
from gauge_mc.scans.job_arrays import last_array
from gauge_mc.scans.request import ScanRequest
from gauge_mc.scans.scan import Scan
from gauge_mc.updates import plans
from gauge_mc.watch.snapshot import Watcher
from tests.analysis.synthetic_loops import synthetic_loops, write_loops
from tests.calls import make_run
from tests.papers.test_papers import CARD, EXACT

pytestmark = pytest.mark.kernels

MOST_WORK = 400_000
"""Largest number of calls when any of these files is read; good ones need less than a tenth."""

NUMBERS = [
    *("0", "-1", "1000000000000000", "9223372036854775807", "-9223372036854775808"),
    *("1" + 30 * "0", "1" + 400 * "0", "1" + 5000 * "0", "0.5", "1e308", "-1e308", "5e-324"),
]
LONG = '"' + 10_000 * "x" + '"'
TEXTS = ['""', LONG, '"\\u0000"', '"../../x"', '"1e400"', '"nan"', '"4x4x4x6"']
DEEP = 10_000 * "[" + 10_000 * "]", 40 * "[" + 40 * "]", 900 * "[" + 900 * "]"
JSON = [*NUMBERS, *TEXTS, *DEEP, "NaN", "Infinity", "-Infinity", "1e999", "null", "true", "[]",
    "{}", "[[1]]", '{"a": 1}', 500 * '{"a":' + "1" + 500 * "}", '0, "again": 0, "again": 1',
]  # fmt: skip
TOML = [*NUMBERS, *TEXTS, *DEEP, "nan", "inf", "-inf", "1e999", "true", "[]", "{}", "[[1]]",
    "{a = 1}", "{a = 1, a = 2}", "{" + 100 * "a." + "a = 1}", "1979-05-27T07:32:00Z",
    "0\nagain = 1\nagain = 2",
]  # fmt: skip
CSV = [*NUMBERS, "", "nan", "inf", "-inf", "1e999", "x" * 10_000, '"', '"x', "1,1", "0x10", "1_0",
    "\x00", "\u0661", " ", "1\n1", "#",
]  # fmt: skip
"""Values that stand in the place of good ones, as they are written."""

MARK = "in the place of this"


def places(content):
    """Yield the keys that lead to everything in a tree, of the elements of a list one of a kind."""
    seen = set()
    for keys in all_places(content):
        kind = tuple(0 if isinstance(key, int) else key for key in keys)
        if kind not in seen:
            seen.add(kind)
            yield keys


def all_places(content, before=()):
    items = content.items() if isinstance(content, dict) else enumerate(content)
    for key, value in items:
        yield (*before, key)
        if isinstance(value, dict | list):
            yield from all_places(value, (*before, key))


def marked(content, keys):
    """A copy of a tree with a mark in one place."""
    first, *rest = keys
    copy = content.copy()
    copy[first] = marked(content[first], rest) if rest else MARK
    return copy


class TooMuchWorkError(BaseException):
    """More functions were called than reading a small file can need."""


@contextmanager
def bounded():
    """Count calls, and end what is going on if there are too many."""
    count = itertools.count()

    def note(frame, event, argument):
        if next(count) > MOST_WORK:
            raise TooMuchWorkError

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(before)


class Case:
    """A kind of file: its text, and everything that reads it."""

    values = JSON
    step = 3
    """Step between the places that the quick test tries; three times that of the slow one."""

    def __init__(self, folder):
        self.folder = folder
        self.path = folder / "file"
        self.make()
        self.good = self.text()

    def make(self):
        raise NotImplementedError

    def readers(self):
        raise NotImplementedError

    def text(self):
        return self.path.read_text()

    def store(self, text):
        self.path.write_text(text)

    def changed(self):
        """Yield the texts with a value in the place of another, by place and value."""
        content = parse_json(self.good)
        for keys in places(content):
            text = json.dumps(marked(content, keys))
            yield keys, lambda value, text=text: text.replace(f'"{MARK}"', value)


class TomlCase(Case):
    values = TOML

    def changed(self):
        content = parse_toml(self.good)
        for keys in places(content):
            text = tomli_w.dumps(marked(content, keys))
            yield keys, lambda value, text=text: text.replace(f'"{MARK}"', value)


class CsvCase(Case):
    values = CSV

    def changed(self):
        lines = self.good.splitlines()
        begin = next(n for n, line in enumerate(lines) if not line.startswith("#"))
        lines = [line for line in lines if not line.startswith("# sha256")]
        for row in {*range(begin, min(begin + 3, len(lines))), len(lines) - 1}:
            for column in range(lines[row].count(",") + 1):
                cells = lines[row].split(",")
                cells[column] = MARK
                text = "\n".join([*lines[:row], ",".join(cells), *lines[row + 1 :]]) + "\n"
                yield (row, column), lambda value, text=text: text.replace(MARK, value)
        for row in range(begin):
            key, _, _ = lines[row].partition(": ")
            text = "\n".join([*lines[:row], f"{key}: {MARK}", *lines[row + 1 :]]) + "\n"
            yield (row,), lambda value, text=text: text.replace(MARK, value)


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


class Published(Case):
    def make(self):
        run = make_run(self.folder / "run", configs=2)
        self.published = self.folder / "data"
        publish(run, self.published, authors=["Plato"])
        self.path = self.published / self.name

    def readers(self):
        folder = self.published

        def again():
            chain, rows = published_chain(folder), read_configurations(folder)
            if all(5 <= row <= chain.state.sweep <= 8 for row in rows):
                return  # as in the good one, whose configurations could be made again
            with pytest.raises(GaugeError):
                make_again(folder, 5, lambda share: None)

        return [lambda: checks_of(folder, 1), lambda: check_kernels(folder), again]


class PublishedState(Published):
    name = "chain.json"


class PublishedCrate(Published):
    name = "ro-crate-metadata.json"


class PublishedList(Published, CsvCase):
    name = "configurations.csv"


class PublishedKernels(Published, CsvCase):
    name = "kernels.csv"


class FitResult(Case):
    step = 60

    def make(self):
        write_loops(self.folder / "wilson_loops.csv", synthetic_loops(np.random.default_rng(1), 40))
        fit("potential", self.folder)
        self.path = self.folder / "potential.json"

    def readers(self):
        def shown():
            Console(file=io.StringIO(), width=200).print(fit_table(read_result(self.path)))

        own = (lambda: read_fit(self.path), lambda: tables_of_result(self.path))
        return [*own, lambda: kept_fits(Run(self.folder)), shown]


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


class PaperCard(TomlCase):
    def make(self):
        self.path = self.folder / "mine.toml"
        self.path.write_text(CARD.format(**EXACT))

    def readers(self):
        def compared():
            card = read_paper(self.path)
            for one in card.entries:
                entry = ComparedEntry(one.name, one.ensemble, one.published, one.error, 0.5, 0.1)
                str((entry.pull, entry.published_text, entry.text))

        return [compared]


class KeptPaperResults(Case):
    """The kept result of a fit beside the card of a paper."""

    def make(self):
        kept = self.folder / "kept"
        kept.mkdir()
        text = CARD.format(**EXACT).replace("beta = 0.8", 'beta = 0.8\nresults = "kept"')
        text = text.replace('average = "plaquette"', 'fit = "scale"\nvalue = "t0[0].t"')
        self.card = self.folder / "mine.toml"
        self.card.write_text(text)
        self.path = kept / "scale.json"
        value = {"value": 1.5, "error": 0.1}
        result = {"t0": [{"t": value, "n": 3}], "ensemble": {"beta": 0.8}}
        self.path.write_text(json.dumps({"observable": "flow", "units": "a", **result}))

    def readers(self):
        def compared():
            found = reproduce.compare_kept(read_paper(self.card))
            Console(file=io.StringIO(), width=200).print(*found.report())

        return [compared]


class PaperComparison(Case):
    def make(self):
        entries = [ComparedEntry("a", "one", 1.0, 0.1, 1.05, 0.1, at=1.0, read="r")]
        used = [UsedEnsemble("one", "run", {"beta": 2.3}, False, 10, 20)]
        Comparison("c", "p", "t", "w", "", entries, used).write(self.folder)
        self.path = self.folder / "c.json"

    def readers(self):
        def shown():
            Console(file=io.StringIO(), width=200).print(*read_comparison(self.path).report())

        return [shown]


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
    Thinned: ["run.thinning.read_rules"],
    Lock: ["run.lock.read_holder"],
    Log: ["run.log.LogEntry.read"],
    TableOfRun: [],
    Checkpoint: ["run.checkpoint.parse_state"],
    Card: ["run.cards.read_card"],
    ScanToml: ["scans.scan.Scan.read"],
    Failures: ["scans.scan.Scan.failures"],
    PublishedState: ["run.checkpoint.parse_state"],
    PublishedCrate: ["publication.crate.published_files"],
    PublishedList: ["publication.record._rows"],
    PublishedKernels: ["publication.record._rows"],
    FitResult: [
        "quantities.potential.fits.potential.read_result",
        "fits.shared.files",
        "fits.shared.files.read_fit",
        "fits.shared.fitted_tables.tables_of_result",
        "publication.workflow.kept_fits",
    ],
    SubmittedJobs: ["scans.job_arrays.last_array"],
    BenchResult: ["benchmarks.saved.SavedBenchmark.read", "cli.bench"],
    PaperCard: ["papers.cards.read_paper"],
    KeptPaperResults: ["papers.reproduce._result"],
    PaperComparison: ["papers.comparison.read_comparison", "papers.comparison"],
    LaunchBounds: ["devices.cuda.bounds.TunedBounds._read"],
    RememberedPlan: ["updates.plans._read"],
}
"""The kinds of files, with the functions that call a parser for them."""

OWN = {
    "files.structured": "the parsers themselves",
    "cli.child": "from the process that has started this one",
    "cli.protocol": "from an assistant; tests/cli/test_mcp.py tries wrong messages",
    "cli.tools": "from the commands themselves",
    "inspection.physics": "a file of the package",
    "quarks.modes.mode_files": "not tried: it has a digest, and tests of kept modes",
}
"""Modules with other calls."""

MAY_PARSE = re.compile(r"parse_(toml|json|csv)|json_with|tomllib|json\.load|csv\.|loadtxt|genfrom")
PARSERS = {"parse_toml", "parse_json", "parse_csv", "json_with"}


def calls_of_parsers():
    """Yield the functions and classes with calls of parsers, or the modules."""
    root = Path(gauge_mc.__file__).parent
    for path in sorted(root.rglob("*.py")):
        module, text = ".".join(path.relative_to(root).with_suffix("").parts), path.read_text()
        for names, node in within(ast.parse(text)) if MAY_PARSE.search(text) else ():
            if isinstance(node, ast.Call) and is_parser(node.func):
                yield ".".join([module, *names])


def within(node, names=()):
    for one in ast.iter_child_nodes(node):
        yield names, one
        named = isinstance(one, ast.FunctionDef | ast.ClassDef)
        yield from within(one, (*names, one.name) if named else names)


def is_parser(function):
    text = ast.unparse(function)
    parsers = r"tomllib\.loads?|json\.loads?|csv\.(Dict)?[rR]eader|(np|numpy)\.(loadtxt|genfromtxt)"
    return text in PARSERS or bool(re.fullmatch(parsers, text))


@pytest.mark.slow
def test_every_reader_is_tried():
    found = {*calls_of_parsers()}
    others = {name for name in found if any(name.startswith(one) for one in OWN)}
    assert {one.partition(".")[0] for one in found} >= {"run", "scans", "papers", "publication"}
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
    case = kind(tmp_path)
    for read in case.readers():
        with bounded():
            read()
    wrong, step = [], case.step // 3 if every else case.step
    for number, (keys, change) in enumerate(itertools.islice(case.changed(), None, None, step)):
        values = case.values if every else [case.values[7 * number % len(case.values)]]
        for value in values:
            case.store(change(value))
            for place, read in enumerate(case.readers()):
                try:
                    with bounded():
                        read()
                except GaugeError as error:
                    said = sentence(str(error))
                    if not said.isprintable() or len(said) > 2000 or not said.endswith((".", "?")):
                        wrong.append((keys, value[:40], place, said[:200]))
                except OSError:
                    pass  # the command line makes a sentence of it
                except (Exception, TooMuchWorkError) as error:
                    wrong.append((keys, value[:40], place, repr(error)[:200]))
    assert not wrong, "\n".join(map(str, wrong[:40]))
