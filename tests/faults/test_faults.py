"""Calls of the system that fail, and kills, at every point of the commands that write files.

The quick tests try a part of the points, those that are marked `slow` some more, and those that
are marked `faults` every point in every way:

    pytest tests/faults -m faults -s

With ``-s`` they print how many points there are and what was tried.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import ChainMap
from pathlib import Path

import pytest

from gauge_mc.run.directory import Run
from gauge_mc.scans.scan import Scan
from tests.patience import PATIENCE
from tests.samples import all_of

pytestmark = [
    pytest.mark.kernels,
    pytest.mark.skipif(not shutil.which("cc"), reason="There is no C compiler."),
]

QUICK = {
    "generate": ("--actions=kill,torn,full,broken --every=30",),
    "convert": ("--actions=kill,torn,full,broken --every=6",),
    **ChainMap(*all_of("QUICK", "faults")),
}
"""Trials of the quick tests; those of extensions are in modules ``faults`` of their tests."""

SHORT = {
    "generate": ("--actions=kill --every=4", "--actions=torn,full,broken --every=12"),
    "generate-nersc": ("--actions=kill,full --every=16",),
    "continue": ("--actions=kill,full --every=12",),
    "pending": ("--instants=12",),
    "measure": ("--actions=kill,torn", "--actions=full,broken --every=3"),
    "convert": ("--actions=kill,torn,full,broken --every=2",),
    "export-hdf5": ("--actions=kill,torn,full,broken",),
    "export-pyerrors": ("--actions=full --every=2",),
    "export-parquet": ("--actions=full --every=2",),
    "scan": ("--actions=kill,full --every=80 --first=20",),
    **ChainMap(*all_of("SHORT", "faults")),
}
"""Trials of the slow tests."""

MORE = {"pending": ("--instants=40",), "scan": ("--actions=kill,full --every=30 --first=5",)}
"""Further trials, marked `every`."""

EVERYTHING = "--actions=kill,torn,full,broken"

LONG = {
    **dict.fromkeys(SHORT, (EVERYTHING,)),
    "pending": (EVERYTHING, "--instants=400", "--instants=200 --microseconds=10000"),
    "generate": (EVERYTHING, "--instants=200"),
    "scan": ("--actions=kill,full --every=3",),
}
"""Trials of the long tests."""


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    """The library that lets calls fail."""
    source = Path(__file__).parent / "faults.c"
    made = tmp_path_factory.mktemp("library") / "faults.so"
    words = ["cc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", made, source, "-ldl"]
    subprocess.run(words, check=True)
    return made


def trials(forms, *marks):
    pairs = [(name, words) for name, all_words in forms.items() for words in all_words]
    return [pytest.param(*pair, marks=marks) for pair in pairs]


def attempt(library, name, words):
    """Carry out trials; return the outcome."""
    command = [sys.executable, "-m", "tests.faults.driver", name, f"--library={library}"]
    environment = {**os.environ, "LD_PRELOAD": str(library), "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [*command, *words.split()], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    outcome = json.loads(done.stdout)
    print(json.dumps(outcome))
    return outcome


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "words"),
    [*trials(QUICK), *trials(SHORT, pytest.mark.slow), *trials(MORE, pytest.mark.every)],
)
def test_nothing_is_lost_at_some_points(library, name, words):
    outcome = attempt(library, name, f"{words} --verify-every=6")
    assert outcome["failures"] == []
    assert outcome["points"] > 4
    assert all(outcome["trials"].values())


@pytest.mark.faults
@pytest.mark.parametrize(("name", "words"), trials(LONG))
def test_nothing_is_lost_at_any_point(library, name, words):
    outcome = attempt(library, name, words)
    assert outcome["failures"] == []


def alive(process):
    """Return whether a thread of a process has not ended; until then the process holds its locks.

    The state of a process is that of its first thread, which may end before the others.
    """
    for path in Path(f"/proc/{process}/task").glob("*/stat"):
        try:
            text = path.read_text()
        except OSError:
            continue
        if text.rpartition(")")[2].split()[0] not in "ZX":
            return True
    return False


def children_of(process):
    """Return the children of a process."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == process:
            found.append(int(path.parent.name))
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    "times",
    [1, pytest.param(10, marks=pytest.mark.slow), pytest.param(60, marks=pytest.mark.faults)],
)
def test_a_scan_that_is_killed_leaves_no_orphans(tmp_path, times):
    """At any time: while its children start, or while they are at work."""
    draw = random.Random(times)
    for number in range(times):
        path = tmp_path / str(number)
        words = ["--beta", "2.3,2.4", "--lattice", "4", "--configs", "20000", "--output", path]
        scan = subprocess.Popen(
            [sys.executable, "-m", "gauge_mc", "scan", *words, "--backend=cpu", "--quiet"],
            start_new_session=True,
        )
        while not (children := children_of(scan.pid)) and scan.poll() is None:
            time.sleep(0.01)
        time.sleep(draw.uniform(0, 1.5))
        scan.send_signal(signal.SIGSTOP)  # it starts no child while we look for them
        os.waitpid(scan.pid, os.WUNTRACED)
        children = {*children, *children_of(scan.pid)}
        assert children
        scan.kill()
        scan.wait()
        deadline = time.monotonic() + PATIENCE
        while any(map(alive, children)) and time.monotonic() < deadline:
            time.sleep(0.05)
        left = [child for child in children if alive(child)]
        for child in left:
            os.kill(child, signal.SIGKILL)
        assert not left
        for member in Scan.read(path).members():
            assert not Run(member.run.path).holder()[1]


BAD = """
import os, sys
from contextlib import contextmanager
from gauge_mc.files import atomic
@contextmanager
def directly(path, turn=None):  # neither atomic nor synced
    with open(path, "w+b") as out:
        yield out
for name in ("run.checkpoint", "run.directory", "configurations.writing", "files.table"):
    __import__(f"gauge_mc.{name}")
    sys.modules[f"gauge_mc.{name}"].replacing = directly
from tests.faults import driver
driver.main()
"""


@pytest.mark.slow
def test_these_tests_notice_a_program_that_writes_carelessly(library):
    environment = {**os.environ, "LD_PRELOAD": str(library), "OPENBLAS_NUM_THREADS": "1"}
    words = [sys.executable, "-c", BAD, "generate", f"--library={library}", "--actions=torn"]
    done = subprocess.run(
        [*words, "--every=5"], env=environment, capture_output=True, text=True, check=True
    )
    assert len(json.loads(done.stdout)["failures"]) > 3
