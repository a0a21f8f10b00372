"""Links, table rows and results that may never change, and runs begun by earlier versions.

`pins/runs.json` has small runs of version 0.1.0 with SIMD registers of 16 and of 64 bytes, the
directories beside it runs that version 0.1.0 was stopped in, and `pins/expected.json` what they
must become. Roundings depend on the compiler, so that elsewhere than with GCC on x86-64 numbers
need to agree only as well as a few updates allow.
"""

import hashlib
import json
import platform
import re
import shutil
from itertools import product
from pathlib import Path

import pytest

from gauge_mc.configurations.reading import open_configuration
from gauge_mc.devices.cpu import compiler
from tests.calls import call

PINS = Path(__file__).parent / "pins"
RUNS = json.loads((PINS / "runs.json").read_text())
EXPECTED = json.loads((PINS / "expected.json").read_text())
CLOSE = {"single": 1e-4, "double": 1e-11}
CPU = ("--backend", "cpu", "--threads", "2", "--quiet")


@pytest.fixture
def exact() -> bool:
    """Whether this compiler rounds as the one of the pins did."""
    version = compiler.find_compiler().version
    here = platform.machine() == "x86_64" and "fma" in compiler.processor()[1]
    return here and bool(re.search(r"\b(g\+\+|GCC)", version)) and "clang" not in version


@pytest.fixture
def register_bytes(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """The size of a SIMD register, whatever this machine has."""
    width = getattr(request, "param", "16")
    monkeypatch.setattr(compiler, "register_bytes", lambda: int(width))
    return width


def rows(table: Path) -> list[str]:
    """The lines of a table but those of its header."""
    return [line for line in table.read_text().splitlines() if not line.startswith("#")]


def assert_rows(table: Path, expected: list[str], exact: bool, tolerance: float) -> None:
    found = rows(table)
    if exact:
        assert found == expected
        return
    assert len(found) == len(expected)
    for one, other in zip(found[1:], expected[1:], strict=True):
        for a, b in zip(one.split(","), other.split(","), strict=True):
            assert a == b or abs(float(a) - float(b)) < tolerance


def links_digest(path: Path) -> str:
    """SHA-256 of the links of a configuration, without its header."""
    slices = (links.tobytes() for links in open_configuration(path).slices())
    return hashlib.sha256(b"".join(slices)).hexdigest()


QUICK = ("su3_philox_double", "64")
"""The run, and the size of a register, that a quick test repeats."""


@pytest.mark.parametrize(
    ("name", "register_bytes"),
    [
        pytest.param(*one, marks=() if one == QUICK else pytest.mark.slow)
        for one in product(RUNS["runs"], ("16", "64"))
    ],
    indirect=["register_bytes"],
)
def test_runs_are_those_of_version_0_1(name, register_bytes, exact, tmp_path):
    values, pinned = RUNS["runs"][name], RUNS["found"][register_bytes][name]
    words = [f"--{key}={value}" for key, value in values.items()]
    words += ["--thermalize=2", "--configs=2", "--separation=2", "--format=nersc", *CPU]
    _, code = call("generate", *words, "--output", tmp_path / "run")
    assert code == 0
    if exact:
        for sweep, checksum in pinned["checksums"].items():
            data = (tmp_path / "run" / "configs" / f"{sweep}.nersc").read_bytes()
            assert re.search(rb"CHECKSUM = (\w+)", data)[1].decode() == checksum
            links = data.partition(b"END_HEADER\n")[2]
            assert hashlib.sha256(links).hexdigest() == pinned["sha"][sweep]
    for table, expected in pinned["tables"].items():
        tolerance = CLOSE[values["precision"]]
        assert_rows(tmp_path / "run" / f"{table}.csv", expected, exact, tolerance)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "precision"), [("su2_ranlux", "single"), ("su3_philox", "double")]
)
def test_a_run_begun_by_version_0_1_is_continued(name, precision, register_bytes, exact, tmp_path):
    """It was killed at sweep 6 after a checkpoint at sweep 3, tables and configurations ahead."""
    run = shutil.copytree(PINS / name, tmp_path / name)
    assert call("generate", "--output", run, *CPU)[1] == 0
    for table, expected in EXPECTED[name]["tables"].items():
        assert_rows(run / table, expected, exact, CLOSE[precision])
    for config, digest in EXPECTED[name]["configs"].items():
        assert links_digest(run / "configs" / config) == digest or not exact
    out, code = call("verify", run)
    assert code == 0, out


@pytest.mark.slow
def test_a_measurement_begun_by_version_0_1_is_continued(register_bytes, exact, tmp_path):
    """It had measured two of three configurations."""
    run = shutil.copytree(PINS / "measured_run", tmp_path / "run")
    loops = ["--off-axis", "--iterations", "0,2", "--r-max", "2", "--t-max", "3"]
    table = run / "off_axis.csv"
    assert call("measure", "wilson-loops", run, *loops, "--output", table, *CPU)[1] == 0
    assert call("measure", "plaquette", run, *CPU)[1] == 0
    for name, expected in EXPECTED["measured"]["tables"].items():
        assert_rows(run / name, expected, exact, CLOSE["single"])


@pytest.mark.slow
def test_a_scan_begun_by_version_0_1_is_continued(exact, tmp_path):
    """It had all of two points, and is asked for a third one and longer runs."""
    scan = shutil.copytree(PINS / "scan", tmp_path / "scan")
    words = ["--beta", "2.2:2.4:0.1", "--configs", "6", "--backend", "cpu", "--threads", "1"]
    assert call("scan", "--output", scan, *words, "--quiet")[1] == 0
    for name, expected in EXPECTED["scan"]["tables"].items():
        assert_rows(scan / name, expected, exact, CLOSE["single"])
    found, pinned = rows(scan / "scan.csv"), EXPECTED["scan"]["scan.csv"]
    assert found == pinned if exact else found[0] == pinned[0]
