"""Markov chains: starts, what is recorded when, and resuming bit for bit."""

import dataclasses
import time
from dataclasses import asdict
from unittest import mock

import numpy as np
import pytest

from gauge_mc.configurations import writing
from gauge_mc.configurations.reading import open_configuration
from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.files.table import SEAL, read_table
from gauge_mc.quantities.plaquette import Plaquette, plaquette
from gauge_mc.quantities.polyakov.observables import polyakov_loop
from gauge_mc.random import GENERATORS
from gauge_mc.run import session
from gauge_mc.run.chain import Batch, Chain, check_start
from gauge_mc.run.directory import Run
from gauge_mc.run.log import LogTail
from gauge_mc.run.open_run import OpenRun
from gauge_mc.run.parameters import Parameters
from gauge_mc.updates.heatbath import heatbath, overrelax
from tests.run.sessions import carry_out, never, stop_after, written

TINY = {
    "group": "su3",
    "lattice": "4x4x4x6",
    "precision": "double",
    "thermalize": 3,
    "configs": 3,
    "separation": 4,
    "measure": "plaquette,polyakov:3",
}


@pytest.mark.longer
def test_a_run_records_what_a_hand_made_chain_gives(tmp_path, best_device):
    p = Parameters.from_values({**TINY, "heatbath": 2, "overrelax": 1})
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
            cells.append((sweep, *Plaquette().measure(field)))
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


@pytest.mark.longer
@pytest.mark.parametrize("precision", ["single", "double"])
@pytest.mark.parametrize("rng", GENERATORS)
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
    assert len(written(whole.path)) == 5
    assert written(broken.path) == written(whole.path)


@pytest.mark.longer
@pytest.mark.parametrize("sweeps", [0, 2])
def test_any_number_of_overrelaxation_sweeps(tmp_path, best_device, sweeps):
    p = Parameters.from_values({**TINY, "overrelax": sweeps})
    whole, broken = Run(tmp_path / "whole"), Run(tmp_path / "broken")
    chain, _ = carry_out(whole, p, best_device)
    assert chain.random.step == p.updates
    for updates in (7, 100):
        carry_out(broken, p, best_device, stop=stop_after(updates))
    assert written(broken.path) == written(whole.path)

    field = Field.cold(p.lattice, "su3", "double", best_device)
    random = Random.for_field(field, "philox", 1)
    for _ in range(p.updates):
        heatbath(field, 6.0, random)
        for _ in range(sweeps):
            overrelax(field)
    assert np.array_equal(chain.field.to_numpy(), field.to_numpy())


@pytest.mark.longer
def test_work_beyond_the_checkpoint_is_done_again(tmp_path, best_device):
    """The checkpoint is put back to an earlier one, as if the process had been killed."""
    p = Parameters.from_values(TINY)
    run, whole = Run(tmp_path / "run"), Run(tmp_path / "whole")

    def report(chain):  # the lock tells of every configuration
        assert max(whole.configs(), default=0) <= whole.holder()[0].sweep <= chain.sweep

    carry_out(whole, p, best_device, report=report)
    saved = {}
    for sweep in (5, 10, 15):
        carry_out(run, p, best_device, stop=stop_after(5))
        saved[sweep] = run.checkpoint.read_bytes()
    for sweep in (10, 5):
        run.checkpoint.write_bytes(saved[sweep])
        table = run.table("plaquette")
        table.write_bytes(table.read_bytes().partition(SEAL)[0] + b"16,0.1")
        chain, _ = carry_out(run, p, best_device, stop=stop_after(0))
        assert chain.sweep == sweep
        assert all(number <= sweep for number in run.configs())
        assert max(read_table(run.table("plaquette")).columns["sweep"]) == sweep
        carry_out(run, p, best_device)
        assert written(run.path) == written(whole.path)


def test_starts(tmp_path, best_device):
    p = Parameters.from_values(TINY)
    cold = Chain.begin(p, best_device)
    assert plaquette(cold.field) == 1.0
    hot = [
        Chain.begin(dataclasses.replace(p, start="hot", seed=seed), best_device)
        for seed in (1, 1, 2)
    ]
    links = [chain.field.to_numpy() for chain in hot]
    assert abs(plaquette(hot[0].field)) < 0.1
    assert np.array_equal(links[0], links[1])
    assert not np.allclose(links[0], links[2])
    path = tmp_path / "start.lime"
    hot[0].field.save(path)
    file = Chain.begin(dataclasses.replace(p, start=str(path)), best_device)
    np.testing.assert_allclose(file.field.to_numpy(), links[0], rtol=0, atol=1e-15)
    assert file.random.step == 0


@pytest.mark.parametrize("change", [{"precision": "single"}, {"beta": 5.9}, {"separation": 5}])
def test_a_checkpoint_of_another_chain_is_refused(tmp_path, best_device, change):
    p = Parameters.from_values(TINY)
    Chain.begin(p, best_device).save(tmp_path / "latest")
    Chain.resume(dataclasses.replace(p, configs=9), best_device, tmp_path / "latest")
    with pytest.raises(GaugeError, match="other parameters"):
        Chain.resume(dataclasses.replace(p, **change), best_device, tmp_path / "latest")


