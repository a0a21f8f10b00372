"""The pages, the README and the run cards' page speak of what there is.

What is generated is checked for completeness, what is written by hand for commands and names that
do not exist.
"""

import ast
import dataclasses
import importlib
import pydoc
import re
import shlex
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from textwrap import dedent
from types import ModuleType

import pytest

import gauge_mc
from gauge_mc import cli, fit
from gauge_mc.fits import FITS
from gauge_mc.observables import OBSERVABLES
from gauge_mc.run.parameters import Parameters
from gauge_mc.run.settings import Execution
from tests.fits.tables import has_table, write_tables

# The pages are about the whole project.
pytest.importorskip("gauge_mc.extensions.publishing")
Spectrum = pytest.importorskip("gauge_mc.extensions.quarks.spectroscopy.spectrum").Spectrum

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted(
    [
        ROOT / "README.md",
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("runs/**/*.md"),
        *ROOT.glob(".github/**/*.md"),
    ]
)
FENCE = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^\1```", re.M | re.S)
SEPARATORS = {"&&", "||", ";", "|", "&", "do", "then", ">", ">>", "2>", "<", ")"}


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def load_hooks() -> ModuleType:
    """The hook that fills the pages; it needs no MkDocs."""
    spec = spec_from_file_location("docs_hooks", ROOT / "docs" / "hooks.py")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


hooks = load_hooks()


def page(name: str) -> str:
    return hooks.filled((ROOT / "docs" / name).read_text())


@pytest.fixture(scope="module")
def commands():
    return page("reference/commands.md")


@pytest.fixture(scope="module")
def files():
    return "".join(page(f"reference/{name}.md") for name in ("files", "fits", "json"))


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_is_described_with_all_its_options(commands, name):
    section = commands.partition(f"### gauge-mc {name} {{")[2].partition("### gauge-mc")[0]
    assert section
    for parameter in cli.load_command(name).params:
        word = parameter.metavar if hooks.is_argument(parameter) else parameter.opts[0]
        assert f"`{word or parameter.name.upper()}`" in section


def test_keys_columns_and_headers_are_described(files):
    keys = [one.name for kind in (Parameters, Execution) for one in dataclasses.fields(kind)]
    headers = [key for one in OBSERVABLES.values() for key in hooks.header_of(one)]
    columns = [column.name for one in OBSERVABLES.values() for column in one.columns]
    for word in (*keys, *headers, *columns):
        assert f"`{word}`" in files
    for one in OBSERVABLES.values():
        assert all(column.meaning for columns in one.columns_of_tables() for column in columns)


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    return write_tables(tmp_path_factory.mktemp("tables"))


@pytest.mark.first_quick
@pytest.mark.parametrize("name", FITS)
def test_keys_of_the_results_of_fits_are_described(files, name, tables):
    assert FITS[name].content
    keys = {one.name for kind in FITS[name].content for one in dataclasses.fields(kind)}
    if has_table(name, tables):
        keys |= {*fit(name, tables).values()}
    for key in keys:
        assert f"`{key}`" in files
    assert f"`{FITS[name].file}`" in files


def test_public_names_are_in_the_python_reference():
    text = "".join(one.read_text() for one in ROOT.glob("docs/reference/python*.md"))
    for name in gauge_mc.__all__:
        assert f"\n::: gauge_mc.{name}\n" in text
    for name in re.findall(r"^::: ([\w.]+)$", text, re.M):
        assert pydoc.locate(name), name


def blocks(path: Path, *languages: str) -> list[str]:
    found = FENCE.findall(path.read_text())
    return [dedent(text) for _, language, text in found if language in languages]


def command_lines(path: Path) -> list[list[str]]:
    """The words after ``gauge-mc`` of every such command in the blocks of a page."""
    found = []
    for text in blocks(path, "", "bash", "sh", "console", "shell"):
        for line in text.replace("\\\n", " ").splitlines():
            if "gauge-mc " not in line:
                continue
            words = shlex.split(line.replace(";", " ; "), comments=True)
            starts = [i for i, word in enumerate(words) if word.rpartition("/")[2] == "gauge-mc"]
            for start in starts:
                rest = words[start + 1 :]
                ends = [i for i, word in enumerate(rest) if word in SEPARATORS]
                found.append(rest[: ends[0]] if ends else rest)
    return found


def inline_commands(path: Path) -> list[list[str]]:
    """The words of every ``gauge-mc`` command in the text of a page."""
    text = FENCE.sub("", path.read_text())
    lines = re.findall(r"`gauge-mc ([^`]+)`", text)
    return [shlex.split(line) for line in lines if not re.search(r"[…]|\.\.\.", line)]


def complaint_about(words: list[str]) -> str:
    """What the command line says of a command; empty if it would carry it out."""
    name, *rest = words
    if name == "COMMAND" or name.startswith("-") or "--help" in rest:
        return ""
    if name not in cli.COMMANDS:
        return f"There is no command {name}."
    # A variable of the shell may stand for a number or a word; 1 is both.
    values = [re.sub(r"\$\{?\w+\}?", "1", word) for word in rest]
    try:
        cli.load_command(name).make_context(name, values)
    except Exception as error:
        return str(error)
    return ""


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_commands_exist_with_their_options(path):
    complaints = {" ".join(words): complaint_about(words) for words in command_lines(path)}
    for words in inline_commands(path):  # which need not be complete
        complaint = complaint_about(words)
        partial = re.search(
            r" needs .*, as in gauge-mc |Option '.*' requires an argument", complaint
        )
        complaints[" ".join(words)] = "" if partial else complaint
    assert not {line: why for line, why in complaints.items() if why}


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_python_is_valid_and_imports_what_there_is(path):
    for text in blocks(path, "python", "py"):
        if text.startswith("--8<--"):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.module.startswith("gauge_mc"):
                module = importlib.import_module(node.module)
                for alias in node.names:
                    assert hasattr(module, alias.name), alias.name


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_snippets_are_there(path):
    for name in re.findall(r'^--8<-- "([^":]+)', path.read_text(), re.M):
        assert (ROOT / name).is_file(), name


def test_the_first_page_links_every_page(root):
    first = root / "docs/index.md"
    links = re.findall(r"\]\(([^)\s#]+\.md)", first.read_text())
    linked = [(first.parent / one).resolve() for one in links]
    pages = {*(root / "docs").rglob("*.md"), root / "runs/README.md", root / "runs/bench/README.md"}
    assert {*linked} == {one.resolve() for one in pages - {first, root / "docs/vendor/README.md"}}
    assert len(linked) == len({*linked}), "a page is linked twice"


def test_links_between_files_lead_to_files(root):
    """They do so in the repository, where the documentation is read as well."""
    pages = [*root.glob("*.md"), *root.glob("docs/**/*.md"), *root.glob("runs/**/*.md")]
    links = [
        (page.relative_to(root), target)
        for page in pages
        for target in re.findall(r"\]\(([^)\s#]+)", page.read_text())
        if not re.match(r"\w+:", target)
    ]
    assert len(links) > 100
    assert [one for one in links if not (root / one[0].parent / one[1]).exists()] == []
