"""Actions whose staples, loops and halos contradict each other are refused before trajectories."""

import pytest

import gauge_mc
from gauge_mc.actions import ACTIONS, Coupling, RectangleAction
from gauge_mc.actions.wilson import Wilson
from gauge_mc.devices.kernels import Kernel
from gauge_mc.domain.colouring import PARITIES, ROWS, Colouring
from gauge_mc.domain.lattice import Lattice
from gauge_mc.domain.loops import PLAQUETTES, RECTANGLES, Loops
from gauge_mc.errors import GaugeError
from gauge_mc.fields.field import Field
from gauge_mc.updates import force_check, independence
from gauge_mc.updates.chain_versions import norms_of
from gauge_mc.updates.force_check import check_force
from gauge_mc.updates.independence import check_independence
from gauge_mc.updates.overrelaxation import OVERRELAXATION
from gauge_mc.updates.replicas import MANY_REPLICAS, ONE_REPLICA
from tests.updates.every_action import EVERY, coupling_of

LATTICE = Lattice(4, 6, 8, 10)
LINKS = Loops(Kernel("link_trace"), (((0, 1),),) * 4)
"""No loops, but what reads no other time slice."""
SHALLOW = """
#include "update/parities.h"
struct Shallow : Parities { static constexpr int DEPTH = 0; };
"""
DISAGREE = r"action given \(.*test_force_check.py\) contradicts itself: .*action.wilson.h.*correct"


@pytest.fixture(autouse=True)
def _nothing_has_passed(monkeypatch):
    """Every action is checked, also if it has been before."""
    monkeypatch.setattr(independence, "_passed", set())
    monkeypatch.setattr(independence, "kept", lambda path: None)
    monkeypatch.setattr(independence, "keep", lambda path, content: None)


class Given(Wilson):
    """The staples of plaquettes, with the loops, colouring and beta that a test gives them."""

    name = "given"
    loops = None

    def __init__(self, loops=None, colouring=PARITIES, factor=1.0):
        super().__init__()
        self.loops, self.colouring, self.factor = loops or {PLAQUETTES: 1.0}, colouring, factor

    def coefficients(self, group, beta):
        return super().coefficients(group, self.factor * beta)


class Flat(RectangleAction):
    """The action of issue 46: rectangles with two colours and halos of one time slice."""

    name = "flat"
    c1 = -1 / 12
    source = "a test"
    colouring = PARITIES


def check(action, replicas=ONE_REPLICA, lattice=LATTICE):
    check_force(Field.cold(lattice, "su2", "single"), Coupling.of(2.0, action), replicas)


def shallow(tmp_path):
    header = tmp_path / "shallow.h"
    header.write_text(SHALLOW)
    return Colouring("Shallow", header)


def test_what_agrees_passes():
    check(Given())
    check(Given(colouring=ROWS))


@pytest.mark.parametrize(
    ("loops", "factor"),
    [
        ({PLAQUETTES: 1.02}, 1.0),
        ({PLAQUETTES: 1.0}, 0.98),
        ({PLAQUETTES: -1.0}, 1.0),
        ({PLAQUETTES: 1.0, RECTANGLES: -0.01}, 1.0),
    ],
)
def test_a_force_that_is_not_the_derivative_of_the_value_is_refused(loops, factor):
    with pytest.raises(GaugeError, match=DISAGREE):
        check(Given(loops, ROWS, factor))


def test_numbers_of_loops_that_are_wrong_are_refused():
    loops = Loops(PLAQUETTES.kernel, PLAQUETTES.paths + PLAQUETTES.paths[-1:])
    with pytest.raises(GaugeError, match="has a value that is not 0 if all links are 1"):
        check(Given({loops: 1.0}))


def test_loops_that_are_longer_than_the_halos_are_refused(tmp_path):
    sentence = r"has loops \(plaquette\) that extend over more time slices .* Shallow have \(0\)"
    with pytest.raises(GaugeError, match=sentence):
        check(Given(colouring=shallow(tmp_path)))


def test_staples_that_are_longer_than_the_halos_are_refused(tmp_path):
    with pytest.raises(GaugeError, match=r"has staples that extend .* Shallow have \(0\)"):
        check(Given({LINKS: 1.0}, shallow(tmp_path)))


def test_hybrid_monte_carlo_refuses_them(tmp_path, monkeypatch):
    monkeypatch.setitem(ACTIONS._registered, "given", Given({PLAQUETTES: 1.02}))
    with pytest.raises(GaugeError, match=DISAGREE):
        gauge_mc.generate(
            action="given",
            algorithm="hmc",
            steps=4,
            lattice=(4, 4, 4, 4),
            group="su2",
            precision="single",
            beta=2.0,
            configs=1,
            thermalize=0,
            output=tmp_path / "run",
        )


def test_the_heatbath_refuses_loops_that_the_staples_do_not_have():
    """It does not find wrong factors of all loops, on which its chains do not depend."""
    field = Field.cold(LATTICE, "su2", "single")
    for loops in ({PLAQUETTES: 1.0, RECTANGLES: -0.01}, {RECTANGLES: 1.0}):
        coupling = Coupling.of(2.0, Given(loops, ROWS))
        with pytest.raises(GaugeError, match=DISAGREE):
            check_independence(field, coupling, OVERRELAXATION, norms_of("single"))


@pytest.mark.slow
def test_rectangles_are_not_for_halos_of_one_slice():
    with pytest.raises(GaugeError, match=r"has staples that extend .*have .1."):
        check(Flat())


@pytest.mark.slow
@pytest.mark.parametrize("replicas", [ONE_REPLICA, MANY_REPLICAS], ids=["one", "many"])
@pytest.mark.parametrize("anisotropic", [False, True])
@pytest.mark.parametrize("action", EVERY, ids=lambda one: one.name)
def test_the_usual_actions_pass(best_device, action, anisotropic, replicas):
    if not action.loops:
        pytest.skip("the action declares no loops")
    for group, precision in (("su2", "single"), ("su3", "double")):
        field = Field.cold(LATTICE, group, precision, best_device)
        check_force(field, coupling_of(action, anisotropic, group, beta=2.0), replicas)


def test_what_has_passed_is_remembered(monkeypatch):
    tried, kept = [], {}
    monkeypatch.setattr(force_check._ForceCheck, "check", lambda self: tried.append(self))
    monkeypatch.setattr(independence, "keep", kept.__setitem__)
    monkeypatch.setattr(independence, "kept", kept.get)
    for _ in range(2):
        check(Given())
        independence._passed.clear()
    assert len(tried) == len(kept) == 1
    check(Given({PLAQUETTES: 1.5}))
    check(Given(colouring=ROWS))
    assert len(tried) == len(kept) == 3
