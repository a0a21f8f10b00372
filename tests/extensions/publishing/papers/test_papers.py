"""Cards of papers: what they say, what is carried out, and what is compared."""

import json
import math
import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from gauge_mc.errors import INTERRUPTED, GaugeError, UsageError
from gauge_mc.extensions.publishing import commands
from gauge_mc.extensions.publishing.commands import forecast as forecast_paper
from gauge_mc.extensions.publishing.papers import (
    LARGE_PULL,
    UNREAD,
    ComparedEntry,
    Comparison,
    UsedEnsemble,
    as_published,
    find_card,
    known_cards,
    number_with_error,
    read_comparison,
    read_paper,
    value_at,
)
from gauge_mc.extensions.publishing.papers import reproduce as module
from gauge_mc.extensions.publishing.papers.reproduce import compare_kept, reproduce
from gauge_mc.observables import OBSERVABLES
from gauge_mc.run import needs
from gauge_mc.run.directory import Run
from gauge_mc.run.generate import generate
from gauge_mc.run.measurement import options_of_observable
from gauge_mc.run.open_run import RunRequest
from gauge_mc.run.parameters import UNSTATED, Parameters
from gauge_mc.run.results import open_run
from gauge_mc.run.settings import parse_time
from gauge_mc.run.state import TIME_LIMIT
from gauge_mc.scans.request import ScanRequest
from gauge_mc.scans.scan import Scan
from tests.calls import call, call_apart, make_run
from tests.reference.distributions import su2_strong_coupling_plaquette

CARD = """
paper = "hep-lat/0000001"
title = "plaquette of SU(2)"
where = "table 1"
read = "the expansion"

[shared]
group = "su2"
lattice = "4x4x4x6"
thermalize = 20
configs = 300
separation = 1
measure = "plaquette"
format = "none"

[ensembles.weak]
beta = 0.8

[ensembles.strong]
beta = 1.0

[[entries]]
name = "plaquette, β = 0.8"
ensemble = "weak"
average = "plaquette"
published = {weak}
error = 1e-6
at = 0.8

[[entries]]
name = "plaquette, β = 1.0"
ensemble = "strong"
average = "plaquette"
published = {strong}
error = 2e-5
at = 1.0
"""
EXACT = {"weak": su2_strong_coupling_plaquette(0.8), "strong": su2_strong_coupling_plaquette(1.0)}

CPU = {"backend": "cpu", "threads": 1, "progress": False}
QUIET = ("--output", "out", "--backend", "cpu", "--threads", 1, "--quiet")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(text=CARD, name="mine.toml", **values):
    path = Path(name)
    path.write_text(text.format(**{**EXACT, **values}))
    return path


def with_entry(text, **keys):
    """A card whose one entry, or another one, is a number of a fit."""
    rows = (f"{key} = {json.dumps(value)}\n" for key, value in keys.items())
    return f"{text}\n[[entries]]\n{''.join(rows)}"


def carried_out(path, **more):
    return reproduce(read_paper(path), output=Path("out"), **CPU, **more)


