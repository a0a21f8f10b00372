"""Nested time scales, without a lattice, and how they are asked for."""

import itertools

import pytest

from gauge_mc import algorithms
from gauge_mc.errors import UsageError
from gauge_mc.updates.integrators import (
    INTEGRATORS,
    MOST_LEVELS,
    Drift,
    Kick,
    TimeScales,
    TrajectoryLevel,
    gauge_level,
)
from tests.updates.test_integrators import DriftFirst

ROUNDING = 1e-14
"""Rounding error of sums of order 1 in double precision."""

OUTERMOST = [*INTEGRATORS.values(), DriftFirst()]


def scales(*integrators, inner=(3, 2), acting=(0, 1, 2)):
    """Three levels."""
    return TimeScales(tuple(integrators), inner, frozenset(acting))


@pytest.mark.parametrize("outer", OUTERMOST, ids=lambda one: one.name)
@pytest.mark.parametrize("inner", OUTERMOST, ids=lambda one: one.name)
def test_kicks_and_drifts_add_up_and_are_joined(outer, inner):
    moves = scales(outer, inner, INTEGRATORS["omf2"]).trajectory(1.5, 2)
    for level in range(3):
        kicks = [one.size for one in moves if isinstance(one, Kick) and one.level == level]
        assert sum(kicks) == pytest.approx(1.5, abs=ROUNDING)
    drifts = [one.size for one in moves if isinstance(one, Drift)]
    assert sum(drifts) == pytest.approx(1.5, abs=ROUNDING)
    for a, b in itertools.pairwise(moves):  # one kick per level between two drifts
        assert isinstance(a, Kick) or isinstance(b, Kick)
        if isinstance(a, Kick) and isinstance(b, Kick):
            assert a.level < b.level


def test_one_level_is_the_integrator():
    for one in OUTERMOST:
        single = TimeScales((one,), (), frozenset({0}))
        assert single.trajectory(0.7, 5) == one.trajectory(0.7, 5)
        assert single.largest_drift == one.largest_drift
        assert single.order == one.order


def test_the_leapfrog_within_a_leapfrog():
    """The scheme of Sexton and Weingarten with two inner steps."""
    leapfrog = INTEGRATORS["leapfrog"]
    moves = TimeScales((leapfrog, leapfrog), (2,), frozenset({0, 1})).trajectory(1.0, 1)
    inner = [Kick(0.25, 1), Drift(0.5), Kick(0.5, 1), Drift(0.5), Kick(0.25, 1)]
    assert moves == [Kick(0.5, 0), *inner[:-1], Kick(0.5, 0), inner[-1]]


def test_levels_without_a_force_have_no_kicks():
    one = scales(*[INTEGRATORS["omf2"]] * 3, acting={1})
    moves = one.trajectory(1.0, 2)
    assert {move.level for move in moves if isinstance(move, Kick)} == {1}
    # Drifts of the innermost level are joined, those of the outermost one divide the trajectory.
    assert sum(isinstance(move, Drift) for move in moves) == 2 * 2 * 3 * 2
    assert one.largest_drift == pytest.approx(0.5 / 3 / 2)
    assert one.forces(2) == {1: 2 * 2 * 3 * 2 + 1}
    assert not one.has_bare_drifts(1)
    assert one.has_bare_drifts(0)


@pytest.mark.parametrize(
    "text", ["", "omf2:5", "omf2,omf4:3", "4,3:gauge,2", "0,3", "leapfrog:2,2"]
)
def test_text_is_read_back(text):
    found = TrajectoryLevel.several(text)
    assert str(found) == text
    whole = algorithms.parse("hmc").with_options(levels=text, length=0.25)
    assert algorithms.parse(str(whole)) == whole
    assert TrajectoryLevel.several([str(one) for one in found]) == found
    assert TrajectoryLevel.several([one.values for one in found]) == found
    number = text.split(",").index("3:gauge") if "gauge" in text else max(len(found) - 1, 0)
    assert gauge_level(found) == number


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        ("omf2:5,omf4", "--levels gives no steps for level 1; give them"),
        ("omf2,omf3:4", "integrator: There is no integrator 'omf3'"),
        ("omf2:5:x", "'x' in 'omf2:5:x' is not of the form OPTION=VALUE; a level has"),
        ("omf2:5:gauge,omf2:2:gauge", "--levels has the gauge action on several levels"),
        (["omf2:5", 3], "3 is not a level; give text, or a table"),
        ([{"steps": 2.5}], "steps of a level is 2.5; give a whole number"),
        ([{"step": 2}], "step is not an option of a level; did you mean 'steps'?"),
        ("2:steps=3", "a level has the option steps twice"),
        (["omf2:1"] * (MOST_LEVELS + 1), "--levels has 11 levels; give at most 10"),
    ],
    ids=str,
)
def test_bad_levels_are_refused_in_a_sentence(levels, message):
    with pytest.raises(UsageError) as raised:
        algorithms.parse("hmc").with_options(levels=levels).check()
    assert str(raised.value).startswith(message)
    assert str(raised.value).count(". ") == 0


def test_steps_that_contradict_levels_are_refused():
    hmc = algorithms.parse("hmc")
    with pytest.raises(UsageError, match="--steps is 4, but --levels says 5 for the outermost"):
        hmc.with_options(steps=4, levels="omf2:5,omf2:2").check()
    with pytest.raises(UsageError, match="too few for a trajectory of the length 3; give at least"):
        hmc.with_options(length=3.0, levels="leapfrog:2,leapfrog:2").check()
    assert hmc.with_options(steps=5, levels="omf2,omf2:2").check().steps == 5
    assert hmc.with_options(length=3.0, levels="leapfrog:2,leapfrog:3").check().least_steps == 2
