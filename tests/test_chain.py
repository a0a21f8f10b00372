"""Markov chains: starts, what is recorded when, and resuming bit for bit."""

import dataclasses
from unittest import mock

import numpy as np
import pytest

from gauge_mc.chain import Chain, check_start, generate
from gauge_mc.devices.source import GENERATORS
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.field import Field
from gauge_mc.formats import open_configuration
from gauge_mc.formats.table import read_table
from gauge_mc.lattice import Lattice
from gauge_mc.observables.plaquette import plaquette
from gauge_mc.observables.polyakov import polyakov_loop
from gauge_mc.observables.records import AVERAGES
from gauge_mc.parameters import AVERAGES as KNOWN_AVERAGES
from gauge_mc.parameters import GENERATORS as KNOWN_GENERATORS
from gauge_mc.parameters import Parameters
from gauge_mc.random import Random
from gauge_mc.run import Run
from gauge_mc.updates import heatbath, overrelax

TINY = {
    "group": "su3",
    "lattice": "4x2x4x6",
    "thermalize": 3,
    "configs": 3,
    "separation": 4,
    "measure": "plaquette,polyakov:3",
}


def never(seconds):
    """Do not stop."""


def nothing(chain):
    """Show nothing."""


def carry_out(run, parameters, device, checkpoint_every=1e9, stop=never, report=nothing):
    """Work on a run; return the chain and why it stopped."""
    with run.held() as hold:
        run.write(parameters, [])
        return generate(run, hold, parameters, device, checkpoint_every, stop, report)


def stop_after(sweeps):
    """Stop after so many sweeps."""
    left = iter(range(sweeps))
    return lambda seconds: None if next(left, None) is not None else "enough"


def written(run):
    """All that a run has written and that must not depend on stops."""
    paths = [*run.configs().values(), *sorted(run.path.glob("*.csv"))]
    return {path.name: path.read_bytes() for path in paths}


def test_lists_of_names_agree_with_what_there_is():
    assert tuple(AVERAGES) == KNOWN_AVERAGES
    assert tuple(GENERATORS) == KNOWN_GENERATORS


def test_a_run_records_what_a_hand_made_chain_gives(tmp_path, best_device):
    p = Parameters.from_values({**TINY, "precision": "double", "heatbath": 2, "overrelax": 1})
    run = Run(tmp_path / "run")
    chain, reason = carry_out(run, p, best_device)
    assert (chain.sweep, reason) == (15, None)

    field = Field.cold(p.lattice, "su3", "double", best_device)
    random = Random.for_field(field, "philox", 1)
    cells, loops, links = [], [], {}
    for sweep in range(1, 16):
        for _ in range(2):
            heatbath(field, 6.0, random)
        overrelax(field)
        if sweep > 3:
            found = plaquette(field)
            cells.append((sweep, found.mean, found.spatial, found.temporal))
        if sweep in (6, 9, 12, 15):
            loop = polyakov_loop(field)
            loops.append((sweep, loop.real, loop.imag, abs(loop)))
        if sweep in (7, 11, 15):
            links[sweep] = field.to_numpy()

    for name, rows in (("plaquette", cells), ("polyakov", loops)):
        table = read_table(run.table(name))
        assert list(zip(*(c.tolist() for c in table.columns.values()), strict=True)) == rows
        assert (table.header["group"], table.header["beta"]) == ("su3", "6.0")
    assert list(run.configs()) == [7, 11, 15]
    for sweep, path in run.configs().items():
        found = np.stack(list(open_configuration(path).slices()))
        np.testing.assert_allclose(found, links[sweep], rtol=0, atol=1e-14)


@pytest.mark.parametrize("precision", ["single", "double"])
@pytest.mark.parametrize("rng", KNOWN_GENERATORS)
@pytest.mark.parametrize("group", ["su2", "su3"])
def test_a_run_stopped_anywhere_ends_like_one_that_was_not(
    tmp_path, best_device, group, rng, precision
):
    values = {**TINY, "group": group, "rng": rng, "precision": precision, "start": "hot"}
    if rng == "lcg":
        values["measure"] = "polyakov:2,wilson-loops:3"
    p = Parameters.from_values(values)
    whole, broken = Run(tmp_path / "whole"), Run(tmp_path / "broken")
    carry_out(whole, p, best_device)
    reason, sessions = "enough", 0
    while reason:
        reason = carry_out(broken, p, best_device, stop=stop_after(2))[1]
        sessions += 1
    assert sessions == 8
    assert len(written(whole)) == 5
    assert written(broken) == written(whole)


@pytest.mark.parametrize("measure", ["none", "plaquette,polyakov:3"])
def test_no_kernel_is_new_after_the_first_sweep(tmp_path, best_device, measure):
    """Rates leave out the first sweep of a session, but nothing that is compiled later."""
    known = []

    def report(chain):
        known.append({call.args for call in kernel.call_args_list})
        plaquette(chain.field)
        polyakov_loop(chain.field)

    p = Parameters.from_values({**TINY, "measure": measure})
    with mock.patch.object(best_device, "kernel", wraps=best_device.kernel) as kernel:
        carry_out(Run(tmp_path / "run"), p, best_device, report=report)
    assert len(known) == p.sweeps
    assert {"heatbath", "plaquette", "polyakov"} <= {name for name, _ in known[0]}
    assert known[-1] == known[0]