@pytest.mark.slow
@pytest.mark.kernels
def test_a_card_from_its_runs_to_its_files(monkeypatch):
    """Runs are used again if and only if they have the same parameters, also by a dry run."""
    monkeypatch.setattr(needs, "TEST_SECONDS", 0.01)
    found = carried_out(write())
    assert found.stopped is None
    for one, beta in zip(found.entries, (0.8, 1.0), strict=True):
        path = next(used.path for used in found.ensembles if used.name == one.ensemble)
        run = open_run(path)
        assert (run.parameters.beta, run.sweep) == (beta, 320)
        assert one.ours == run.averages["plaquette"].value
        assert one.error == run.averages["plaquette"].error
        pull = (one.ours - one.published) / math.hypot(one.error, one.published_error)
        assert one.pull == pytest.approx(pull)
        assert abs(pull) < 4
    assert found.chi2 == pytest.approx(sum(one.pull**2 for one in found.entries))
    document = json.loads(Path("out/mine.json").read_text())
    assert document["chi2"] == found.chi2
    assert [one["pull"] for one in document["entries"]] == found.pulls
    again = read_comparison(Path("out/mine.json"))
    assert again.entries == found.entries
    rows = Path("out/mine.csv").read_text().splitlines()
    assert len(rows) == 3
    assert rows[1].endswith(f"{found.pulls[0]!r},the expansion")
    assert Path("out/mine.pdf").read_bytes().startswith(b"%PDF")

    tables = {Path(one.path) / "plaquette.csv" for one in found.ensembles}
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in tables}
    other = CARD.replace("[ensembles.strong]\nbeta = 1.0", "[ensembles.strong]\nbeta = 1.1")
    card = read_paper(write(other, "other.toml"))
    left = forecast_paper(card, output=Path("out"), backend="cpu", threads=1)
    assert [one.updates_left for one in left.runs] == [0, 320]
    assert left.runs[0].run == found.ensembles[0].path
    assert left.runs[0].seconds == 0 < left.runs[1].seconds == left.seconds
    second = reproduce(card, output=Path("out"), **CPU)
    assert second.ensembles[0].path == found.ensembles[0].path
    assert second.ensembles[1].path != found.ensembles[1].path
    assert second.entries[0].ours == found.entries[0].ours
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in tables} == before


AGAINST = CARD.replace("published = {weak}\nerror = 1e-6", 'against = "strong"').replace(
    "beta = 0.8", "beta = 1.0\nseed = 5"
)


@pytest.mark.slow
@pytest.mark.kernels
def test_an_ensemble_may_stand_in_place_of_the_paper():
    found = carried_out(write(AGAINST))
    first, second = found.entries
    assert (first.against, first.read, first.known) == ("strong", None, True)
    assert (first.published, first.published_error) == (second.ours, second.error)
    assert first.pull == (first.ours - second.ours) / math.hypot(first.error, second.error)
    assert first.pull in found.pulls
    words = "Compared with our ensemble strong in place of the paper: plaquette, β = 0.8"
    assert words in found.sentences()
    assert read_comparison(Path("out/mine.json")).entries == found.entries
    assert Path("out/mine.csv").read_text().splitlines()[1].endswith(",strong")


def test_an_ensemble_that_is_not_there_leaves_an_entry_without_a_value():
    """The comparison can be read again, though it has no number beside ours."""
    one = ComparedEntry("a", "weak", math.nan, math.nan, note="There is none.", against="strong")
    assert (one.published_text, one.pull, one.counted) == ("—", None, False)
    words = ("mine", "paper", "title", "where", "about")
    Comparison(*words, [one], []).write(Path())
    again = read_comparison(Path("mine.json")).entries[0]
    assert math.isnan(again.published)
    assert (again.note, again.against) == (one.note, one.against)


def stopping(monkeypatch, updates, reason):
    """Let every run stop for a reason after some updates; return the time limits that they get."""
    true, limits = module.generate, []

    def stopped(values, **options):
        limits.append(options.pop("time_limit", None))
        begun = []

        def end(chain):
            begun.append(chain.sweep)
            return len(begun) == updates

        result = true(values, **options, on_update=end)
        if result.stopped:
            object.__setattr__(result, "stopped", reason)
        return result

    monkeypatch.setattr(module, "generate", stopped)
    return limits


