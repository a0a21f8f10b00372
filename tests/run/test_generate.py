"""``gauge-mc generate`` and ``status`` as a user meets them: whole processes, and their ends."""

import contextlib
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

import gauge_mc as package
from gauge_mc.errors import INTERRUPTED, UsageError
from gauge_mc.files.table import read_table
from gauge_mc.random import GENERATORS
from gauge_mc.run.directory import Run
from tests.calls import call, make_run
from tests.formats.format_samples import HELD, sample
from tests.patience import PATIENCE
from tests.run.sessions import written

PROGRAM = [sys.executable, "-m", "gauge_mc"]
TINY = {"lattice": "4x4x4x4", "thermalize": 5, "configs": 3, "separation": 5}

KILLED_AT = """
import os, signal, sys
left, folder = int(sys.argv.pop(1)), sys.argv[sys.argv.index("--output") + 1]
def hook(event, arguments):
    global left
    touched = any(folder in str(argument) for argument in arguments[:2])
    if event == "os.truncate" or (event in ("open", "os.rename", "os.remove") and touched):
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)
from gauge_mc.cli import main
sys.addaudithook(hook)
main()
"""
"""The program, killed just before it opens, renames, removes or cuts a file of the run."""


def options(**values):
    return [
        word
        for name, value in ({"backend": "cpu", "threads": 1} | values).items()
        for word in (f"--{name.replace('_', '-')}", str(value))
    ]


def command(**values):
    return [*PROGRAM, "generate", *options(**(TINY | values))]


def process(*words, expect=0, **how):
    """Run a command to its end; return what it printed, or its one sentence of complaint."""
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, **how)
    assert done.returncode == expect, done.stderr
    if expect not in (0, INTERRUPTED):
        assert done.stderr.startswith("gauge-mc: ")
        assert done.stderr.count("\n") == 1
        return done.stderr
    assert not done.stderr
    return done.stdout


def gauge_mc(*words, expect=0, cwd="."):
    """Do the same within the process of the tests, which takes less time."""
    assert list(words[: len(PROGRAM)]) == PROGRAM
    with contextlib.chdir(cwd):
        shown, code = call(*words[len(PROGRAM) :])
    assert code == expect, shown
    return shown


@pytest.fixture(scope="module", autouse=True)
def environment():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(package.__file__).parent.parent))
        yield


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_a_run_from_beginning_to_end(folder):
    shown = process(*command())
    path = folder / "runs" / "su2_b2.5_4x4x4x4"
    assert sorted(item.name for item in path.iterdir()) == [
        "checkpoint",
        "configs",
        "lock",
        "plaquette.csv",
        "polyakov.csv",
        "run.log",
        "run.toml",
    ]
    assert list(Run(path).configs()) == [10, 15, 20]
    assert read_table(path / "plaquette.csv").columns["sweep"].tolist() == list(range(6, 21))
    assert re.search(r"plaquette +0\.\d+\(\d+\)", shown)
    assert "3 configurations" in shown
    facts = tomllib.loads((path / "run.toml").read_text())
    assert (facts["beta"], facts["seed"], facts["lattice"]) == (2.5, 1, "4x4x4x4")
    assert facts["session"][0]["device"]
    before = written(path)
    assert "is complete" in process(*command())
    assert written(path) == before
    assert "complete" in process(*PROGRAM, "status")
    assert Run(path).holder()[0].sweep == 20


@pytest.mark.slow
def test_a_run_that_keeps_no_configurations(folder):
    gauge_mc(*command(output="usual"))
    shown = gauge_mc(*command(output="lean", format="none", configs=2))
    assert "lean (no configurations)" in shown
    gauge_mc(*PROGRAM, "generate", *options(output="lean", configs=3))
    usual, lean = (written(folder / name) for name in ("usual", "lean"))
    assert lean == {name: usual[name] for name in ("plaquette.csv", "polyakov.csv")}
    shown = gauge_mc(*PROGRAM, "status", "lean")
    assert re.search("configurations +not kept", shown)
    assert re.search("state +complete", shown)
    assert re.search("configurations +0", gauge_mc(*PROGRAM, "info", "lean"))
    assert "All 4 files are good" in gauge_mc(*PROGRAM, "verify", "lean")
    words = ("measure", "wilson-loops", "lean", "--backend", "cpu")
    refusal = gauge_mc(*PROGRAM, *words, expect=1)
    assert "keeps no configurations, because its format is none" in refusal
    words = ("convert", "lean", "out", "--to", "none")
    assert "lean is a directory" in gauge_mc(*PROGRAM, *words, expect=2)
    other = gauge_mc(*command(output="lean", format="ildg"), expect=2)
    assert "format = none, not ildg" in other
    (folder / "lean" / "checkpoint" / "latest").unlink()
    lost = gauge_mc(*command(output="lean", format="none"), expect=1)
    assert "contains results but no checkpoint; start a new run with another --output" in lost


