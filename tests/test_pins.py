"""Links, table rows and results that may never change, and runs begun by earlier versions.

`pins/runs.json` has small runs of version 0.1.0 with SIMD registers of 16 and of 64 bytes. The
directories beside it are runs that version 0.1.0 has begun or finished, those in `pins/v0_2` runs
of what version 0.2.0 was on 2026-11-23, and `pins/expected.json` has what they must become.

The bits are those of GCC on x86-64 with fused multiplications and additions (FMA); there they must
be found again. A chain is chaotic, so that other roundings grow with every sweep, until nothing is
left to compare: elsewhere the first rows after a start can be compared, within `tolerance`.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from gauge_mc.configurations.reading import open_configuration
from gauge_mc.devices.cpu import compiler
from gauge_mc.files.table import read_table
from gauge_mc.run.directory import Run
from tests.calls import call

pytestmark = pytest.mark.usefixtures("usual_compiler")

PINS = Path(__file__).parent / "pins"
RUNS = json.loads((PINS / "runs.json").read_text())
EXPECTED = json.loads((PINS / "expected.json").read_text())
EPSILON = {"single": 2.0**-24, "double": 2.0**-53}
ROUNDINGS = 100
"""Roundings of an observable: a loop of up to 12 links has so many products in a row (of N complex
numbers each), and the sums over sites are in double precision."""

GROWTH = 10
"""Largest factor by which a sweep increases the deviation of two chains. A new link depends on the
18 links of its staples, whose deviations a reflection doubles, while the sum of the staples is of
the size 1 (random links) to 6. Seen were at most 7, for SU(3) from a hot start."""

CPU = ("--backend", "cpu", "--threads", "2", "--quiet")

HALF_DONE = {"su2_ranlux": "single", "su3_philox": "double", "v0_2/half_done": "single"}
"""Runs that released versions were killed in, with their precision."""

FINISHED = {"measured_run": 2, "v0_2/finished": 2}
"""Runs that released versions have finished, with the number of configurations that they measured
afterwards, of three."""


@pytest.fixture(scope="session")
def exact() -> bool:
    """Whether this compiler rounds as the one of the pins did: GCC, for x86-64 with FMA."""
    words = [*compiler.find_compiler().words, *compiler.FLAGS, "-dM", "-E", os.devnull]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    macros = {line.split()[1] for line in said.splitlines()}
    return {"__GNUC__", "__x86_64__", "__FMA__"} <= macros and "__clang__" not in macros


@pytest.fixture
def register_bytes(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """The size of a SIMD register, whatever this machine has."""
    width = getattr(request, "param", "16")
    monkeypatch.setattr(compiler, "register_bytes", lambda: int(width))
    return width


def rows(table: Path) -> list[str]:
    """The lines of a table but those of its header."""
    return [line for line in table.read_text().splitlines() if not line.startswith("#")]


def tolerance(precision: str, sweeps: float = 0) -> float:
    """The largest deviation that other roundings explain after a number of sweeps."""
    return EPSILON[precision] * (ROUNDINGS + float(GROWTH) ** sweeps)


def assert_rows(
    table: Path, expected: list[str], exact: bool, precision: str, sweeps: int = 0, start: int = 0
) -> None:
    """Compare rows; after the update `start` the chain makes so many sweeps in an update."""
    found = rows(table)
    if exact:
        assert found == expected
        return
    assert len(found) == len(expected)
    for one, other in zip(found[1:], expected[1:], strict=True):
        a, b = (np.array(row.split(","), float) for row in (one, other))
        assert a[0] == b[0]
        np.testing.assert_allclose(
            a, b, rtol=0, atol=tolerance(precision, sweeps * max(0, a[0] - start))
        )


def links_digest(path: Path) -> str:
    """SHA-256 of the links of a configuration, without its header."""
    slices = (links.tobytes() for links in open_configuration(path).slices())
    return hashlib.sha256(b"".join(slices)).hexdigest()


QUICK = [("su3_philox_double", "64", 1)]
"""The runs, with the size of a register and the version of the chain, that quick tests repeat."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "register_bytes", "version"),
    [
        pytest.param(*one, marks=() if one in QUICK else pytest.mark.slow)
        for one in product(RUNS["runs"], ("16", "64"), (1, 2))
    ],
    indirect=["register_bytes"],
)
def test_a_version_of_the_chain_has_its_links(name, register_bytes, version, exact, tmp_path):
    """Version 1 those of gauge-mc 0.1, and version 2 the same in double precision."""
    values, pinned = RUNS["runs"][name], RUNS["found"][register_bytes][name]
    if version == 2:
        pinned = RUNS["version_2"][register_bytes].get(name, pinned)
    words = [f"--{key}={value}" for key, value in values.items()] + [f"--chain-version={version}"]
    words += ["--thermalize=2", "--configs=2", "--separation=2", "--format=nersc", *CPU]
    _, code = call("generate", *words, "--output", tmp_path / "run")
    assert code == 0
    if exact:
        for sweep, checksum in pinned["checksums"].items():
            data = (tmp_path / "run" / "configs" / f"{sweep}.nersc").read_bytes()
            assert re.search(rb"CHECKSUM = (\w+)", data)[1].decode() == checksum
            links = data.partition(b"END_HEADER\n")[2]
            assert hashlib.sha256(links).hexdigest() == pinned["sha"][sweep]
    precision, sweeps = values["precision"], values.get("heatbath", 1) + values["overrelax"]
    for table, expected in pinned["tables"].items():
        assert_rows(tmp_path / "run" / f"{table}.csv", expected, exact, precision, sweeps)


