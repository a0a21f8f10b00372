"""Runs of hybrid Monte Carlo with quarks: energies, failures, resuming, slabs and replicas."""

import dataclasses

import numpy as np
import pytest

from gauge_mc import open_device_group
from gauge_mc.devices import BACKENDS
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import ChainError, ConvergenceError, GaugeError, UsageError
from gauge_mc.extensions.quarks.dynamical.flavours import DynamicalQuarks, quark_terms
from gauge_mc.extensions.quarks.dynamical.monomials import TwoFlavours
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.files.table import read_heading, read_table
from gauge_mc.run.cards import check_card
from gauge_mc.run.checkpoint import read_state
from gauge_mc.run.directory import Run
from gauge_mc.run.parameters import Parameters
from gauge_mc.updates.molecular_dynamics import FAILURES
from gauge_mc.updates.terms import TermLinks
from tests.calls import call, make_run
from tests.run.sessions import carry_out, carry_out_batch, stop_after, written
from tests.run.test_tempering import HMC, check_resumed
from tests.updates.monomials.trajectories import OneChain

QUARKS = "wilson:kappa=0.12:heavier=kappa=0.1"
LEVELS = "omf2,leapfrog:2"


SHORT = {
    "algorithm": "hmc", "group": "su3", "beta": 5.0, "lattice": "2x2x2x4", "precision": "double",
    "start": "hot", "thermalize": 0, "steps": 3, "configs": 1, "separation": 1,
    "measure": "plaquette", "format": "none", "quarks": QUARKS, "levels": LEVELS,
}  # fmt: skip


def parameters(**values):
    """Parameters of a short run without configurations."""
    return Parameters.from_values({**SHORT, **values})


def rows(run, name="hmc"):
    return read_table(run.table(name))


TWO_RATIOS = "twisted-mass:kappa=0.12:mu=0.1:heavier=mu=0.3/mu=0.8:level=0,1,1"


@pytest.mark.longer
@pytest.mark.parametrize(
    ("quarks", "levels", "order"),
    [
        (QUARKS, LEVELS, 2),
        ("kappa=0.11:csw=1.2:flavours=1:range=0.01,6,kappa=0.1:flavours=1", "omf2,2", 2),
        *(
            pytest.param(*one, marks=pytest.mark.slow)
            for one in (
                (TWO_RATIOS, "omf2,omf2:2,4", 2),
                ("wilson:kappa=0.1,wilson:kappa=0.11:boundary=periodic", "omf4", 4),
                ("kappa=0.12:heavier=kappa=0.1:level=0,1", "force-gradient,force-gradient:1", 4),
                ("kappa=0.11:csw=1.2:heavier=kappa=0.1", "omf2,2", 2),
                ("kappa=0.12:mu_sigma=0.5:mu_delta=0.4,kappa=0.1:mu=0.2", "omf2,2", 2),
                ("domain-wall:LS=4:c=1:m=0.1:heavier=m=0.4,kappa=0.1", "omf2,2", 2),
                ("domain-wall:LS=4:m=0.1:flavours=1", "omf2,2", 2),
            )
        ),
    ],
)
def test_energies_change_with_a_power_of_the_step(tmp_path, fast_device, quarks, levels, order):
    """With all terms, on all levels; a force that is missing or doubled would spoil it."""
    changes = []
    for steps in (6, 12):
        run = Run(tmp_path / f"{steps}")
        values = {"quarks": quarks, "levels": levels, "length": 0.5, "steps": steps}
        carry_out(run, parameters(**values), fast_device)
        changes.append(rows(run)["delta_h"][0])
    # Corrections are of the relative order (frequency * step)^2 / 10; see the test of the glue.
    assert abs(changes[1]) > 1e-8
    assert changes[0] / changes[1] == pytest.approx(2.0**order, rel=0.2)