def test_quiet_says_nothing(folder):
    assert gauge_mc(*command(), "--quiet") == ""


def test_a_card_options_that_override_it_and_run_toml_as_a_card(folder):
    card = folder / "card.toml"
    lines = [f'lattice = "{TINY["lattice"]}"', "thermalize = 1", "configs = 1", "seed = 5"]
    card.write_text("\n".join([*lines, 'output = "first"', 'backend = "cpu"', "threads = 1"]))
    gauge_mc(*PROGRAM, "generate", "--card", "card.toml", "--separation", "2")
    facts = tomllib.loads((folder / "first" / "run.toml").read_text())
    assert (facts["thermalize"], facts["seed"], facts["separation"]) == (1, 5, 2)
    again = options(card="first/run.toml", output="second")
    gauge_mc(*PROGRAM, "generate", *again)
    assert written(folder / "first") == written(folder / "second")


UNEQUAL = {"lattice": "4x6x8x6", "group": "su3", "precision": "double"}


@pytest.mark.slow
def test_threads_do_not_change_a_bit(folder):
    gauge_mc(*command(output="one", threads=1, **UNEQUAL))
    gauge_mc(*command(output="two", threads=2, **UNEQUAL))
    assert written(folder / "one") == written(folder / "two")


@pytest.mark.slow
def test_raising_configs(folder):
    gauge_mc(*command(output="whole"))
    gauge_mc(*command(output="raised", configs=1))
    gauge_mc(*PROGRAM, "generate", *options(output="raised", configs=3))
    assert written(folder / "raised") == written(folder / "whole")
    lower = gauge_mc(*command(output="raised", configs=2), expect=2)
    assert "has made 3 configurations; --configs can be increased, or decreased to 3" in lower
    gauge_mc(*PROGRAM, "generate", *options(output="raised", configs=5), "--dry-run")


@pytest.mark.slow
def test_a_misspelt_run_is_not_begun(folder):
    """Nothing of physics is given, so that another run is meant; a killed one begins anew."""
    gauge_mc(*command(output="runs/foo", configs=1))
    for words in ((), ("--dry-run",), ("--chains", 2)):
        refusal = gauge_mc(*PROGRAM, "generate", *options(output="fo", configs=8), *words, expect=2)
        assert "There is no run fo" in refusal
        assert "To begin one, state its physics" in refusal
    assert "did you mean 'runs/foo'?" in call("generate", "--output", "fo")[0]
    assert [one.name for one in folder.iterdir()] == ["runs"]
    shutil.rmtree("runs/foo/checkpoint")
    shutil.rmtree("runs/foo/configs")
    for table in Path("runs/foo").glob("*.csv"):
        table.unlink()
    gauge_mc(*PROGRAM, "generate", *options(output="runs/foo", configs=2))
    p, _ = Run(Path("runs/foo")).read()
    assert (str(p.lattice), p.configs) == ("4x4x4x4", 2)


@pytest.mark.slow
def test_lowering_configs_to_what_is_there(folder):
    """The run is complete then, also if it has done some updates more, and can go on exactly."""
    gauge_mc(*command())
    how = {**TINY, "output": "lowered", "backend": "cpu", "threads": 1, "progress": False}
    stopped = package.generate(on_update=lambda chain: chain.sweep == 17, **how)
    assert (stopped.stopped, stopped.sweep) == ("on_update", 17)
    gauge_mc(*PROGRAM, "generate", "--output", "lowered", "--configs", "2")
    p, _ = Run(folder / "lowered").read()
    assert (p.configs, p.updates) == (2, 15)
    assert package.status("lowered").state == "complete"
    assert all(one.sound for one in package.verify("lowered"))
    gauge_mc(*PROGRAM, "generate", "--output", "lowered", "--configs", "2", "--dry-run")
    gauge_mc(*PROGRAM, "generate", *options(output="lowered", configs=3))
    assert written(folder / "lowered") == written(folder / "runs" / "su2_b2.5_4x4x4x4")


def kills_until_done(dice, words):
    """Run again and again, killed each time, until it ends before; return the number of kills."""
    for attempt in range(400):
        counted = attempt % 4
        at = str(dice.randrange(1, 60) if counted else 0)
        child = subprocess.Popen(
            [sys.executable, "-c", KILLED_AT, at, "generate", *words, "--quiet"]
        )
        try:
            code = child.wait(PATIENCE if counted else dice.uniform(0.2, 0.4))
        except subprocess.TimeoutExpired:
            child.kill()
            code = child.wait()
        if code == 0:
            return attempt
        assert code == -signal.SIGKILL
    raise AssertionError("The run never ended.")


