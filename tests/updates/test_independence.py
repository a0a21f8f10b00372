"""Actions whose loops do not fit their colouring are refused, wherever they come from."""

from pathlib import Path

import numpy as np
import pytest

from gauge_mc.actions import (
    ACTIONS,
    PARITIES,
    ROWS,
    Action,
    Colouring,
    Coupling,
    RectangleAction,
    parse,
)
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.updates import checks
from gauge_mc.updates.checks import check_independence
from gauge_mc.updates.heatbath import OVERRELAXATION, heatbath, overrelax
from gauge_mc.updates.sweep import norms_of

LATTICE = Lattice(4, 6, 8, 10)
MANY_LANES = Lattice(16, 4, 8, 4)
SHALLOW = """
#include "update/rows.h"
struct Shallow : Rows {
    static constexpr int DEPTH = 1, COLOURS = 4, OTHER_COLOURS = 6, ROWS_Y = 1, ROWS_Z = 2;
};
"""


class Squares(Action):
    """Loops of 2x2 links with the colouring of rectangles."""

    name = "squares"
    formula = "beta sum over 2x2 loops of (1 - Re Tr U / N)"
    header = Path(__file__).parent / "squares.h"
    cpp = "Squares"
    colouring = ROWS

    def coefficients(self, group, beta):
        """Return beta / N."""
        return {"beta_over_n": beta / group.colours}


class Rectangles(RectangleAction):
    """Rectangles with the colouring that a test gives them."""

    name = "given"
    c1 = -0.3
    source = "a test"

    def __init__(self, colouring):
        super().__init__()
        self.colouring = colouring


@pytest.fixture(autouse=True)
def _nothing_has_passed(monkeypatch):
    """Every action is checked, also if it has been before."""
    monkeypatch.setattr(checks, "_passed", set())
    monkeypatch.setattr(checks, "kept", lambda path: None)


@pytest.fixture
def given(monkeypatch):
    """Register an action for the test."""
    return lambda action: monkeypatch.setitem(ACTIONS._registered, action.name, action)


def cold(lattice=LATTICE, device=None):
    return Field.cold(lattice, "su2", "single", device)


@pytest.mark.parametrize(
    "update",
    [
        lambda field: overrelax(field, action="squares"),
        lambda field: heatbath(field, 2.0, Random.for_field(field), action="squares"),
    ],
)
def test_a_loop_that_is_too_large_for_its_colouring_is_refused(update, given):
    given(Squares())
    sentence = (
        r"The action squares \(.*test_independence.py\) has loops .* its colouring Rows is for"
    )
    with pytest.raises(GaugeError, match=sentence):
        update(cold())


@pytest.mark.slow
def test_rectangles_are_not_for_parities(given):
    given(Rectangles(PARITIES))
    with pytest.raises(GaugeError, match=checks.TOGETHER):
        overrelax(cold(), action="given")


@pytest.mark.slow
def test_a_loop_that_is_longer_than_the_halo_is_refused(tmp_path, given):
    header = tmp_path / "shallow.h"
    header.write_text(SHALLOW)
    given(Rectangles(Colouring("Shallow", header)))
    with pytest.raises(GaugeError, match=checks.BEYOND):
        overrelax(cold(), action="given")


def test_links_that_staples_leave_where_they_are_count_as_updated(monkeypatch):
    def ones(check, random):
        reals = checks.stored_reals(check._slab, np.eye(2, dtype=complex)[None])
        return np.broadcast_to(reals, check._shape)

    monkeypatch.setattr(checks._UpdateCheck, "_drawn", ones)
    overrelax(cold())


def test_sets_that_leave_out_links_are_refused(monkeypatch):
    sets = Action.update_sets
    monkeypatch.setattr(Action, "update_sets", lambda *known: sets(*known)[:-1])
    with pytest.raises(GaugeError, match=checks.NOT_ONCE):
        overrelax(cold())


@pytest.mark.first_quick
@pytest.mark.parametrize(
    ("name", "lattice"),
    [
        ("wilson", LATTICE),
        ("iwasaki", LATTICE),
        ("luscher-weisz:1", LATTICE),
        ("wilson", MANY_LANES),
        pytest.param("iwasaki", MANY_LANES, marks=pytest.mark.slow),
        pytest.param("luscher-weisz:1", MANY_LANES, marks=pytest.mark.slow),
    ],
    ids=str,
)
@pytest.mark.parametrize("anisotropy", [1.0, pytest.param(2.0, marks=pytest.mark.slow)])
def test_the_usual_actions_pass(best_device, name, anisotropy, lattice):
    action = parse(name)
    if anisotropy != 1:
        if action.anisotropic is None:
            pytest.skip("has no anisotropic form")
        action = action.with_options(anisotropy=anisotropy)
    field = cold(lattice, best_device)
    check_independence(field, Coupling.of(2.0, action).action, OVERRELAXATION, norms_of("single"))


@pytest.mark.slow
@pytest.mark.parametrize("group", ["su3", "su4", "su5"])
def test_every_group_passes(best_device, group):
    for precision in ("single", "double"):
        field = Field.cold(LATTICE, group, precision, best_device)
        check_independence(field, Coupling.of(2.0).action, OVERRELAXATION, norms_of(precision))
