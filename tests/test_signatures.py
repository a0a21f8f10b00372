"""Signatures of functions of Python, as `help` and editors show them."""

import ast
import dataclasses
import inspect
from collections.abc import Sequence

import pytest

import gauge_mc
from gauge_mc.actions import couplings
from gauge_mc.algorithms import algorithm_options
from gauge_mc.domain.lattice import Lattice
from gauge_mc.fits import FITS
from gauge_mc.observables import OBSERVABLES
from gauge_mc.plots import PLOTS
from gauge_mc.run.settings import Execution
from gauge_mc.smearing import Smearing
from tests.tools.keywords import STUB, stub


@pytest.mark.parametrize("name", ["generate", "generate_chains", "scan"])
def test_signatures_list_the_parameters_of_a_run(name):
    shown = inspect.signature(getattr(gauge_mc, name)).parameters
    fields = [*dataclasses.fields(gauge_mc.Parameters), *dataclasses.fields(Execution)]
    assert {one.name for one in fields} <= shown.keys()
    assert all(shown[one.name].kind is inspect.Parameter.KEYWORD_ONLY for one in fields)
    assert not [one for one in shown.values() if one.kind is inspect.Parameter.VAR_KEYWORD]
    assert (shown["seed"].annotation, shown["seed"].default) == (int, gauge_mc.Parameters().seed)
    assert shown["threads"].annotation == int | None
    assert shown["time_limit"].annotation == str | None  # HH:MM:SS
    assert shown["start"].annotation is str
    assert {one.name for one in couplings()} <= shown.keys()
    if name != "scan":  # whose grid has several couplings and lattices
        assert shown["lattice"].annotation == Lattice | str | Sequence[int]
        assert (shown["beta"].annotation, shown["beta"].default) == (float | None, None)


@pytest.mark.parametrize(
    ("name", "things", "more"),
    [
        (
            "measure",
            OBSERVABLES,
            {"smear": str | Smearing | list[str | Smearing] | None, "rho": float | None},
        ),
        ("fit", FITS, {}),
        ("plot", PLOTS, {"skip": int | str | None}),
    ],
)
def test_signatures_list_the_options_of_all_things(name, things, more):
    shown = inspect.signature(getattr(gauge_mc, name)).parameters
    options = [option for one in things.values() for option in one.options]
    assert {one.name for one in options} | more.keys() <= shown.keys()
    assert all(shown[one.name].default is None for one in options)
    assert {key: shown[key].annotation for key in more} == more
    assert not [one for one in shown.values() if one.kind is inspect.Parameter.VAR_KEYWORD]


def test_type_checkers_see_the_keywords_that_are_declared():
    """`tests/typed_uses.py` has uses that they must accept, and others that they must refuse."""
    pytest.importorskip("gauge_mc.extensions.quarks.operators")  # some are those of quarks
    written, declared = (ast.dump(ast.parse(text)) for text in (STUB.read_text(), stub()))
    assert written == declared, "run python tests/tools/keywords.py, and ruff format"


def test_signatures_list_the_options_of_algorithms():
    shown = inspect.signature(gauge_mc.generate).parameters
    assert {one.name for one in algorithm_options()} <= shown.keys()
    several = inspect.signature(gauge_mc.scan).parameters["anisotropy"].annotation
    assert several == float | list[float] | None
