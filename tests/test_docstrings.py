"""What docstrings list is described: a type alone tells no more than the signature."""

import ast
import inspect
import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "gauge_mc"
SECTIONS = {"Parameters", "Attributes", "Returns", "Yields", "Raises"}


def entries(docstring):
    """Yield section, first line and description of each entry of a docstring of numpydoc."""
    parts = re.split(r"^(\w[\w ]*)\n-{3,}\n", inspect.cleandoc(docstring), flags=re.M)
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        if title in SECTIONS:
            for entry in re.split(r"\n(?=\S)", body.strip("\n")):
                first, _, description = entry.partition("\n")
                yield title, first, description.strip()


def undescribed(text):
    """Return the entries without a description of the docstrings of a module."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            name = getattr(node, "name", "module")
            listed = entries(ast.get_docstring(node, clean=False) or "")
            found += [f"{name}, {title}: {first}" for title, first, text in listed if not text]
    return found


@pytest.mark.slow
def test_every_entry_of_a_docstring_has_a_description():
    found = [
        f"{path.relative_to(PACKAGE)}: {one}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for one in undescribed(path.read_text())
    ]
    assert found == []


@pytest.mark.parametrize("section", sorted(SECTIONS))
def test_entries_without_description_are_found(section):
    lines = f'    """Do it.\n\n    {section}\n    {"-" * len(section)}\n    a : int\n{{}}    """\n'
    assert undescribed("def f():\n" + lines.format("")) == [f"f, {section}: a : int"]
    assert undescribed("def f():\n" + lines.format("        A number.\n")) == []


def first_words(text):
    """Yield the first word of every docstring of a module, those of attributes included."""
    for node in ast.walk(ast.parse(text)):
        body = getattr(node, "body", None)
        for one in body if isinstance(body, list) else []:
            value = one.value if isinstance(one, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield value.value.split(maxsplit=1)[0], one.lineno


@pytest.mark.slow
def test_no_docstring_begins_with_half_a_name():
    found = [
        f"{path.relative_to(PACKAGE)}:{line}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for word, line in first_words(path.read_text())
        if word in {"Of", "That", "What"}
    ]
    assert found == []


def test_first_words_of_all_docstrings_are_found():
    text = '"""One."""\nA = 1\n"""Two."""\nclass B:\n    """Three."""\n    c = 1\n    """Four."""\n'
    assert [word for word, _ in first_words(text)] == ["One.", "Two.", "Three.", "Four."]