@pytest.mark.parametrize(
    "rng",
    [
        pytest.param(one, marks=pytest.mark.slow if one == "ranlux" else pytest.mark.every)
        for one in GENERATORS
    ],
)
def test_killed_at_many_instants_the_run_is_the_same(folder, rng):
    """Kills come at random times, and just before random accesses to files."""
    gauge_mc(*command(output="whole", rng=rng, configs=10))
    dice = random.Random(rng)
    words = options(output="broken", rng=rng, checkpoint_every=0.0002, **(TINY | {"configs": 10}))
    killed = 0
    while killed < 4:  # a fast machine may end a run after few
        shutil.rmtree("broken", ignore_errors=True)
        killed += kills_until_done(dice, words)
        assert written(folder / "broken") == written(folder / "whole")
        assert not list((folder / "broken").rglob("*.tmp"))


LONG = {
    "lattice": "8x8x8x8",
    "group": "su3",
    "precision": "double",
    "configs": 1000,
    "measure": "plaquette",
}


def wait_for(event, child):
    """Wait until something has happened, for as long as a child is at work."""
    while not event():
        assert child.poll() is None
        time.sleep(0.02)


def begin(**values):
    child = subprocess.Popen(
        command(**(LONG | values)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    table = Run(Path(values["output"])).table("plaquette")
    wait_for(lambda: table.exists() and len(read_table(table).columns["sweep"]) > 2, child)
    return child


@pytest.mark.slow
@pytest.mark.parametrize(
    "number",
    [
        pytest.param(signal.SIGINT, marks=pytest.mark.slow),
        signal.SIGTERM,
        pytest.param(signal.SIGUSR1, marks=pytest.mark.slow),
        pytest.param(signal.SIGHUP, marks=pytest.mark.slow),
    ],
)
def test_signals_write_a_checkpoint_and_say_how_to_go_on(folder, number):
    child = begin(output=folder / "a run")
    child.send_signal(number)
    shown, complaint = child.communicate(timeout=PATIENCE)
    assert (child.returncode, complaint) == (INTERRUPTED, "")
    word = f"Stopped by {number.name}; to continue: gauge-mc generate --output '{folder}/a run'"
    assert word in shown
    assert "stopped" in gauge_mc(*PROGRAM, "status", "a run")
    sweep = read_table("a run/plaquette.csv").columns["sweep"].tolist()
    assert re.search(rf"updates +{sweep[-1]} of", gauge_mc(*PROGRAM, "status", "a run"))


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_kernels_are_compiled(folder, monkeypatch, number):
    """The compilers are ended, and there was nothing to be kept."""
    monkeypatch.setenv("GAUGE_MC_CACHE", str(folder / "cache"))
    child = subprocess.Popen(
        command(**LONG, output="run"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    wait_for(lambda: list(folder.glob("cache/tmp*/")), child)
    time.sleep(0.1)
    os.killpg(child.pid, number)
    _, complaint = child.communicate(timeout=PATIENCE)
    assert child.returncode == INTERRUPTED
    when = "while (a kernel was compiled|another process was compiling a kernel)"
    assert re.fullmatch(f"gauge-mc: Stopped by {number.name} {when}; repeat .*\\.\n", complaint)
    assert not list(folder.glob("cache/tmp*"))
    assert not (folder / "run").exists()


@pytest.mark.slow
def test_a_run_at_work_is_seen_and_not_disturbed(folder):
    child = begin(output="run")
    try:
        time.sleep(1.2)
        assert f"running: process {child.pid}" in gauge_mc(*PROGRAM, "status", "run")
        refusal = gauge_mc(*command(**LONG, output="run"), expect=1)
        assert f"in use by process {child.pid}" in refusal
        assert child.poll() is None
    finally:
        child.kill()
        child.communicate()


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"lattice": "5x4x4x4"}, "even"),
        ({"beta": "0"}, "--beta is 0; give a number from"),
        ({"rng": "lcg", "seed": 0}, "seed"),
        ({"backend": "abacus"}, "abacus"),
        ({"threads": 0}, "threads"),
        ({"time_limit": "soon"}, "HH:MM:SS"),
        ({"card": "none.toml"}, "No such file"),
        ({"card": "odd.toml"}, "Unknown key 'overelax'.*did you mean 'overrelax'"),
        ({"start": "none.lime"}, "no start file"),
        ({"start": "su3.lime"}, "contains su3 on 4x4x4x4.*for su2"),
        ({"start": "su3.lime", "group": "su3", "lattice": "4x4x4x6"}, "contains su3 on 4x4x4x4"),
        ({"output": "odd.toml"}, "is a file"),
        ({"output": "."}, "not empty"),
        ({"bata": 2}, "--bata is not an option of gauge-mc generate; did you mean '--beta'"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(inputs, values, sentence):
    assert re.search(sentence, gauge_mc(*command(**values), expect=2, cwd=inputs))
    assert not list(inputs.glob("runs/*"))


@pytest.mark.first_quick
@pytest.mark.parametrize(
    ("values", "sentence", "code"),
    [
        ({"start": "noise.lime"}, "not a configuration", 69),
        ({"start": "damaged.lime", "group": "su3"}, "damaged", 1),
        ({"output": "/proc/run"}, "/proc/run", 1),
    ],
)
def test_bad_files_are_one_sentence(inputs, values, sentence, code):
    assert re.search(sentence, gauge_mc(*command(**values), expect=code, cwd=inputs))


@pytest.fixture(scope="module")
def inputs(environment, tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    gauge_mc(*command(group="su3", precision="double", configs=1, output="run"), cwd=folder)
    good = (folder / "run" / "configs" / "0000010.lime").read_bytes()
    (folder / "su3.lime").write_bytes(good)
    (folder / "damaged.lime").write_bytes(good[:-3000] + b"\x55" * 100 + good[-2900:])
    (folder / "noise.lime").write_bytes(random.Random(1).randbytes(5000))
    (folder / "odd.toml").write_text("overelax = 4")
    return folder


def test_a_bad_start_does_not_fix_the_parameters(inputs):
    values = {"output": "new", "group": "su3", "precision": "double"}
    gauge_mc(*command(**values, start="damaged.lime"), expect=1, cwd=inputs)
    assert not (inputs / "new").exists()
    gauge_mc(*command(**values, start="su3.lime", configs=1), cwd=inputs)
    assert list(Run(inputs / "new").configs()) == [10]


@pytest.mark.slow
@pytest.mark.parametrize(("group", "precision"), [("su2", "single"), ("su3", "double")])
def test_start_files_of_all_formats_begin_the_same_run_anywhere(folder, group, precision):
    results = []
    formats = [format for format, *kind in HELD if kind == [group, precision]]
    for format in formats:
        place = folder / format
        place.mkdir()
        (place / "start").write_bytes(sample(format, group, precision)[1])
        values = {"lattice": "4x2x6x8", "group": group, "precision": precision}
        start = {"start": str(place / "start")}
        results.append(written(make_run(place / "run", **values, **start)))
        for name, other in (("lattice", "4x4x4x8"), ("group", "su3" if group == "su2" else "su2")):
            with pytest.raises(UsageError, match=f"contains {group} on 4x2x6x8, but the run"):
                make_run(place / "no", **(values | {name: other}), **start)
            assert not (place / "no").exists()
    assert len(formats) >= 2
    assert len(results[0]) == 5
    assert all(result == results[0] for result in results)


def test_different_parameters_are_named(folder):
    gauge_mc(*command(output="run"))
    before = written(folder / "run")
    refusal = gauge_mc(*command(output="run", beta=2.6, seed=2), expect=2)
    assert "beta = 2.5, not 2.6; seed = 1, not 2" in refusal
    assert written(folder / "run") == before


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is unwritable for root")
def test_an_unwritable_folder(folder):
    (folder / "closed").mkdir(mode=0o555)
    assert "Permission denied" in gauge_mc(*command(output="closed/run"), expect=1)


@pytest.mark.slow
def test_a_full_disk_loses_nothing(folder):
    """A limit on the size of files stands in for a disk that fills up; tables hit it."""
    many = {"configs": 20, "separation": 40}
    gauge_mc(*command(output="whole", **many))
    size = (folder / "whole" / "configs" / "0000045.lime").stat().st_size
    assert (folder / "whole" / "plaquette.csv").stat().st_size > size
    words = command(output="run", **many, checkpoint_every=0)
    sentence = process(
        *words, expect=1, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    )
    assert "could not be written" in sentence
    assert "stopped" in gauge_mc(*PROGRAM, "status", "run")
    gauge_mc(*words)
    assert written(folder / "run") == written(folder / "whole")


@pytest.mark.slow
def test_a_disk_too_small_for_a_checkpoint(folder):
    process(*command(output="before"))  # which compiles the kernels
    words = command(output="run")
    sentence = process(
        *words, expect=1, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
    )
    assert "could not be written" in sentence
    gauge_mc(*command(output="run", seed=3))


def test_one_measurement_has_no_error(folder):
    gauge_mc(*command(output="run", measure="plaquette:15", format="none"))
    shown = gauge_mc(*PROGRAM, "status", "run")
    assert re.search(r"^plaquette +0\.\d{4,5} +1$", shown, re.M)
    assert "nan" not in shown


def test_status_needs_a_run(folder):
    assert "no runs and no scans in runs" in gauge_mc(*PROGRAM, "status", expect=2)
    assert "no run in" in gauge_mc(*PROGRAM, "status", ".", expect=2)
