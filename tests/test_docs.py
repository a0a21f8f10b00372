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
import typing
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from textwrap import dedent
from types import ModuleType

import pytest

import gauge_mc
from gauge_mc import cli, fit
from gauge_mc.actions import ACTIONS
from gauge_mc.devices import BACKENDS
from gauge_mc.domain.lattice import Lattice
from gauge_mc.exports import EXPORTS
from gauge_mc.files.table import read_table, write_table
from gauge_mc.fits import FITS
from gauge_mc.flows import FLOWS
from gauge_mc.formats import FORMATS
from gauge_mc.groups import GROUPS
from gauge_mc.observables import OBSERVABLES
from gauge_mc.plots.drawing import plot_names
from gauge_mc.quantities.flow.scales import FlowScales
from gauge_mc.quantities.flow.topology import TopologicalCharge
from gauge_mc.quantities.potential.static_potential import StaticPotential
from gauge_mc.random import GENERATORS
from gauge_mc.run.parameters import Parameters
from gauge_mc.run.settings import Execution
from gauge_mc.scans.averages import average
from gauge_mc.smearing import SMEARINGS
from gauge_mc.temporal_links import TEMPORAL_LINKS
from tests.fits.tables import has_table, write_tables
from tests.tools.compile_cuda import TOOLCHAINS

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
CHOICES = {
    "actions": ACTIONS,
    "backends": BACKENDS,
    "exports": EXPORTS,
    "fits": FITS,
    "flows": FLOWS,
    "formats": FORMATS,
    "generators": GENERATORS,
    "groups": GROUPS,
    "observables": OBSERVABLES,
    "plots": plot_names(),
    "smearings": SMEARINGS,
    "temporal_links": TEMPORAL_LINKS,
}
FENCE = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^\1```", re.M | re.S)
SEPARATORS = {"&&", "||", ";", "|", "&", "do", "then", ">", ">>", "2>", "<", ")"}


def name_of(path: Path) -> str:
    """A page in the names of tests."""
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
    """A page as it is shown."""
    return hooks.filled((ROOT / "docs" / name).read_text())


@pytest.fixture(scope="module")
def commands():
    return page("reference/commands.md")


@pytest.fixture(scope="module")
def files():
    """The pages about what is written."""
    return "".join(page(f"reference/{name}.md") for name in ("files", "fits", "json"))


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_is_described_with_all_its_options(commands, name):
    section = commands.partition(f"### gauge-mc {name} {{")[2].partition("### gauge-mc")[0]
    assert section
    for parameter in cli.load_command(name).params:
        word = parameter.metavar if hooks.is_argument(parameter) else parameter.opts[0]
        assert f"`{word or parameter.name.upper()}`" in section


@pytest.mark.parametrize("name", ["measure", "fit", "plot"])
def test_every_thing_is_described_with_its_own_options(commands, name):
    section = commands.partition(f"### gauge-mc {name} {{")[2].partition("\n### gauge-mc")[0]
    common, *sections = section.split("\n#### ")
    kind = cli.load_command(name).kind
    assert [one.split()[2] for one in sections] == list(kind.names())
    for thing, one in zip(kind.names(), sections, strict=True):
        assert f"{{ #{name}-{thing} }}" in one
        own = {option.flag for option, *_ in kind.options(thing)}
        assert set(re.findall(r"^\| `(--[a-z0-9-]+)`", one, re.M)) == own
        named = {flag for one in cli.load_command(name).params for flag in one.opts}
        assert all(f"| `{flag}`" not in common for flag in own - named)


def test_no_cell_of_a_table_is_split(commands):
    for block in re.findall(r"(?:^\|.*\n)+", commands, re.M):
        rows = [re.sub(r"`[^`]*`|\\\|", "", line).count("|") for line in block.splitlines()]
        assert len(set(rows)) == 1, block


@pytest.mark.parametrize("kind", CHOICES)
def test_every_registered_name_is_listed(kind):
    assert f"<!-- generated: {kind} -->" in (ROOT / "docs/reference/choices.md").read_text()
    for name in CHOICES[kind]:
        assert f"`{name}`" in hooks.PARTS[kind]()


def test_every_part_is_used():
    text = "".join(path.read_text() for path in (ROOT / "docs").rglob("*.md"))
    assert set(hooks.GENERATED.findall(text)) == set(hooks.PARTS)


def test_keys_columns_and_headers_are_described(files):
    keys = [one.name for kind in (Parameters, Execution) for one in dataclasses.fields(kind)]
    headers = [key for one in OBSERVABLES.values() for key in hooks.header_of(one)]
    columns = [column.name for one in OBSERVABLES.values() for column in one.columns]
    for word in (*keys, *headers, *columns):
        assert f"`{word}`" in files
    for one in OBSERVABLES.values():
        assert all(column.meaning for columns in one.columns_of_tables() for column in columns)


def test_columns_of_scans_are_described(files, tmp_path):
    for name, one in OBSERVABLES.items():
        if not one.columns.averaged:
            continue
        path = tmp_path / f"{name}.csv"
        write_table(
            path, {}, ("sweep", *one.columns.names), [(i, *[0.1] * len(one.columns)) for i in "12"]
        )
        for column in average(one, [read_table(path)], [path], 1, Lattice(4, 4, 4, 4)):
            assert f"`{re.sub('_(error|tau_int)$', '', column)}`" in files


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """A folder with tables for the fits of this package."""
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


def test_what_results_consist_of_is_described():
    """Every data class within the results of the larger fits."""
    text, seen = (ROOT / "docs/reference/fits.md").read_text(), set()
    left = [StaticPotential, FlowScales, TopologicalCharge, Spectrum]
    while left:
        kind = left.pop()
        seen.add(kind)
        assert f"<!-- attributes: {kind.__module__}.{kind.__name__} -->" in text
        for hint in typing.get_type_hints(kind).values():
            inner = [one for one in (hint, *typing.get_args(hint)) if dataclasses.is_dataclass(one)]
            left += [one for one in inner if one not in seen]


def test_described_attributes_are_those_of_the_classes():
    text = "".join(path.read_text() for path in (ROOT / "docs").rglob("*.md"))
    for module, name in hooks.ATTRIBUTES.findall(text):
        kind = getattr(importlib.import_module(module), name)
        described = [key for names, _, _ in hooks.attributes(kind) for key in names]
        assert described == [one.name for one in dataclasses.fields(kind)], name


@pytest.mark.slow
def test_the_python_reference_shows_values_instead_of_declarations():
    griffe = pytest.importorskip("griffe")
    extensions = griffe.load_extensions(ROOT / "docs/declared.py")
    package = griffe.load("gauge_mc", search_paths=[ROOT], extensions=extensions)
    run, status = package["run.parameters.Parameters"], package["inspection.status.RunStatus"]
    defaults = {one.name: str(one.default) for one in run.parameters}
    assert defaults["seed"] == "1"
    assert defaults["group"] == "'su2'"
    assert defaults["lattice"] == defaults["beta"] == defaults["precision"] == "..."
    known = {one.name: str(one.default) for one in status.parameters if one.default}
    assert known["times"] == "{}"
    assert {*known.values()} == {"0", "None", "{}", "''"}
    assert "Age of the last checkpoint in seconds." in status.docstring.value
    observable = package["observables.parts.ChoiceParts"]
    assert (
        "\noptions : tuple of Option\n    Options of `for_lattice`." in observable.docstring.value
    )
    assert not observable["options"].docstring


def test_public_names_are_in_the_python_reference():
    text = "".join(one.read_text() for one in ROOT.glob("docs/reference/python*.md"))
    for name in gauge_mc.__all__:
        assert f"\n::: gauge_mc.{name}\n" in text
    for name in re.findall(r"^::: ([\w.]+)$", text, re.M):
        assert pydoc.locate(name), name


def blocks(path: Path, *languages: str) -> list[str]:
    """The blocks of code of a page."""
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


def test_every_recipe_has_tests():
    for name in ("extending.md", "extensions/quarks/extending.md"):
        text = (ROOT / "docs" / name).read_text().partition("\n## ")[0]
        _, *tests = re.findall(r"^\| .+ \| .+ \| (.+) \|$", text, re.M)
        assert tests
        for words in tests:
            paths = re.findall(r"`(tests/.*?)`", words)
            assert paths
            assert all((ROOT / path).exists() for path in paths), words


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_snippets_are_there(path):
    for name in re.findall(r'^--8<-- "([^":]+)', path.read_text(), re.M):
        assert (ROOT / name).is_file(), name


HOW_TO = [*ROOT.glob("docs/how-to/*.md"), *ROOT.glob("docs/extensions/*/*.md")]
HOW_TO = sorted(one for one in HOW_TO if one.stem not in ("r0", "conventions", "extending"))


@pytest.mark.parametrize("path", HOW_TO, ids=name_of)
def test_a_how_to_page_begins_with_at_most_five_commands(path):
    """They are not run, as the blocks of `bash` and `python` below them are."""
    box = path.read_text().split("\n\n", 1)[1]
    assert box.startswith('!!! example "In short"\n\n    ```')
    language, text = re.findall(r"```(\w+)\n(.*?)```", box, re.S)[0]
    assert language in ("py", "sh")
    assert sum(not re.match(r" *(#|import|from|$)", line) for line in text.splitlines()) <= 5


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


def test_the_table_of_machines_is_what_is_tried(root):
    """The kinds that every change tries are in ``.ci/run``, and the reverse."""
    page = (root / "docs/how-to/install.md").read_text()
    ci = (root / ".ci/run").read_text()
    lines = page.partition("## Which machines\n")[2].partition("\n## ")[0].splitlines()
    rows = [[one.strip() for one in line.strip("|").split("|")] for line in lines if "|" in line]
    named = []
    for machine, *tried, run, since in rows[2:]:
        for cell in tried:
            commands = re.findall("`([^`]+)`", cell)
            if cell.startswith("every change"):
                named += commands
            words = (word for one in commands for word in one.split())
            paths = [word for word in words if word.endswith((".py", ".sh"))]
            assert all((root / one).is_file() or one == "compile_cuda.py" for one in paths), cell
        for name, words in (("AMD", "never run on hardware"), ("ARM", "only emulated")):
            said = words in (root / "README.md").read_text()
            assert name not in machine or (run == "never") is said
        assert f"\n## {since} " in (root / "CHANGELOG.md").read_text(), machine
    assert [one for one in named if one not in ci] == []
    assert {*re.findall(r"--emulate-\w+", ci)} == {one for one in named if "--emulate" in one}
    backends = {*re.findall(r"compile_cuda\.py(?: --backend \w+)?", ci)}
    assert backends == {one for one in named if "compile" in one}
    assert ("under QEMU" in page) is ("qemu-user" in ci)
    for name, tools in TOOLCHAINS.items():
        assert f"{tools.architecture}, where" in page, name