@pytest.mark.longer
def test_lost_files_are_named_and_nothing_is_overwritten(tmp_path, best_device):
    p = Parameters.from_values(TINY)
    run = Run(tmp_path / "run")
    carry_out(run, p, best_device, stop=stop_after(10))
    saved = run.checkpoint.read_bytes()
    for name, rows in (("plaquette", 7), ("polyakov", 2)):
        table = run.table(name)
        whole = table.read_bytes()
        sealed = whole.replace(b"\n6,", b"\n06")
        killed = sealed.partition(SEAL)[0]
        refusals = (
            (sealed, "its checksum is not that of its last line"),
            (killed, f"instead of {rows}"),
        )
        for damaged, reason in refusals:
            table.write_bytes(damaged)
            before = written(run.path)
            with pytest.raises(GaugeError, match=rf"{name}\.csv.*{reason}"):
                carry_out(run, p, best_device)
            assert written(run.path) == before
        table.write_bytes(whole)
    run.checkpoint.unlink()
    before = written(run.path)
    with pytest.raises(GaugeError, match="contains results but no checkpoint"):
        carry_out(run, p, best_device)
    assert written(run.path) == before
    run.checkpoint.write_bytes(saved)
    assert carry_out(run, p, best_device)[1] is None


@pytest.mark.longer
@pytest.mark.parametrize("checkpoint_every", [0, 1e9])
def test_a_kill_after_the_last_checkpoint_leaves_a_complete_run(
    tmp_path, best_device, monkeypatch, checkpoint_every
):
    p = Parameters.from_values(TINY)
    run, whole = Run(tmp_path / "run"), Run(tmp_path / "whole")
    carry_out(whole, p, best_device)
    save = Chain.save

    def save_and_die(chain, path, measured=True):
        save(chain, path, measured)
        if chain.sweep == p.updates:
            raise KeyboardInterrupt

    monkeypatch.setattr(Chain, "save", save_and_die)
    with pytest.raises(KeyboardInterrupt):
        carry_out(run, p, best_device, checkpoint_every)
    assert written(run.path) == written(whole.path)


@pytest.mark.longer
@pytest.mark.parametrize(
    ("cost", "every", "format", "expected", "logged"),
    [
        (9.0, 0, "ildg", [*range(16)], 16),
        (9.0, 1e9, "ildg", [0, 15], 2),
        (0.001, 1e9, "none", [0, 1, 2, 4, 8, 15], 6),
        (0.001, 3, "none", [0, 1, 2, 4, 7, 10, 13, 15], 8),
        (0.025, 1e9, "none", [0, 3, 6, 12, 15], 5),
        (0.001, 1e9, "ildg", [0, 1, 2, 4, 7, 8, 11, 15], 6),
        (0.03, 1e9, "ildg", [0, 3, 6, 11, 12, 15], 5),
    ],
)
def test_checkpoints_come_in_time(
    tmp_path, best_device, monkeypatch, cost, every, format, expected, logged
):
    """An update takes a second, later ones a bit more, and a checkpoint its cost."""
    p, run = Parameters.from_values({**TINY, "format": format}), Run(tmp_path / "run")
    clock, saved = mock.Mock(**{"monotonic.return_value": 0.0}), []

    def save(chain, path, measured=True):
        saved.append((chain.sweep, measured))
        clock.monotonic.return_value += cost

    def report(chain):
        clock.monotonic.return_value += 1 + 0.001 * chain.sweep

    monkeypatch.setattr(Chain, "save", save)
    monkeypatch.setattr(session, "time", clock)
    monkeypatch.setattr(writing, "time", clock)
    carry_out(run, p, best_device, every, report=report)
    assert saved == [(sweep, True) for sweep in expected]
    assert [one.event for one in LogTail(run.path).new()].count("checkpoint") == logged


def test_start_files_that_do_not_fit(tmp_path, best_device):
    path = tmp_path / "start.lime"
    p = Parameters.from_values({**TINY, "start": str(path)})
    with pytest.raises(UsageError, match="no start file"):
        check_start(p.start, p.group, p.lattice)
    Chain.begin(dataclasses.replace(p, start="hot"), best_device).field.save(path)
    check_start(p.start, p.group, p.lattice)
    with pytest.raises(UsageError, match=r"su3 on 4x4x4x6.*su2 on 4x4x4x6"):
        check_start(p.start, "su2", p.lattice)
    with pytest.raises(UsageError, match="for su3 on 4x4x4x8"):
        check_start(p.start, p.group, Lattice(4, 4, 4, 8))
    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 2] ^= 4
    path.write_bytes(damaged)
    with pytest.raises(GaugeError, match="damaged"):
        Chain.begin(p, best_device)


def test_the_time_of_a_session_is_divided(tmp_path, best_device):
    """Slow methods add to their own share."""
    p, run = Parameters.from_values({**TINY, "measure": "plaquette"}), Run(tmp_path / "run")
    update = Batch.update

    def slow(chain):
        time.sleep(0.01)
        update(chain)

    with run.locked() as lock, mock.patch.object(Batch, "update", slow):
        run.write(p, [])
        opened = OpenRun(run, p, lock)
        work = session.Session([opened], DeviceGroup.of(best_device), never, print)
        began = time.monotonic()
        work.carry_out()
        elapsed = time.monotonic() - began
        shares = asdict(work.times)
        assert [*lock.holder.times] == [*shares]
        assert all(spent <= shares[name] + 1e-3 for name, spent in lock.holder.times.items())
        assert lock.holder.times["update"] == pytest.approx(shares["update"], abs=1e-3)
    assert all(spent >= 0 for spent in shares.values())
    assert shares["update"] >= 0.01 * p.updates
    assert min(shares["start"], shares["measure"], shares["write"]) > 0
    assert 0.5 * elapsed < sum(shares.values()) <= elapsed
