"""Imports run downwards in the tree that docs/architecture.md draws."""

import ast
import functools
import itertools
import re
from collections.abc import Collection
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "gauge_mc"
UPWARDS = {
    # Methods of objects that users hold, which look up what is above them when they are called.
    "fields/field.py": {"configurations"},
    "files/table.py": {"reports"},
    "fits/__init__.py": {"reports"},
    # A workflow repeats commands, with the fits and figures of a run.
    "publication/workflow.py": {"cli", "fits", "plots"},
    "quantities/potential/fits/potential.py": {"reports"},
    "run/view.py": {"fits", "inspection", "plots", "reports"},
    # A scan ends with its figure.
    "scans/carry_out.py": {"plots"},
}
"""Modules that may import from above, within functions only."""

LEAVES = {"console", "defaults", "errors", "interruption", "libraries", "notebook_bar", "numbers"}
LEAVES |= {"quoting", "rounded"}
"""Modules below the tree, which import nothing but each other."""

ROOMS = "quantities"
"""Package of the folders of results, whose packages belong to the parts of their names."""


def drawn() -> list[str]:
    """The parts of the package as the tree draws them, from top to bottom."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    tree = text.partition("├── gauge_mc/\n")[2].partition("├── tests/")[0]
    lines = re.findall(r"^│   [├└]── (.*?)(?:  |\n)", tree, re.MULTILINE)
    return [name for line in lines for name in re.findall(r"\w+(?=/|\.py)", line)]


def part_of(module: str) -> str | None:
    """The part of the package to which a module belongs; None if it is not of the package.

    ``quantities.flow.fits.scale`` belongs to ``fits``.
    """
    first, *words = module.split(".")
    if words[:1] == [ROOMS] and len(words) > 2:
        words = words[2:]
    return words[0] if first == "gauge_mc" and words else None


def modules_of(part: str) -> list[Path]:
    """The modules of a part of the package, those in folders of results as well."""
    folders = [PACKAGE / part, *(PACKAGE / ROOMS).glob(f"*/{part}")]
    found = [path for folder in folders for path in folder.rglob("*.py")]
    return found or [(PACKAGE / part).with_suffix(".py")]


@functools.cache
def tree_of(path: Path) -> ast.Module:
    """A module, parsed."""
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


def parts() -> set[str]:
    folders = {one.name for one in PACKAGE.iterdir() if (one / "__init__.py").exists()}
    return (folders | {one.stem for one in PACKAGE.glob("[a-z]*.py")}) - {ROOMS}


def test_the_tree_has_every_part_once():
    names = drawn()
    assert len(names) == len({*names})
    assert {*names} | LEAVES == parts() | {ROOMS}


def test_packages_of_results_belong_to_parts():
    folders = {path.name for path in (PACKAGE / ROOMS).glob("*/*/")} - {"__pycache__"}
    assert folders <= parts()


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
    """The arrows of the diagram, as pairs of parts."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    lines = text.partition("flowchart TD\n")[2].partition("```")[0].splitlines()
    found = []
    for line in lines:
        steps = [re.findall(r"\w+", step.partition("[")[0]) for step in line.split("-->")]
        for above, below in itertools.pairwise(steps):
            found += [(one, other) for one in above for other in below]
    return found


@pytest.mark.parametrize(("above", "below"), arrows())
def test_arrows_of_the_diagram_are_imports(above, below):
    if below == "kernels":  # the C++ sources, which are compiled
        return
    assert below in {part for path in modules_of(above) for part, _ in imports(path)}


def reached(above: str) -> set[str]:
    """The parts to which arrows of the diagram lead from a part, directly or through others."""
    found, next_ones = set(), {above}
    while next_ones:
        next_ones = {below for one, below in arrows() if one in next_ones} - found
        found |= next_ones
    return found


@pytest.mark.parametrize("package", sorted(one for one in parts() if (PACKAGE / one).is_dir()))
def test_a_package_imports_from_packages_to_which_arrows_lead(package):
    known = reached(package)
    for path in modules_of(package):
        place = path.relative_to(PACKAGE).as_posix()
        others = {other for other, _ in imports(path) if (PACKAGE / other).is_dir()}
        found = others - {package} - UPWARDS.get(place, set())
        assert found <= known, f"{place} imports from {found - known}, to which no arrow leads"


@pytest.mark.parametrize("library", ["h5py", "matplotlib"])
def test_analysis_neither_draws_nor_writes_hdf5(library):
    for path in modules_of("analysis"):
        for node in ast.walk(tree_of(path)):
            named = [one.name for one in getattr(node, "names", [])]
            named += [str(getattr(node, "module", "")), str(getattr(node, "value", ""))]
            place = path.relative_to(PACKAGE)
            assert not [one for one in named if library in one.split(".")], f"{place} uses it"


def modules() -> dict[str, Path]:
    """Every module of the package, by its name in imports."""
    paths = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in sources()}
    return {name.removesuffix(".__init__"): path for name, path in paths.items()}


def sources() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def needed(path: Path, known: Collection[str]) -> set[str]:
    """The modules from which a module imports, within functions and for types as well.

    What is listed in `UPWARDS` is left out, and so are the public functions of the package, which
    it looks up when they are first used.
    """
    place = path.relative_to(PACKAGE).as_posix()
    if place == "__init__.py":
        return set()
    found = set()
    for node in ast.walk(tree_of(path)):
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