@pytest.mark.slow
@pytest.mark.kernels
def test_a_budget_reduces_the_statistics_and_says_so(monkeypatch):
    """The second run has half as many updates, so that it gets a third of the time."""
    card = CARD.replace("beta = 1.0\n", "beta = 1.0\nthermalize = 20\nconfigs = 140\n")
    limits = stopping(monkeypatch, 100, TIME_LIMIT)
    found = carried_out(write(card), budget=3600.0)
    assert found.stopped is None
    first, second = (parse_time(one, "") for one in limits)
    assert 1800 <= first <= 2400
    assert 2700 <= second <= 3600  # a quarter less on the slowest machine
    assert [(one.updates, one.wanted) for one in found.ensembles] == [(100, 320), (100, 160)]
    for one in found.entries:
        run = open_run(next(used.path for used in found.ensembles if used.name == one.ensemble))
        assert len(run["plaquette"]) == 80
        assert one.ours == run.averages["plaquette"].value
    said = "\n".join(found.sentences())
    assert "weak: reduced statistics, 100 of 320 updates" in said
    assert "strong: reduced statistics, 100 of 160 updates" in said
    more = carried_out(write(card), budget=3600.0)
    assert [one.updates for one in more.ensembles] == [200, 160]
    assert "strong" not in "\n".join(more.sentences())
    monkeypatch.setattr(module, "generate", generate)
    assert [one.updates for one in carried_out(write(card)).ensembles] == [320, 160]


@pytest.mark.slow
@pytest.mark.kernels
def test_a_signal_ends_the_session(monkeypatch):
    assert stopping(monkeypatch, 30, "SIGTERM") == []
    found = carried_out(write())
    assert found.stopped == "SIGTERM"
    assert [(one.name, one.updates) for one in found.ensembles] == [("weak", 30)]
    assert found.entries[0].pull is not None
    assert found.entries[1].pull is None
    assert "not begun" in found.entries[1].note
    _, code = call("paper", "mine.toml", *QUIET)
    assert code == INTERRUPTED


@pytest.mark.slow
@pytest.mark.kernels
def test_a_fit_is_carried_out_once_with_its_options(monkeypatch):
    """Two entries of one fit, one whose key does not exist, and one with other options."""
    text = CARD.split("[[entries]]")[0]
    for name, value, t in (("a", "a", 1), ("b", "l[1]", 1), ("c", "no.thing", 1), ("d", "a", 2)):
        keys = {"name": name, "ensemble": "weak", "fit": "scale", "value": value}
        text = with_entry(text, **keys, published=0.0, error=1.0)
        text += f"options = {{{{ target = {t} }}}}\n"
    calls = []

    def fitted(what, targets, options, output):
        calls.append((what, [str(one) for one in targets], dict(options)))
        result = {"a": {"value": len(calls), "error": 2.0}, "l": [0, {"value": 3, "error": 4}]}
        output.write_text(json.dumps(result))
        yield result, output

    monkeypatch.setattr(module, "fit_all", fitted)
    found = carried_out(write(text))
    weak = found.ensembles[0].path
    assert calls == [("scale", [weak], {"target": 1}), ("scale", [weak], {"target": 2})]
    numbers = [(one.ours, one.error) for one in found.entries]
    assert numbers == [(1, 2), (3, 4), (None, None), (2, 2)]
    assert "no 'no'" in found.entries[2].note


@pytest.mark.slow
@pytest.mark.kernels
def test_a_fit_that_fails_leaves_its_entries_without_a_value():
    text = CARD.replace('average = "plaquette"', 'fit = "scale"\nvalue = "t0"', 1)
    first, second = carried_out(write(text)).entries
    assert first.ours is None
    assert first.note
    assert second.ours is not None


def test_keys_to_numbers_of_results():
    result = {"a": [{"m": "x y", "v": {"value": 1.5, "error": 0.5}}, {"m": "z", "v": None}]}
    assert value_at(result, "a[1].m") == "z"
    assert number_with_error(result, "a[m=x y].v") == (1.5, 0.5)
    for keys in ("b", "a[2]", "a[m=q].v", "a[0].w", "a[0].v.value.x", "a[", "a[1].v.value"):
        with pytest.raises(GaugeError):
            value_at(result, keys)
    for keys in ("a[1].v", "a[0].m"):
        with pytest.raises(GaugeError):
            number_with_error(result, keys)


