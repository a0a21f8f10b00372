"""``gauge-mc thin``: configurations that were removed on purpose are not missing."""

import json
import random
import shutil
from pathlib import Path

import pytest

from gauge_mc import thin
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.run.directory import Run
from gauge_mc.run.parameters import Parameters
from gauge_mc.stored.thinning import RemovedConfigurations, Rule
from tests.calls import call, make_run
from tests.test_pins import PINS

CONFIGS = 6


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("made") / "run", configs=CONFIGS)


@pytest.fixture
def run(made, tmp_path):
    return shutil.copytree(made, tmp_path / "run")


def there(run):
    return list(Run(run).configs())


def content(run):
    return {path.relative_to(run): path.read_bytes() for path in run.rglob("*") if path.is_file()}


def test_a_dry_run_changes_nothing(run):
    before = content(run)
    size = sum((run / "configs" / f"{n:07}.lime").stat().st_size for n in (5, 8, 14, 17))
    shown, code = call("thin", run, "--keep", "3", "--dry-run")
    assert code == 0
    assert shown.splitlines() == [
        f"would be removed: 4 of 6 configurations, {size / 1000:.1f} kB "
        "(after updates 5, 8, 14, 17)",
        "kept: 2 (after updates 11, 20)",
    ]
    assert content(run) == before


@pytest.mark.slow
def test_what_was_removed_is_not_missing(run):
    before = content(run)
    assert call("thin", run, "--keep", "3")[0].startswith("removed: 4 of 6 configurations")
    assert there(run) == [11, 20]
    shown, code = call("verify", run)
    assert code == 0, shown
    assert "thinned.toml  1 of 3 kept up to update 20" in shown
    assert "2 of 6, 4 removed on purpose" in call("status", run)[0]
    facts = json.loads(call("info", run, "--json")[0])
    assert (facts["configurations"], facts["configurations_removed"]) == (2, 4)
    tables = {name: data for name, data in before.items() if name.suffix == ".csv"}
    assert tables.items() <= content(run).items()
    Run(run).config(11, "ildg").unlink()
    shown, code = call("verify", run)
    assert (code, "0000011.lime is missing" in shown) == (1, True)


@pytest.mark.slow
def test_a_thinned_run_is_measured_and_continued_exactly(run, tmp_path):
    cpu = ("--backend", "cpu", "--threads", "1", "--quiet")
    whole = shutil.copytree(run, tmp_path / "whole")
    call("measure", "plaquette", run, *cpu)
    thin(run, 2)
    measured = (run / "plaquette_configs.csv").read_bytes()
    assert call("measure", "plaquette", run, *cpu)[1] == 0
    assert (run / "plaquette_configs.csv").read_bytes() == measured
    for path in (run, whole):
        assert call("generate", "--output", path, "--configs", CONFIGS + 2, *cpu)[1] == 0
    assert there(run) == [8, 14, 20, 23, 26]
    again = content(run)
    names = [name for name in again if name.suffix in (".lime", ".csv") and "_" not in name.stem]
    assert {name: content(whole)[name] for name in names} == {name: again[name] for name in names}
    assert call("measure", "plaquette", run, *cpu)[1] == 0
    assert call("verify", run)[1] == 0
    new = Run(run).config(23, "ildg")
    new.rename(tmp_path / "away")
    assert "0000023.lime is missing" in call("verify", run)[0]
    (tmp_path / "away").rename(new)
    assert thin(run, 2).removed == (23,)
    assert thin(run, 4).removed == (8, 20)
    assert there(run) == [14, 26]
    assert call("verify", run)[1] == 0


@pytest.mark.slow
def test_a_thinning_may_be_killed_at_any_point(made, tmp_path, monkeypatch):
    unlink, left = Path.unlink, []

    def failing(path, missing_ok=False):
        if path.suffix == ".lime":
            if not left:
                raise KeyboardInterrupt
            left.pop()
        unlink(path, missing_ok)

    for count in range(5):
        run = shutil.copytree(made, tmp_path / str(count))
        with monkeypatch.context() as patched:
            left[:] = range(count)
            patched.setattr(Path, "unlink", failing)
            if count < 4:
                with pytest.raises(KeyboardInterrupt):
                    thin(run, 3)
        assert len(there(run)) == CONFIGS - count * (count < 4)
        assert call("verify", run)[1] == 0
        thin(run, 3)
        assert there(run) == [11, 20]
        assert call("verify", run)[1] == 0
        assert len(RemovedConfigurations.of(Run(run), Parameters()).rules) == 1


