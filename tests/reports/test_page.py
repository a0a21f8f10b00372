"""`report`: what a page shows, that nothing in a run can become a part of it, and size."""

import json
import math
import re
import tempfile
from html.parser import HTMLParser
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

import gauge_mc
from gauge_mc.analysis.timeseries import autocorrelation, estimate
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.table import read_table, write_table
from gauge_mc.fits import FITS, Fit, FitResult
from gauge_mc.fits.quoted import QuotedNumber
from gauge_mc.plots import PLOTS, Plot
from gauge_mc.plots.figures.files import figure_file
from gauge_mc.reports import SECTIONS, Section
from gauge_mc.reports import page as page_module
from gauge_mc.reports.charts import Chart, ChartLine
from gauge_mc.reports.figures import PIECES
from gauge_mc.reports.markup import element
from gauge_mc.reports.page import MARK
from gauge_mc.reports.results import MOST_ROWS
from gauge_mc.run.directory import SessionRecord
from gauge_mc.run.parameters import Parameters
from gauge_mc.run.thermalisation import found_thermalisation
from gauge_mc.scans.grid import Grid
from gauge_mc.scans.scan import Scan
from tests.analysis.synthetic_loops import autoregressive, synthetic_loops, write_loops
from tests.calls import call
from tests.reports.pages import HOSTILE, write_columns, write_run

pytestmark = pytest.mark.slow  # the page of a run with everything takes seconds

EMPTY = {"col", "img", "input", "link", "meta", "br"}


class Reader(HTMLParser):
    """The elements, the texts and the data of a page; tags must be closed in order."""

    def __init__(self, content):
        super().__init__()
        self.open, self.tags, self.words, self.data, self.summaries = [], [], [], [], []
        self.feed(content)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, words):
        if self.open and self.open[-1] == "script":
            self.data.append(words)
        elif self.open and self.open[-1] != "style":
            self.words.append(words)
            self.summaries += [words] * (self.open[-1] == "summary")

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())

    def attributes(self, tag):
        return [found for name, found in self.tags if name == tag]

    @property
    def charts(self):
        return [json.loads(one) for one in self.data if one.startswith('{"x":')]


def read_page(path):
    return Reader(path.read_text())


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    mine = {"value": np.sin(np.arange(400))}
    path = write_run(tmp_path_factory.mktemp("runs") / "run", mine=mine)
    rows = [(n, r, t, 0.5 ** (r * t) * (1 + 0.01 * math.sin(n))) for n in range(10, 400, 10)
            for r in range(1, 8) for t in range(1, 9)]  # fmt: skip
    write_table(path / "rows.csv", {"observable": "rows"}, ("sweep", "i", "j", "value"), rows)
    return path


@pytest.fixture(scope="module")
def shown(run):
    found = gauge_mc.report(run)
    assert found.file == str(run / "report.html")
    assert found.bytes == (run / "report.html").stat().st_size
    return read_page(run / "report.html")


def test_every_section_is_there(run, shown):
    titles = [one["id"] for one in shown.attributes("section")]
    ordered = sorted(SECTIONS.values(), key=lambda one: one.place)
    assert titles == [one.name for one in ordered]
    addresses = {one.get("href") for one in shown.attributes("a")}
    assert {f"#{name}" for name in titles} <= addresses
    assert {"./plaquette.csv", "./run.toml"} <= addresses


def test_averages_leave_out_what_has_not_thermalised(run, shown):
    cut = found_thermalisation(run).update
    assert cut > 10
    for name, column, label in (
        ("plaquette", "plaquette", "plaquette"),
        ("polyakov", "abs", "Polyakov loop, modulus"),
        ("mine", "value", "mine"),
    ):
        found = estimate(read_table(run / f"{name}.csv")[column][cut:])
        assert f"{label} {found.format()} {found.format_tau()} {400 - cut}" in shown.text
    assert f"Updates up to {cut} of {run} are left out" in shown.text
    whole = gauge_mc.report(run, run / "whole.html", skip=0)
    text = read_page(run / "whole.html").text
    assert estimate(read_table(run / "plaquette.csv")["plaquette"]).format() in text
    assert "are left out" not in text.replace("below", "")
    assert whole.bytes > 0


