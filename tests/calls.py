"""Commands called within the process of the tests."""

import contextlib
import io
import sys
from pathlib import Path
from unittest import mock

import pytest

from gauge_mc.cli import main
from gauge_mc.errors import INTERRUPTED
from gauge_mc.run.generate import generate_from

TINY = {"lattice": "4x4x4x6", "thermalize": 2, "configs": 3, "separation": 3, "backend": "cpu"}


def call(*words):
    """Call ``gauge-mc``; return what it printed, or its one sentence of complaint, and its code.

    With ``--json``, progress on standard error is left out.
    """
    out, complaint = io.StringIO(), io.StringIO()
    with (
        mock.patch.object(sys, "argv", ["gauge-mc", *map(str, words)]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(complaint),
        pytest.raises(SystemExit) as end,
    ):
        main()
    if end.value.code in (0, INTERRUPTED):
        assert "--json" in words or complaint.getvalue() == "", complaint.getvalue()
        return out.getvalue(), end.value.code
    sentence = complaint.getvalue()
    assert sentence.startswith("gauge-mc: ")
    assert sentence.endswith((".\n", "?\n"))
    assert sentence.count("\n") == 1
    return out.getvalue() + sentence, end.value.code


def make_run(path: Path, **values):
    """Carry out a tiny run."""
    generate_from({**TINY, "threads": 1, "quiet": True, "output": str(path), **values})
    return path