@pytest.mark.longer
def test_tables_say_what_each_term_does(tmp_path, best_device):
    run, p = Run(tmp_path / "run"), parameters(configs=2)
    carry_out(run, p, best_device)
    found = rows(run)
    names = ["quarks1_ratio1", "quarks1"]
    assert [*found][-7:] == [
        "failed",
        *(f"{what}_{name}" for name in names for what in ("force", "largest_force", "iterations")),
    ]
    for name in names:
        assert (found[f"iterations_{name}"] > 10).all()
        assert (found[f"force_{name}"] < found[f"largest_force_{name}"]).all()
    assert (found["failed"] == 0).all()
    header = read_heading(run.table("hmc"))[0]
    assert (header["quarks"], header["levels"]) == (QUARKS, LEVELS)
    carry_out(Run(tmp_path / "glue"), parameters(quarks="", levels=""), best_device)
    older = read_heading(Run(tmp_path / "glue").table("hmc"))[0]
    assert not {"quarks", "levels", "monomials", "failures"} & older.keys()


def test_cards_have_tables_of_quarks(tmp_path):
    path = tmp_path / "card.toml"
    path.write_text(
        "group = 'su3'\nbeta = 5.6\nprecision = 'double'\n"
        "[algorithm]\nname = 'hmc'\nlength = 0.5\n"
        "[[quarks]]\noperator = 'wilson'\nkappa = 0.1575\nheavier = [{kappa = 0.15}]\n"
        "level = [0, 1]\n"
        "[[quarks]]\nkappa = 0.13\nmu = 0.1\nboundary = [0, 0, 0, 0.5]\n"
        "[[levels]]\nintegrator = 'omf2'\n[[levels]]\nsteps = 3\n"
    )
    found = check_card(path)
    text = (
        "wilson:kappa=0.1575:heavier=kappa=0.15:level=0,1,"
        "kappa=0.13:mu=0.1:boundary=0.0,0.0,0.0,0.5"
    )
    assert found.algorithm.written["quarks"] == text
    path.write_text(found.to_toml())
    assert check_card(path) == found
    first = DynamicalQuarks("wilson", kappa=0.1575, heavier=[{"kappa": 0.15}], level=[0, 1])
    second = {"kappa": 0.13, "mu": 0.1, "boundary": (0, 0, 0, 0.5)}
    given = {"group": "su3", "beta": 5.6, "precision": "double", "algorithm": "hmc"}
    levels = [{"integrator": "omf2"}, "3"]
    same = Parameters.from_values(
        {**given, "length": 0.5, "quarks": [first, second], "levels": levels}
    )
    assert same == found
    walls = {"operator": "domain-wall", "LS": 4, "m": 0.1, "optimal": [0.2, 5], "c": 1}
    text = "domain-wall:LS=4,m=0.1,optimal=0.2,5,c=1"
    assert DynamicalQuarks.several(walls) == DynamicalQuarks.several(text)
    short = "wilson:kappa=0.1575,flavours=2"
    assert DynamicalQuarks.several(short) == (DynamicalQuarks("wilson", kappa=0.1575),)


@pytest.mark.slow
def test_all_terms_draw_different_numbers():
    """A doublet draws two fields, after which those of the next terms follow."""
    field = Field.cold(Lattice(2, 2, 2, 4), "su2", "double", open_device_group("cpu:1"))
    links, random = TermLinks(field), Random.for_field(field, seed=2)
    random.step = 1
    quarks = "kappa=0.1:mu_sigma=0.5,kappa=0.1,kappa=0.11:flavours=1:range=0.1,4"
    drawn = []
    for term in quark_terms(DynamicalQuarks.several(quarks), 1):
        made = term.make(links)
        OneChain(made).draw(random)
        drawn.append(made._eta.to_numpy().reshape(-1, field.lattice.sites * 8))
    drawn = np.concatenate(drawn)
    assert len(drawn) == 4
    products = np.abs(drawn.conj() @ drawn.T)
    np.fill_diagonal(products, 0)
    assert products.max() < 0.5 * np.linalg.norm(drawn[0]) ** 2


