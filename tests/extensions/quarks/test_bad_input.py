"""Bad parameters of quarks that were once accepted, ended in a traceback or left half a folder."""

import shutil

import pytest

from gauge_mc.devices.cpu.device import CpuDevice
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError
from gauge_mc.extensions.quarks.spectroscopy.propagators import propagator
from gauge_mc.fields.field import Field
from tests.calls import call, make_run

pytestmark = pytest.mark.kernels

TINY = ("--lattice", "4", "--thermalize", "0", "--configs", "1", "--separation", "1", "--quiet")

MEASUREMENTS = {
    "mesons:1:kappa=0.12:links=7": "cannot be stored as 7 reals",
    "mesons:1:kappa=0.12:csw=nan": "--csw is 'nan', but needs a number",
    "mesons:1:kappa=0.12:csw=1e300": "--csw is 1e+300; give a number from",
    "mesons:1:kappa=0.12:tolerance=1e-300": "--tolerance is 1e-300; give a number from 2.22",
    "mesons:1:kappa=0.12:limit=0": "--limit is 0; give a whole number of at least 1",
    "mesons:1:kappa=0.12:mu=": "--mu is empty",
    "mesons:1:kappa=1e308": "--kappa is 1e+308; give a number from",
    "mesons:1:kappa=0.11;;0.12": "--kappa is '0.11;;0.12'; give one number, or several",
    "mesons:1:kappa=0.1_2": "--kappa is '0.1_2'; give one number, or several",
    "mesons:1:kappa=٠.١": "--kappa is '٠.١'; give one number, or several",
    "mesons:1:kappa=0.12:boundary=0,0,0,1e300": "--boundary is '0,0,0,1e300'; give",
    "mesons:1:kappa=0.12:source=gauss:1e308,3": "width of the source is 1e+308",
    "mesons:1:kappa=0.12:source=point:0,0,0,1_0": "--source is 'point:0,0,0,1_0'",
}


@pytest.mark.parametrize("command", ["generate", "scan"])
@pytest.mark.parametrize("measure", MEASUREMENTS)
def test_parameters_of_observables_are_refused_before_a_folder_is_made(tmp_path, command, measure):
    grid = ("--beta", "2.3") if command == "scan" else ()
    words = ("--measure", measure, "--output", tmp_path / "new" / "run")
    said, code = call(command, *TINY, *grid, *words)
    assert (MEASUREMENTS[measure] in said, code) == (True, 2)
    assert [*tmp_path.iterdir()] == []


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("bad") / "run", lattice="4x4x4x4", configs=2)


def test_options_are_refused_and_nothing_is_written(run):
    before = sorted(run.rglob("*"))
    said, code = call("measure", "mesons", run, "--kappa=0.11,,0.12")
    assert ("--kappa is '0.11,,0.12'" in said, code) == (True, 2)
    assert sorted(run.rglob("*")) == before


def test_a_missing_propagator_is_a_wrong_request(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said, code = call("convert", "nosuch.lime", "out.lime", "--basis", "ukqcd")
    assert "nosuch.lime" in said
    assert code == 2
    assert [*tmp_path.iterdir()] == []


def test_a_failure_of_a_first_measurement_leaves_nothing(tmp_path, monkeypatch):
    """The same command with other parameters is then not refused."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    bad = "mesons:1:kappa=0.12:propagators=file"
    said, code = call("generate", *TINY, "--measure", bad, "--output", "run")
    assert "--propagators: no files can be written in a folder file" in said
    assert code == 2
    assert not (tmp_path / "run").exists()
    assert call("generate", *TINY, "--measure", "plaquette", "--output", "run")[1] == 0


@pytest.mark.slow
def test_the_trial_of_a_run_keeps_no_propagators(tmp_path):
    measure = f"mesons:1:kappa=0.12:propagators={tmp_path / 'kept'}"
    call("generate", *TINY, "--measure", measure, "--output", tmp_path / "run")
    assert [path.name[:5] for path in (tmp_path / "kept").iterdir()] == ["k0.12"]


@pytest.mark.slow
def test_a_propagator_of_another_lattice_is_named(tmp_path):
    small, large = (Field.cold(Lattice(4, 4, 4, t), "su2", "double", CpuDevice(1)) for t in (4, 6))
    for field in (small, large):
        propagator(field, 0.12, propagators=str(tmp_path))
    one, other = tmp_path.iterdir()
    shutil.copy(*sorted((one, other), key=lambda path: path.stat().st_size))
    with pytest.raises(GaugeError, match=r"k0.12_.*\.lime does not fit: The propagator has the"):
        propagator(large, 0.12, propagators=str(tmp_path))


def test_a_file_of_another_kind_is_not_called_damaged(tmp_path, run):
    (config, *_) = sorted((run / "configs").iterdir())
    said, code = call("convert", config, tmp_path / "out", "--basis", "ukqcd")
    assert "is not supported: the XML of its scidac-file-xml record is not a usqcdPropFile" in said
    assert code == 69


def test_options_of_configurations_are_not_for_propagators(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (config, *_) = sorted((run / "configs").iterdir())
    for words in ((run / "configs", "--output", "out"), (config, "out", "--verify")):
        said, code = call("convert", *words, "--basis", "ukqcd")
        assert ("--basis is for propagators" in said, code) == (True, 2), said
    assert [*tmp_path.iterdir()] == []
