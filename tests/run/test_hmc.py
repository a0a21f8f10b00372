"""Runs with hybrid Monte Carlo: averages, acceptance, tuning, resuming, slabs and replicas."""

import dataclasses
import math
from functools import cache

import numpy as np
import pytest

from gauge_mc import open_device_group
from gauge_mc.analysis.timeseries import estimate
from gauge_mc.devices import BACKENDS
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.fields.field import AlgebraField
from gauge_mc.files.table import read_table
from gauge_mc.groups import GROUPS
from gauge_mc.run.checkpoint import read_state
from gauge_mc.run.directory import Run
from gauge_mc.run.parameters import Parameters
from gauge_mc.updates.integrators import INTEGRATORS, MOST, StepTuner, mean_change
from gauge_mc.updates.momenta import draw_momenta
from tests.reference.observables import action
from tests.run.sessions import carry_out, carry_out_batch, stop_after, written

SIGMAS = 4.5
"""Bound of deviations in units of their standard deviation; the seeds are fixed."""


def parameters(**values):
    return Parameters.from_values(
        {
            "algorithm": "hmc",
            "group": "su2",
            "beta": 2.3,
            "lattice": "4x4x4x4",
            "precision": "double",
            "thermalize": 40,
            "configs": 10,
            "separation": 1,
            "measure": "plaquette",
            "format": "none",
            **values,
        }
    )


def table(run, name):
    return read_table(run.table(name))


def series(path, device, **values):
    """The columns of the tables of a new run: those of the algorithm, and plaquettes."""
    run, p = Run(path), parameters(**values)
    carry_out(run, p, device)
    own = table(run, p.algorithm.name) if p.algorithm.columns else {}
    return own, table(run, "plaquette")["plaquette"]


COARSE = [
    {"integrator": "leapfrog", "steps": 6},
    {"integrator": "omf2", "steps": 3},
    *(
        pytest.param(one, marks=pytest.mark.slow)
        for one in (
            {"integrator": "omf4", "steps": 2, "length": 1.5},
            {"integrator": "force-gradient", "steps": 3, "length": 1.5},
        )
    ),
]


@pytest.mark.longer
@pytest.mark.parametrize("options", COARSE, ids=lambda one: one["integrator"])
def test_energies_are_distributed_as_they_must_be(tmp_path, fast_device, options):
    """<exp(-dH)> = 1 exactly; the acceptance follows from <dH> if dH is normal."""
    own, _ = series(tmp_path / "run", fast_device, configs=800, **options)
    change, accepted = own["delta_h"], own["accepted"]
    weights = estimate(np.exp(-change))
    assert 0.002 < weights.error < 0.1
    assert abs(weights.value - 1) < SIGMAS * weights.error
    acceptance, mean = estimate(accepted), estimate(change)
    assert 0.2 < acceptance.value < 0.95
    predicted = math.erfc(math.sqrt(mean.value) / 2)
    slope = math.exp(-mean.value / 4) / math.sqrt(4 * math.pi * mean.value)
    # Corrections to a normal distribution are of the relative order <dH>^2 / volume.
    error = math.hypot(acceptance.error, slope * mean.error)
    assert abs(acceptance.value - predicted) < SIGMAS * error
    probability = estimate(own["probability"])
    assert abs(probability.value - acceptance.value) < SIGMAS * acceptance.error
    np.testing.assert_allclose(own["probability"], np.minimum(1, np.exp(-change)), rtol=1e-12)
    kinetic = estimate(own["kinetic"])
    assert abs(kinetic.value - 0.5) < 0.05