def entry(ours, error=0.1, **more):
    return ComparedEntry("q", "e", 1.0, 0.1, ours, error, **{"read": "table 1", **more})


def comparison(*entries):
    used = [UsedEnsemble("e", "runs/e", {"beta": 1.0}, False, 5, 5)]
    return Comparison("c", "p", "t", "w", "", [*entries], used)


def test_pulls_and_what_follows_from_them():
    far = math.sqrt(0.03) * 2
    found = comparison(entry(1 + far, systematic=0.1), entry(1 - far / 2, systematic=0.1))
    assert found.pulls == pytest.approx([2, -1])
    assert found.chi2 == pytest.approx(5)
    assert found.spread == pytest.approx(math.sqrt(2.5))
    assert entry(None).pull is None
    assert not comparison(entry(1.7)).wrong
    assert comparison(entry(1.8)).wrong
    assert not comparison(entry(1.8, note="because")).wrong
    assert "does not explain" in "\n".join(comparison(entry(1.4)).sentences())
    assert "does not explain" not in "\n".join(comparison(entry(1.3)).sentences())


def test_numbers_that_were_not_read_are_shown_and_do_not_count():
    far = entry(9.0, read=None)
    found = comparison(entry(1.1), far)
    assert far.pull is not None
    assert not far.counted
    assert found.pulls == [found.entries[0].pull]
    assert found.chi2 == pytest.approx(found.entries[0].pull ** 2)
    assert not found.wrong
    assert comparison(replace(far, read="table 1")).wrong
    said = "\n".join(found.sentences())
    assert "for 1 entries" in said
    assert "not read, and do not count in χ²: q" in said
    assert "Published numbers: table 1" in said
    assert "does not explain" not in said
    assert far.published_text == f"1.0(1), {UNREAD}"
    (table,) = found.write(Path())[1:]
    rows = [row.rsplit(",", 1)[1] for row in table.read_text().splitlines()]
    assert rows == ["read", "table 1", UNREAD]
    again = read_comparison(Path("c.json"))
    assert [one.read for one in again.entries] == ["table 1", None]
    assert again.chi2 == found.chi2


def test_a_comparison_of_an_earlier_version_says_where_all_numbers_were_read():
    comparison(entry(1.1), entry(1.2)).write(Path())
    document = json.loads(Path("c.json").read_text())
    for one in document["entries"]:
        del one["read"]
    Path("c.json").write_text(json.dumps({**document, "read": "table 2"}))
    assert [one.read for one in read_comparison(Path("c.json")).entries] == ["table 2"] * 2


def test_a_card_says_of_every_number_where_it_was_read():
    assert [one.read for one in read_paper(write()).entries] == ["the expansion"] * 2
    own = CARD.replace("at = 1.0", 'at = 1.0\nread = "table 3"')
    assert [one.read for one in read_paper(write(own)).entries] == ["the expansion", "table 3"]
    alone = own.replace('read = "the expansion"\n', "")
    assert [one.read for one in read_paper(write(alone)).entries] == [None, "table 3"]
    with pytest.raises(UsageError, match="empty 'read'; leave it out"):
        read_paper(write(own.replace("table 3", " ")))


