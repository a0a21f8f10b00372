"""Imports run downwards in the tree that docs/architecture.md draws."""

import ast
import functools
import itertools
import re
from collections.abc import Collection
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from gauge_mc.libraries import LIBRARIES

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "gauge_mc"
UPWARDS = {
    # Methods of objects that users hold, which look up what is above them when they are called.
    "benchmarks/over.py": {"plots"},
    "fields/field.py": {"configurations"},
    "files/table.py": {"reports"},
    "fits/__init__.py": {"reports"},
    "quantities/potential/fit.py": {"reports"},
    "run/results.py": {"fits", "inspection", "plots", "reports", "stored"},
    # A scan ends with its figure.
    "scans/carry_out.py": {"plots"},
}
"""Modules that may import from above, within functions only."""

LEAVES = {"console", "defaults", "errors", "libraries", "process", "progress", "quoting"}
"""Modules below the tree, which import nothing but each other."""

EXTENSIONS = "extensions"
"""Package of the extensions."""

BETWEEN_EXTENSIONS = {"extensions/quarks/dynamical/qcdml.py"}
"""Modules of extensions that may import from another extension."""


def drawn() -> list[str]:
    """The parts of the package as the tree draws them, from top to bottom."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    tree = text.partition("├── gauge_mc/\n")[2].partition("├── tests/")[0]
    lines = re.findall(r"^│   [├└]── (.*?)(?:  |\n)", tree, re.MULTILINE)
    return [name for line in lines for name in re.findall(r"\w+(?=/|\.py)", line)]


def part_of(module: str) -> str | None:
    """The part of the package to which a module belongs; None if it is not of the package."""
    first, *words = module.split(".")
    return words[0] if first == "gauge_mc" and words else None


@functools.cache
def modules_of(part: str) -> list[Path]:
    return [path for name, path in modules().items() if part_of(name) == part]


@functools.cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@functools.cache
def imports(path: Path) -> list[tuple[str, bool]]:
    """The parts from which a module imports, and whether it does so within a function."""
    found = []

    def visit(node: ast.AST, lazy: bool) -> None:
        modules = []
        if isinstance(node, ast.ImportFrom) and node.module:
            modules = [node.module, *(f"{node.module}.{one.name}" for one in node.names)]
        elif isinstance(node, ast.Import):
            modules = [one.name for one in node.names]
        found.extend((part, lazy) for one in modules if (part := part_of(one)))
        typing = isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
        lazy |= typing or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.expr):
                visit(child, lazy)

    visit(tree_of(path), False)
    return found


@functools.cache
def parts() -> set[str]:
    folders = {one.name for one in PACKAGE.iterdir() if (one / "__init__.py").exists()}
    return folders | {one.stem for one in PACKAGE.glob("[a-z]*.py")}


def test_the_tree_has_every_part_once():
    names = drawn()
    assert len(names) == len({*names})
    assert {*names} | LEAVES == parts() | ({EXTENSIONS} & {*names})


@pytest.mark.parametrize("part", sorted(parts()))
def test_imports_run_downwards(part):
    order = [*drawn(), *sorted(LEAVES)]
    rank = {name: min(place, len(drawn())) for place, name in enumerate(order)}
    known = parts()
    for path in modules_of(part):
        place = path.relative_to(PACKAGE).as_posix()
        for other, lazy in imports(path):
            if other not in known or other == part or (part in LEAVES and other in LEAVES):
                continue
            if lazy and other in UPWARDS.get(place, ()):
                continue
            assert rank[other] > rank[part], f"{place} imports from {other}, which is above it"


@functools.cache
def arrows() -> list[tuple[str, str]]:
    text = (ROOT / "docs" / "architecture.md").read_text()
    lines = text.partition("flowchart TD\n")[2].partition("```")[0].splitlines()
    found = []
    for line in lines:
        steps = [re.findall(r"\w+", step.partition("[")[0]) for step in line.split("-->")]
        for above, below in itertools.pairwise(steps):
            found += [(one, other) for one in above for other in below]
    return found


def reached(above: str) -> set[str]:
    """The parts to which arrows of the diagram lead from a part, directly or through others."""
    found, next_ones = set(), {above}
    while next_ones:
        next_ones = {below for one, below in arrows() if one in next_ones} - found
        found |= next_ones
    return found


def packages() -> set[str]:
    nodes = {one for arrow in arrows() for one in arrow}
    return {one for one in parts() if one in nodes or (PACKAGE / one).is_dir()}


@pytest.mark.parametrize("package", sorted(packages()))
def test_a_package_imports_from_packages_to_which_arrows_lead(package):
    known = reached(package)
    for path in modules_of(package):
        place = path.relative_to(PACKAGE).as_posix()
        others = {other for other, _ in imports(path)} & packages()
        found = others - {package} - UPWARDS.get(place, set())
        assert found <= known, f"{place} imports from {found - known}, to which no arrow leads"


def extension_of(place: str) -> str | None:
    """The extension to which a module belongs, by its place; None if it is of the core."""
    first, *names = Path(place).with_suffix("").parts
    return names[0] if first == EXTENSIONS and names else None


def other_extensions(place: str, text: str) -> set[str]:
    """The extensions that a module at some place names, besides its own.

    It may name one in an import, or in text with which it imports one or looks for its files.
    """
    found, sentences = set(), set()
    for node in ast.walk(ast.parse(text)):
        words = []
        if isinstance(node, ast.Expr):
            sentences.add(id(node.value))  # docstrings may tell of extensions
        elif isinstance(node, ast.ImportFrom) and node.module:
            words = [node.module, *(f"{node.module}.{one.name}" for one in node.names)]
        elif isinstance(node, ast.Import):
            words = [one.name for one in node.names]
        elif isinstance(node, ast.Constant) and id(node) not in sentences:
            words = [str(node.value)]
        for word in words:
            found |= {*re.findall(rf"\bgauge_mc[./]{EXTENSIONS}[./](\w+)", word)}
    return found - {extension_of(place)}


def test_extensions_are_imported_neither_by_the_core_nor_by_each_other():
    """But for modules in which one adds to a kind of another, which are imported last."""
    texts = {path.relative_to(PACKAGE).as_posix(): path.read_text() for path in sources()}
    found = {place for place, text in texts.items() if other_extensions(place, text)}
    assert found == {place for place in BETWEEN_EXTENSIONS if place in texts}
    assert EXTENSIONS not in (PACKAGE / "entry_points.txt").read_text()


def test_optional_packages_are_imported_by_what_needs_them():
    for module, path in modules().items():
        for node in tree_of(path).body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [getattr(node, "module", "") or alias.name for alias in node.names]
                needed = {name.partition(".")[0] for name in names} & LIBRARIES.keys()
                assert not needed, f"{module} imports {needed} before it is asked for anything"


def modules() -> dict[str, Path]:
    paths = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in sources()}
    return {name.removesuffix(".__init__"): path for name, path in paths.items()}


def sources() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def needed(path: Path, known: Collection[str]) -> set[str]:
    """The modules from which a module imports, within functions and for types as well.

    What is listed in `UPWARDS` is left out, and so are the public functions of the package, which
    it looks up when they are first used. Modules of one part may know each other's types.
    """
    place = path.relative_to(PACKAGE).as_posix()
    if place == "__init__.py":
        return set()
    found, types = set(), set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            types |= {*ast.walk(node)}
        part = part_of(getattr(node, "module", None) or "")
        if node in types and part == part_of(f"gauge_mc.{place.replace('/', '.')}"):
            continue
        if isinstance(node, ast.ImportFrom) and node.module:
            deeper = {f"{node.module}.{one.name}" for one in node.names}
            found |= deeper & known if deeper <= known else deeper | {node.module}
        elif isinstance(node, ast.Import):
            found |= {one.name for one in node.names}
    return {one for one in found & known if part_of(one) not in UPWARDS.get(place, ())}


def test_modules_do_not_import_each_other_in_circles():
    known = modules()
    graph = {name: needed(path, known.keys()) - {name} for name, path in known.items()}
    try:
        list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))