@pytest.mark.longer
@pytest.mark.parametrize(
    "options",
    [
        {"integrator": "leapfrog", "steps": 6},
        {"group": "su3", "beta": 5.5, "integrator": "omf2", "steps": 3},
    ],
    ids=lambda one: one.get("group", "su2"),
)
def test_the_change_of_the_energy_is_that_of_links_and_momenta(tmp_path, best_device, options):
    """For every accepted trajectory, with actions in NumPy and with momenta that are drawn again.

    Averages of exp(-dH) hardly see a change that is wrong by a factor, because the chain then has
    the distribution of other links.
    """
    run, p = Run(tmp_path / "run"), parameters(thermalize=0, configs=30, start="hot", **options)
    actions, drawn = [], []

    def look(chain):
        if chain.random.step > len(actions):
            actions.append(action(chain.field.to_numpy(), p.beta))
            momenta = AlgebraField.like(chain.field)
            drawn.append(draw_momenta(momenta, chain.random))

    carry_out(run, p, best_device, report=look)
    own = table(run, "hmc")
    kinetic = own["kinetic"] * p.lattice.links * GROUPS[p.group].dimension
    begin = np.array([float(one.kinetic) for one in drawn])
    known = own["accepted"][1:] == 1
    expected = np.diff(actions) + (kinetic - begin)[1:]
    assert 5 < known.sum() < 29
    np.testing.assert_allclose(own["delta_h"][1:][known], expected[known], atol=1e-8)
    assert np.abs(expected[known]).max() > 0.3
    uniform = np.array([one.uniform for one in drawn])
    assert ((uniform < np.exp(-own["delta_h"])) == own["accepted"]).all()


ENSEMBLES = [
    {"beta": 2.3, "configs": 800, "integrator": "leapfrog", "steps": 6},
    {"group": "su3", "beta": 5.0, "configs": 300, "integrator": "omf2", "steps": 4},
    pytest.param(
        {"group": "su3", "beta": 2.0, "action": "iwasaki", "anisotropy": 1.5, "configs": 500},
        marks=pytest.mark.slow,
    ),
    *(
        pytest.param({**one, "configs": 3000}, marks=pytest.mark.every)
        for one in (
            {"beta": 2.4, "lattice": "6x4x4x8", "integrator": "omf4", "steps": 2, "length": 1.5},
            {"group": "su4", "beta": 10.6},
            {"group": "su3", "beta": 5.5, "lattice": "6x6x6x6", "acceptance": 0.5},
            {"group": "su3", "beta": 5.2, "anisotropy": 2.0, "lattice": "4x4x4x8"},
            {"group": "su3", "beta": 3.6, "action": "symanzik"},
            {"group": "su3", "beta": 0.6, "action": "dbw2"},
            {"group": "su3", "beta": 6.0, "action": "luscher-weisz", "u0": 0.87},
            {"group": "su2", "beta": 2.3, "action": "rectangle", "c1": -0.1},
        )
    ),
]


@pytest.mark.longer
@pytest.mark.parametrize("values", ENSEMBLES, ids=lambda one: "-".join(map(str, one.values())))
def test_averages_are_those_of_the_heatbath(tmp_path, fast_device, values):
    """With rejected trajectories, which matter: without the test the average is another."""
    common = {"configs": 1000, "thermalize": 100, **values}
    own, moved = series(tmp_path / "hmc", fast_device, **common)
    known = ("integrator", "steps", "length", "acceptance")
    rest = {name: one for name, one in common.items() if name not in known}
    _, heated = series(tmp_path / "heatbath", fast_device, **{**rest, "algorithm": "heatbath"})
    first, second = estimate(moved), estimate(heated)
    assert own["accepted"].mean() < 0.97
    error = math.hypot(first.error, second.error)
    assert error < 0.004
    assert abs(first.value - second.value) < SIGMAS * error


@pytest.mark.longer
def test_rejected_trajectories_leave_the_links(tmp_path, best_device):
    own, plaquettes = series(tmp_path / "run", best_device, configs=60, steps=3, length=1.2)
    rejected = own["accepted"][1:] == 0
    assert 5 < rejected.sum() < 55
    assert ((np.diff(plaquettes) == 0) == rejected).all()


