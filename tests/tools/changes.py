"""The files with tests of what differs from main, which `python tests/tools/changes.py` prints."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from functools import cache
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]

TESTS_OF_SOURCES = ("tests/test_pins.py", "tests/test_strict.py", "tests/devices/test_kernels.py")
"""Tests that compile most of the headers in ``cuda_src``."""

TESTS_OF_FOLDERS = {
    "action": ("tests/fields/test_action_density.py", "tests/updates/test_molecular_dynamics.py"),
    "dirac": (
        "tests/extensions/quarks/test_operators.py",
        "tests/extensions/quarks/test_domain_wall.py",
    ),
    "files": ("tests/fields/test_file_links.py",),
    "flow": ("tests/fields/test_gradient_flow.py",),
    "group": ("tests/smearing/test_hyp.py", "tests/updates/test_general_groups.py"),
    "lattice": (
        "tests/quantities/potential/observables/test_wilson_loops.py",
        "tests/domain/test_slabs.py",
    ),
    "random": ("tests/random/test_generators.py", "tests/random/test_ranlux.py"),
    "update": ("tests/updates/test_heatbath.py", "tests/updates/test_anisotropy.py"),
}
"""Further ones, for the headers of a folder."""


def git(*words: str) -> list[str] | None:
    """Return the lines that git prints in the checkout, or None if it fails."""
    try:
        done = subprocess.run(["git", *words], cwd=CHECKOUT, capture_output=True, text=True)
    except OSError:
        return None
    return done.stdout.splitlines() if done.returncode == 0 else None


def changed_files(commits: int = 0) -> set[Path]:
    """Return the files that differ from main's where this branch began.

    On main itself they are those of the newest commits. There are none without git or its history.
    """
    bases = (git("merge-base", "HEAD", main) for main in ("origin/main", "main"))
    (base,) = next(filter(None, bases), ["HEAD"])
    if [base] == git("rev-parse", "HEAD"):
        base = f"HEAD~{commits}"
    names = {*(git("diff", "--name-only", base) or ())}
    names |= {*(git("ls-files", "--others", "--exclude-standard") or ())}
    return {CHECKOUT / name for name in names}


def files_with_tests(changed: Iterable[Path]) -> set[Path]:
    """Return the files with tests of changed files.

    These are changed tests, and for ``gauge_mc/run/chain.py`` those in ``tests/run/test_chain.py``
    or, without that file, all that import the module. Else they are those of its package, or of the
    folder of results to which it belongs: nobody imports what a registry imports by its name. A
    kernel is tested with the modules that name it.
    """
    found = set()
    for path in changed:
        name = path.relative_to(CHECKOUT)
        place = name.parts.index("cuda_src") if "cuda_src" in name.parts else None
        source = () if place is None else name.parts[place:]
        if path.name.startswith("test_") and path.suffix == ".py":
            found.add(path)
        elif name.parts[0] == "gauge_mc" and path.suffix == ".py":
            found |= _tests_of_module(name)
        elif source[:2] == ("cuda_src", "kernels"):
            launching = _containing("gauge_mc", rf'Kernel\("{path.stem}"')
            found |= files_with_tests(launching)
        elif source:
            tests = (*TESTS_OF_SOURCES, *TESTS_OF_FOLDERS.get(source[1], ()))
            found |= {CHECKOUT / one for one in tests}
    return {path for path in found if path.is_file()}


def _tests_of_module(module: Path) -> set[Path]:
    parts = module.with_suffix("").parts[1:]
    found = _named_after(parts) or _importing(parts)
    package = parts[: -2 if parts[-1] == "__init__" else -1]
    if not found and package:
        found = _named_after(package) or _importing(package)
    folders = [package[:n] for n in range(len(package), 0, -1)] if len(package) > 1 else []
    while not found and folders:
        found = {*CHECKOUT.joinpath("tests", *folders.pop(0)).rglob("test_*.py")}
    return found


def _named_after(parts: tuple[str, ...]) -> set[Path]:
    """Return the file with the tests of a module or a package, or those in folders beside it."""
    folder, name = CHECKOUT.joinpath("tests", *parts[:-1]), f"test_{parts[-1]}.py"
    if (folder / name).is_file():
        return {folder / name}
    return {*folder.rglob(name)} if len(parts) > 1 else set()


def _importing(parts: tuple[str, ...]) -> set[Path]:
    """Return the files with tests that import a module or a package."""
    dotted = ".".join(part for part in ("gauge_mc", *parts) if part != "__init__")
    return _containing("tests", rf"(from|import) {re.escape(dotted)}\b(?!\.)", "test_*.py")


def _containing(folder: str, pattern: str, names: str = "*.py") -> set[Path]:
    return {path for path in (CHECKOUT / folder).rglob(names) if re.search(pattern, _text(path))}


@cache
def _text(path: Path) -> str:
    return path.read_text()


if __name__ == "__main__":
    for path in sorted(files_with_tests(changed_files())):
        print(path.relative_to(CHECKOUT))