@pytest.mark.parametrize(
    ("quarks", "message"),
    [
        ("kappa=0.3", "--kappa is 0.3, which is beyond its critical value"),
        ("kappa=0.3:mu=2", "--kappa is 0.3, which is beyond its critical value"),
        ("kappa=0.3:mu_sigma=0.1", "--kappa is 0.3, which is beyond its critical"),
        ("kappa=0.1:level=a", "--level is 'a'; give a whole number, or one for each"),
        ("kappa=0.1:flavours=1:range=a", "--range is 'a'; give numbers"),
        ("kappa=0.1:heavier=mu=0.2/mu=0.1", "--heavier is mu=0.2/mu=0.1, but one"),
        ("wilson:kappa=0.1:mu=0.1", "The Dirac operator wilson has no mu; leave out"),
        ("wilsn:kappa=0.1", "operator: There is no Dirac operator 'wilsn'; did you"),
        ("kappa=0.1:history=13:force_tolerance=1e-11", "history of a table of quarks is 13"),
        ("kappa=0.1:reduction=1", "reduction of a table of quarks is 1; give a number"),
        (
            "kappa=0.1:mu_sigma=0.5:solver=bicgstab",
            "--solver is for two flavours of one mass, but --quarks asks for a rational",
        ),
        ("kappa=0.1:boundary=1", "--boundary is (1.0,); give antiperiodic or periodic"),
        ("kappa=0.1:flavours=3", "flavours of a table of quarks is 3; give a whole"),
        ("kappa=0.1:flavours=1:range=5", "--range is 5; give the smallest and the"),
        ("kappa=0.1:mu_sigma=1:mu=0.1", "A doublet with mu_sigma has no mu; leave"),
        ("wilson:kappa=0.1:mu_sigma=1", "A doublet with mu_sigma has no operator;"),
        ("kappa=0.1:mu_sigma=1:heavier=kappa=0.09", "A doublet with mu_sigma has no heavier;"),
        ("m=0.1", "Quarks with a hopping parameter have no m; leave that out, or choose"),
        ("kappa=0.1:heavier=m=0.1", "Quarks with a hopping parameter have no m; leave that out"),
        ("domain-wall:m=1", "m of a table of quarks is 1; give a number from 0 to"),
        ("domain-wall:m=0.1:M5=2", "M5 of a table of quarks is 2; give a"),
        ("domain-wall:m=0.1:c=2", "b is 1 and c is 2; give b above 0, and c from"),
        ("domain-wall:m=0.1:c=1:LS=5", "The matrix b + c L has no inverse for m = 1"),
        ("domain-wall:m=0.1:kappa=0.1", "Quarks with the operator domain-wall have no kappa; "),
        ("domain-wall:m=0.1:mu_sigma=1", "Quarks with the operator domain-wall have no mu_sigma"),
        ("domain-wall:m=0.1:heavier=mu=1", "Quarks with the operator domain-wall have no mu; "),
        ("domain-wall:m=0.1:heavier=m=0.1", "--heavier is m=0.1, but one of its"),
        ("domain-wall:m=0.1:c=1:optimal=measured", "optimal of dynamical quarks cannot be measur"),
        ("overlap:m=0.1", "The force of quarks with the operator 'overlap' is not"),
        ([{"kapa": 0.1}], "kapa is not an option of a table of quarks; did you mean"),
    ],
    ids=str,
)
def test_bad_quarks_are_refused_in_a_sentence(quarks, message):
    with pytest.raises(UsageError) as raised:
        parameters(quarks=quarks)
    assert str(raised.value).startswith(message)
    assert str(raised.value).count(". ") == 0


def test_other_options_that_are_refused():
    with pytest.raises(UsageError, match="--quarks asks for level 1, but the last one is 0"):
        parameters(quarks="kappa=0.1:level=1", levels="", steps=0, thermalize=9)
    with pytest.raises(UsageError, match="--failures is 0; give a whole number from 1"):
        parameters(failures=0)
    with pytest.raises(UsageError, match=r"two-flavours is a term of every run or of .* --quarks"):
        parameters(monomials="two-flavours")
    with pytest.raises(UsageError, match="of the algorithm heatbath, but of hmc; add --alg"):
        Parameters.from_values({"quarks": "kappa=0.1"})