@pytest.mark.parametrize(("read", "code"), [("table 1", 1), (None, 0)])
def test_a_number_that_was_not_read_is_no_failure(monkeypatch, read, code):
    monkeypatch.setattr(commands, "reproduce", lambda *a, **k: comparison(entry(9.0, read=read)))
    shown, complaint, found = call_apart("paper", write(), "--quiet")
    assert (complaint, found) == ("", code)
    assert (UNREAD in shown) == (read is None)


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (0.006564, 7.5e-5, "0.006564(75)"),
        (5.6925, 0.0002, "5.6925(2)"),
        (0.6245, 5e-5, "0.62450(5)"),
        (2.0, 0.01, "2.00(1)"),
        (3.0, 0.0, "3"),
        (25.0, 10.0, "25(10)"),
    ],
)
def test_published_numbers_keep_their_digits(value, error, text):
    assert as_published(value, error) == text


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('paper = "hep-lat/0000001"', "", "lacks paper"),
        ("[shared]", "[shares]", "shares"),
        ("beta = 0.8", 'beta = "x"', "beta"),
        ('ensemble = "weak"', 'ensemble = "week"', "week"),
        ('average = "plaquette"', 'average = "plaket"', "does not measure; did you mean"),
        ('average = "plaquette"', "", "either an average"),
        ('average = "plaquette"', 'fit = "potentials"\nvalue = "v"', "potential"),
        ("error = 1e-6", "error = -1.0", "not a number"),
        ("error = 1e-6", "error = 1e-6\nfurther = 1", "further"),
        ("[ensembles.weak]", '[ensembles."../weak"]', "weak"),
        ("[ensembles.weak]", "[scans.weak]", "fit of scans"),
        ('against = "strong"', 'against = "week"', "against 'week', which is not an ensemble"),
        ("\nseed = 5", "", "compares ensembles of one seed"),
        ('against = "strong"', 'against = "strong"\npublished = 1.0', "both 'against' and a pub"),
        ('against = "strong"', 'against = "strong"\nread = "x"', "both 'against' and a published"),
    ],
)
def test_cards_that_are_not_sound(old, new, words):
    (text, *_) = (one for one in (CARD, AGAINST) if old in one)
    with pytest.raises(UsageError, match=words):
        read_paper(write(text.replace(old, new, 1)))


@pytest.mark.slow
def test_cards_are_found_by_name_paper_and_path():
    Path("more").mkdir()
    write(name="more/mine.toml")
    write(name="more/yours.toml")
    Path("runs/papers").mkdir(parents=True)
    write(CARD.replace("0000001", "0000002"), "runs/papers/own.toml")
    assert {"mine", "yours", "own"} <= known_cards(Path("more")).keys()
    assert "mine" not in known_cards()
    assert find_card("mine", Path("more")).path == Path("more/mine.toml")
    assert find_card("more/mine.toml").name == "mine"
    assert find_card("hep-lat/0000002").name == "own"
    assert find_card("arXiv:hep-lat/0000002").name == "own"
    with pytest.raises(UsageError, match="mine or yours"):
        find_card("hep-lat/0000001", Path("more"))
    with pytest.raises(UsageError, match="did you mean 'own'"):
        find_card("owm")
    with pytest.raises(UsageError, match="no folder"):
        known_cards(Path("nowhere"))


@pytest.mark.kernels
def test_kept_results_count_only_for_their_ensemble():
    measured = {"lattice": "4x4x4x6", "group": "su2", "beta": 0.8, "thermalize": 20}
    make_run(Path("kept"), **measured, configs=5, separation=1, measure="plaquette", format="none")
    number = {"value": 0.5, "error": 0.125}
    said = {"observable": "", "units": "", "ensemble": {"beta": "0.8"}, "t0": number, "more": -0.5}
    Path("kept/scale.json").write_text(json.dumps(said))
    text = CARD.split("[[entries]]")[0]
    text = text.replace("[ensembles.weak]", '[ensembles.weak]\nresults = "kept"')
    keys = {"name": "t0", "ensemble": "weak", "fit": "scale", "value": "t0", "systematic": "more"}
    text = with_entry(text, **keys, published=1.0, error=0.1)
    found = compare_kept(read_paper(write(text)))
    (one,) = found.entries
    assert (one.ours, one.error, one.systematic) == (0.5, 0.125, 0.5)
    assert found.ensembles[0].kept
    later = text.replace("thermalize = 20", "thermalize = 21")
    with pytest.raises(UsageError, match="thermalize differ"):
        compare_kept(read_paper(write(later)))
    os.remove("kept/run.toml")
    compare_kept(read_paper(write(later)))
    with pytest.raises(UsageError, match=r"beta = 0\.8"):
        compare_kept(read_paper(write(text.replace("beta = 0.8", "beta = 0.9"))))
    with pytest.raises(UsageError, match="no kept results"):
        compare_kept(read_paper(write()))


