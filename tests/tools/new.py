"""Something new of a kind, from the toy of that kind, with a test that passes at once.

`python tests/tools/new.py observable NAME` writes the module of an observable, its kernel and its
test, under names made from NAME. What it computes is still what the toy computes: change the test,
see it fail, and then the rest. `docs/extending.md` has a recipe for each kind.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

CHECKOUT = Path(__file__).resolve().parents[2]
TOYS = CHECKOUT / "tests" / "toys"

PACKAGES = {
    "action": "actions",
    "algorithm": "algorithms",
    "backend": "devices",
    "export": "exports",
    "fit": "fits",
    "flow": "flows",
    "format": "formats",
    "generator": "random",
    "group": "groups",
    "integrator": "updates.integrators",
    "monomial": "updates.monomials",
    "noise": "quarks.noise",
    "observable": "observables",
    "operator": "quarks.operators",
    "plot": "plots",
    "smearing": "smearing",
    "solver": "quarks.solvers",
    "source": "quarks.sources",
    "temporal-links": "temporal_links",
    "term": "quarks.diagonal",
}
"""The package in which things of each kind are declared."""

RESULTS = {"fit", "observable", "plot"}
"""Kinds that are declared in folders of results, of which a new thing begins one of its own."""

HEADERS = {
    "actions": "action",
    "random": "random",
    "quarks.operators": "dirac",
    "quarks.diagonal": "dirac",
}
"""Folders of headers in ``cuda_src``, by the package whose modules name them."""

FORMATS = importlib.util.find_spec("ruff") is not None
"""Whether the formatter is installed, which is no package of the tests."""

NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


def toy_of(package: str) -> str:
    """Return the name of the last toy that is declared in a package."""
    project = tomllib.loads((TOYS / "pyproject.toml").read_text())["project"]
    *_, name = project["entry-points"][f"gauge_mc.{package}"]
    return str(name)


def module_name(name: str) -> str:
    """Return the name of the module of a thing."""
    return name.replace("-", "_")


def class_name(name: str) -> str:
    """Return what the class of a thing is called, or how its name begins."""
    return name.title().replace("-", "")


def renamed(text: str, old: str, new: str) -> str:
    """Replace the names that code makes from the name of a thing, and leave sentences alone."""
    sources = rf"(?<=Kernel\(\"){module_name(old)}\b|\b{module_name(old)}(?=_site\b|,|\.h\b)"
    text = re.sub(sources, module_name(new), text)
    text = re.sub(rf"(?<=[\"']){old}(?=[\"':@.])", new, text)
    text = re.sub(rf"\b{class_name(old)}(?=[A-Z]|\b)", class_name(new), text)
    text = re.sub(rf"\b{module_name(old).upper()}\b", module_name(new).upper(), text)
    return re.sub(r"(\b(?:suffix|ending) = \")[^\"]*", rf"\g<1>.{module_name(new)}", text)


def inside_the_package(text: str, package: str, home: ModuleType) -> str:
    """Return the module of a toy as a module of gauge-mc.

    There, files of C++ are below ``cuda_src``, and a module registers what it declares.
    """
    registry = next(
        word
        for word, one in vars(home).items()
        if word.isupper() and getattr(one, "_package", "") == home.__name__
    )
    text = text.replace(", Path(__file__).parent)", ")")
    text = re.sub(r'Path\(__file__\)\.parent / "', f'"{HEADERS.get(package)}/', text)
    instance = re.search(r"^[A-Z0-9_]+ = (\w+\(\))\n\Z", text, re.M)
    if instance:
        text = text[: instance.start()] + f"{registry}.register({instance[1]})\n"
    else:
        base = re.search(
            r"^(@dataclass.*\n)?class \w+(?=\(.*\):\n(?:.*\n)*?    name\b)", text, re.M
        )
        assert base
        text = f"{text[: base.start()]}@{registry}.register\n{text[base.start() :]}"
    docstring, _, rest = text.partition('"""\n')
    return f'{docstring}"""\n\nfrom {home.__name__} import {registry}\n{rest.lstrip()}'


