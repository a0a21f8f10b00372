"""Try one command under faults, at one call of the system after the other.

    python -m tests.faults.driver generate --actions kill,full --every 3 --library faults.so

The library of ``faults.c`` must be loaded (LD_PRELOAD). The program is imported once, and every
trial is a fork of this process. After a fault, the command is repeated without one, and must then
have written the same bytes as if there had been none. The outcome is printed as a JSON object.
"""

import argparse
import contextlib
import ctypes
import io
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from tests.faults.commands import Trial, all_trials, contents, fresh, leftovers
from tests.patience import PATIENCE

BECOME_SUBREAPER = 36
"""Value of PR_SET_CHILD_SUBREAPER: children of killed children become ours."""

KILLING = ("kill", "torn", "late")
FAILING = ("full", "broken")


class Driver:
    """Trials of one command in a scratch folder."""

    def __init__(self, name: str, library: str, scratch: Path) -> None:
        self.name = name
        self.trial: Trial = all_trials()[name]
        self._library = ctypes.CDLL(library)
        self._scratch, self.folder = scratch, scratch / "folder"
        self._state, self._log = scratch / "state", scratch / "log"
        self._template, self._seen = scratch / "template", scratch / "reference"
        self.failures: list[str] = []
        self.verify_every, self._checked = 1, 0
        ctypes.CDLL(None).prctl(BECOME_SUBREAPER, 1)

    def prepare(self) -> None:
        """Make what every trial begins with, and what it must end with."""
        self.folder.mkdir(parents=True)
        for words in self.trial.begun:
            assert self.run(words)[0] == 0, self.run(words)
        shutil.copytree(self.folder, self._template)
        code, complaint, _ = self.run(self.trial.words)
        assert (code, complaint) == (0, ""), complaint
        shutil.copytree(self.folder, self._seen)
        self.expected = contents(self._seen, self.trial.results)
        self.untouched = contents(self._template, self.trial.untouched)
        assert self.expected or not self.trial.results

    def run(self, words: str, **faults: object) -> tuple[int, str, float]:
        """Carry out a command in a child; return its exit code, its complaint and its time."""
        arguments = [word.format(self.folder) for word in words.split()]
        self._state.write_bytes(bytes(8))
        self._log.write_bytes(b"")
        output = self._scratch / "stderr"
        began = time.monotonic()
        child = os.fork()
        if not child:
            self._child(arguments, output, faults)
        after = faults.get("after")
        kill_at = None if after is None else began + float(str(after))
        status = _wait(child, began + PATIENCE, kill_at)
        orphans = _end_orphans()
        spent = time.monotonic() - began
        if status is None:
            self.failures.append(f"{faults}: it hangs")
        if orphans:
            self.failures.append(f"{faults}: {orphans} children went on after their parent's death")
        code = -signal.SIGKILL if status is None else os.waitstatus_to_exitcode(status)
        return code, output.read_text(errors="replace"), spent

    def _child(self, arguments: list[str], output: Path, faults: dict[str, object]) -> None:
        code = 99
        try:
            for number, path in ((1, os.devnull), (2, str(output))):
                handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
                os.dup2(handle, number)
            armed = {
                "FAULT_FOLDER": self.folder,
                "FAULT_STATE": self._state,
                "FAULT_LOG": self._log,
            }
            for key, value in faults.items():
                armed[f"FAULT_{key.upper()}"] = str(value)
            os.environ.update({key: str(value) for key, value in armed.items()})
            self._library.faults_arm()
            sys.argv = ["gauge-mc", *arguments]
            sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
            sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115
            from gauge_mc.cli import main

            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 98
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            with contextlib.suppress(Exception):
                sys.stderr.flush()
            os._exit(code)

    def points(self) -> list[str]:
        """Return the kinds of the calls of an undisturbed command, in order."""
        fresh(self._template, self.folder)
        assert self.run(self.trial.words)[0] == 0
        return [line.split()[1] for line in self._log.read_text().splitlines()]

    def fault(self, at: int, action: str) -> None:
        """Let one call fail, and check what is left, now and after a repetition."""
        fresh(self._template, self.folder)
        code, complaint, _ = self.run(self.trial.words, at=at, action=action)
        self._check(f"{action} at {at}", code, complaint, action)

    def kill_after(self, seconds: float, microseconds: int) -> None:
        """Kill the command at some time, on a disk that takes its time for every call."""
        fresh(self._template, self.folder)
        code, complaint, _ = self.run(
            self.trial.words, action="slow", microseconds=microseconds, after=seconds
        )
        self._check(f"killed after {seconds:.3f} s", code, complaint, "late")

    def _check(self, what: str, code: int, complaint: str, action: str) -> None:
        def refuse(reason: str) -> None:
            self.failures.append(f"{self.name}, {what}: {reason}")

        if "Traceback" in complaint:
            refuse(f"a traceback, {complaint[-600:]}")
        if action in FAILING and code not in (0, 1):
            refuse(f"exit code {code}, {complaint[-300:]}")
        if action in FAILING and code == 1:
            named = complaint.startswith("gauge-mc: ") and complaint.count("\n") == 1
            if not named or str(self.folder) not in complaint:
                refuse(f"not one sentence with the name of the file: {complaint[-300:]!r}")
            if action == "full" and "ree some space" not in complaint:
                refuse(f"advice that does not fit: {complaint!r}")
            if left := leftovers(self.folder):
                refuse(f"{left} are left")
        if contents(self.folder, self.trial.untouched) != self.untouched:
            refuse("a file was changed that is none of its own")
        code, complaint, _ = self.run(self.trial.words)
        if code not in self.trial.again:
            refuse(f"cannot be repeated: {code}, {complaint[-300:]}")
        if contents(self.folder, self.trial.results) != self.expected:
            refuse("the repeated command has written something else")
        if contents(self.folder, self.trial.untouched) != self.untouched:
            refuse("the repeated command has changed a file that is none of its own")
        self._checked += 1
        if self._checked % self.verify_every:
            return
        code, complaint, _ = self.run(f"verify {{}}/{self.trial.verified}")
        if code:
            refuse(f"verify does not call it good: {complaint[-300:]}")


