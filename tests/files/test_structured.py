"""TOML and JSON that a parser cannot cope with are refused like what is invalid."""

import math
from dataclasses import dataclass

import pytest

from gauge_mc.files.structured import typed


@dataclass(frozen=True)
class Inner:
    """A point with an error."""

    value: float
    error: float = 0.5


@dataclass(frozen=True)
class Outer:
    """A result that has all kinds of fields."""

    count: int
    name: str
    points: tuple[Inner, ...]
    best: Inner | None
    shifts: dict[str, float]
    sure: bool = True


GOOD = {
    "count": 3,
    "name": "a",
    "points": [{"value": 1}, {"value": 2.0, "error": None}],
    "best": None,
    "shifts": {"r0": 0.25},
}


def test_a_data_class_is_read_by_its_annotations():
    found = typed(GOOD, Outer)
    assert found.points[0] == Inner(1, 0.5)
    assert math.isnan(found.points[1].error)
    assert (found.best, found.shifts, found.sure) == (None, {"r0": 0.25}, True)
    assert typed({**GOOD, "best": {"value": 1.0}}, Outer).best == Inner(1.0)


@pytest.mark.parametrize(
    "change",
    [
        {"count": 3.0},
        {"count": True},
        {"count": 2**63},
        {"name": None},
        {"points": {}},
        {"points": [1.0]},
        {"points": [{"value": "1"}]},
        {"points": [{"error": 1.0}]},
        {"best": {"value": 1.0, "more": 1}},
        {"shifts": []},
        {"shifts": {"r0": True}},
        {"more": 1},
    ],
)
def test_content_of_another_type_is_refused(change):
    with pytest.raises(TypeError):
        typed({**GOOD, **change}, Outer)
