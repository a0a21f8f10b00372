"""Runs that exchange their couplings: what is exchanged, exact resume, kills, refusals."""

import dataclasses
import os
import signal
import sys

import numpy as np
import pytest

from gauge_mc import Field
from gauge_mc.algorithms import hmc
from gauge_mc.analysis.timeseries import estimate
from gauge_mc.devices.cpu.device import CpuDevice
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.table import read_table
from gauge_mc.run.chain import check_ladder
from gauge_mc.run.checkpoint import PREVIOUS, load, read_state, restore_common
from gauge_mc.run.directory import Run
from gauge_mc.run.generate import generate, generate_together
from gauge_mc.run.open_run import RunRequest
from gauge_mc.run.parameters import Parameters
from gauge_mc.updates.chain_steps import KEY
from tests.reference import flow, randoms
from tests.run.sessions import carry_out_batch, stop_after, written

TINY = {
    "lattice": "4x2x6x2",
    "group": "su3",
    "beta": 5.4,
    "precision": "double",
    "tempering": True,
    "thermalize": 3,
    "configs": 3,
    "separation": 2,
    "start": "hot",
    "format": "nersc",
}
"""Runs of which links are read and compared."""


def ladder(count=3, step=0.15, **values):
    """Return the parameters of runs at several couplings, in ascending order."""
    first = Parameters.from_values(TINY | values)
    return [
        dataclasses.replace(first, beta=first.beta + n * step, seed=first.seed + n)
        for n in range(count)
    ]


def carry_out(path, parameters, device, **how):
    """Carry out runs in folders with these numbers; return why they stopped."""
    runs = [(Run(path / str(n)), one) for n, one in enumerate(parameters)]
    return carry_out_batch(runs, device, **how)[1]


def found_in(path, count=3):
    """Return what runs have written, and the arrays of their checkpoints."""
    files = [written(path / str(n)) for n in range(count)]
    for n, own in enumerate(files):
        state, arrays = load(Run(path / str(n)).checkpoint)
        own["checkpoint"] = state, [one.tobytes() for one in arrays]
    return files


def action_of(links, c1):
    """Return the action divided by beta of one configuration, by the reference."""
    return flow.action_density(links, c1).sum() / (2 * links.shape[-1])


@pytest.mark.parametrize(
    ("group", "action", "c1"),
    [
        pytest.param("su3", "wilson", 0, marks=pytest.mark.slow),
        ("su2", "wilson", 0),
        pytest.param("su3", "iwasaki", -0.331, marks=pytest.mark.slow),
    ],
)
def test_exchanges_are_those_of_the_actions_of_stored_links(
    tmp_path, best_device, group, action, c1
):
    """Rows of the tables are computed again from the links after every exchange."""
    beta = {"su2": 2.2, "wilson": 5.4, "iwasaki": 2.2}[group if group == "su2" else action]
    lattice, step = ("4x4x6x4", 0.03) if c1 else (TINY["lattice"], 0.08)
    runs = ladder(
        3, step, group=group, action=action, beta=beta, lattice=lattice, configs=8, separation=1
    )
    carry_out(tmp_path, runs, best_device)
    tables = [read_table(Run(tmp_path / str(n)).table("tempering")) for n in range(3)]
    rows = [np.stack([one[name] for name in one.columns], axis=1) for one in tables]
    accepted = 0
    for k, sweep in enumerate(tables[0]["sweep"]):
        lower = (int(sweep) - runs[0].thermalize) % 2
        links = [
            Field.load(Run(tmp_path / str(lower + n)).config(int(sweep), "nersc")).to_numpy()
            for n in range(2)
        ]
        actions = [action_of(one, c1) for one in links]
        row, other = rows[lower][k], rows[lower + 1][k]
        if row[4]:  # before the exchange
            actions.reverse()
        difference = runs[lower + 1].beta - runs[lower].beta
        change = difference * (actions[0] - actions[1])
        assert row[3] == pytest.approx(min(1, np.exp(-change)), rel=1e-8)
        word, *_ = randoms.philox4x64([1, 0, lower, int(sweep)], [runs[0].seed, KEY])
        assert row[4] == ((word >> 11) / 2**53 < row[3])
        assert (row[2], other[2]) == (lower + 1, lower)
        assert row[3:].tolist() == other[3:].tolist()
        assert rows[2 - 2 * lower][k][2] == -1
        accepted += int(row[4])
    assert 0 < accepted < len(tables[0])
    replicas = np.stack([one["replica"] for one in tables])
    assert (np.sort(replicas, axis=0) == [[0], [1], [2]]).all()
    assert [read_state(Run(tmp_path / str(n)).checkpoint).replica for n in range(3)] == [
        one["replica"][-1] for one in tables
    ]