def of_colours(text: str, old: str, new: str) -> str:
    """Return the module of the group SU(N) for another N, with beta in proportion to N^2."""
    before, after = int(old.removeprefix("su")), int(new.removeprefix("su"))
    beta = re.search(r"beta=([\d.]+)", text)
    if beta:
        scaled = f"{float(beta[1]) * after**2 / before**2:.1f}"
        text = text.replace(f"({before}, {beta[0]})", f"({after}, beta={scaled})")
    return text.replace(f"SU({before})", f"SU({after})")


def files_of(kind: str, name: str) -> Iterator[tuple[Path, str]]:
    """Yield the files of a new thing, relative to the checkout, with their content."""
    package, stem = PACKAGES[kind], module_name(name)
    home = importlib.import_module(f"gauge_mc.{package}")
    toy, folder = toy_of(package), Path(package.replace(".", "/"))
    if kind in RESULTS:
        folder = "quantities" / Path(stem) / folder
    places = {
        TOYS / "gauge_mc_toys" / f"{module_name(toy)}.py": Path("gauge_mc") / folder / f"{stem}.py",
        TOYS / "gauge_mc_toys" / f"{module_name(toy)}.cu": Path("cuda_src/kernels") / f"{stem}.cu",
        TOYS / "gauge_mc_toys" / f"{module_name(toy)}.h": Path(
            "cuda_src", HEADERS.get(package, ""), f"{stem}.h"
        ),
        TOYS / f"test_{module_name(toy)}.py": Path("tests") / folder / f"test_{stem}.py",
    }
    for template, place in places.items():
        if not template.exists():
            continue
        text = renamed(template.read_text(), toy, name)
        if kind == "group":
            text = of_colours(text, toy, name)
        if place.parts[0] == "gauge_mc":
            text = inside_the_package(text, package, home)
            if kind == "backend":
                place = place.with_suffix("") / "__init__.py"
        yield place, text


def refusal(kind: str, name: str, checkout: Path) -> str | None:
    """Return why there can be no such thing, or None."""
    if kind not in PACKAGES:
        return f"There is no template of a '{kind}'; choose one of {', '.join(PACKAGES)}."
    if not NAME.fullmatch(name):
        return f"'{name}' is not a name; write small letters, digits and hyphens."
    if kind == "group" and not re.fullmatch(r"su\d+", name):
        return (
            f"There is no template of the group '{name}', only of SU(N), such as su10; "
            "docs/extending.md says what the header of another group declares."
        )
    for place, _ in files_of(kind, name):
        if (checkout / place).exists():
            return f"{place} is there already; choose another name."
    return None


def begin_packages(room: Path, folder: Path) -> None:
    """Make a folder of results, and one for the things of a kind in it, packages."""
    for path in (room, folder):
        if not (path / "__init__.py").exists():
            words = path.relative_to(room.parent).parts
            (path / "__init__.py").write_text(f'"""Results: {", ".join(words)}."""\n')


def write(kind: str, name: str, checkout: Path) -> list[Path]:
    """Write the files of a new thing to a checkout, and return them; the last one is the test.

    Ruff formats them if it is installed.
    """
    written = []
    for place, text in files_of(kind, name):
        path = checkout / place
        path.parent.mkdir(parents=True, exist_ok=True)
        if place.parts[:2] == ("gauge_mc", "quantities"):
            begin_packages(path.parents[1], path.parent)
        path.write_text(text)
        written.append(path)
    python = [path for path in written if path.suffix == ".py"]
    for words in (("check", "--fix"), ("format",)) if FORMATS else ():
        ruff = [sys.executable, "-m", "ruff", *words, "--quiet", *python]
        subprocess.run(ruff, cwd=checkout, check=True)
    return written


def main() -> None:
    """Write the files, and say how to go on."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("kind", help=", ".join(PACKAGES))
    parser.add_argument("name", help="such as wilson-loops")
    given = parser.parse_args()
    if why := refusal(given.kind, given.name, CHECKOUT):
        parser.error(why)
    written = [path.relative_to(CHECKOUT) for path in write(given.kind, given.name, CHECKOUT)]
    print(*written, sep="\n")
    print(f"Its test passes: python -m pytest {written[-1]}")
    if not FORMATS:
        print("To format them: pip install -e '.[dev]', and ruff format .")


if __name__ == "__main__":
    sys.path.insert(0, str(CHECKOUT))
    main()