@pytest.mark.first_quick
@pytest.mark.parametrize("name", [*HALF_DONE, *FINISHED, "scan"])
def test_what_released_versions_wrote_is_sound(name):
    out, code = call("verify", PINS / name)
    assert code == 0, out
    assert call("status", PINS / name)[1] == 0
    assert call("info", PINS / name)[1] == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["su3_philox", "v0_2/half_done", pytest.param("su2_ranlux", marks=pytest.mark.slow)]
)
def test_a_run_begun_by_a_released_version_is_continued(name, exact, tmp_path):
    """Here with the registers of this machine, whose kernels other tests use as well.

    Links do not depend on the registers, but sums over sites do, in their last bits.
    """
    continue_run(name, exact, False, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", HALF_DONE)
def test_a_run_begun_by_a_released_version_is_continued_exactly(
    name, register_bytes, exact, tmp_path
):
    continue_run(name, exact, exact, tmp_path)


def continue_run(name: str, exact_links: bool, exact_sums: bool, folder: Path) -> None:
    """It was killed at sweep 6 after a checkpoint at sweep 3, tables and configurations ahead."""
    run = shutil.copytree(PINS / name, folder / "run")
    p = Run(run).read()[0]
    sweeps = 0 if exact_links else p.algorithm.sweeps
    assert call("generate", "--output", run, *CPU)[1] == 0
    for table, expected in EXPECTED[name]["tables"].items():
        assert_rows(run / table, expected, exact_sums, HALF_DONE[name], sweeps, start=3)
    for config, digest in EXPECTED[name]["configs"].items():
        assert links_digest(run / "configs" / config) == digest or not exact_links
    out, code = call("verify", run)
    assert code == 0, out


@pytest.mark.slow
@pytest.mark.parametrize("name", FINISHED)
def test_a_run_finished_by_a_released_version_is_used(name, exact, tmp_path):
    """Its configurations are measured, and its tables fitted, drawn and exported."""
    run = shutil.copytree(PINS / name, tmp_path / "run")
    out, code = call("measure", "plaquette", run, "--backend", "cpu", "--threads", "2")
    assert code == 0, out
    assert f"{FINISHED[name]} already measured" in out
    along, stored = (read_table(run / f"plaquette{end}.csv") for end in ("", "_configs"))
    both = np.isin(along["sweep"], stored["sweep"])
    np.testing.assert_allclose(
        stored["plaquette"], along["plaquette"][both], rtol=0, atol=tolerance("single")
    )
    assert stored["sweep"].tolist() == [3, 5, 7]
    call("fit", "creutz", run, "--json")
    assert json.loads((run / "creutz.json").read_text())["ensemble"]["beta"] == "2.3"
    for words in (("plot", "history"), ("export",)):
        out, code = call(*words, run, *([tmp_path / "all.h5"] if words == ("export",) else []))
        assert code == 0, out
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
        assert_rows(run / name, expected, exact, "single")


@pytest.mark.slow
def test_a_scan_begun_by_version_0_1_is_continued(exact, tmp_path):
    """It had all of two points, and is asked for a third one and longer runs."""
    scan = shutil.copytree(PINS / "scan", tmp_path / "scan")
    words = ["--beta", "2.2:2.4:0.1", "--configs", "6", "--backend", "cpu", "--threads", "1"]
    assert call("scan", "--output", scan, *words, "--quiet")[1] == 0
    for name, expected in EXPECTED["scan"]["tables"].items():
        done = 5 if (PINS / "scan" / name).exists() else 0
        assert_rows(scan / name, expected, exact, "single", sweeps=2, start=done)
    found, pinned = (
        np.array([row.split(",") for row in some])
        for some in (rows(scan / "scan.csv"), EXPECTED["scan"]["scan.csv"])
    )
    # Scans have got more columns since.
    found = found[:, np.isin(found[0], pinned[0])]
    assert found[0].tolist() == pinned[0].tolist()
    if exact:
        # Errors have grown since, because these series are short, and susceptibilities no longer
        # have the bias of the squared mean.
        grown = [one.endswith("_error") or "susceptibility" in one for one in found[0]]
        kept = np.logical_not(grown)
        assert found[:, kept].tolist() == pinned[:, kept].tolist()
        assert (found[1:, grown].astype(float) >= pinned[1:, grown].astype(float)).all()
