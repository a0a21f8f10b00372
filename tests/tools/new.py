"""Something new of a kind, from the toy of that kind, with a test that passes at once.

`python tests/tools/new.py observable NAME` writes the module of an observable, its kernel and its
test, under names made from NAME, and adds its entry point. What it computes is still what the toy
computes: change the test, see it fail, and then the rest. `docs/extending.md` and
`docs/extensions/quarks/extending.md` have a recipe for each kind.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
TOYS = CHECKOUT / "tests" / "toys"

GROUPS = {
    "action": "actions",
    "action-terms": "updates.terms",
    "algorithm": "algorithms",
    "backend": "devices",
    "batch-system": "scans.batch_systems",
    "benchmark": "benchmarks",
    "command": "cli",
    "conversion": "run.convert",
    "export": "exports",
    "fit": "fits",
    "flow": "flows",
    "folder": "inspection.verify",
    "foreign-series": "files.foreign",
    "format": "formats",
    "generator": "random",
    "group": "groups",
    "integrator": "updates.integrators",
    "monomial": "updates.monomials",
    "noise": "extensions.quarks.noise",
    "observable": "observables",
    "operator": "extensions.quarks.operators",
    "plot": "plots",
    "qcdml": "extensions.publishing.qcdml",
    "scan-addition": "scans.additions",
    "section": "reports.sections",
    "smearing": "smearing",
    "solver": "extensions.quarks.solvers",
    "source": "extensions.quarks.sources",
    "temporal-links": "temporal_links",
    "term": "extensions.quarks.diagonal",
}
"""Group of the entry points of each kind, after ``gauge_mc.``."""

PACKAGES = {
    kind: package
    for kind, package in GROUPS.items()
    if (CHECKOUT / "gauge_mc" / "/".join(package.split(".")[:-1])).is_dir()
}
"""The same for the core and the extensions that are there."""

RESULTS = {
    "fit": "fit",
    "foreign-series": "foreign",
    "observable": "observable",
    "plot": "plot",
    "scan-addition": "addition",
}
"""Modules of kinds that belong to a quantity, of which a new thing begins a folder of its own."""

OPTIONS = {"action-terms", "benchmark", "conversion", "qcdml", "scan-addition"}
"""Kinds of which a thing has the name of an option."""

HEADERS = {
    "actions": "action",
    "random": "random",
    "extensions.quarks.operators": "dirac",
    "extensions.quarks.diagonal": "dirac",
}
"""Folders of headers in ``cuda_src``, by the package whose modules name them."""

FORMATS = importlib.util.find_spec("ruff") is not None
"""Whether the formatter is installed, which is no package of the tests."""

NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


def toy_of(package: str) -> tuple[str, str]:
    """Return the names of the last toy that is declared in a package, and of its module."""
    project = tomllib.loads((TOYS / "pyproject.toml").read_text())["project"]
    *_, (name, value) = project["entry-points"][f"gauge_mc.{package}"].items()
    return name, value.partition(":")[0].rpartition(".")[2]


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


def registry_of(package: str) -> tuple[str, str]:
    """Return the module and the name of the registry of a kind."""
    group = f"gauge_mc.{package}"
    for module in (group, group.rpartition(".")[0]):
        for word, one in vars(importlib.import_module(module)).items():
            if word.isupper() and getattr(one, "_group", "") == group:
                return module, word
    raise LookupError(group)


def inside_the_package(text: str, package: str) -> str:
    """Return the module of a toy as a module of gauge-mc.

    There, files of C++ are below ``cuda_src``, and a module registers what it declares.
    """
    home, registry = registry_of(package)
    text = text.replace(", Path(__file__).parent)", ")")
    text = re.sub(r'Path\(__file__\)\.parent / "', f'"{HEADERS.get(package)}/', text)
    instance = re.search(r"^[A-Z0-9_]+ = (\w+\((?:|\n(?: .*\n)+)\))\n\Z", text, re.M)
    if instance:
        text = text[: instance.start()] + f"{registry}.register({instance[1]})\n"
    else:
        base = re.search(
            r"^(@dataclass.*\n)?class \w+(?=\(.*\):\n(?:.*\n)*?    name\b)", text, re.M
        )
        assert base
        text = f"{text[: base.start()]}@{registry}.register\n{text[base.start() :]}"
    docstring, _, rest = text.partition('"""\n')
    return f'{docstring}"""\n\nfrom {home} import {registry}\n{rest.lstrip()}'


