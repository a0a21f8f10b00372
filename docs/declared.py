"""Griffe extension: attributes of classes as tables, and declared fields as Python has them.

The reference pages are made from the source. There the fields of a result are calls of
`result_field`, and those of parameters calls of `setting`; the pages show what Python shows
instead: the docstring with all fields, and their defaults. Attributes that are described below
their declarations become a table in the docstring of their class.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import textwrap
from dataclasses import MISSING, Field, fields
from typing import Any

from griffe import Attribute, Class, Docstring, Extension

from gauge_mc.results import DECLARED, documented, in_plain_words


class DeclaredFields(Extension):
    """Replace docstrings of classes and defaults of their fields."""

    def on_class_members(self, *, cls: Class, **_: Any) -> None:
        """Let a class and its fields be described as Python describes them, in one table."""
        if documented.__name__ not in {str(one.value) for one in cls.decorators}:
            cls.docstring = with_attributes(cls)
            return
        kind = getattr(importlib.import_module(cls.module.path), cls.name)
        cls.docstring = Docstring(inspect.cleandoc(kind.__doc__), parent=cls)
        cls.members.pop("__init__", None)  # that of type checkers
        for one in fields(kind):
            member = cls.members.get(one.name)
            if isinstance(member, Attribute):
                member.value = default_of(one)


def with_attributes(cls: Class) -> Docstring | None:
    """Return the docstring of a class with its attributes, whose own docstrings are removed."""
    rows = []
    for one in cls.members.values():
        if isinstance(one, Attribute) and "property" not in one.labels and one.docstring:
            text = textwrap.indent(one.docstring.value, "    ")
            rows.append(f"{one.name} : {in_plain_words(str(one.annotation))}\n{text}")
            one.docstring = None
    if not rows or not cls.docstring:
        return cls.docstring
    text = "\n".join([cls.docstring.value, "", "Attributes", "----------", *rows])
    return Docstring(text, parent=cls)


def default_of(one: Field[Any]) -> str | None:
    """Return the default of a field as source text, dots for an object; None if it has none."""
    if one.default_factory is not MISSING:
        return repr(one.default_factory())
    if one.default is MISSING:
        return None
    if "default" in one.metadata.get(DECLARED, {}):  # words, such as those of one that depends
        return "..."
    try:
        ast.literal_eval(shown := repr(one.default))
    except (ValueError, SyntaxError):
        return "..."
    return shown
