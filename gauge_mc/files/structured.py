"""TOML and JSON from files that anybody may have written."""

from __future__ import annotations

import json
import tomllib
from typing import Any

NESTED = "its tables and lists are nested too deeply"
"""Reason for refusing a text, which the parsers would answer with a `RecursionError`."""


def parse_toml(text: str) -> dict[str, Any]:
    """Return the content of a TOML file.

    Raises
    ------
    ValueError
        If the text is not valid, or nested too deeply.
    """
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError(NESTED) from None


def parse_json(text: str | bytes) -> Any:
    """Return the content of a JSON file.

    Raises
    ------
    ValueError
        If the text is not valid, or nested too deeply.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError(NESTED) from None