def test_charts_have_the_numbers(run, shown):
    cut = found_thermalisation(run).update
    values = read_table(run / "plaquette.csv")["plaquette"]
    history, correlation, distribution = shown.charts[3:6]  # after those of mine.csv
    assert history["cut"] == cut
    assert history["x"] == list(range(1, 401))
    single, mean = history["lines"]
    np.testing.assert_allclose(single["values"], values, rtol=1e-6)
    assert mean["values"][:cut] == [None] * cut
    assert mean["values"][-1] == pytest.approx(values[cut:].mean(), rel=1e-6)
    assert mean["error"][-1] == pytest.approx(estimate(values[cut:]).error, rel=0.05)
    kept = values[cut:] - values[cut:].mean()
    (rho,) = correlation["lines"]
    n = kept.size
    plain = [(kept[: n - k] @ kept[k:]) / (n - k) / (kept @ kept / n) for k in range(4)]
    np.testing.assert_allclose(rho["values"][:4], plain, rtol=1e-4)
    (density,) = distribution["lines"]
    widths = np.diff(distribution["x"])
    assert (density["values"][:-1] * widths).sum() == pytest.approx(1, rel=1e-4)


def test_rows_with_indices_are_averaged(run, shown):
    cut = found_thermalisation(run).update
    content = read_table(run / "rows.csv")
    chosen = (content["i"] == 2) & (content["j"] == 3) & (content["sweep"] > cut)
    assert f"2, 3 {estimate(content['value'][chosen]).format()}" in shown.text
    assert f"{7 * 8 - MOST_ROWS} further rows" in shown.text


class MyResult(FitResult):
    def values(self):
        return {}

    def report(self):
        return ["the number is 42"]

    def further_report(self):
        return ["and here is more"]

    def quoted(self):
        return [QuotedNumber("my number", 42.0, 1.5, 0.5)]


class FitOfScans(Fit):
    name, summary, columns, of_scans = "my-fit", "my summary", (), True

    def carry_out(self, table, **options):
        return MyResult()


def test_every_kind_that_is_declared_appears(run, monkeypatch, tmp_path):
    """A fit, a plot and a section that are registered now are on the page, without more."""

    class MyFit(Fit):
        name, summary, columns = "my-fit", "my summary", ("mine",)

        def find_table(self, folder, options):
            return folder / "mine.csv"

        def carry_out(self, table, **options):
            return MyResult()

    class MyPlot(Plot):
        name, summary = "my-plot", "my figure"

        def draw(self, runs, file, **options):
            with figure_file(file, (3, 2)) as figure:
                figure.subplots().plot([1, 2], [3, 4])
            return []

    class MySection(Section):
        name, title, place = "my-section", "My section", 15

        def content(self, subject):
            return [element("p", f"{len(subject.runs)} run")]

    for registry, thing in ((FITS, MyFit()), (PLOTS, MyPlot()), (SECTIONS, MySection())):
        monkeypatch.setitem(registry._registered, thing.name, thing)
    gauge_mc.report(run, tmp_path / "page.html")
    page = read_page(tmp_path / "page.html")
    assert "result: my number = 42.0(1.5)(0.5) Tables the number is 42 Further tables" in page.text
    for words in ("my-fit my summary", "and here is more", "My figure: SU(3)", "1 run"):
        assert words in page.text
    assert "My figure: SU(3), β = 5.7, 4³×8" in {one["alt"] for one in page.attributes("img")}
    sections = [one["id"] for one in page.attributes("section")]
    assert sections[:3] == ["fits", "parameters", "my-section"]