def test_work_beyond_the_checkpoint_is_done_again(tmp_path, best_device):
    """The checkpoint is put back to an earlier one, as if the process had been killed."""
    p = Parameters.from_values(TINY)
    run, whole = Run(tmp_path / "run"), Run(tmp_path / "whole")
    carry_out(whole, p, best_device)
    saved = {}
    for sweep in range(0, 15, 5):
        saved[sweep] = run.checkpoint.read_bytes() if sweep else b""
        carry_out(run, p, best_device, stop=stop_after(5))
    for sweep in (10, 5):
        run.checkpoint.write_bytes(saved[sweep])
        run.table("plaquette").write_bytes(run.table("plaquette").read_bytes() + b"16,0.1")
        chain, _ = carry_out(run, p, best_device, stop=stop_after(0))
        assert chain.sweep == sweep
        assert all(number <= sweep for number in run.configs())
        assert max(read_table(run.table("plaquette")).columns["sweep"]) == sweep
        carry_out(run, p, best_device)
        assert written(run) == written(whole)


def test_more_configurations_later(tmp_path, best_device):
    p = Parameters.from_values(TINY)
    run, whole = Run(tmp_path / "run"), Run(tmp_path / "whole")
    carry_out(whole, p, best_device)
    for configs in (0, 1, 3):
        carry_out(run, dataclasses.replace(p, configs=configs), best_device)
    assert written(run) == written(whole)


def test_starts(tmp_path, best_device):
    p = Parameters.from_values({**TINY, "precision": "double"})
    cold = Chain.begin(p, best_device)
    assert plaquette(cold.field).mean == 1.0
    hot = [
        Chain.begin(dataclasses.replace(p, start="hot", seed=seed), best_device)
        for seed in (1, 1, 2)
    ]
    links = [chain.field.to_numpy() for chain in hot]
    assert abs(plaquette(hot[0].field).mean) < 0.1
    assert np.array_equal(links[0], links[1])
    assert not np.allclose(links[0], links[2])
    path = tmp_path / "start.lime"
    hot[0].write(path)
    file = Chain.begin(dataclasses.replace(p, start=str(path)), best_device)
    np.testing.assert_allclose(file.field.to_numpy(), links[0], rtol=0, atol=1e-15)
    assert file.random.step == 0


def test_start_files_that_do_not_fit(tmp_path, best_device):
    path = tmp_path / "start.lime"
    p = Parameters.from_values({**TINY, "start": str(path)})
    with pytest.raises(UsageError, match="no start file"):
        check_start(p)
    Chain.begin(dataclasses.replace(p, start="hot"), best_device).write(path)
    check_start(p)
    with pytest.raises(UsageError, match=r"su3 on 4x2x4x6.*su2 on 4x2x4x6"):
        check_start(dataclasses.replace(p, group="su2"))
    with pytest.raises(UsageError, match="for su3 on 4x4x4x6"):
        check_start(dataclasses.replace(p, lattice=Lattice(4, 4, 4, 6)))
    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 2] ^= 4
    path.write_bytes(damaged)
    with pytest.raises(GaugeError, match="damaged"):
        Chain.begin(p, best_device)


@pytest.mark.parametrize("change", [{"precision": "double"}, {"beta": 5.9}, {"separation": 5}])
def test_a_checkpoint_of_another_chain_is_refused(tmp_path, best_device, change):
    p = Parameters.from_values(TINY)
    Chain.begin(p, best_device).save(tmp_path / "latest")
    Chain.resume(dataclasses.replace(p, configs=9), best_device, tmp_path / "latest")
    with pytest.raises(GaugeError, match="other parameters"):
        Chain.resume(dataclasses.replace(p, **change), best_device, tmp_path / "latest")


def test_lost_files_are_named_and_nothing_is_overwritten(tmp_path, best_device):
    p = Parameters.from_values(TINY)
    run = Run(tmp_path / "run")
    carry_out(run, p, best_device, stop=stop_after(10))
    table, saved = run.table("plaquette"), run.checkpoint.read_bytes()
    rows = table.read_bytes()
    table.write_bytes(rows.replace(b"\n5,", b"\n05"))
    before = written(run)
    with pytest.raises(GaugeError, match=r"plaquette\.csv.*instead of 7"):
        carry_out(run, p, best_device)
    assert written(run) == before
    table.write_bytes(rows)
    run.checkpoint.unlink()
    before = written(run)
    with pytest.raises(GaugeError, match="lost its checkpoint"):
        carry_out(run, p, best_device)
    assert written(run) == before
    run.checkpoint.write_bytes(saved)
    assert carry_out(run, p, best_device)[1] is None


def test_checkpoints_come_in_time(tmp_path, best_device, monkeypatch):
    p = Parameters.from_values(TINY)
    saved = []
    monkeypatch.setattr(Chain, "save", lambda chain, path: saved.append(chain.sweep))
    carry_out(Run(tmp_path / "always"), p, best_device, checkpoint_every=0)
    assert saved == list(range(16))
    saved.clear()
    carry_out(Run(tmp_path / "never"), p, best_device)
    assert saved == [0, 15]
