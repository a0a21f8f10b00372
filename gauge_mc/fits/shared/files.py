"""Files of the results of fits."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from shlex import quote
from typing import Any

from gauge_mc.analysis.timeseries.estimates import Estimate
from gauge_mc.errors import GaugeError
from gauge_mc.files.atomic import FileKind
from gauge_mc.files.input import read_text
from gauge_mc.files.mapping import SuggestingDict
from gauge_mc.files.structured import json_with, parse_json
from gauge_mc.fits.shared.quoted import WORD

MAX_RESULT = 2**24
"""Maximum size of a result in bytes."""

CHOSEN = "thermalisation"
"""Key of what ``--skip auto`` has left out, beside the values of a result."""

STARTS = "starts"
"""Key of the comparison with a chain from another start, beside the values of a result."""

FITTED = "tables"
"""Key of the tables from which a result was made, beside its values."""

SAMPLING = "sampling"
"""Key of the cautions about the tables themselves, beside the values of a result."""

OPTIONS = "options"
"""Key of the options that a fit was given, beside its values."""

BESIDE = (WORD, CHOSEN, STARTS, FITTED, SAMPLING, OPTIONS)
"""Keys beside the values of a result."""

RESULT = FileKind("the result of a fit", json_with(("observable", "units"), MAX_RESULT))
"""Kind of the files that fits write."""


def read_fit(path: Path) -> SuggestingDict[Any]:
    """Return the content of the file of a fit, with an `Estimate` for every value with an error.

    Raises
    ------
    GaugeError
        If the file cannot be read or is not the result of a fit.
    """
    if not RESULT.recognises(path):
        raise GaugeError(
            f"{path} is not the result of a fit; if it was one, make it again with gauge-mc fit "
            f"{path.stem.partition('_')[0]} {quote(str(path.parent))}."
        )
    content = parse_json(read_text(path, MAX_RESULT))
    return SuggestingDict({key: _with_estimates(value) for key, value in content.items()})


ESTIMATE = {one.name for one in dataclasses.fields(Estimate)}
"""Keys of an estimate."""


def _with_estimates(content: Any) -> Any:
    """Return a tree with objects for its estimates, and NaN for null among numbers."""
    if isinstance(content, dict):
        if content.keys() == ESTIMATE:
            return Estimate(**with_nan(content))
        return SuggestingDict({key: _with_estimates(value) for key, value in content.items()})
    if isinstance(content, list):
        numbers = all(one is None or isinstance(one, int | float) for one in content)
        return with_nan(content) if numbers else [_with_estimates(one) for one in content]
    return content


def without_nan(content: Any) -> Any:
    """Replace NaN and infinities, which JSON does not have, by None throughout a tree."""
    if isinstance(content, dict):
        return {key: without_nan(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [without_nan(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


def with_nan(content: Any) -> Any:
    """Replace None by NaN throughout a tree."""
    if isinstance(content, dict):
        return {key: with_nan(value) for key, value in content.items()}
    if isinstance(content, list):
        return [with_nan(value) for value in content]
    return math.nan if content is None else content
