"""Output that cannot be written costs no results."""

import os
import signal
import subprocess
import sys

import pytest

from gauge_mc.run.checkpoint import read_state
from gauge_mc.run.directory import Run
from gauge_mc.run.state import SIGNALS, Stop
from tests.calls import call
from tests.patience import PATIENCE

pytestmark = pytest.mark.kernels

SLOW = pytest.mark.slow

WORDS = "generate --lattice 4 --thermalize 2 --configs 2 --separation 3 --backend cpu --threads 1"
DONE = 8
"""Number of updates of the run."""

LOST = "gauge-mc: The output could not be shown (No space left on device), but everything else is"


def shell(command, **environment):
    """Run a shell command in which ``$G`` is the program."""
    program = f"{sys.executable} -m gauge_mc"
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        env={**os.environ, "G": program, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("redirection", "code", "complaint"),
    [
        pytest.param("| head -c 1 > /dev/null", 0, "", marks=SLOW),
        ("| true", 0, ""),
        ("> /dev/full", 1, LOST),
        pytest.param(">&-", 0, "", marks=SLOW),
        ("<&- >&- 2>&-", 0, ""),
        pytest.param("> /dev/full 2> /dev/full", 1, "", marks=SLOW),
    ],
)
def test_a_run_goes_on_without_its_output(tmp_path, redirection, code, complaint):
    done = shell(f"$G {WORDS} --output {tmp_path}/run {redirection}")
    assert done.returncode == code
    assert done.stderr.startswith(complaint)
    assert done.stderr.count("\n") == bool(complaint)
    assert read_state(Run(tmp_path / "run").checkpoint).sweep == DONE
    assert call("verify", tmp_path / "run")[1] == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "encoding"),
    [
        ("generate --help", "ascii"),
        ("--help", "latin-1"),
        ("status $RUN", "ascii"),
        ("info $RUN", "utf-8"),
        *(
            pytest.param(words, encoding, marks=SLOW)
            for words in ("generate --help", "--help", "status $RUN", "info $RUN")
            for encoding in ("ascii", "latin-1", "utf-8")
        ),
    ],
)
def test_every_terminal_can_show_everything(tmp_path_factory, encoding, words):
    """Even file names that are not UTF-8."""
    run = os.fsencode(tmp_path_factory.getbasetemp()) + b"/caf\xe9"
    if not os.path.exists(run):
        subprocess.run(
            [sys.executable, "-m", "gauge_mc", *WORDS.split(), b"--output=" + run], check=True
        )
    done = subprocess.run(
        [sys.executable, "-m", "gauge_mc", *(run if w == "$RUN" else w for w in words.split())],
        env={**os.environ, "PYTHONIOENCODING": encoding, "LC_ALL": "C"},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    done.stdout.decode(encoding)
    if "$RUN" in words:
        assert rb"caf\xe9" in done.stdout


def test_a_lost_terminal_stops_a_run_like_sigterm(tmp_path):
    """Unless it is ignored, as nohup lets it be."""
    assert signal.SIGHUP in SIGNALS
    with Stop() as stop:
        os.kill(os.getpid(), signal.SIGHUP)
        assert stop(0) == "SIGHUP"
    old = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Stop() as stop:
            os.kill(os.getpid(), signal.SIGHUP)
            assert stop(0) is None
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, old)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_what_is_half_written_is_removed_when_a_signal_ends_a_command(tmp_path, number):
    """A command without checkpoints: its own handler cleans up, and the signal ends it."""
    code = (
        "import os, signal, sys; from pathlib import Path\n"
        "from gauge_mc import cli; from gauge_mc.files.atomic import replacing\n"
        "def app(**_):\n"
        "    with replacing(Path('out')) as file:\n"
        f"        os.kill(os.getpid(), {int(number)})\n"
        "cli.app = app; cli.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=False)
    assert done.returncode == -number
    assert os.listdir(tmp_path) == []