@pytest.mark.longer
@pytest.mark.parametrize(
    ("integrator", "wanted"),
    [
        ("leapfrog", 0.6),
        ("omf4", 0.9),
        pytest.param("leapfrog", 0.9, marks=pytest.mark.slow),
        pytest.param("omf4", 0.6, marks=pytest.mark.slow),
    ],
)
def test_steps_are_found_for_an_acceptance_and_kept(tmp_path, best_device, integrator, wanted):
    options = {"integrator": integrator, "acceptance": wanted, "thermalize": 192, "configs": 300}
    own, _ = series(tmp_path / "run", best_device, **options, start="hot")
    assert (own["steps"] == own["steps"][0]).all()
    # 64 trajectories determine <dH> to 18%, and 300 the acceptance to 2%. The number is rounded up.
    acceptance, steps = own["probability"].mean(), own["steps"][0]
    power = 2 * INTEGRATORS[integrator].order
    fewer = mean_change(wanted) * 1.5 * (1 - 1 / steps) ** power
    assert wanted - 0.07 < acceptance < math.erfc(math.sqrt(fewer / 2.25) / 2) + 0.03


def test_the_search_for_steps_survives_numbers_that_are_none():
    numbers = {}
    tuner = StepTuner(numbers, 16, 0, 0.8, 2, 1)
    for done in range(1, 17):
        tuner.take(math.nan if done % 2 else math.inf, done)
    assert 8 < tuner.steps <= MOST
    assert all(map(math.isfinite, numbers.values()))
    last = tuner.steps
    for done in range(17, 65):
        tuner.take(1e-9, done)
    assert tuner.steps == last
    fixed = StepTuner({}, 16, 5, 0.8, 2, 1)
    fixed.take(100.0, 1)
    assert fixed.steps == 5


@pytest.mark.parametrize("acceptance", [0.01, 0.5, 0.8, 0.999])
def test_the_mean_change_gives_the_acceptance(acceptance):
    assert math.erfc(math.sqrt(mean_change(acceptance)) / 2) == pytest.approx(acceptance)


def outcome(path):
    return {**written(path), "checkpoint": Run(path).checkpoint.read_bytes()}


@cache
def short(**values):
    """Parameters of a run with tuning, measurements and configurations."""
    words = {"thermalize": 12, "configs": 3, "separation": 2, "format": "ildg"}
    return parameters(lattice="4x4x4x8", **words, **values)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole") / "run"
    carry_out(Run(folder), short(), open_device_group("cpu:1"))
    return outcome(folder)


@pytest.mark.slow
@pytest.mark.parametrize("stops", [(1,), (5, 4), (8, 6), (13, 1, 1)])
def test_a_continued_run_is_the_uninterrupted_one(tmp_path, whole, stops):
    run = Run(tmp_path / "run")
    for updates in stops:
        _, reason = carry_out(run, short(), open_device_group("cpu:1"), stop=stop_after(updates))
        assert reason == "enough"
    found = read_state(run.checkpoint)
    assert found.sweep == sum(stops) == found.step
    assert found.tuning["steps"] >= 1
    carry_out(run, short(), open_device_group("cpu:1"))
    assert outcome(run.path) == whole


@pytest.mark.slow
@pytest.mark.parametrize(("devices", "threads"), [("cpu:2", 2), ("cpu:1", 2), ("cpu:4", 4)])
def test_slabs_and_threads_write_the_same_bytes(tmp_path, whole, devices, threads):
    run = Run(tmp_path / "run")
    carry_out(run, short(), open_device_group(devices, threads=threads))
    assert outcome(run.path) == whole