@pytest.mark.longer
def test_a_run_ends_when_solvers_fail_too_often_in_a_row(tmp_path, best_device):
    """And nothing is lost: the rows and a checkpoint are there, and it can be continued."""
    run = Run(tmp_path / "run")
    p = parameters(quarks="kappa=0.12:iterations=3", failures=2, configs=9, levels="")
    for session in (1, 2):
        said = "Solvers have failed in 2 trajectories in a row, the last time because the residual"
        with pytest.raises(ChainError, match=said) as raised:
            carry_out(run, p, best_device)
        assert (str(raised.value).count(". "), raised.value.exit_code) == (0, 1)
        found, state = rows(run), read_state(run.checkpoint)
        assert len(found) == state.sweep == state.step == 2 * session
        assert state.tuning[FAILURES] == 0
        assert (found["failed"] == 1).all()
        assert (found["accepted"] == 0).all()
        assert len({*rows(run, "plaquette")["plaquette"]}) == 1


@pytest.mark.longer
def test_the_spectrum_of_one_flavour_is_recorded_and_checked(tmp_path, best_device):
    quarks = "kappa=0.12:flavours=1:range="
    run = Run(tmp_path / "run")
    carry_out(run, parameters(quarks=f"{quarks}0.01,6", configs=3), best_device)
    found = rows(run)
    lower, upper = found["smallest_eigenvalue_quarks1"], found["largest_eigenvalue_quarks1"]
    assert (lower > 0.01).all()
    assert (upper > 2 * lower).all()
    assert (upper < 6).all()
    assert (found["failed"] == 0).all()
    assert (found["iterations_quarks1"] > 100).all()
    for ends in ((1.5 * lower.max(), 6), (0.01, 0.7 * upper.min())):
        run = Run(tmp_path / f"{ends[0]:g}")
        p = parameters(quarks=f"{quarks}{ends[0]},{ends[1]}", failures=1, configs=3)
        said = r"because the eigenvalues of Mh Mh\^dagger are from .* function of quarks1 is for"
        with pytest.raises(ChainError, match=said) as raised:
            carry_out(run, p, best_device)
        assert str(raised.value).count(". ") == 0
        assert rows(run)["failed"].tolist() == [1]
        assert (rows(run)["smallest_eigenvalue_quarks1"] > 0.01).all()


@pytest.mark.longer
def test_failures_are_counted_in_a_row(tmp_path, best_device, monkeypatch):
    """Trajectories 2, 3, 5 and 6 fail, of which two in a row are allowed; stops do not matter."""
    draw = TwoFlavours.draw

    def failing(self, randoms, failures):
        if randoms[0].step in (2, 3, 5, 6):
            reason = "The residual is too large: choose a larger tolerance."
            failures.errors[0] = ConvergenceError(reason)
        return draw(self, randoms, failures)

    monkeypatch.setattr(TwoFlavours, "draw", failing)
    p = parameters(failures=3, configs=7, steps=6, length=0.2)
    found = []
    for name, stops in (("whole", ()), ("stopped", (2, 1, 2))):
        run = Run(tmp_path / name)
        for updates in stops:
            carry_out(run, p, best_device, stop=stop_after(updates))
        carry_out(run, p, best_device)
        found.append(outcome(run.path))
    assert found[0] == found[1]
    own, plaquettes = rows(run), rows(run, "plaquette")["plaquette"]
    np.testing.assert_array_equal(own["failed"], [0, 1, 1, 0, 1, 1, 0])
    np.testing.assert_array_equal(own["accepted"], 1 - own["failed"])
    moved = np.diff(plaquettes) != 0
    np.testing.assert_array_equal(moved, own["accepted"][1:] == 1)


def outcome(path):
    return {**written(path), "checkpoint": Run(path).checkpoint.read_bytes()}


@pytest.mark.slow
def test_slabs_threads_and_sessions_write_the_same_bytes(tmp_path):
    """In a run with tuning."""
    p = parameters(lattice="2x2x2x8", thermalize=4, steps=0, configs=2)
    whole, divided, continued = (Run(tmp_path / name) for name in ("whole", "divided", "continued"))
    carry_out(whole, p, open_device_group("cpu:1"))
    carry_out(divided, p, open_device_group("cpu:2", threads=2))
    for updates in (1, 2, 2):
        carry_out(continued, p, open_device_group("cpu:1"), stop=stop_after(updates))
    carry_out(continued, p, open_device_group("cpu:1"))
    assert outcome(divided.path) == outcome(continued.path) == outcome(whole.path)


