"""Names of classes: one meaning each, and nouns."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

PACKAGE = Path(__file__).resolve().parent.parent / "gauge_mc"

NOUNS = {
    "Colouring",
    "Coupling",
    "Crossing",
    "Finding",
    "Heading",
    "Mapping",
    "Smearing",
    "Spacing",
    "Thing",
    "Thinning",
    "Timing",
    "Tuning",
    "Warning",
}
"""Words in -ing that are nouns."""

IRREGULAR = {
    *("Begun", "Done", "Drawn", "Found", "Given", "Held", "Kept", "Left", "Made", "Read"),
    *("Sent", "Shown", "Taken", "Written"),
}
"""Participles that do not end in -ed or -ing."""

NO_NOUNS = {"Along", "Elsewhere", "Others", "Out", "Something", "There", "Together", "What"}
"""Adverbs and pronouns that could stand for a noun."""


def classes(text):
    """Yield the names of classes without underscore, and of aliases of types."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield node.name.lstrip("_"), True
    for node in tree.body:
        # An alias whose value is one name is a former name of the same class.
        if isinstance(node, ast.Assign) and not isinstance(node.value, ast.Name | ast.Constant):
            for target in node.targets:
                if isinstance(target, ast.Name) and re.match("_?[A-Z][a-z]", target.id):
                    yield target.id.lstrip("_"), False


def clashes(modules):
    """Return the modules of every name that a class shares with other classes or aliases."""
    homes, names = defaultdict(list), set()
    for module, text in modules.items():
        for name, is_class in classes(text):
            homes[name].append(module)
            names |= {name} if is_class else set()
    return {name: where for name, where in homes.items() if name in names and len(where) > 1}


def is_noun(name):
    """Whether the last word of a name is, by its ending, neither a participle nor an adverb."""
    last = re.split(r"(?<=[a-z0-9])(?=[A-Z])", name)[-1]
    participle = re.search("(?<!e)ed$|[a-z]ing$", last) and last not in NOUNS
    return not participle and last not in IRREGULAR | NO_NOUNS


@pytest.fixture(scope="module")
def modules():
    return {
        path.relative_to(PACKAGE).as_posix(): path.read_text() for path in PACKAGE.rglob("*.py")
    }


def test_no_two_classes_have_one_name(modules):
    assert clashes(modules) == {}


def test_classes_are_named_by_nouns(modules):
    named = {name for text in modules.values() for name, _ in classes(text)}
    assert sorted(name for name in named if not is_noun(name)) == []
