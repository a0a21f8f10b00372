"""Bad input that was once accepted, ended in a traceback or hung, or left half a folder behind."""

import fcntl
import os
import resource
import subprocess
import sys

import pytest

from gauge_mc.devices import cache
from gauge_mc.devices.cpu.device import CpuDevice
from gauge_mc.domain import mpi
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import UNCHECKED, GaugeError, UsageError
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.files.structured import DEEPEST, parse_toml
from gauge_mc.run.parameters import Parameters
from gauge_mc.updates.heatbath import heatbath
from tests.calls import call, make_run

pytestmark = pytest.mark.kernels

TINY = ("--lattice", "4", "--thermalize", "0", "--configs", "1", "--separation", "1", "--quiet")

MEASUREMENTS = {
    "wilson-loops:1:r-max=1_0": "--r-max is '1_0', but needs a whole number",
    "wilson-loops:1:smear=ape:abc": "weight of --smear ape is 'abc', but needs a number",
    "wilson-loops:1:smear=ape:1_0": "weight of --smear ape is '1_0', but needs a number",
    "plaquette:1:foo=3": "--foo is not an option of plaquette",
    "plaquette:0": "plaquette cannot be measured after each 0 updates",
}


@pytest.mark.parametrize("command", ["generate", "scan"])
@pytest.mark.parametrize("measure", MEASUREMENTS)
def test_parameters_of_observables_are_refused_before_a_folder_is_made(tmp_path, command, measure):
    grid = ("--beta", "2.3") if command == "scan" else ()
    said, code = call(
        command, *TINY, *grid, "--measure", measure, "--output", tmp_path / "new" / "run"
    )
    assert (code, MEASUREMENTS[measure] in said) == (2, True), said
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    ("words", "message", "code"),
    [
        ("generate --chains 10000000", "chains must lie between 1 and 10000", 2),
        ("generate --start /dev/zero", "/dev/zero is not a regular file", 2),
        ("generate --start nosuch", "There is no start file", 2),
        ("generate --chains 2 --start nosuch", "There is no start file", 2),
        ("generate --chains 2 --measure flow:1:to=x", "--to is 'x', but needs a number", 2),
        ("generate --beta 1e6", "rounding errors in single precision", 2),
        ("generate --action rectangle:-1e300", "--c1 is -1e", 2),
        ("generate --action rectangle:0.0_1", "which is not a number", 2),
        ("scan --beta 2.3 --skip -1", "--skip is -1", 2),
        ("scan --beta 2.3 --start /dev/zero", "/dev/zero is not a regular file", 2),
        ("scan --beta 2.3 --start nosuch", "There is no start file", 2),
        ("scan --beta 2.3 --per-device 1_0", "'1_0' is not a whole number", 2),
        (
            "generate --seed 99999999999999999999",
            "'99999999999999999999' has more than 19 digits",
            2,
        ),
        ("generate --beta 1e999", "'1e999' is too large", 2),
        (
            "generate --format floppy",
            "choose ildg, hdf5, hirep, milc, nersc, openqcd, scidac or none.",
            2,
        ),
        ("generate --format milc", "MILC files store SU(3) in single precision, not SU(2)", 2),
        ("scan --beta 2.3 --per-device 100000", "--per-device must lie between 1 and 1024", 2),
        (
            f"scan --beta 2 --submit slurm --submit-option time={'1' * 5000}",
            "is not of the form HH:MM",
            2,
        ),
        ("scan --beta 2 --submit slurm --slurm time=1 --slurm array_parallelism=٢", "must be a", 2),
    ],
)
def test_what_is_wrong_is_said_before_a_folder_is_made(tmp_path, words, message, code):
    said, found = call(*words.split(), *TINY, "--output", tmp_path / "new" / "run")
    assert message in said
    assert found == code
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    ("words", "code"),
    [("convert /dev/zero out --to ildg", 2), ("info pipe", 2), ("verify pipe", UNCHECKED)],
)
def test_pipes_and_devices_are_not_read(tmp_path, monkeypatch, words, code):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    said, found = call(*words.split())
    assert "is not a regular file: name a configuration file" in said
    assert (found, [*tmp_path.iterdir()]) == (code, [tmp_path / "pipe"])