@pytest.mark.longer
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"steps": 3, "start": "hot", "rng": "ranlux"},
        {"steps": 2, "integrator": "force-gradient"},
    ],
    ids=str,
)
def test_replicas_are_what_each_is_alone(tmp_path, best_device, options):
    first = short(**options)
    members = [
        dataclasses.replace(first, beta=beta, seed=seed)
        for seed, beta in enumerate((2.0, 2.3, 2.3), 4)
    ]
    for n, p in enumerate(members):
        carry_out(Run(tmp_path / f"alone_{n}"), p, best_device)
    runs = [(Run(tmp_path / f"batch_{n}"), p) for n, p in enumerate(members)]
    carry_out_batch(runs, best_device, stop=stop_after(7))
    carry_out_batch(runs, best_device)
    alone = [outcome(tmp_path / f"alone_{n}") for n in range(3)]
    assert [outcome(tmp_path / f"batch_{n}") for n in range(3)] == alone
    assert len({one["hmc.csv"] for one in alone}) == 3


@pytest.mark.longer
def test_replicas_in_several_groups_are_what_each_is_alone(tmp_path, best_device, monkeypatch):
    """As if two of three lattices kept the device busy, with states of random numbers."""
    first = short(steps=3, start="hot", rng="ranlux")
    members = [dataclasses.replace(first, seed=seed) for seed in (4, 5, 6)]
    for n, p in enumerate(members):
        carry_out(Run(tmp_path / f"alone_{n}"), p, best_device)
    backend = type(BACKENDS[best_device.backend])
    monkeypatch.setattr(backend, "busy_sites", 2 * first.lattice.sites)
    carry_out_batch([(Run(tmp_path / f"batch_{n}"), p) for n, p in enumerate(members)], best_device)
    for n in range(3):
        assert outcome(tmp_path / f"batch_{n}") == outcome(tmp_path / f"alone_{n}")


@pytest.mark.longer
def test_a_start_file_is_continued_from(tmp_path, best_device):
    first = Run(tmp_path / "first")
    carry_out(first, short(), best_device)
    begun = parameters(
        lattice="4x4x4x8", start=str(first.config(18, "ildg")), thermalize=0, steps=500, configs=1
    )
    carry_out(Run(tmp_path / "second"), begun, best_device)
    own = table(Run(tmp_path / "second"), "hmc")
    assert abs(own["delta_h"][0]) < 1e-3
    assert own["accepted"] == [1]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"steps": 1, "length": 3.0}, "--steps is 1, too few for a trajectory of the length 3"),
        ({"thermalize": 0}, "--thermalize is 0, so that there are no trajectories"),
        ({"integrator": "omf3"}, "integrator: There is no integrator 'omf3'; did you mean"),
        ({"acceptance": 1.0}, "--acceptance is 1; give a number from 0.01 to 0.999"),
        ({"heatbath": 3}, "--heatbath is not an option of the algorithm hmc"),
    ],
    ids=lambda one: str(one)[:20],
)
def test_bad_options_are_refused_in_a_sentence(values, message):
    with pytest.raises(UsageError) as raised:
        parameters(**values)
    assert str(raised.value).startswith(message)
    assert str(raised.value).count(". ") == 0


@pytest.mark.parametrize("value", ["N", '"1", "x": ', 'true, "x": ', '[], "x": ', '1e999, "x": '])
def test_damaged_numbers_in_a_checkpoint_are_refused(tmp_path, best_device, value):
    run = Run(tmp_path / "run")
    carry_out(run, short(), best_device, stop=stop_after(3))
    damaged = run.checkpoint.read_bytes().replace(b'"squares": ', f'"squares": {value}'.encode())
    run.checkpoint.write_bytes(damaged)
    with pytest.raises(GaugeError, match="is not a checkpoint"):
        read_state(run.checkpoint)


def test_runs_that_do_not_state_monomials_have_none(tmp_path, fast_device):
    """Those of versions without them, whose files state all else."""
    run, p = Run(tmp_path / "run"), parameters(configs=1, thermalize=1, steps=3)
    carry_out(run, p, fast_device)
    text = run.toml.read_text()
    run.toml.write_text(text.replace('monomials = ""\n', ""))
    assert run.toml.read_text() != text
    assert run.read()[0] == p
    run.toml.write_text(text.replace("steps = 3\n", ""))
    with pytest.raises(GaugeError, match="no key steps"):
        run.read()
