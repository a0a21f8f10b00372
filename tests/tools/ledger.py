"""The ledger: how much of everything there is, in the core and in each extension.

``python tests/tools/ledger.py`` prints the counts beside those that ``tests/ledger.toml`` allows,
and ``--record`` writes the present ones there. `tests.test_ledger` fails if one has risen.

code        lines of gauge_mc that are neither blank, comments nor docstrings
files       modules of gauge_mc
executed    share of these lines in percent that run when a function is called: no imports,
            signatures, fields, constants, descriptions of attributes, raises
imports     share of lines of import statements in percent
filler      share of bound names in percent that say nothing about what they name
lonely      modules of fewer than 80 lines that only one other module imports
lazy        imports of gauge_mc inside functions
docstrings  lines of docstrings
tests       lines of tests
kernels     lines of C++ that are neither blank nor comments
words       words of README and pages
"""

from __future__ import annotations

import argparse
import ast
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LEDGER = ROOT / "tests" / "ledger.toml"

FILLER = re.compile(
    r"_*(?:(?:one|ones|found|own|known|given|made|left|wanted|kept|written|chosen|taken|whole|alone|there|"
    "same|asked|said|done|seen|needed|allowed|here|these|those|others|other|everything|nothing|"
    "something|got|had|what|which|who|why|how)(?:_+|$))+"
)
"""Words that name nothing."""

RISES = ("executed",)
"""Counts that must not fall; all others must not rise."""

SMALL = 80
"""Code lines of a module from which on it may have a single importer."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Source:
    """A Python file: its lines by kind, its names, its imports. No tree is kept, which is large."""

    def __init__(self, path: Path) -> None:
        self.path, tree, code, docstrings = path, *_read(path)
        nodes = list(ast.walk(tree))
        self.code, self.docstrings = len(code), len(docstrings)
        """Number of code lines, and of lines of docstrings."""
        self.kinds = Counter(_kinds(code, tree, nodes).values())
        """Number of code lines by kind."""
        self.bound = list(_bound(nodes))
        """Names that assignments, parameters and loops bind."""
        imports = [node for node in nodes if _is_of_program(node)]
        self.imported = {
            name
            for node in imports
            for name in (node.module, *(f"{node.module}.{alias.name}" for alias in node.names))
        }
        """Modules and names of gauge_mc that are imported."""
        functions = [node for node in nodes if isinstance(node, Function)]
        lines = {n for node in functions for n in range(node.lineno, (node.end_lineno or 0) + 1)}
        self.lazy = sum(node.lineno in lines for node in imports)
        """Number of imports of gauge_mc inside functions."""


def _is_of_program(node: ast.AST) -> bool:
    return isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gauge_mc")


def _read(path: Path) -> tuple[ast.Module, set[int], set[int]]:
    """Return the tree of a file and the numbers of its code lines and of those of docstrings."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    docstrings = set(_docstrings(tree))
    lines = enumerate(text.split("\n"), 1)
    code = {n for n, line in lines if line.strip() and not line.strip().startswith("#")}
    return tree, code - docstrings, docstrings


def _docstrings(node: ast.AST) -> Iterator[int]:
    if isinstance(node, ast.Module | Function | ast.ClassDef) and ast.get_docstring(node, False):
        yield from range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1)
    for statement in ast.iter_child_nodes(node):
        if not isinstance(statement, ast.expr):
            yield from _docstrings(statement)