def of_colours(text: str, old: str, new: str) -> str:
    """Return the module of the group SU(N) for another N, with beta in proportion to N^2."""
    before, after = int(old.removeprefix("su")), int(new.removeprefix("su"))
    beta = re.search(r"beta=([\d.]+)", text)
    if beta:
        scaled = f"{float(beta[1]) * after**2 / before**2:.1f}"
        text = text.replace(f"({before}, {beta[0]})", f"({after}, beta={scaled})")
    return text.replace(f"SU({before})", f"SU({after})")


def declared(kind: str) -> dict[str, str]:
    """Return the modules in which things of a kind are declared, by name."""
    plugins, group = importlib.import_module("gauge_mc.registry"), f"gauge_mc.{PACKAGES[kind]}"
    return {entry.name: entry.module for entry in plugins.ours().select(group=group)}


def together(kind: str) -> bool:
    """Return whether all things of a kind are declared in the module of the kind."""
    return {*declared(kind).values()} == {f"gauge_mc.{PACKAGES[kind]}"}


def files_of(kind: str, name: str) -> Iterator[tuple[Path, str]]:
    """Yield the files of a new thing, relative to the checkout, with what is added to them."""
    package, (toy, template_stem) = PACKAGES[kind], toy_of(PACKAGES[kind])
    stem = template_stem.replace(module_name(toy), module_name(name), 1)
    folder, sources, place = Path(package.replace(".", "/")), Path("cuda_src"), Path(f"{stem}.py")
    if not (CHECKOUT / "gauge_mc" / folder).is_dir():
        place = Path(f"{folder.name}.py") if together(kind) else place
        folder = folder.parent
    if kind in RESULTS:
        folder, place = Path("quantities", stem), Path(f"{RESULTS[kind]}.py")
    if package.startswith("extensions."):
        sources = Path("gauge_mc", *package.split(".")[:2], "cuda_src")
    modules = TOYS / "gauge_mc_toys" / template_stem
    test = f"test_{place.stem if kind in RESULTS else stem}.py"
    places = {
        modules.with_suffix(".py"): Path("gauge_mc") / folder / place,
        modules.with_suffix(".cu"): sources / "kernels" / f"{stem}.cu",
        modules.with_suffix(".h"): sources / HEADERS.get(package, "") / f"{stem}.h",
        TOYS / f"test_{template_stem}.py": Path("tests") / folder / test,
    }
    for template, place in places.items():
        if not template.exists():
            continue
        text = renamed(template.read_text(), toy, name)
        if kind == "group":
            text = of_colours(text, toy, name)
        if place.parts[0] == "gauge_mc" and place.suffix == ".py":
            text = inside_the_package(text, package)
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
    if kind in OPTIONS and "-" in name:
        return f"'{name}' is not a name of an option; write small letters and digits."
    files = [place for place, _ in files_of(kind, name)]
    for place in files[1:] if together(kind) else files:
        if (checkout / place).exists():
            return f"{place} is there already; choose another name."
    if name in declared(kind):
        return f"There is a {kind} '{name}' already; choose another name."
    return None


def joined(module: str, more: str, home: str) -> str:
    """Return a module to which the content of another one is added, with its imports."""
    lines, others = module.splitlines(keepends=True), more.splitlines(keepends=True)
    own, added = (
        [one for one in ast.parse(text).body if isinstance(one, ast.Import | ast.ImportFrom)]
        for text in (module, more)
    )
    imports = [
        "".join(others[one.lineno - 1 : one.end_lineno])
        for one in added
        if getattr(one, "module", "") != home
    ]
    place = end_of(own)
    return "".join([*lines[:place], *imports, *lines[place:], "\n\n", *others[end_of(added) :]])


def end_of(imports: Sequence[ast.stmt]) -> int:
    """Return the number of the last line of imports."""
    return max(one.end_lineno or 0 for one in imports)


def declare(package: str, name: str, module: str, checkout: Path) -> Path:
    """Add an entry point in alphabetical order, and return the file that has it."""
    folder = checkout / "gauge_mc"
    if package.startswith("extensions."):
        folder = folder.joinpath(*package.split(".")[:2])
    path = folder / "entry_points.txt"
    lines, heading, line = path.read_text().splitlines(), f"[gauge_mc.{package}]", f"{name} = "
    if heading not in lines:
        lines += ["", heading]
    place = lines.index(heading) + 1
    while place < len(lines) and lines[place] and lines[place] < line:
        place += 1
    lines.insert(place, line + module)
    path.write_text("\n".join(lines) + "\n")
    return path