def _wait(child: int, deadline: float, kill_at: float | None) -> int | None:
    """Wait for a child, which is killed at a time; return its status, or None if it hangs."""
    pause = 0.0005
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status
        now = time.monotonic()
        if kill_at is not None and now >= kill_at:
            os.kill(child, signal.SIGKILL)
            return os.waitpid(child, 0)[1]
        if now > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return None
        time.sleep(min(pause, max(0.0, (kill_at or deadline) - now)))
        pause = min(2 * pause, 0.01)


def _end_orphans() -> int:
    """Wait for children of children that were killed; return how many did not end by themselves."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            if not os.waitpid(-1, os.WNOHANG)[0]:
                time.sleep(0.02)
        except ChildProcessError:
            return 0
    count = 0
    for text in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError):
            fields = text.read_text().rpartition(")")[2].split()
            if int(fields[1]) == os.getpid():
                os.kill(int(text.parent.name), signal.SIGKILL)
                count += 1
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)
    return count


def warm_up(trial: Trial, folder: Path) -> None:
    """Carry out the command in this process, so that no trial has to import or to look up much.

    Forked processes know that they have none of the threads.
    """
    from gauge_mc.cli import main

    folder.mkdir()
    for words in (*trial.begun, trial.words, f"verify {{}}/{trial.verified}"):
        sys.argv = ["gauge-mc", *(word.format(folder) for word in words.split())]
        with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
            main()


def main() -> None:
    """Carry out the trials that the command line asks for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("name", choices=[*all_trials()])
    parser.add_argument("--library", required=True)
    parser.add_argument("--actions", default="")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--verify-every", type=int, default=1)
    parser.add_argument("--instants", type=int, default=0)
    parser.add_argument("--microseconds", type=int, default=2000)
    asked = parser.parse_args()
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    began = time.monotonic()
    with tempfile.TemporaryDirectory(dir=memory) as scratch:
        warm_up(all_trials()[asked.name], Path(scratch) / "warm")
        driver = Driver(asked.name, asked.library, Path(scratch))
        driver.verify_every = asked.verify_every
        driver.prepare()
        kinds = driver.points()
        counts = dict.fromkeys(asked.actions.split(",") if asked.actions else (), 0)
        for action in counts:
            for at in range(asked.first, len(kinds) + 1, asked.every):
                if action != "torn" or kinds[at - 1] == "write":
                    driver.fault(at, action)
                    counts[action] += 1
        if asked.instants:
            draw = random.Random(len(kinds))
            fresh(driver._template, driver.folder)
            slow = {"action": "slow", "microseconds": asked.microseconds}
            longest = driver.run(driver.trial.words, **slow)[2]
            for _ in range(asked.instants):
                driver.kill_after(draw.uniform(0, longest), asked.microseconds)
            counts["late"] = asked.instants
    outcome = {
        "name": asked.name,
        "points": len(kinds),
        "trials": counts,
        "failures": driver.failures,
        "seconds": round(time.monotonic() - began, 1),
    }
    print(json.dumps(outcome))


if __name__ == "__main__":
    main()
