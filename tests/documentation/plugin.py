"""Carry out the commands and programs of pages, and compare what they print.

``python -m pytest -p tests.documentation.plugin README.md docs/tutorial.md`` runs two pages, and
with ``--regenerate`` writes what is printed into them. A page runs from top to bottom in a folder
of its own, with the gauge-mc that ``--environment VENV`` has, by default one that is made for the
purpose by the README's first command, from a copy of the files of the checkout.

Blocks of ``bash`` are run by bash, and must end well; blocks of ``python`` in one interpreter per
page. A block of ``text`` is what the commands before it print; see `comparison` for what must be
equal. The list ``blocks.toml`` beside this file changes that by directives, which are carried out
before the block that they name:

- ``with A as B; C as D``: from here to the end of the page, A is replaced by B in commands,
  programs and outputs.
- ``shorter with A as B``: the same, for runs that are shorter than the page says. Numbers without
  errors may then have any value. ``--regenerate`` ignores it.
- ``loosely because REASON``: from here on, numbers without errors may have any value.
- ``first COMMANDS``: commands that are run here and are not shown.
- ``not because REASON``: the block is only parsed; as an output, not compared.
- ``interrupt when FILE exists``: the block gets SIGINT then, as from Ctrl-C.
- ``file NAME``: the block is written to this file, and not run.
- ``in NAME``: the page runs in a folder that it shares with others.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from sybil import Document, Example, Region, Sybil
from sybil.parsers.markdown.lexers import RawFencedCodeBlockLexer

from tests.documentation import blocks
from tests.documentation.comparison import difference, renewed

ROOT = Path(__file__).resolve().parents[2]
EXTRAS = "analysis,hdf5,parquet,mpi,notebook"
"""The extras that the pages need beyond the README's first command."""

LONGEST = 1800.0
"""Seconds that a block may take."""

RUN = ("bash", "python", "text")
"""Languages of blocks that are run or compared; others are only written to files."""

FENCES = RawFencedCodeBlockLexer(re.compile(r"(?P<language>\w*)[^\n]*\n"))

PROGRAM = """
import json, sys, traceback
names = {"__name__": "__main__"}
for line in sys.stdin:
    code = 0
    try:
        exec(compile(json.loads(line), "<page>", "exec"), names)
    except BaseException:
        traceback.print_exc(file=sys.stdout)
        code = 1
    print(f"\\n\\0{code}", flush=True)
"""
"""An interpreter that carries out one program after the other."""