def write(kind: str, name: str, checkout: Path) -> list[Path]:
    """Write the files of a new thing to a checkout, and return them; the last one is the test.

    The first one is the file with its entry point. Ruff formats them if it is installed.
    """
    written: list[Path] = []
    words: list[str] = []
    for place, text in files_of(kind, name):
        if place.parts[0] == "gauge_mc" and place.suffix == ".py":
            words = [part for part in place.with_suffix("").parts if part != "__init__"]
            written.append(declare(PACKAGES[kind], name, ".".join(words), checkout))
        path = checkout / place
        path.parent.mkdir(parents=True, exist_ok=True)
        if place.parts[:2] == ("gauge_mc", "quantities"):
            package = path.parent / "__init__.py"
            if not package.exists():
                package.write_text(f'"""A quantity: {name}."""\n')
        path.write_text(joined(path.read_text(), text, ".".join(words)) if path.exists() else text)
        written.append(path)
    python = [path for path in written if path.suffix == ".py"]
    for steps in (("format",), ("check", "--fix"), ("format",)) if FORMATS else ():
        ruff = [sys.executable, "-m", "ruff", *steps, "--quiet", *python]
        subprocess.run(ruff, cwd=checkout, check=True)
    return written


PROJECT = """[build-system]
requires = ["hatchling>=1.25"]
build-backend = "hatchling.build"

[project]
name = "{package}"
version = "0.1"
dependencies = ["gauge-mc"]

[project.entry-points."gauge_mc.{group}"]
{name} = "{modules}.{stem}{object}"
"""


def write_package(kind: str, name: str, folder: Path) -> list[Path]:
    """Write a package of its own with a new thing, and return its files.

    The last one is the test, unless that of the toy needs this checkout.
    """
    group, modules = PACKAGES[kind], module_name(folder.name)
    (toy, template), files = toy_of(group), []
    value = tomllib.loads((TOYS / "pyproject.toml").read_text())["project"]["entry-points"]
    _, colon, thing = value[f"gauge_mc.{group}"][toy].partition(":")
    stem = template.replace(module_name(toy), module_name(name), 1)
    places = {}
    for ending in (".py", ".cu", ".h"):
        source = TOYS / "gauge_mc_toys" / f"{template}{ending}"
        places[source] = folder / modules / f"{stem}{ending}"
    places[TOYS / f"test_{template}.py"] = folder / f"test_{stem}.py"
    names = {"package": folder.name, "group": group, "name": name, "modules": modules}
    names |= {"stem": stem, "object": colon + renamed(thing, toy, name)}
    texts = {folder / "pyproject.toml": PROJECT.format(**names)}
    texts[folder / modules / "__init__.py"] = f'"""Things for gauge-mc: {name}."""\n'
    for source, place in places.items():
        if source.exists() and "from tests." not in source.read_text():
            texts[place] = renamed(source.read_text(), toy, name)
    for place, text in texts.items():
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        files.append(place)
    return files


def main() -> None:
    """Write the files, and say how to go on."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("kind", help=", ".join(PACKAGES))
    parser.add_argument("name", help="such as wilson-loops")
    parser.add_argument("--package", type=Path, help="folder of a new package to write it to")
    given = parser.parse_args()
    if why := refusal(given.kind, given.name, CHECKOUT):
        parser.error(why)
    if given.package:
        if given.package.exists() or not NAME.fullmatch(given.package.name):
            parser.error(f"{given.package} exists, or is not a name; choose a new folder.")
        written = write_package(given.kind, given.name, given.package)
        print(*written, f"Install it: python -m pip install -e {given.package}", sep="\n")
        if written[-1].parent == given.package:
            print(f"Its test then passes: python -m pytest {written[-1]}")
        return
    written = [path.relative_to(CHECKOUT) for path in write(given.kind, given.name, CHECKOUT)]
    print(*written, sep="\n")
    print(f"Its test passes: python -m pytest {written[-1]}")
    if not FORMATS:
        print("To format them: pip install -e '.[dev]', and ruff format .")


if __name__ == "__main__":
    sys.path.insert(0, str(CHECKOUT))
    main()
