"""Actions whose staples, loops and halos contradict each other are refused before trajectories."""

import pytest

import gauge_mc
from gauge_mc.actions import ACTIONS, PARITIES, ROWS, Colouring, Coupling
from gauge_mc.actions.loops import Wilson
from gauge_mc.devices.kernels import Kernel
from gauge_mc.domain.lattice import PLAQUETTES, RECTANGLES, Lattice, Loops
from gauge_mc.errors import GaugeError
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.options import Option
from gauge_mc.updates import checks
from gauge_mc.updates.checks import check_force, check_independence, check_term
from gauge_mc.updates.heatbath import OVERRELAXATION
from gauge_mc.updates.monomials import MONOMIALS
from gauge_mc.updates.monomials.gauge import AdjointPlaquette
from gauge_mc.updates.sweep import MANY_REPLICAS, ONE_REPLICA, norms_of
from gauge_mc.updates.terms import NamedMonomial, monomial_terms
from tests.updates.every_action import EVERY, coupling_of

LATTICE = Lattice(4, 6, 8, 10)
LINKS = Loops(Kernel("link_trace"), (((0, 1),),) * 4)
"""No loops, but what reads no other time slice."""
SHALLOW = """
#include "update/parities.h"
struct Shallow : Parities { static constexpr int DEPTH = 0; };
"""
MONOMIAL_DISAGREES = (
    r"The monomial pretended \(.*test_force_check.py\) contradicts itself: in one direction its "
    r"value changes by .* its method actions, and by .* its method add_force; correct one of them"
)
DISAGREE = r"action given \(.*test_force_check.py\) contradicts itself: .*action.wilson.h.*correct"


@pytest.fixture(autouse=True)
def _nothing_has_passed(monkeypatch):
    """Every action is checked, also if it has been before."""
    monkeypatch.setattr(checks, "_passed", set())
    monkeypatch.setattr(checks, "kept", lambda path: None)
    monkeypatch.setattr(checks, "keep", lambda path, content: None)


class Given(Wilson):
    """The staples of plaquettes, with the loops, colouring and beta that a test gives them."""

    name = "given"
    loops = None

    def __init__(self, loops=None, colouring=PARITIES, factor=1.0):
        super().__init__()
        self.loops, self.colouring, self.factor = loops or {PLAQUETTES: 1.0}, colouring, factor

    def coefficients(self, group, beta):
        return super().coefficients(group, self.factor * beta)


class Wrong(AdjointPlaquette):
    """A term whose force has a factor, and whose value depends on what it has drawn."""

    name = "pretended"
    options = (
        *AdjointPlaquette.options,
        Option("factor", float, "Factor of the force.", least=-2, most=2, usual=1.0),
    )

    def _draw(self, randoms, failures):
        self.drawn = [1.0 + one.step for one in randoms]
        return super()._draw(randoms, failures)

    def actions(self, failures):
        return [one for one, _ in zip(super().actions(failures), self.drawn, strict=True)]

    def add_force(self, force, wanted, failures):
        beta = self.values["beta"]
        self.values["beta"] *= self.values["factor"]
        super().add_force(force, wanted, failures)
        self.values["beta"] = beta


class Lonely(AdjointPlaquette):
    """A term that reads links of its own, whose halos it may forget to exchange."""

    name, forgets = "lonely", True

    def __init__(self, field, title, **values):
        super().__init__(field.repeated(1), title, **values)
        self.seen = field

    def actions(self, failures):
        for own, slab in zip(self.field.slabs, self.seen.slabs, strict=True):
            links = own.device.read(slab.buffer, 0, slab.layout.slices * slab.slice_bytes)
            own.device.write(own.buffer, 0, links)
        if not self.forgets:
            self.field.exchange_halo()
        return super().actions(failures)

    def add_force(self, force, wanted, failures):
        self.actions(failures)
        super().add_force(force, wanted, failures)


@pytest.fixture
def wrong():
    """A registered term that a run may name."""
    MONOMIALS.register(Wrong)
    yield
    MONOMIALS.remove(Wrong.name)


def check_named(text, replicas=ONE_REPLICA, kind=("su2", "single")):
    field = Field.cold(LATTICE, *kind)
    (term,) = monomial_terms(NamedMonomial.several(text), 1)
    check_term(field, term, Coupling.of(2.0), replicas, Random.for_field(field))


def check(action, replicas=ONE_REPLICA, lattice=LATTICE):
    check_force(Field.cold(lattice, "su2", "single"), Coupling.of(2.0, action), replicas)


def generate(folder, **values):
    """Begin a short run of hybrid Monte Carlo."""
    gauge_mc.generate(
        algorithm="hmc",
        steps=4,
        lattice=(4, 4, 4, 4),
        group="su2",
        precision="single",
        beta=2.0,
        configs=1,
        thermalize=0,
        output=folder / "run",
        **values,
    )


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
        generate(tmp_path, action="given")


@pytest.mark.parametrize("beta", ["0.5", "-3", "1e-5", "0", "1e3"])
def test_a_monomial_that_agrees_passes(wrong, beta):
    """The value may be small in single precision, or depend on what is drawn."""
    check_named(f"pretended:beta={beta}")


@pytest.mark.parametrize("beta", ["0.5", "1e-5"])
@pytest.mark.parametrize("factor", ["0.98", "-1", "0"])
def test_a_monomial_whose_force_is_not_the_derivative_of_its_value_is_refused(wrong, beta, factor):
    with pytest.raises(GaugeError, match=MONOMIAL_DISAGREES):
        check_named(f"pretended:beta={beta}:factor={factor}")


def test_a_monomial_that_forgets_a_halo_is_refused(monkeypatch):
    monkeypatch.setitem(MONOMIALS._registered, Lonely.name, Lonely)
    with pytest.raises(GaugeError, match="on two slabs than on one; exchange the halos of its own"):
        check_named("lonely:beta=0.7")
    monkeypatch.setattr(Lonely, "forgets", False)
    check_named("lonely:beta=0.7")


def test_hybrid_monte_carlo_refuses_such_a_monomial(tmp_path, wrong):
    with pytest.raises(GaugeError, match=MONOMIAL_DISAGREES):
        generate(tmp_path, action="wilson", monomials="pretended:beta=0.5:factor=0.98")


def test_the_heatbath_refuses_loops_that_the_staples_do_not_have():
    """It does not find wrong factors of all loops, on which its chains do not depend."""
    field = Field.cold(LATTICE, "su2", "single")
    for loops in ({PLAQUETTES: 1.0, RECTANGLES: -0.01}, {RECTANGLES: 1.0}):
        coupling = Coupling.of(2.0, Given(loops, ROWS))
        with pytest.raises(GaugeError, match=DISAGREE):
            check_independence(field, coupling.action, OVERRELAXATION, norms_of("single"))


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


@pytest.mark.slow
@pytest.mark.parametrize("replicas", [ONE_REPLICA, MANY_REPLICAS], ids=["one", "many"])
@pytest.mark.parametrize("group", ["su2", "su3", "su4"])
def test_adjoint_plaquettes_pass(best_device, group, replicas):
    for precision in ("single", "double"):
        kind = group, precision, best_device
        check_named("adjoint-plaquette:beta=0.7", replicas, kind)