HMC = {"algorithm": "hmc", "steps": 3, "thermalize": 2, "configs": 2}


@pytest.mark.longer
@pytest.mark.parametrize(
    "values",
    [
        {},
        {"exchange_every": 2, "rng": "ranlux", "group": "su2", "beta": 2.2},
        pytest.param(HMC, marks=pytest.mark.slow),
    ],
    ids=["heatbath", "ranlux", "hmc"],
)
def test_stopped_anywhere_and_resumed_runs_are_the_same(tmp_path, best_device, values):
    check_resumed(tmp_path, best_device, values)


def check_resumed(tmp_path, best_device, values):
    runs = ladder(**values)
    assert carry_out(tmp_path / "whole", runs, best_device) is None
    expected = found_in(tmp_path / "whole")
    for updates in (1, runs[0].thermalize + 1, runs[0].updates - 1):
        path = tmp_path / str(updates)
        assert carry_out(path, runs, best_device, stop=stop_after(updates)) == "enough"
        assert carry_out(path, runs, best_device) is None
        assert found_in(path) == expected


@pytest.mark.slow
def test_results_depend_neither_on_threads_nor_on_groups_of_trajectories(tmp_path, monkeypatch):
    runs = ladder(4, 0.1, **HMC)
    carry_out(tmp_path / "whole", runs, CpuDevice(threads=1))
    expected = found_in(tmp_path / "whole", 4)
    monkeypatch.setattr(hmc, "divided", lambda *_: [slice(0, 1), slice(1, 4)])
    carry_out(tmp_path / "divided", runs, CpuDevice(threads=1))
    assert found_in(tmp_path / "divided", 4) == expected
    carry_out(tmp_path / "threads", runs, CpuDevice(threads=3))
    assert found_in(tmp_path / "threads", 4) == expected


def killed(number, requests):
    """Generate in a child that is killed just before it changes a checkpoint the n-th time.

    Returns whether it was killed.
    """
    pid = os.fork()
    if not pid:
        left = number

        def hook(event, arguments):
            nonlocal left
            changes = event in ("os.rename", "os.remove", "os.link")
            if changes and "/checkpoint/" in str(arguments):
                left -= 1
                if not left:
                    os.kill(os.getpid(), signal.SIGKILL)

        try:
            sys.addaudithook(hook)
            generate_together(requests)
            os._exit(0)
        finally:
            os._exit(1)
    status = os.waitpid(pid, 0)[1]
    assert status in (0, signal.SIGKILL)
    return status != 0


def requests_in(path, **how):
    """Return requests of tiny runs that write checkpoints after every update."""
    values = {"backend": "cpu", "threads": 1, "checkpoint_every": 0, **how}
    runs = ladder(thermalize=1, separation=1)
    every = (one.values() | values | {"output": str(path / str(n))} for n, one in enumerate(runs))
    return [RunRequest(each) for each in every]


@pytest.mark.slow
def test_killed_at_every_instant_runs_are_the_same(tmp_path):
    generate_together(requests_in(tmp_path / "whole"))
    expected, number = found_in(tmp_path / "whole"), 1
    while killed(number, requests_in(tmp_path / str(number))):
        generate_together(requests_in(tmp_path / str(number)))
        assert found_in(tmp_path / str(number)) == expected
        number += 1
    assert number > 30