@pytest.mark.slow
@pytest.mark.kernels
def test_the_command(root):
    write(CARD.replace("300", "100"))
    shown, code = call("paper", "mine.toml", *QUIET)
    assert code == 0
    for word in ("ours", "published", "pull", "χ² =", "for 2 entries", "hep-lat/0000001"):
        assert word in shown
    write(CARD.replace("300", "100"), weak=0.3)
    shown, complaint, code = call_apart("paper", "mine.toml", *QUIET)
    assert (complaint, code) == ("", 1)
    assert "does not explain" in shown
    listed, code = call("paper")
    assert code == 0
    assert all(f"{one.stem[:14]}" in listed for one in (root / "runs/papers").glob("*.toml"))
    assert "…" not in listed


GRID = """
[scans.grid]
beta = "2.2,2.3"
lattice = "4x4x4x4"
"""


@pytest.mark.slow
@pytest.mark.kernels
def test_a_dry_run_lists_all_runs_with_their_times_and_makes_nothing(folder, monkeypatch):
    monkeypatch.setattr(needs, "TEST_SECONDS", 0.01)
    path = write(CARD.replace("[[entries]]", f"{GRID}\n[[entries]]", 1))
    words = ("paper", path, "--dry-run", *("--backend", "cpu", "--threads", 1))
    shown, code = call(*words)
    assert code == 0
    rows = [line.split() for line in shown.splitlines()]
    listed = [row[:4] for row in rows if row and row[0] in ("weak", "strong", "grid")]
    assert listed == [
        ["weak", "4x4x4x6", "0.8", "320"],
        ["strong", "4x4x4x6", "1", "320"],
        ["grid", "4x4x4x4", "2.2", "320"],
        ["grid", "4x4x4x4", "2.3", "320"],
    ]
    assert [*folder.iterdir()] == [folder / path]
    document = json.loads(call(*words, "--json")[0])
    times = [one["seconds"] for one in document["runs"]]
    assert all(one > 0 for one in times)
    alone = sum(times[:2])
    assert alone + max(times[2:]) <= document["seconds"] * (1 + 1e-9)
    assert document["seconds"] <= sum(times) * (1 + 1e-9)
    assert [*folder.iterdir()] == [folder / path]


def test_cards_of_the_program_are_sound_and_their_results_are_of_them(root):
    """Pulls are at most 2.5 or explained; what is kept has the published numbers of its card."""
    cards = known_cards(root / "runs/papers").values()
    results = {one.stem: one for one in (root / "runs/results/papers").glob("*.json")}
    assert results.keys() <= {one.stem for one in cards}
    assert len(cards) >= 10
    for card in map(read_paper, cards):
        found = [read_comparison(results[card.name])] if card.name in results else []
        for one in found[0].ensembles if found else ():
            wanted = card.ensembles[one.name].parameters.fixed()
            theirs = {**UNSTATED, **one.parameters}
            theirs = {key: str(theirs.get(key, "")) for key in wanted}  # a later option
            assert theirs == {key: str(value) for key, value in wanted.items()}
        if any(one.results for one in card.ensembles.values()):
            found.append(compare_kept(card))
        for each in found:
            for mine, entry in zip(each.entries, card.entries, strict=True):
                assert (mine.name, mine.published) == (entry.name, entry.published)
                assert (mine.published_error, mine.read) == (entry.error, entry.read)
                assert not mine.counted or mine.note or abs(mine.pull) <= LARGE_PULL