def test_too_little_memory_for_numpy_is_said_in_one_sentence():
    """Also if OpenBLAS would end the process with words of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "gauge_mc", "doctor"],
        env={**os.environ, "OPENBLAS_NUM_THREADS": "2"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (150 << 20, 150 << 20)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.startswith(
        "gauge-mc: NumPy and its work need more memory than the limit of 150 MiB"
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("bad") / "run", lattice="4x4x4x4", configs=2)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("measure wilson-loops RUN --smear ape:abc", "weight of --smear ape is 'abc', but needs"),
        ("measure plaquette RUN --output=", "A path is empty"),
        ("fit creutz RUN --output=", "A path is empty"),
        ("plot history RUN --output=", "A path is empty"),
        ("bench --save=", "A path is empty"),
        ("bench --save nowhere/a.json", "There is no folder nowhere for a.json"),
        ("fit creutz RUN --output nowhere/a.json", "There is no folder nowhere for a.json"),
        ("export RUN nowhere/a.h5", "There is no folder nowhere for a.h5"),
    ],
)
def test_options_are_refused_and_nothing_is_written(run, words, message):
    before = sorted(run.rglob("*"))
    said, code = call(*[str(run) if word == "RUN" else word for word in words.split()])
    assert (code, message in said) == (2, True), said
    assert sorted(run.rglob("*")) == before


@pytest.mark.parametrize(
    "words",
    [
        *("info FILE", "verify FILE", "status FILE", "convert FILE out.lime --to ildg"),
        *("measure plaquette FILE", "plot history FILE"),
        *("fit potential FILE", "export FILE out.h5", "generate --card FILE", "scan --card FILE"),
        *("generate --start FILE", "scan --beta 2.3 --start FILE", "bench --compare FILE"),
    ],
)
def test_a_missing_input_file_is_a_wrong_request(tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    said, code = call(*words.replace("FILE", "nosuch.lime").split())
    assert (code, "nosuch.lime" in said) == (2, True), said
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    "key", ["a." * 3000 + "a = 1", "[" + "a." * 3000 + "a]", "a = " + 40 * "["]
)
def test_deep_toml_is_refused_before_it_is_parsed(tmp_path, key):
    with pytest.raises(ValueError, match="nested too deeply"):
        parse_toml(key)
    (tmp_path / "card.toml").write_text(key)
    said, code = call("generate", "--card", tmp_path / "card.toml")
    assert "is not valid TOML: its tables and lists are nested too deeply" in said
    assert code == 2


def test_texts_and_comments_in_toml_are_not_nested():
    dots, brackets = "a." * 100 + "a", "[{" * 100
    text = f"""
    one = "{dots} \\" {brackets}"  # {dots} {brackets}
    two = '{dots} {brackets}'
    three = \"\"\"{dots}
    {brackets} \\\"\"\" \"\"\"
    four = '''{dots} "
    {brackets}'''
    "{dots}".five = [{"1.5," * 100}]
    """
    assert parse_toml(text)[dots]["five"] == [1.5] * 100
    assert parse_toml(f"{'.'.join('a' * DEEPEST)} = 1")
    assert parse_toml(f"a = {'[' * DEEPEST}{']' * DEEPEST}")


@pytest.mark.parametrize("key", ["seed", "beta", "lattice"])
def test_numbers_that_python_does_not_print_are_refused(tmp_path, key):
    (tmp_path / "card.toml").write_text(f"{key} = 0x{'f' * 9000}")
    said, code = call("generate", "--card", tmp_path / "card.toml")
    assert (code, f"{key} must be" in said) == (2, True), said


def test_a_scan_whose_runs_cannot_begin_is_removed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "")  # without Slurm
    words = ("scan", "--beta", 2.3, *TINY[:-1], "--output", "a/scan")
    said, code = call(*words, "--submit", "slurm", "--submit-option", "time=1")
    assert (code, "Slurm is not installed" in said) == (1, True), said
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("command", ["generate", "scan"])
def test_nothing_is_left_where_files_cannot_be_locked(tmp_path, monkeypatch, command):
    def refuse(*_):
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "lockf", refuse)
    grid = ("--beta", "2.3") if command == "scan" else ()
    said, code = call(command, *TINY, *grid, "--output", tmp_path / "a" / "run")
    assert (code, "does not support file locks" in said) == (1, True), said
    assert [*tmp_path.iterdir()] == []


def test_a_pipe_in_the_cache_is_not_waited_for(tmp_path):
    tmp_path.chmod(0o700)
    os.mkfifo(tmp_path / "pipe")
    writer = os.open(tmp_path / "pipe", os.O_RDWR)  # lets an attempt to open it return
    try:
        os.write(writer, b"content")
        assert cache.kept(tmp_path / "pipe") is None
        assert os.read(writer, 7) == b"content"
    finally:
        os.close(writer)


@pytest.mark.parametrize(("group", "most"), [("su2", 31457.28), ("su3", 83886.08)])
def test_single_precision_resolves_the_fluctuations_of_the_links(group, most):
    """1 - P is (N^2 - 1) / (4 beta); four links, each rounded to 2^-24, change it by 1 %."""
    Parameters(group=group, beta=most * 0.9999)
    Parameters(group=group, beta=1e6, precision="double")
    for values in ({"beta": most * 1.0001}, {"beta": most * 0.51, "action": "wilson:anisotropy=2"}):
        with pytest.raises(UsageError, match="choose double precision, or beta of at most"):
            Parameters(group=group, **values)
    field = Field.cold(Lattice(4, 4, 4, 4), group, "single", CpuDevice(1))
    with pytest.raises(UsageError, match="choose double precision, or beta of at most"):
        heatbath(field, most * 1.0001, Random.for_field(field, "philox", 1))


@pytest.mark.parametrize(
    ("there", "said"),
    [(None, "mpi4py is missing: run `pip install"), (object(), "run `pip install mpich`")],
)
def test_what_is_missing_for_mpirun_is_said(monkeypatch, there, said):
    monkeypatch.setenv("PMI_SIZE", "2")
    monkeypatch.setitem(__import__("sys").modules, "mpi4py", None)
    monkeypatch.setattr(mpi, "find_spec", lambda name: there, raising=False)
    with pytest.raises(GaugeError) as refused:
        mpi.find_processes()
    assert said in str(refused.value)
    assert ("gauge-mc[mpi]" in str(refused.value)) == (there is None)


@pytest.mark.parametrize("kept", [0, 2, 5])
def test_a_run_toml_that_lacks_parameters_is_damaged(tmp_path, kept):
    """It does not stand for a run of the default parameters."""
    run = make_run(tmp_path / "run", lattice="4x4x4x4", configs=0)
    lines = (run / "run.toml").read_text().split("\n")
    (run / "run.toml").write_text("\n".join(lines[:kept]))
    said, code = call("status", run)
    assert (code, "run.toml is damaged: no key" in said) == (1, True), said


def test_a_cache_that_is_no_folder_is_refused(tmp_path, monkeypatch):
    """Nobody is told to change the permissions of a device."""
    monkeypatch.setenv("GAUGE_MC_CACHE", "/dev/null")
    with pytest.raises(GaugeError, match=r"/dev/null, where .* would be stored, is not a folder"):
        cache.make_private_folder()
    with pytest.raises(GaugeError, match="is not a folder: name another"):
        cache.kept(cache.cache_folder() / "file")


def test_an_unknown_width_of_the_terminal_does_not_hide_the_output(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "0")
    assert "plaquette" in call("status", run)[0]