def test_only_configurations_of_the_run_before_the_checkpoint_are_removed(run, tmp_path):
    own = Run(run).config(5, "ildg")
    others = [
        own.with_suffix(".h5"),
        own.with_suffix(".nersc"),
        own.with_name("0000006.lime"),
        own.with_name("notes.txt"),
    ]
    for path in others:
        shutil.copy(own, path)
    assert thin(run, 6).removed == (5, 8, 11, 14, 17)
    assert all(path.exists() for path in others)
    half_done = shutil.copytree(PINS / "v0_2" / "half_done", tmp_path / "half")  # 5 comes later
    with pytest.raises(UsageError, match="--keep 2 would remove all 1 configurations"):
        thin(half_done, 2)
    assert there(half_done) == [3, 5]


def test_nobody_else_may_be_at_work(run):
    with Run(run).locked(), pytest.raises(GaugeError, match="has been in use by process"):
        thin(run, 2)
    assert len(there(run)) == CONFIGS
    assert thin(run, 2, dry_run=True).removed == (5, 11, 17)


@pytest.mark.parametrize(
    ("words", "sentence", "code"),
    [
        (("--keep", "-3"), "--keep is -3; choose at least 2", 2),
        (("--keep", "7"), "--keep 7 would remove all 6 configurations", 2),
        (("--keep", "many"), "'many' is not a whole number", 2),
        ((), "gauge-mc thin needs --keep N and RUN, as in gauge-mc thin RUN --keep 2", 2),
    ],
)
def test_what_cannot_be_kept(run, words, sentence, code):
    before = content(run)
    shown, found = call("thin", run, *words)
    assert (sentence in shown, found) == (True, code)
    assert content(run) == before


def test_what_cannot_be_thinned(run, tmp_path):
    assert call("thin", tmp_path, "--keep", "2")[1] == 2
    unkept = make_run(tmp_path / "unkept", format="none")
    assert "keeps no configurations" in call("thin", unkept, "--keep", "2")[0]


@pytest.mark.slow
def test_runs_that_exchange_couplings_are_thinned_only_if_asked(tmp_path):
    scan = tmp_path / "scan"
    how = ("--lattice", "2x2x2x2", "--beta", "2.0,2.1", "--configs", "4", "--tempering", "--quiet")
    call("scan", *how, "--thermalize", "1", "--separation", "1", "--output", scan)
    run = next(path for path in sorted(scan.iterdir()) if path.is_dir())
    before = there(run)
    shown, code = call("thin", run, "--keep", "2")
    assert (code, "only be made again by the whole scan: add --unchecked" in shown) == (2, True)
    assert there(run) == before == [2, 3, 4, 5]
    assert call("thin", run, "--keep", "2", "--unchecked")[1] == 0
    assert there(run) == [3, 5]


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "",
        "thinned = 3",
        "[[thinned]]\nkeep = 0\nsweep = 9\ntime = ''\nversion = ''",
        "[[thinned]]\nkeep = 'a'\nsweep = 9\ntime = ''\nversion = ''",
        "[[thinned]]\nkeep = 2",
        "thinned = []",
    ],
)
def test_a_damaged_record_is_noticed_and_hides_nothing(run, text):
    thin(run, 2)
    (run / "thinned.toml").write_text(text)
    shown, code = call("verify", run)
    assert (code, "thinned.toml is damaged" in shown) == (1, True), shown
    assert shown.count(" is missing") == 3
    for words in (("status", run), ("thin", run, "--keep", "3")):
        shown, code = call(*words)
        assert (code, "thinned.toml is damaged" in shown) == (1, True)


def test_what_is_kept_is_known_without_counting():
    """As ranges, also where several rules overlap; and for numbers that nobody could count."""
    draw = random.Random(1)
    for _ in range(300):
        start, separation, configs = draw.randrange(5), draw.randrange(1, 4), 30
        p = Parameters(thermalize=start, separation=separation, configs=configs)
        rules = [(draw.randrange(1, 9), draw.randrange(p.updates + 1)) for _ in range(3)]
        known = RemovedConfigurations(p, tuple(Rule(*rule, "", "") for rule in rules))
        last = draw.randrange(p.updates + 1)
        due = range(start + separation, last + 1, separation)
        kept = [number for part in known.kept(last) for number in part]
        assert kept == [number for number in due if number not in known]
    p = Parameters(thermalize=0, separation=1, configs=10**12)
    known = RemovedConfigurations(p, (Rule(10**6, 10**12, "", ""), Rule(7, 10**11, "", "")))
    assert known.kept(10**12) == [
        range(7 * 10**6, 10**11 + 1, 7 * 10**6),
        range(10**11 + 10**6, 10**12 + 1, 10**6),
    ]


def test_a_record_of_updates_that_the_run_does_not_have_is_refused(run):
    thin(run, 3)
    record = Run(run).thinned
    record.write_text(record.read_text().replace("sweep = 20", "sweep = 1000000000000000"))
    for command in ("status", "info"):
        said, code = call(command, run)
        assert "it mentions update 1000000000000000, and the run ends after 20" in said
        assert code == 1
    shown, code = call("verify", run)
    assert (code, "0000005.lime is missing" in shown) == (1, True)