def test_every_volume_of_a_scan_gets_its_share_of_the_time(folder, monkeypatch):
    """Scans begin with the largest lattices, on which alone nothing can be extrapolated."""
    scans = """
[scans.both]
group = "su2"
beta = "1.86:1.88:0.02"
lattice = "6x6x6x2,4x4x4x2"
thermalize = 10
configs = 1000
separation = 1
measure = "plaquette,polyakov"
format = "none"
"""
    keys = {"name": "beta_c", "ensemble": "both", "fit": "transition"}
    keys |= {"value": "critical[0].beta", "published": 1.88, "error": 0.01}
    path = write(with_entry(CARD[: CARD.index("[shared]")] + scans, **keys))
    asked = []

    def scan(values, **options):
        asked.append((values["lattice"], parse_time(options["time_limit"], "")))
        return SimpleNamespace(stopped=TIME_LIMIT)

    monkeypatch.setattr(module, "scan", scan)
    found = reproduce(read_paper(path), budget=87.0, **CPU)
    assert [lattice for lattice, _ in asked] == ["4x4x4x2", "6x6x6x2"]
    assert asked[0][1] == pytest.approx(87 * 64 / (64 + 216), abs=1.5)
    assert asked[1][1] == pytest.approx(87, abs=2)  # nothing of it was used
    assert found.ensembles[0].reduced


FOLDERS = [
    (name, option.name)
    for name in OBSERVABLES
    for option in options_of_observable(name)
    if option.folder
]
"""Observables with an option that names a folder into which they write."""


@pytest.mark.parametrize(("observable", "option"), FOLDERS)
def test_a_card_writes_nowhere_but_into_the_folder_of_the_output(observable, option):
    def with_folder(name):
        text = CARD.replace('"plaquette"\nformat', f'"{observable}:10:{option}={name}"\nformat')
        return write(text.replace('average = "plaquette"', 'fit = "scale"\nvalue = "r0"'))

    for name in ("/tmp/elsewhere", "../elsewhere", "kept/../../elsewhere", "..", "/"):
        with pytest.raises(UsageError, match="which may lie anywhere; name a folder relative to"):
            read_paper(with_folder(name))
    for one in read_paper(with_folder("kept")).ensembles.values():
        (measured,) = Parameters.from_values(one.values_within(Path("out"))).measure
        assert measured.options == (f"{option}={Path('out/kept')}",)


@pytest.mark.parametrize(("observable", "option"), FOLDERS)
@pytest.mark.parametrize("name", ["/tmp/elsewhere", "kept/../../elsewhere", "kept"])
def test_a_run_or_scan_of_others_writes_nowhere_above_this_folder(folder, observable, option, name):
    measure = f"{observable}:10:{option}={name}"
    run, parameters = Run(Path("run")), Parameters.from_values({"measure": measure})
    run.table(observable).parent.mkdir()
    run.table(observable).touch()
    run.write(parameters, [])
    larger = Scan(Path("scan"), parameters).enlarged((2.2,))
    larger.path.mkdir()
    larger.write()
    for path, read in (
        (run.path, lambda values: RunRequest(values).parameters()),
        (larger.path, lambda values: ScanRequest.of(values).scan().parameters),
    ):
        assert read({"output": str(path), "measure": measure}).measure == parameters.measure
        if name == "kept":
            assert read({"output": str(path)}).measure == parameters.measure
        else:
            with pytest.raises(UsageError, match=f"{path}.toml would .* add --measure {measure} "):
                read({"output": str(path)})


def test_a_paper_that_cannot_be_begun_leaves_nothing(folder):
    path = write()
    with pytest.raises(UsageError):
        reproduce(read_paper(path), output=folder / "new/out", **{**CPU, "backend": "@"})
    assert [*folder.iterdir()] == [folder / path]


@pytest.mark.kernels
def test_a_card_of_which_nothing_can_be_compared_is_a_failure():
    """Two measurements give no error; before, the exit code was 0."""
    text = CARD.replace("configs = 300", "configs = 1")
    out, code = call("paper", write(text), *QUIET)
    assert code == 1
    assert "gauge-mc: No entry could be compared with its published" in out.splitlines()[-1]
