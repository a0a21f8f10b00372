"""Commands called within the process of the tests."""

import contextlib
import io
import math
import os
import sys
from pathlib import Path
from unittest import mock

import pytest

from gauge_mc import progress
from gauge_mc.analysis.timeseries import MIN_TAUS
from gauge_mc.cli import main
from gauge_mc.errors import INTERRUPTED
from gauge_mc.run.generate import generate_together
from gauge_mc.run.open_run import RunRequest

TINY = {"lattice": "4x4x4x6", "thermalize": 2, "configs": 3, "separation": 3, "backend": "cpu"}

NEEDED = f"{MIN_TAUS} τ_int are needed"


def call_apart(*words, program="gauge-mc"):
    """Call ``gauge-mc``; return what it printed on stdout and on stderr, and its exit code."""
    out, err = io.StringIO(), io.StringIO()
    with (
        mock.patch.object(sys, "argv", [program, *map(str, words)]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.raises(SystemExit) as end,
    ):
        main()
    return out.getvalue(), err.getvalue(), end.value.code


def call(*words):
    """Call ``gauge-mc``; return what it printed, or its one sentence of complaint, and its code.

    Left out are lines of progress, which only slow machines print, and with ``plot`` cautions about
    short series.
    """
    with mock.patch.object(progress, "PLAIN_LEAST_SECONDS", math.inf):
        out, complaint, code = call_apart(*words)
    if code in (0, INTERRUPTED):
        if words[0] == "plot":
            lines = complaint.splitlines(keepends=True)
            complaint = "".join(line for line in lines if NEEDED not in line)
        assert "--json" in words or complaint == "", complaint
        return out, code
    sentence = complaint
    assert sentence.startswith("gauge-mc: ")
    assert sentence.endswith((".\n", "?\n"))
    assert sentence.count("\n") == 1
    return out + sentence, code


def make_run(path: Path, **values):
    """Carry out a tiny run."""
    values = {**TINY, "threads": 1, "quiet": True, "output": str(path), **values}
    generate_together([RunRequest(values)])
    return path


def forbid(monkeypatch: pytest.MonkeyPatch, path: Path, *functions: str) -> None:
    """Let functions of `os`, by default `open`, refuse a file, as if a permission were missing."""

    def refusing(call):
        def refuse(name, *words, **more):
            if str(name) == str(path):
                raise PermissionError(13, "Permission denied", str(path))
            return call(name, *words, **more)

        return refuse

    for name in functions or ("open",):
        monkeypatch.setattr(os, name, refusing(getattr(os, name)))
