"""Arguments of wrong types end in one sentence that names the parameter."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import gauge_mc
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import UsageError
from gauge_mc.signatures import checks_types

if TYPE_CHECKING:
    from nowhere import Unknown

PUBLIC = [name for name in gauge_mc.__all__ if name.islower() and name != "meson_correlators"]
"""Public functions that take something else than arrays."""


@pytest.mark.parametrize("name", PUBLIC)
def test_public_functions_name_the_wrong_parameter(name, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    function, wrong = getattr(gauge_mc, name), object()
    first = next(iter(inspect.signature(function).parameters.values()))
    by_name = first.kind is inspect.Parameter.KEYWORD_ONLY
    with pytest.raises(UsageError, match=f"^{first.name} of {name} is <object object"):
        function(**{first.name: wrong}) if by_name else function(wrong)


def test_functions_of_runs_do_as_well(tmp_path):
    run = gauge_mc.generate(
        lattice="2x2x2x2", beta=2.3, configs=2, separation=1, thermalize=0, measure="plaquette:1",
        output=tmp_path / "run", progress=False,
    )  # fmt: skip
    view = gauge_mc.open_run(run)
    for call in (view.plot, lambda what, out: gauge_mc.plot(what, run, out)):
        with pytest.raises(UsageError, match=r"^output of plot is 5; give a path"):
            call("history", 5)
    with pytest.raises(UsageError, match=r"^what of plot is 5; give text"):
        view.plot(5)
    with pytest.raises(UsageError, match=r"^size of plot is 5; give "):
        view.plot("history", size=5)
    with pytest.raises(UsageError, match=r"^output of report is 5; give a path"):
        view.report(5)


@checks_types
def toy(
    path: str | PathLike[str] | None = None,
    number: float = 0.0,
    count: int = 1,
    flag: bool = False,
    names: Sequence[str] = (),
    boundary: complex | Sequence[complex] = 1,
    size: tuple[float, float] | None = None,
    call: Callable[[], None] | None = None,
    lattice: str | Lattice = "",
    more: Mapping[str, object] | None = None,
    updates: str | int | Iterable[int] = 0,
    unknown: "Unknown" = 0,
    **options: str,
) -> int:
    return count


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("path", Path("x")), ("path", "x"), ("number", 1), ("number", np.float32(1)),
        ("number", Fraction(1, 3)), ("count", np.int64(3)), ("flag", True), ("names", ["a", "b"]),
        ("boundary", 1j), ("boundary", np.array([1, 1j])), ("size", [3, 4]), ("call", print),
        ("lattice", Lattice(2, 2, 2, 2)), ("more", {}), ("updates", range(3)),
        ("updates", (n for n in range(3))), ("unknown", object()), ("anything", object()),
    ],
)  # fmt: skip
def test_suitable_values_are_accepted(name, value):
    assert toy(**{name: value}) == (3 if name == "count" else 1)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("path", 5, "a path"), ("path", b"x", "a path"), ("number", "1", "a number"),
        ("number", True, "a number"), ("number", None, "a number"),
        ("count", 1.5, "a whole number"), ("flag", 1, "True or False"),
        ("names", "ab", "a list of texts"), ("names", [1], "a list of texts"),
        ("boundary", "no", "a number or a list of numbers"), ("size", (1,), "(a number, a number)"),
        ("call", 5, "a function"), ("lattice", 5, "text or a Lattice"), ("more", 5, "a dictionary"),
        ("updates", 2.5, "text, a whole number or a list of whole numbers"),
    ],
)  # fmt: skip
def test_others_are_refused_by_the_name_of_the_parameter(name, value, words):
    with pytest.raises(UsageError) as refused:
        toy(**{name: value})
    assert str(refused.value) == f"{name} of toy is {value!r}; give {words}."


def test_missing_arguments_are_left_to_python():
    with pytest.raises(TypeError, match=r"plot\(\) missing 1 required positional argument: 'what'"):
        gauge_mc.plot()