def _bound(nodes: list[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg


def _kinds(code: set[int], tree: ast.Module, nodes: list[ast.AST]) -> dict[int, str]:
    """Return the kind of each code line, of which the first that fits counts."""
    kinds: dict[int, str] = {}
    for kind, first, last in _places(tree, nodes):
        for line in code.intersection(range(first, last + 1)):
            kinds.setdefault(line, kind)
    return {line: kinds.get(line, "executed") for line in code}


def _places(tree: ast.Module, nodes: list[ast.AST]) -> Iterator[tuple[str, int, int]]:
    """Yield kinds of lines with the first and the last line of each place."""
    for node in nodes:
        text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if text and isinstance(node.value.value, str):
            yield "descriptions", node.lineno, node.end_lineno
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield "imports", node.lineno, node.end_lineno
        elif isinstance(node, ast.Raise | ast.Assert):
            yield "raises", node.lineno, node.end_lineno
    for node in nodes:
        if isinstance(node, ast.ClassDef):
            for part in node.body:
                if isinstance(part, ast.AnnAssign | ast.Assign):
                    yield "fields", part.lineno, part.end_lineno
            yield "signatures", _first(node), node.lineno
        elif isinstance(node, Function):
            yield "signatures", _first(node), max(node.body[0].lineno - 1, node.lineno)
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            yield "constants", node.lineno, node.end_lineno


def _first(node: ast.AST) -> int:
    return min(line.lineno for line in (*node.decorator_list, node))


def parts(root: Path) -> dict[str, tuple[Path, ...]]:
    """Return the folders with code, tests and pages of the extensions, by name."""
    places = ("gauge_mc", "tests", "docs")
    names = sorted(
        one.name for one in (root / "gauge_mc/extensions").glob("[a-z]*") if one.is_dir()
    )
    return {name: tuple(root / place / "extensions" / name for place in places) for name in names}


def counts(root: Path = ROOT) -> dict[str, dict[str, float]]:
    """Return the counts of the core and of each extension."""
    extensions = parts(root)

    def part_of(path: Path) -> str:
        homes = (name for name, folders in extensions.items() if {*folders} & {*path.parents})
        return next(homes, "core")

    sources, importers = defaultdict(list), defaultdict(set)
    for path in sorted((root / "gauge_mc").rglob("*.py")):
        source = Source(path)
        sources[part_of(path)].append(source)
        for name in source.imported:
            importers[name].add(path)
    found = {name: _of_code(sources[name], importers, root) for name in ("core", *extensions)}
    for name in found:
        found[name] |= dict.fromkeys(("tests", "kernels", "words"), 0)
    for path in (root / "tests").rglob("*.py"):
        found[part_of(path)]["tests"] += len(_read(path)[1])
    for folder in (root / "cuda_src", root / "gauge_mc"):
        for path in folder.rglob("*"):
            if path.suffix in (".h", ".cu"):
                lines = map(str.strip, path.read_text(encoding="utf-8").split("\n"))
                code = sum(bool(line) and not line.startswith("//") for line in lines)
                found[part_of(path)]["kernels"] += code
    for path in (root / "README.md", *(root / "docs").rglob("*.md")):
        found[part_of(path)]["words"] += len(path.read_text(encoding="utf-8").split())
    return found


def _of_code(
    sources: list[Source], importers: dict[str, set[Path]], root: Path
) -> dict[str, float]:
    kinds, names = Counter[str](), Counter[str]()
    lonely = 0
    for one in sources:
        kinds += one.kinds
        names.update(one.bound)
        module = ".".join(one.path.relative_to(root).with_suffix("").parts)
        users = importers[module.removesuffix(".__init__")]
        lonely += 0 < one.code < SMALL and len(users) == 1
    code = sum(kinds.values())
    filler = sum(n for name, n in names.items() if FILLER.fullmatch(name))
    return {
        "code": code,
        "files": len(sources),
        "executed": round(100 * kinds["executed"] / code, 1),
        "imports": round(100 * kinds["imports"] / code, 1),
        "filler": round(100 * filler / sum(names.values()), 1),
        "lonely": lonely,
        "lazy": sum(one.lazy for one in sources),
        "docstrings": sum(one.docstrings for one in sources),
    }


def allowed(text: str) -> dict[str, dict[str, float]]:
    """Return the counts that the text of a ledger allows, without those that it wants."""
    return {name: one for name, one in tomllib.loads(text).items() if name != "wanted"}


def risen(new: dict[str, float], old: dict[str, float]) -> list[str]:
    """Return the counts that are worse than they were."""
    worse = {name for name in new.keys() & old.keys() if new[name] > old[name]}
    fallen = {name for name in new.keys() & old.keys() if new[name] < old[name]}
    return sorted((worse - {*RISES}) | (fallen & {*RISES}))


def record(found: dict[str, dict[str, float]]) -> None:
    """Write counts into the ledger, and leave what it says besides."""
    text = LEDGER.read_text(encoding="utf-8")
    for part, numbers in found.items():
        for name, value in numbers.items():
            pattern = rf"(^\[{part}\]\n(?:[^\[\n]*\n)*?{name} = )[\d.]+"
            text = re.sub(pattern, rf"\g<1>{value:g}", text, flags=re.M)
    LEDGER.write_text(text, encoding="utf-8")


def main() -> None:
    """Print or record the counts."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--record", action="store_true", help="write the counts into the ledger")
    parser.add_argument("root", nargs="?", type=Path, default=ROOT, help="another checkout")
    arguments = parser.parse_args()
    found = counts(arguments.root)
    if arguments.record:
        record(found)
    known = allowed(LEDGER.read_text(encoding="utf-8"))
    for part, numbers in found.items():
        print(part)
        for name, value in numbers.items():
            print(f"    {name:<11} {value:>9g}   allowed {known.get(part, {}).get(name, 0):g}")
    print("code, everything:", sum(int(one["code"]) for one in found.values()))


if __name__ == "__main__":
    main()
