"""Griffe extension: data classes whose fields are declared, as `gauge_mc.results` documents them.

The reference pages are made from the source, where the fields of a result are calls of
`result_field`, and those of parameters calls of `setting`. The pages show what Python shows
instead: the docstring with all fields, and their defaults.
"""

from __future__ import annotations

import ast
import importlib
import inspect
from dataclasses import MISSING, Field, fields
from typing import Any

from griffe import Attribute, Class, Docstring, Extension

from gauge_mc.results import documented


class DeclaredFields(Extension):
    """Replace docstrings and defaults of the classes that are decorated with `documented`."""

    def on_class_members(self, *, cls: Class, **_: Any) -> None:
        """Let a class and its fields be described as Python describes them."""
        if documented.__name__ not in {str(one.value) for one in cls.decorators}:
            return
        kind = getattr(importlib.import_module(cls.module.path), cls.name)
        cls.docstring = Docstring(inspect.cleandoc(kind.__doc__), parent=cls)
        for one in fields(kind):
            member = cls.members.get(one.name)
            if isinstance(member, Attribute):
                member.value = default_of(one)


def default_of(one: Field[Any]) -> str | None:
    """Return the default of a field as source text, dots for an object; None if it has none."""
    if one.default_factory is not MISSING:
        return repr(one.default_factory())
    if one.default is MISSING:
        return None
    try:
        ast.literal_eval(shown := repr(one.default))
    except (ValueError, SyntaxError):
        return "..."
    return shown
