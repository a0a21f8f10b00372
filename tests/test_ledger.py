"""The program does not grow unnoticed: see `tests.tools.ledger`."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.tools.ledger import LEDGER, ROOT, Source, allowed, counts, parts, risen

LEDGERS = 20
"""Number of changes of the ledger, the last ones, whose messages are read."""

REASON = "Ledger: "
"""Beginning of the paragraph of a message that says what the user gets for what has risen."""


@pytest.mark.skipif(not parts(ROOT), reason="without extensions, modules have fewer importers")
def test_no_count_has_risen():
    """If one has: make something shorter, or raise it in ``ledger.toml`` and say what for."""
    known = allowed(LEDGER.read_text())
    found = counts()
    assert known.keys() >= {"core", *parts(ROOT)}
    for part, numbers in found.items():
        assert numbers.keys() == known[part].keys()
        worse = {name: (numbers[name], known[part][name]) for name in risen(numbers, known[part])}
        assert not worse, f"{part}: {worse}"


def test_a_rise_is_told():
    assert risen({"code": 11, "executed": 50.0}, {"code": 10, "executed": 50.0}) == ["code"]
    assert risen({"code": 9, "executed": 49.9}, {"code": 10, "executed": 50.0}) == ["executed"]
    assert risen({"code": 9, "executed": 51.0}, {"code": 10, "executed": 50.0}) == []


def git(*words):
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else ""


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_changes_that_raise_a_count_say_what_for():
    place = LEDGER.relative_to(ROOT).as_posix()
    for commit in git("log", f"-{LEDGERS}", "--format=%H", "--", place).split():
        before, after = (git("show", f"{one}:{place}") for one in (f"{commit}^", commit))
        if not (before and after):
            continue
        old = allowed(before)
        rose = {part: risen(new, old.get(part, {})) for part, new in allowed(after).items()}
        if any(rose.values()):
            message = git("log", "-1", "--format=%B", commit)
            assert any(line.startswith(REASON) for line in message.split("\n")), (commit, rose)


SOURCE = '''"""A module."""

import os
from gauge_mc import (
    errors,
)

LIMIT = 3
"""Description of a constant."""


class Thing:
    """A thing."""

    one: int

    def run(
        self,
        other: int,
    ) -> int:
        """Run."""
        from gauge_mc import fields

        # a comment
        if other:
            raise ValueError(
                "no"
            )
        return fields
'''


def test_lines_are_counted_by_kind(tmp_path):
    path = Path(tmp_path / "module.py")
    path.write_text(SOURCE)
    source = Source(path)
    expected = dict(imports=5, constants=1, descriptions=1, fields=1, signatures=5, raises=3)
    expected["executed"] = 2
    assert source.kinds == expected
    assert source.code == sum(expected.values())
    assert source.docstrings == 3
    assert sorted(source.bound) == ["LIMIT", "one", "other", "self"]
    assert source.lazy == 1
