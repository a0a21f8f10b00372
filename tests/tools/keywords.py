"""Keyword arguments of the functions of Python, for editors and type checkers.

``python tests/tools/keywords.py`` writes ``gauge_mc/keywords.pyi`` from what options, actions,
algorithms, observables, fits and plots declare. The stub has no module at run time.
"""

import inspect
from collections.abc import Iterator
from pathlib import Path
from types import GenericAlias, NoneType, UnionType
from typing import Any, get_args, get_origin

import gauge_mc
from gauge_mc.run.parameters import Parameters
from gauge_mc.signatures import LateSignature, field_keywords

STUB = Path(__file__).resolve().parents[2] / "gauge_mc" / "keywords.pyi"

FUNCTIONS = ("bench", "determine", "fit", "generate", "measure", "plot", "scan")

HEADER = '''"""Keyword arguments that are declared elsewhere; written by tests/tools/keywords.py."""

# A package that is installed beside gauge-mc may have more options, which are not here.

'''


def named(kind: Any, imports: set[tuple[str, str]]) -> str:
    """Return a type as it is written in Python, and note what has to be imported for it."""
    if kind is NoneType or kind is None:
        return "None"
    if isinstance(kind, UnionType):
        words = dict.fromkeys(named(one, imports) for one in get_args(kind))
        return " | ".join(sorted(words, key=lambda word: word == "None"))
    if kind is Ellipsis:
        return "..."
    if isinstance(kind, GenericAlias) or get_origin(kind):
        inside = ", ".join(named(one, imports) for one in get_args(kind))
        return f"{named(get_origin(kind), imports)}[{inside}]"
    if kind.__module__.startswith("gauge_mc.extensions."):  # of which the package knows nothing
        kind = Any
    if kind.__module__ != "builtins":
        imports.add((kind.__module__, kind.__name__))
    return str(kind.__name__)


def classes(imports: set[tuple[str, str]]) -> Iterator[str]:
    """Yield a class for the constructor of parameters, and one for each function."""
    found = {"Parameter": [*field_keywords(Parameters)]}
    for name in FUNCTIONS:
        signature = inspect.signature(getattr(gauge_mc, name))
        assert isinstance(signature, LateSignature)
        found[name.capitalize()] = signature.looked_up
    for name, keywords in found.items():
        lines = [f"    {one.name}: {named(one.annotation, imports)}" for one in keywords]
        yield "\n".join([f"class {name}Keywords(TypedDict, total=False):", *lines])


def stub() -> str:
    """Return the content of the stub."""
    imports = {("typing", "TypedDict")}
    body = list(classes(imports))
    modules: dict[str, list[str]] = {}
    for module, name in sorted(imports, key=lambda one: (one[0].startswith("gauge_mc"), one)):
        modules.setdefault(module, []).append(name)
    lines = [f"from {module} import {', '.join(names)}" for module, names in modules.items()]
    first = next(n for n, line in enumerate(lines) if "gauge_mc" in line)
    lines.insert(first, "")
    return HEADER + "\n".join(lines) + "\n\n" + "\n\n".join(body) + "\n"


if __name__ == "__main__":
    STUB.write_text(stub())
