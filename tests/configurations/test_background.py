"""Configurations that are written while the chain goes on."""

import threading
from unittest import mock

import pytest

from gauge_mc.configurations import writing
from gauge_mc.configurations.writing import IN_FLIGHT, BackgroundWriter, Snapshot
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError
from gauge_mc.fields.field import Field
from gauge_mc.run.directory import Run
from gauge_mc.run.parameters import Parameters
from tests.patience import PATIENCE
from tests.run.sessions import carry_out, written

pytestmark = pytest.mark.kernels

LATTICE = Lattice(4, 4, 4, 6)
RUN = {
    "group": "su2",
    "lattice": "4x4x4x6",
    "thermalize": 2,
    "configs": 6,
    "separation": 2,
    "measure": "plaquette",
}


def put(writer, field, path, before=lambda: None):
    writer.write(field, path, "ildg", {"beta": "2.5"}, before)


@pytest.mark.longer
def test_files_are_those_that_save_writes(tmp_path, best_device):
    field = Field.hot(LATTICE, "su3", "single", best_device, seed=1)
    with BackgroundWriter() as writer:
        for name in "abcd":
            put(writer, field, tmp_path / f"{name}.lime")
        writer.flush()
        assert writer.seconds > 0
    for name in "abcd":
        path = tmp_path / f"{name}.lime"
        data = path.read_bytes()
        field.save(path, "ildg", provenance={"beta": "2.5"})
        assert path.read_bytes() == data


@pytest.mark.longer
def test_a_snapshot_is_not_changed_by_later_updates(tmp_path, best_device):
    fields = [Field.hot(LATTICE, "su3", "single", best_device, seed=n) for n in range(5)]
    held = threading.Event()
    chain = Field.empty(LATTICE, "su3", "single", best_device)
    with BackgroundWriter() as writer:
        for n, field in enumerate(fields):
            chain.restore(field.packed_slices())
            put(writer, chain, tmp_path / str(n), held.wait)
            if n == IN_FLIGHT - 1:
                held.set()
        writer.flush()
    for n, field in enumerate(fields):
        again = Field.load(tmp_path / str(n), device=best_device)
        assert (again.to_numpy() == field.to_numpy()).all()


def test_after_a_failure_nothing_more_is_written(tmp_path, best_device):
    field = Field.cold(LATTICE, "su2", "single", best_device)
    held = threading.Event()
    with BackgroundWriter() as writer:
        put(writer, field, tmp_path / "missing" / "0", held.wait)
        put(writer, field, tmp_path / "1")
        held.set()
        with pytest.raises(GaugeError, match="could not be written"):
            writer.flush()
        with pytest.raises(GaugeError, match="could not be written"):
            writer.check()
    assert not list(tmp_path.iterdir())


def test_without_memory_configurations_are_written_at_once(tmp_path, best_device):
    p = Parameters.from_values(RUN)
    usual, small = Run(tmp_path / "usual"), Run(tmp_path / "small")
    carry_out(usual, p, best_device)
    with (
        mock.patch.object(writing, "free_memory", return_value=1000),
        mock.patch.object(Snapshot, "of") as snapshot,
    ):
        carry_out(small, p, best_device)
    assert not snapshot.called
    assert written(small.path) == written(usual.path)
    assert len(written(small.path)) == p.configs + 1


@pytest.mark.longer
@pytest.mark.parametrize("failing", [1, 2, 3, 6])
def test_a_run_whose_write_failed_goes_on_as_if_it_had_not(tmp_path, best_device, failing):
    p = Parameters.from_values(RUN)
    usual, run = Run(tmp_path / "usual"), Run(tmp_path / "run")
    carry_out(usual, p, best_device)
    sweeps = sorted(usual.configs())
    fails = run.config(sweeps[failing - 1], p.format)
    precedes = [run.config(sweep, p.format) for sweep in sweeps[max(0, failing - 2) : failing - 1]]
    whole, failed, waited = writing.write, threading.Event(), []

    def write(path, *words):
        if path == fails:
            failed.set()
            raise GaugeError(f"{path} could not be written (No space left on device).")
        if path in precedes:  # which is at work when the next one fails, and is kept
            waited.append(failed.wait(PATIENCE))
        whole(path, *words)

    with (
        mock.patch.object(writing, "write", write),
        pytest.raises(GaugeError, match="No space left"),
    ):
        carry_out(run, p, best_device)
    assert all(waited)
    assert len(waited) == len(precedes)
    assert sorted(run.configs()) == sweeps[: failing - 1]
    carry_out(run, p, best_device)
    assert written(run.path) == written(usual.path)