def test_several_runs_are_side_by_side(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runs = [write_run(tmp_path / f"b{beta}", beta=beta, seed=n, samples=300 + 20 * n)
            for n, beta in enumerate((5.7, 5.8))]  # fmt: skip
    found = gauge_mc.report(runs)
    assert (found.file, found.runs) == ("report.html", [str(one) for one in runs])
    page = read_page(tmp_path / "report.html")
    marked = [one for one in page.attributes("tr") if one.get("class") == "marked"]
    assert len(marked) == 3  # beta, seed, configs
    history = page.charts[0]
    labels = [one["label"] for one in history["lines"]]
    assert [label for label in labels if "running" in label] == [
        f"SU(3), β = {beta}, 4³×8: running average" for beta in (5.7, 5.8)
    ]
    assert {one["colour"] for one in history["lines"]} == {0, 1}
    for column, name in (("re", "real part"), ("abs", "modulus")):
        cells = []
        for one in runs:
            cut = found_thermalisation(one).update
            mean = estimate(read_table(one / "polyakov.csv")[column][cut:])
            below = f"τ_int {mean.format_tau()} updates, {mean.samples} measurements"
            cells.append(f"{mean.format()} {below}")
        assert f"Polyakov loop, {name} {cells[0]} {cells[1]}" in page.text
    assert "./b5.7/plaquette.csv" in {one.get("href") for one in page.attributes("a")}


def test_nothing_of_a_run_becomes_a_part_of_the_page(tmp_path):
    name = "<b onclick=x>'&"
    run = write_run(tmp_path / name, device=HOSTILE)
    table = (run / "polyakov.csv").read_text().partition("\n# sha256")[0] + "\n"
    hostile = HOSTILE.replace("'", "").replace('"', "")
    (run / f"{name}.csv").write_text(f"# observable: {hostile}\nsweep,{hostile}\n1,2\n2,3\n3,5\n")
    (run / "polyakov.csv").write_text(f"# note: {HOSTILE}\n{table}")
    gauge_mc.report(run)
    content = (run / "report.html").read_text()
    page = Reader(content)
    assert HOSTILE in page.text.replace("&#x27;", "'") or hostile in page.text
    assert "<img src=x" not in content
    assert {one.get("src", "data:")[:5] for one in page.attributes("img")} <= {"data:"}
    assert [one.get("type") for one in page.attributes("script")].count(None) == 1
    for tag, attributes in page.tags:
        assert tag != "b"
        assert not [one for one in attributes if one.startswith("on")]
        assert not attributes.get("href", "").lower().startswith(("javascript", "http", "data"))
    policy = next(one["content"] for one in page.attributes("meta") if "http-equiv" in one)
    assert "default-src 'none'" in policy
    assert not re.search(r"https?://(?!www.w3.org)", re.sub(r"<script>.*", "", content, flags=re.S))


def test_a_chart_has_a_drawing_and_gaps():
    values = [1.0, math.nan, 3.0, 4.0]
    chart = Chart("t", "x", "y", [0, 1, 2, 3], [ChartLine("a", values, [0.1] * 4)], "what", cut=1.5)
    page = Reader(chart.html())
    (found,) = page.charts
    assert found["lines"][0]["values"] == [1, None, 3, 4]
    (drawing,) = page.attributes("svg")
    assert (drawing["role"], drawing["aria-label"]) == ("img", "what")
    lines = [one["d"] for one in page.attributes("path") if one.get("class") == "line c0"]
    assert [one.count("M") for one in lines] == [2]
    assert "cut" in {one.get("class") for one in page.attributes("rect")}
    empty = Chart("t", "x", "y", [], [ChartLine("a", [])], "what").html()
    assert "NaN" not in empty
    assert "nan" not in empty


def test_the_autocorrelation_function_has_errors():
    """The error of rho of AR(1) is that of many chains."""
    chains = autoregressive(np.random.default_rng(1), 2000, 60, 0.7).T
    found = [autocorrelation(one, 12, 20) for one in chains]
    rho, error = (np.array(one) for one in zip(*found, strict=True))
    np.testing.assert_allclose(rho.mean(axis=0), 0.7 ** np.arange(13), atol=0.03)
    np.testing.assert_allclose(error.mean(axis=0)[1:], rho.std(axis=0)[1:], rtol=0.35)
    assert (error[:, 0] == 0).all()


def test_a_file_that_is_not_a_report_stays(run, tmp_path):
    other = tmp_path / "other.html"
    other.write_text("<html>mine</html>")
    assert "must not replace" in call("report", run, "--output", other)[0]
    assert other.read_text() == "<html>mine</html>"
    shown, code = call("report", run, "--output", tmp_path / "page.html", "--skip", "30")
    assert (shown, code) == (f"{tmp_path}/page.html\n", 0)
    assert (tmp_path / "page.html").read_bytes().startswith(MARK)
    shown, code = call("report", run, "--output", tmp_path / "page.html", "--json")
    assert json.loads(shown)["runs"] == [str(run)]
    assert "There is no run" in call("report", tmp_path / "nowhere")[0]
    with pytest.raises(UsageError, match="give a whole number"):
        gauge_mc.report(run, skip="hot")


def test_a_long_run_makes_a_small_page(tmp_path, monkeypatch):
    """Of 10^5 updates."""
    run = write_run(tmp_path / "run", samples=100_000)
    found = gauge_mc.report(run)
    assert found.bytes < 3e6
    history = read_page(run / "report.html").charts[0]
    assert len(history["x"]) == PIECES
    values = read_table(run / "plaquette.csv")["plaquette"]
    low, high, mean = (one["values"] for one in history["lines"])
    assert (min(low), max(high)) == pytest.approx((values.min(), values.max()), rel=1e-6)
    assert len(mean) == PIECES


def test_figures_of_fits_are_drawn_without_files_of_results(tmp_path):
    run = write_run(tmp_path / "run")
    loops = synthetic_loops(np.random.default_rng(1), 60)
    header = {"observable": "wilson_loops", "group": "su3", "beta": "5.7", "lattice": "4x4x4x8"}
    write_loops(run / "wilson_loops.csv", loops, header=header)
    before = sorted(one.name for one in run.iterdir())
    gauge_mc.report(run, tmp_path / "page.html")
    assert sorted(one.name for one in run.iterdir()) == before
    page = read_page(tmp_path / "page.html")
    pictures = [one["alt"] for one in page.attributes("img")]
    label = "SU(3), β = 5.7, 4³×8"
    for name in ("potential", "wilson-loops"):
        summary = PLOTS[name].summary
        assert f"{summary[:1].upper()}{summary[1:]}: {label}" in pictures
    assert f"{PLOTS['static-force'].summary}: {label}" in pictures  # r² is no word
    assert pictures.count(f"{PLOTS['potential'].summary}: {label}") == 1
    order = ("result: √σ", "Tables Scales of the", PLOTS["potential"].summary, "State and")
    places = [page.text.rindex(words) for words in (*order, "Parameters ", "Time series")]
    assert places == sorted(places)
    assert {"Tables", "Parameters"} <= {one.strip() for one in page.summaries}
    assert "Scales of the static potential" in page.text
    assert str(run) in page.text
    scratch = str(Path(tempfile.gettempdir(), tempfile.gettempprefix()))
    assert scratch not in page.text


def test_kept_fits_of_other_tables_are_replaced(tmp_path):
    """The figure of a table shows the fit that the page has made, and says so."""
    run, table = write_run(tmp_path / "run"), tmp_path / "run" / "wilson_loops.csv"
    write_loops(table, synthetic_loops(np.random.default_rng(1), 60))
    gauge_mc.fit("potential", run, r_min=1)
    kept = (run / "potential.json").read_bytes()

    def shown():
        gauge_mc.report(run, tmp_path / "page.html")
        assert (run / "potential.json").read_bytes() == kept
        return read_page(tmp_path / "page.html").text

    sentence = "was made from another table than wilson_loops.csv is now"
    assert sentence not in shown()
    table.unlink()
    write_loops(table, synthetic_loops(np.random.default_rng(2), 60))
    plot = PLOTS["potential"]
    with mock.patch.object(plot, "picture", wraps=plot.picture) as plotted:
        assert shown().count(sentence) == 1
    ((_, drawn),) = plotted.call_args.args[0]
    own = gauge_mc.fit("potential", run, output=tmp_path / "own.json", skip="auto")
    assert drawn.fits == own.potential.fits
    table.unlink()
    write_loops(table, synthetic_loops(np.random.default_rng(2), 2))  # too few for a fit
    text = shown()
    assert f"{sentence}, so that it is not shown; make it again with `gauge-mc fit" in text
    assert "The figure shows a fit that was made for this page" not in text


def test_a_scan_is_fitted_and_drawn_as_a_whole(tmp_path, monkeypatch):
    """Its runs are shown as well, and plots of scans that are not possible stop nothing."""
    monkeypatch.setitem(FITS._registered, "my-fit", FitOfScans())
    parameters = Parameters(
        group="su3", measure="plaquette", thermalize=0, configs=50, separation=1, format="none"
    )
    lattice = Lattice(4, 4, 4, 4)
    scan = Scan(tmp_path / "scan", parameters, (Grid((5.6, 5.7), (lattice,), 1),))
    scan.make()
    scan.write()
    dice = np.random.default_rng(1)
    for member in scan.members():
        member.run.path.mkdir()
        member.run.write(member.parameters, [SessionRecord.begin(0, "a CPU")])
        columns = {name: dice.normal(size=50) for name in ("plaquette", "spatial", "temporal")}
        header = {"observable": "plaquette", "group": "su3", "lattice": str(lattice)}
        header["beta"] = f"{member.point.beta:g}"
        write_columns(member.run.table("plaquette"), columns, header)
    found = gauge_mc.report(scan.path)
    assert found.file == str(tmp_path / "scan" / "report.html")
    assert len(found.runs) == 2
    page = read_page(scan.path / "report.html")
    assert "transition, scan:" in page.text  # why it is not possible
    assert "energy-momentum:" in page.text
    assert "my summary scan result: my number = 42.0(1.5)(0.5) Tables the number" in page.text


def test_a_page_that_cannot_be_written_is_refused_before_it_is_made(tmp_path, monkeypatch):
    """Figures of long runs take minutes."""
    run = write_run(tmp_path / "run")
    (tmp_path / "file").touch()
    monkeypatch.setattr(page_module, "page", lambda subject: pytest.fail("the page was made"))
    with pytest.raises(GaugeError, match=r"made in .*file; choose another --output"):
        gauge_mc.report(run, tmp_path / "file" / "page.html")
