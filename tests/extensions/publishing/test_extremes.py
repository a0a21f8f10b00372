"""The readers of published folders and of papers are given extreme values."""

import io
import json

import numpy as np
import pytest

from gauge_mc import publish
from gauge_mc.console import Console
from gauge_mc.errors import GaugeError
from gauge_mc.extensions.publishing.papers import (
    ComparedEntry,
    Comparison,
    UsedEnsemble,
    read_comparison,
    read_paper,
    reproduce,
)
from gauge_mc.extensions.publishing.publish import (
    check_kernels,
    make_again,
    published_chain,
    results_of,
)
from gauge_mc.extensions.publishing.record import read_configurations
from gauge_mc.fits import fit
from gauge_mc.inspection.verify import checks_of
from gauge_mc.run.directory import Run
from tests.analysis.synthetic_loops import synthetic_loops, write_loops
from tests.calls import make_run
from tests.extensions.publishing.papers.test_papers import CARD, EXACT
from tests.files.extremes import Case, CsvCase, TomlCase, calls_of_parsers, complaints

pytestmark = pytest.mark.kernels


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


class KeptFit(Case):
    """The result of a fit in a run that is published."""

    step = 60

    def make(self):
        write_loops(self.folder / "wilson_loops.csv", synthetic_loops(np.random.default_rng(1), 40))
        fit("potential", self.folder)
        self.path = self.folder / "potential.json"

    def readers(self):
        return [lambda: results_of(Run(self.folder))]


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


CASES = {
    PublishedState: [],
    PublishedCrate: ["record.published_files"],
    PublishedList: ["record._rows"],
    PublishedKernels: ["record._rows"],
    KeptFit: ["publish.results_of"],
    PaperCard: ["papers.__init__.read_paper"],
    KeptPaperResults: ["papers.reproduce._result"],
    PaperComparison: ["papers.__init__.read_comparison", "papers.__init__"],
}
"""The kinds of files, with the functions that call a parser for them."""


@pytest.mark.slow
def test_every_reader_is_tried():
    here = "extensions.publishing."
    found = {name.removeprefix(here) for name in calls_of_parsers() if name.startswith(here)}
    assert found == {name for names in CASES.values() for name in names}


@pytest.mark.slow
@pytest.mark.parametrize(
    "every", [False, pytest.param(True, marks=[pytest.mark.slow, pytest.mark.every])]
)
@pytest.mark.parametrize("kind", CASES, ids=lambda kind: kind.__name__)
def test_extreme_values_are_read_or_refused_in_a_sentence(tmp_path, monkeypatch, kind, every):
    """All of them in three times as many places as the quick test, which takes one in each."""
    monkeypatch.chdir(tmp_path)
    wrong = complaints(kind(tmp_path), every)
    assert not wrong, wrong