class Page:
    """A page that is being run.

    Attributes
    ----------
    path : Path
        Its file.
    folder : Path
        Working directory of its blocks.
    output : str
        What the latest block printed.
    loose : bool
        Whether numbers without errors may have any value.
    """

    def __init__(self, path: Path, folder: Path, environment: Path, whole: bool):
        self.path = path
        self.folder = folder
        self.output = ""
        self.loose = False
        self.whole = whole
        self.replacements: list[tuple[str, str]] = []
        self.directive = ""
        self.changes: list[tuple[str, str]] = []
        self.interpreter: subprocess.Popen[str] | None = None
        path = f"{environment / 'bin'}:{os.environ['PATH']}"
        hidden = ("PYTHONPATH", "PYTEST_ADDOPTS", "VIRTUAL_ENV")
        kept = {key: value for key, value in os.environ.items() if key not in hidden}
        self.variables = {**kept, "PATH": path, "CHECKOUT": str(ROOT), "COLUMNS": "80"}

    def replaced(self, text: str) -> str:
        """Return a text with all replacements made."""
        for old, new in self.replacements:
            text = text.replace(old, new)
        return text

    def restored(self, text: str) -> str:
        """Return a text with all replacements undone."""
        for old, new in reversed(self.replacements):
            text = text.replace(new, old)
        return text

    def replace(self, pairs: str) -> None:
        """Add replacements, written as ``A as B; C as D``."""
        for pair in pairs.split(";"):
            old, _, new = " ".join(pair.split()).partition(" as ")
            assert new, f"a replacement is 'A as B', not '{pair.strip()}'"
            self.replacements.append((old, new))

    def shell(self, script: str, interrupt_when: str = "") -> None:
        """Run commands in bash."""
        failing = f"trap 'failed=$?' ERR\n{script}\nexit ${{failed:-0}}"
        with subprocess.Popen(
            ["bash", "-o", "pipefail", "-c", failing],
            cwd=self.folder,
            env=self.variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as process:
            if interrupt_when:
                wait_for(self.folder / interrupt_when, process)
                os.killpg(process.pid, signal.SIGINT)
            try:
                self.output = process.communicate(timeout=LONGEST)[0]
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                raise
        expected = (75, 130) if interrupt_when else (0,)
        assert process.returncode in expected, f"exit code {process.returncode}:\n{self.output}"

    def python(self, program: str) -> None:
        """Run a program in the interpreter of the page."""
        if self.interpreter is None:
            self.interpreter = subprocess.Popen(
                [shutil.which("python", path=self.variables["PATH"]), "-c", PROGRAM],
                cwd=self.folder,
                env=self.variables,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        self.interpreter.stdin.write(json.dumps(program) + "\n")
        self.interpreter.stdin.flush()
        printed = ""
        for line in self.interpreter.stdout:
            if line.startswith("\0"):
                self.output = printed.rstrip("\n") + "\n"
                assert line == "\0000\n", printed
                return
            printed += line
        raise AssertionError(f"the interpreter has ended:\n{printed}")

    def close(self) -> None:
        """End the interpreter."""
        if self.interpreter is not None:
            self.interpreter.stdin.close()
            self.interpreter.wait(60)


def wait_for(path: Path, process: subprocess.Popen[str]) -> None:
    """Wait until a file is there, or a process has ended."""
    end = time.monotonic() + LONGEST
    while not path.exists() and process.poll() is None:
        assert time.monotonic() < end, f"{path} did not appear"
        time.sleep(0.05)


def page_of(example: Example) -> Page:
    """Return the page of an example."""
    names = example.namespace
    if "page" not in names:
        names["page"] = names["open_page"](Path(example.path))
    return names["page"]


def obey(page: Page, words: str, example: Example) -> None:
    """Carry out a directive."""
    verb, _, rest = words.partition(" ")
    if verb == "with":
        page.replace(rest)
    elif verb == "shorter":
        if not page.whole:
            page.loose = True
            page.replace(rest.removeprefix("with "))
    elif verb == "loosely":
        assert rest.startswith("because "), "say why numbers may differ: loosely because …"
        page.loose = True
    elif verb == "first":
        page.shell(page.replaced(rest))
    elif verb == "in":
        page.folder = example.namespace["shared_folder"](rest)
    else:
        assert verb in ("not", "interrupt", "file"), f"unknown directive: {words}"
        page.directive = " ".join(words.split())


def carry_out(example: Example) -> None:
    """Run a block, or compare an output."""
    page = page_of(example)
    language, source, directives = example.parsed
    for words in directives:
        obey(page, words, example)
    assert source.strip(), "this block is empty; write at least a line of what is printed"
    if language not in RUN and not page.directive.startswith("file "):
        assert not page.directive, f"a block of {language} can only be written to a file"
        return
    directive, page.directive = page.directive, ""
    verb, _, rest = directive.partition(" ")
    text = page.replaced(source)
    if verb == "file":
        (page.folder / rest).write_text(text)
    elif verb == "not":
        assert rest.startswith("because "), "say why a block is not run: not because …"
        if language == "bash":
            subprocess.run(["bash", "-n", "-c", source], check=True)
        elif language == "python":
            compile(source, str(example.path), "exec")
    elif language == "bash":
        moment = rest.removeprefix("when ").removesuffix(" exists") if verb else ""
        page.shell(text, page.replaced(moment))
    elif language == "python":
        page.python(text)
    elif page.whole:
        page.changes.append((source, renewed(source, page.restored(page.output)) + "\n"))
    else:
        found = difference(text, page.output, page.loose)
        assert not found, found


def parse(document: Document) -> Iterable[Region]:
    """Yield the blocks of a page, each with its language, its text and its directives."""
    found = list(FENCES(document))
    page = Path(document.path).resolve().relative_to(ROOT).as_posix()
    texts = [(one.lexemes["language"], str(one.lexemes["source"])) for one in found]
    listed = blocks.directives(page, texts)
    for region, directives in zip(found, listed, strict=True):
        language, source = region.lexemes["language"], str(region.lexemes["source"])
        if not source.startswith("--8<--"):
            yield Region(region.start, region.end, (language, source, directives), carry_out)
        else:
            assert not directives, f"a snippet is not run: {directives}"


def close(names: dict[str, Any]) -> None:
    """End a page, and write what it prints now."""
    page: Page | None = names.get("page")
    if page is None:
        return
    page.close()
    if page.changes:
        text = page.path.read_text()
        place = 0
        for old, new in page.changes:
            place = text.index(old, place)
            text = text[:place] + new + text[place + len(old) :]
            place += len(new)
        page.path.write_text(text)


pytest_collect_file = Sybil(
    [parse],
    patterns=["*.md"],
    path=str(ROOT),
    teardown=close,
    fixtures=("open_page", "shared_folder"),
).pytest()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of this plugin."""
    parser.addoption("--environment", type=Path, help="virtual environment with gauge-mc")
    parser.addoption("--regenerate", action="store_true", help="write what is printed to the pages")


@pytest.fixture(scope="session")
def environment(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The virtual environment of the pages, made by the first command of the README."""
    given = request.config.getoption("--environment")
    if given:
        return given.resolve()
    source = tmp_path_factory.mktemp("source") / "gauge-mc"
    files = subprocess.check_output(["git", "ls-files", "-z"], cwd=ROOT, text=True).split("\0")
    for name in filter(None, files):
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, source / name)
    readme = (ROOT / "README.md").read_text()
    install = re.search(r"^(python3 -m venv .*) && \.venv/bin/gauge-mc ", readme, re.M)
    script = f"{install[1]}\n.venv/bin/pip install mpich '.[{EXTRAS}]'"
    subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=source, check=True)
    return source / ".venv"


@pytest.fixture(scope="session")
def open_page(
    request: pytest.FixtureRequest, environment: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Path], Page]:
    """A function that opens a page in a folder of its own."""
    whole = request.config.getoption("--regenerate")
    return lambda path: Page(path, tmp_path_factory.mktemp("page"), environment, whole)


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A function that returns a folder by its name, for pages that continue each other."""

    def folder(name: str) -> Path:
        path = tmp_path_factory.getbasetemp() / name
        path.mkdir(exist_ok=True)
        return path

    return folder