@pytest.mark.slow
def test_checkpoints_that_do_not_fit_together_are_refused(tmp_path, best_device):
    runs = ladder()
    for updates, path in ((2, tmp_path / "a"), (4, tmp_path / "b")):
        carry_out(path, runs, best_device, stop=stop_after(updates))
    late = Run(tmp_path / "b" / "1").checkpoint.read_bytes()
    Run(tmp_path / "a" / "1").checkpoint.write_bytes(late)
    paths = [Run(tmp_path / "a" / str(n)).checkpoint for n in range(3)]
    with pytest.raises(GaugeError, match="are not after the same update"):
        restore_common(paths)
    with pytest.raises(GaugeError, match=r"exchanges couplings with those at β = 5.4, 5.55, 5.7,"):
        carry_out_batch([(Run(tmp_path / "b" / str(n)), runs[n]) for n in (0, 2)], best_device)


def test_a_run_without_its_neighbours_is_refused(tmp_path, best_device):
    runs = ladder()
    carry_out(tmp_path, runs, best_device, stop=stop_after(4))
    before = found_in(tmp_path)
    with pytest.raises(UsageError, match=r"there is only one, at β = 5\.55; carry out a scan with"):
        generate(output=tmp_path / "1", backend="cpu", progress=False)
    assert found_in(tmp_path) == before
    with pytest.raises(UsageError, match="differ in lattice cannot"):
        check_ladder([runs[0], dataclasses.replace(runs[1], lattice="4x4x4x4")])
    with pytest.raises(UsageError, match="must have different β"):
        check_ladder([runs[0], dataclasses.replace(runs[0], seed=9)])
    with pytest.raises(UsageError, match="--exchange-every is 2, but has an effect only with"):
        Parameters(exchange_every=2)


def test_runs_that_do_not_fit_into_the_memory_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(CpuDevice, "free_bytes", lambda self: 100_000)
    with pytest.raises(GaugeError, match=r"3 runs on 4x2x6x2 that exchange .* room for 2 of them"):
        generate_together(requests_in(tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize(
    "values",
    [
        {"group": "su2", "lattice": "4x4x4x2", "beta": 1.8, "precision": "single"},
        pytest.param(
            {"lattice": "4x4x4x2", "beta": 5.0, "algorithm": "hmc", "steps": 5},
            marks=pytest.mark.every,
        ),
    ],
    ids=["su2", "hmc"],
)
def test_averages_are_those_without_tempering(tmp_path, best_device, values):
    long = {"configs": 3000, "separation": 1, "thermalize": 100, "format": "none", **values}
    runs = ladder(4, 0.06, **long)
    carry_out(tmp_path / "tempered", runs, best_device)
    alone = [dataclasses.replace(one, tempering=False, seed=one.seed + 100) for one in runs]
    carry_out(tmp_path / "alone", alone, best_device)
    pulls = []
    for n in range(4):
        for name, column in (("plaquette", "plaquette"), ("polyakov", "abs")):
            one, other = (
                estimate(read_table(tmp_path / kind / str(n) / f"{name}.csv")[column])
                for kind in ("tempered", "alone")
            )
            pulls.append((one.value - other.value) / np.hypot(one.error, other.error))
    table = read_table(tmp_path / "tempered" / "1" / "tempering.csv")
    assert 0.1 < table["accepted"].mean() < 0.99
    assert np.abs(pulls).max() < 4
    assert np.sqrt(np.mean(np.square(pulls))) < 2


@pytest.mark.slow
def test_killed_while_checkpoints_are_written_runs_are_the_same(tmp_path):
    """Kills come between the first, and between the second checkpoints of the three runs."""
    generate_together(requests_in(tmp_path / "whole"))
    expected = found_in(tmp_path / "whole")
    for number, sweeps in ((5, {0, None}), (11, {0, 1})):
        path = tmp_path / str(number)
        assert killed(number, requests_in(path))
        left = [Run(path / str(n)).checkpoint for n in range(3)]
        assert {read_state(one).sweep if one.exists() else None for one in left} == sweeps
        generate_together(requests_in(path))
        assert found_in(path) == expected
        assert not [*path.rglob(PREVIOUS)]