@pytest.mark.slow
@pytest.mark.parametrize(
    "quarks", ["wilson:kappa=0.13:heavier=kappa=0.1", "domain-wall:LS=4:m=0.1:heavier=m=0.4"]
)
def test_a_run_with_earlier_solutions_is_continued_exactly(tmp_path, quarks):
    """Because the first force of a trajectory starts from zero, wherever the run was stopped.

    The continued run is divided between two slabs.
    """
    quarks, found = f"{quarks}:history=3:force_tolerance=1e-10", []
    p = parameters(quarks=quarks, configs=3)
    for name, stops in (("whole", ()), ("stopped", (1, 1))):
        run = Run(tmp_path / name)
        for updates in (*stops, None):
            stop = stop_after(updates) if updates else None
            devices = open_device_group(f"cpu:{1 + len(found)}")
            carry_out(run, p, devices, **({"stop": stop} if stop else {}))
        found.append(outcome(run.path))
    assert found[0] == found[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("quarks", "levels"),
    [
        (QUARKS, LEVELS),
        ("kappa=0.12:csw=1.2:heavier=kappa=0.1", "force-gradient,leapfrog:2"),
        ("kappa=0.12:flavours=1,kappa=0.1:mu_sigma=0.2:mu_delta=0.1", LEVELS),
        ("domain-wall:LS=4:c=1:optimal=0.2,5:m=0.1:heavier=m=0.4", LEVELS),
    ],
    ids=["wilson", "clover", "rational", "domain walls"],
)
def test_replicas_are_what_each_is_alone(quarks, levels, tmp_path, best_device):
    first = parameters(configs=3, quarks=quarks, levels=levels)
    members = [
        dataclasses.replace(first, beta=beta, seed=seed) for seed, beta in enumerate((5.0, 5.4), 4)
    ]
    for n, p in enumerate(members):
        carry_out(Run(tmp_path / f"alone_{n}"), p, best_device)
    runs = [(Run(tmp_path / f"batch_{n}"), p) for n, p in enumerate(members)]
    carry_out_batch(runs, best_device, stop=stop_after(1))
    carry_out_batch(runs, best_device)
    alone = [outcome(tmp_path / f"alone_{n}") for n in range(2)]
    assert [outcome(tmp_path / f"batch_{n}") for n in range(2)] == alone
    assert len({one["hmc.csv"] for one in alone}) == 2


def test_the_default_precision_is_one_with_which_quarks_work():
    with_quarks = Parameters.from_values({"algorithm": "hmc", "quarks": "kappa=0.1"})
    assert with_quarks.precision == "double"
    assert "_double_" in with_quarks.name


def test_runs_of_trajectories_state_that_they_have_no_quarks(tmp_path):
    run = Run(make_run(tmp_path / "run", algorithm="hmc", steps=2, configs=0))
    text = run.toml.read_text()
    assert run.read()[0].algorithm.values["quarks"] == ()
    run.toml.write_text(text.replace('quarks = ""\n', ""))
    with pytest.raises(GaugeError, match="no key quarks"):
        run.read()


@pytest.mark.longer
@pytest.mark.slow
def test_stopped_anywhere_and_resumed_runs_are_the_same(tmp_path, best_device):
    check_resumed(tmp_path, best_device, HMC | {"quarks": "kappa=0.1", "lattice": "4x4x4x4"})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("more", "busy", "how"),
    [
        ("", 2**14, "together"),
        ("", 4**3 * 6, "one after the other"),
        (":solver=bicgstab", 2**14, "together"),
    ],
)
def test_the_command_says_how_chains_with_quarks_move(tmp_path, monkeypatch, more, busy, how):
    """Those of large lattices move one after the other, whatever the solver."""
    monkeypatch.setattr(type(BACKENDS["cpu"]), "busy_sites", busy)
    words = ["--lattice", "4x4x4x6", "--backend", "cpu", "--output", tmp_path / "run"]
    words += ["--thermalize", "0", "--configs", "1", "--separation", "1", "--chains", "2"]
    quarks = ["--quarks", f"kappa=0.1{more}", "--precision", "double"]
    shown, code = call("generate", *words, "--algorithm", "hmc:steps=2", *quarks)
    assert (code, f"2 chains are updated {how}" in shown) == (0, True), shown
