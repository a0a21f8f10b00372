"""All texts of the package that name a command or an option, as its source has them."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import gauge_mc
from gauge_mc import cli

PACKAGE = Path(gauge_mc.__file__).parent
OPTION = re.compile(r"(?<![\w-])--([a-z][a-z-]*)")
COMMAND = re.compile(rf"gauge-mc ({'|'.join(cli.COMMANDS)}|\{{\}})(?![\w-])")
DESCRIPTIONS = {
    "option",
    "HelpTexts",
    "argument",
    "Option",
    "result_field",
    "setting",
    "Column",
    "OptionGroup",
}
"""Calls whose texts describe something in help pages and documents, and are no messages."""


def template(node: ast.AST) -> str | None:
    """Return a text with ``{}`` in place of every value; None if this is no text."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(template(one) or "{}" for one in node.values)
    if isinstance(node, ast.FormattedValue) and _called(node.value) == "CommandLine":
        return template(node.value)
    if _called(node) == "CommandLine":
        words = [template(one) or "{}" for one in node.args]
        for one in node.keywords:
            flag, value = f"--{one.arg}".replace("_", "-"), getattr(one.value, "value", "{}")
            words += [flag] if value is True else [flag, value if isinstance(value, str) else "{}"]
        return " ".join(["gauge-mc", *words])
    return None


def _called(node: ast.AST) -> str:
    name = getattr(node, "func", None)
    return str(getattr(name, "id", getattr(name, "attr", "")))


def texts(node: ast.AST) -> Iterator[str]:
    """Yield the texts of a syntax tree, without docstrings and descriptions."""
    text = template(node)
    if text is not None:
        yield text
        if isinstance(node, ast.JoinedStr):
            for one in node.values:
                if isinstance(one, ast.FormattedValue) and template(one) is None:
                    yield from texts(one.value)
        return
    for child in ast.iter_child_nodes(node):
        told = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
        if not told and not (isinstance(child, ast.Call) and _called(child) in DESCRIPTIONS):
            yield from texts(child)


def is_advice(text: str) -> bool:
    """Return whether a text names a command, or an option among other words."""
    return bool(COMMAND.search(text) or (OPTION.search(text) and " " in text.strip()))


def messages() -> dict[str, str]:
    """Return the messages that name a command or an option, with the modules that have them."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        source = path.read_text()
        if not re.search("--|gauge-mc|CommandLine", source):
            continue
        for text in texts(ast.parse(source)):
            if is_advice(text):
                found[text] = str(path.relative_to(PACKAGE))
    return found
