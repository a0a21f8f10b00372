"""Whatever can be declared shows up everywhere once it is declared.

`toys/` is a small package with one toy of each kind, and has tests of what they compute. Commands
see it as they see any package that is installed: by its entry points.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import UsageError
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.groups import GROUPS
from gauge_mc.run.generate import generate
from gauge_mc.updates.heatbath import heatbath
from tests.observables.loops import staple
from tests.reference import fields as reference
from tests.toys.installed import TOYS

ROOT = Path(__file__).resolve().parents[1]
GENERATE = {
    "group": "su2",
    "beta": "2.9",
    "action": "double-wilson",
    "lattice": "4x4x4x6",
    "thermalize": "2",
    "configs": "3",
    "separation": "3",
    "measure": "link-trace,plaquette",
    "rng": "splitmix",
    "format": "npy",
    "backend": "one-core",
}


SAME = ("stronger", "wilson")
"""Folders of runs with the same links."""


def options(**values):
    return [word for name, value in values.items() for word in (f"--{name}", value)]


SERVER = """
import json, sys
from tests.calls import call_apart
for line in sys.stdin:
    print(json.dumps(call_apart(*json.loads(line))), file=sys.__stdout__, flush=True)
"""


class Program:
    """``gauge-mc`` in a process of its own that sees the toys, and that carries out many commands.

    Starting a process for each of them would take most of the time.
    """

    def __init__(self, site: Path, folder: Path):
        self.folder = folder
        paths = [str(site), str(ROOT), os.environ.get("PYTHONPATH", "")]
        self._process = subprocess.Popen(
            [sys.executable, "-c", SERVER],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "COLUMNS": "200"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __call__(self, *words, code=0):
        self._process.stdin.write(json.dumps([*map(str, words)]) + "\n")
        self._process.stdin.flush()
        out, complaint, found = json.loads(self._process.stdout.readline())
        assert found == code, complaint
        return out

    def end(self):
        self._process.stdin.close()
        assert self._process.wait() == 0
        self._process.stdout.close()


@pytest.fixture(scope="module")
def program(site, tmp_path_factory):
    made = Program(site, tmp_path_factory.mktemp("work"))
    yield made
    made.end()


@pytest.fixture(scope="module")
def run(program):
    program("generate", *options(**GENERATE), "--output", "run", "--quiet")
    return program.folder / "run"


def test_a_run_uses_and_records_them(program, run):
    table = (run / "link_trace.csv").read_text()
    assert "# observable: link-trace\n" in table
    assert "# normalisation: Re Tr / N averaged over all links\n" in table
    assert "\nsweep,trace\n" in table
    assert sorted(path.name for path in (run / "configs").iterdir()) == [
        "0000005.npy",
        "0000008.npy",
        "0000011.npy",
    ]
    assert "link-trace" in program("status", "run")
    about = program("info", "run")
    for word in ("link_trace.csv", "splitmix", "double-wilson", "npy"):
        assert word in about
    checked = program("verify", "run")
    assert "link_trace.csv  records: 9" in checked
    assert "0000011.npy" in checked


def test_a_run_is_that_of_the_action_that_it_equals(program, run):
    """Twice the Wilson action at beta has the links of the Wilson action at twice beta."""
    same = {**GENERATE, "action": "wilson", "beta": "5.8", "backend": "cpu"}
    program("generate", *options(**same), "--output", "same", "--quiet")
    for path in (run / "configs").iterdir():
        assert path.read_bytes() == (program.folder / "same" / "configs" / path.name).read_bytes()


@pytest.mark.slow
def test_a_coupling_of_an_action_is_one_line_in_its_module_and_one_in_its_header(program, run):
    """It is an option of commands, a key of cards, an axis of scans, and stands in headers."""
    words = options(**{**GENERATE, "strength": "3"})
    program("generate", *words, "--output", SAME[0], "--quiet")
    same = {**GENERATE, "action": "wilson", "beta": "8.7", "backend": "cpu"}
    program("generate", *options(**same), "--output", SAME[1], "--quiet")
    for name in ("0000005.npy", "0000011.npy"):
        found = {(program.folder / one / "configs" / name).read_bytes() for one in SAME}
        assert len(found) == 1
    table = (program.folder / "stronger" / "link_trace.csv").read_text()
    assert "# action: double-wilson\n# strength: 3.0\n" in table
    assert "strength = 3.0\n" in (program.folder / "stronger" / "run.toml").read_text()
    assert "  strength           3.0\n" in program("info", "stronger")
    program("generate", "--output", "stronger", "--configs", "4", "--quiet")
    assert program("generate", "--output", "stronger", "--strength", "2", code=2) == ""
    few = {**GENERATE, "configs": "2", "strength": "1:2:1", "backend": "cpu"}
    program("scan", *options(**few), "--output", "strengths", "--quiet")
    scan = (program.folder / "strengths" / "scan.csv").read_text()
    assert "\nbeta,strength,lattice," in scan
    names = sorted(one.name for one in (program.folder / "strengths").glob("b*"))
    assert names == ["b2.9_4x4x4x6_chain1", "b2.9_4x4x4x6_strength1_chain1"]
    for command in ("generate", "scan", "bench"):
        assert "--strength" in program(command, "--help")


def test_trajectories_take_an_integrator_of_another_package(program):
    words = {**GENERATE, "action": "wilson", "rng": "philox", "backend": "cpu", "format": "none"}
    words |= {"algorithm": "hmc", "integrator": "positions", "steps": "20", "measure": "plaquette"}
    program("generate", *options(**words), "--output", "moved", "--quiet")
    table = (program.folder / "moved" / "hmc.csv").read_text()
    assert "# algorithm: hmc\n# integrator: positions\n" in table
    rows = [line.split(",") for line in table.splitlines() if line[0] in "0123456789"]
    assert len(rows) == 9
    assert all(abs(float(row[1])) < 1 for row in rows)


def test_a_monomial_of_another_package_is_a_term_of_the_action(program):
    """With its options and its level, over a stop, in chains that move together and in cards."""
    words = {**GENERATE, "action": "wilson", "rng": "philox", "backend": "cpu", "format": "none"}
    words |= {"algorithm": "hmc", "precision": "single", "measure": "plaquette"}
    own = {"levels": "omf2:6,omf2:2", "monomials": "squared-plaquettes:strength=0.4:level=0"}
    program("generate", *options(**words, **own), "--output", "squares", "--quiet")
    table = (program.folder / "squares" / "hmc.csv").read_text()
    assert "# monomials: squared-plaquettes:strength=0.4\n" in table
    ending = ",force_squared_plaquettes,largest_force_squared_plaquettes,square_squared_plaquettes"
    heading = next(line for line in table.splitlines() if line.startswith("sweep,"))
    assert heading.endswith(f",largest_force{ending}")
    lines = [line.split(",") for line in table.splitlines() if line[0] in "123456789"]
    rows = [[float(one) for one in line] for line in lines]
    assert len(rows) == 9
    assert all(abs(row[1]) < 1 for row in rows)
    assert all(0.1 < row[-1] < 0.9 and row[-3] > 0.05 for row in rows)
    few = {**words, **own, "configs": "2"}
    program("generate", *options(**few), "--output", "stopped", "--quiet")
    program("generate", "--output", "stopped", "--configs", "3", "--quiet")
    program("generate", *options(**words, **own), "--chains", "2", "--output", "many", "--quiet")
    card = "[[monomials]]\nmonomial = 'squared-plaquettes'\nstrength = 0.4\n"
    (program.folder / "own.toml").write_text(card)
    own.pop("monomials")
    own["card"] = "own.toml"
    program("generate", *options(**words, **own), "--output", "card", "--quiet")
    own["devices"] = "cpu:2"
    program("generate", *options(**words, **own), "--output", "slabs", "--quiet")
    for name in ("stopped", "many_chain1", "card", "slabs"):
        assert (program.folder / name / "hmc.csv").read_text() == table
    assert "squared_plaquettes" in program("fit", "hmc", "squares")
    assert program("generate", *options(**words, monomials="squared-plaquettes"), code=2) == ""
    assert "--monomials" in program("generate", "--help")


def test_an_update_of_another_package_is_an_algorithm(program):
    """With its options, its records in a table, in batches, and over a stop."""
    words = {**GENERATE, "action": "wilson", "rng": "philox", "backend": "cpu", "format": "ildg"}
    program(
        "generate", *options(**words, overrelax="0", heatbath="2"), "--output", "heat", "--quiet"
    )
    words |= {"algorithm": "counted", "rounds": "2"}
    program("generate", *options(**{**words, "configs": "2"}), "--output", "counted", "--quiet")
    program("generate", "--output", "counted", "--configs", "3", "--quiet")
    program("generate", *options(**words), "--chains", "2", "--output", "c", "--quiet")
    rows = "\nsweep,sweeps_done\n" + "".join(f"{n},{2 * n}\n" for n in range(3, 12))
    for name in ("counted", "c_chain1", "c_chain2"):
        table = (program.folder / name / "counted.csv").read_text()
        assert rows in table
        assert "# normalisation: heatbath sweeps since the start\n" in table
        assert "# algorithm: counted\n# rounds: 2\n" in table
    for name in ("counted", "c_chain1"):
        links = (program.folder / name / "configs" / "0000011.lime").read_bytes()[-9000:]
        heat = (program.folder / "heat" / "configs" / "0000011.lime").read_bytes()[-9000:]
        assert links == heat
    assert "counted.csv  records: 9" in program("verify", "counted")
    assert "counted.csv" in program("info", "counted")
    assert "counted sweeps" in program("status", "counted")
    assert program("generate", *options(**words, overrelax="1"), "--output", "d", code=2) == ""
    assert "--rounds" in program("generate", "--help")


def test_a_stopped_run_is_continued(program, run):
    """The state of the generator is in the checkpoint."""
    program("generate", *options(**{**GENERATE, "configs": "2"}), "--output", "longer", "--quiet")
    program("generate", "--output", "longer", "--configs", "3", "--quiet")
    last = "configs/0000011.npy"
    assert (program.folder / "longer" / last).read_bytes() == (run / last).read_bytes()


@pytest.mark.slow
def test_stored_configurations_are_measured(program, run):
    program("measure", "link-trace", "run", "--quiet", "--output", "again.csv")
    rows = [line for line in (run / "link_trace.csv").read_text().splitlines() if line[0] != "#"]
    again = (program.folder / "again.csv").read_text().splitlines()
    assert set(line for line in again if line[0] in "158") <= set(rows)
    words = ["--smear", "forward", "--forward-weight", "0.1", "--iterations", "0,1"]
    program("measure", "wilson-loops", "run", *words, "--output", "loops.csv", "--quiet")
    text = (program.folder / "loops.csv").read_text()
    assert "# smearing: forward staples, w = 0.1\n" in text
    words = ["--smear", "forward:0.1x2", "--smear", "ape", "--temporal", "six-staples"]
    program("measure", "wilson-loops", "run", *words, "--output", "chain.csv", "--quiet")
    text = (program.folder / "chain.csv").read_text()
    assert "# smearing: 2 x (forward staples, w = 0.1), then 1 x (APE" in text
    assert "# iterations: 3\n# temporal: six staples, projected\n" in text
    program("measure", "flow", "run", "--flow", "iwasaki", "--to", "0.2", "--quiet")
    text = (run / "flow.csv").read_text()
    assert "# force: force of the Iwasaki action, c0 = 3.648, c1 = -0.331\n" in text
    shutil.move(run / "flow.csv", program.folder / "flow.csv")  # other tests list the tables


@pytest.mark.slow
def test_quarks_are_measured(program, run):
    pytest.importorskip("gauge_mc.extensions.quarks.operators")
    quarks = ["--kappa", "0.1", "--source", "row:1,2,3", "--solver", "minimal-residual"]
    program("measure", "mesons", "run", *quarks, "--output", "mesons.csv", "--quiet")
    assert ",row@1;2;3," in (program.folder / "mesons.csv").read_text()
    quarks = ["--kappa", "0.1", "--noise", "z3", "--sources", "1"]
    program("measure", "condensate", "run", *quarks, "--output", "condensate.csv", "--quiet")
    assert "# sources: 1 of z3 noise," in (program.folder / "condensate.csv").read_text()


@pytest.mark.slow
def test_results_are_fitted_plotted_and_exported(program, run):
    assert "mean link trace" in program("fit", "mean-trace", "run/link_trace.csv")
    program("plot", "steps", "run", "--output", "steps.png")
    program("plot", "link-trace", "run", "--output", "history.svg")
    program("plot", "link-trace-beta", "run", "--output", "averages.png")
    assert (program.folder / "steps.png").read_bytes().startswith(b"\x89PNG")
    assert "link-trace" in (program.folder / "history.svg").read_text()
    program("export", "run", "tables.txt")
    assert "link_trace: sweep, trace\n" in (program.folder / "tables.txt").read_text()
    program("export", "run", "tables.json.gz")
    program("convert", "run/configs/0000005.npy", "five.nersc", "--to", "nersc")
    program("convert", "five.nersc", "five.npy", "--to", "npy")
    assert (program.folder / "five.npy").read_bytes() == (
        run / "configs" / "0000005.npy"
    ).read_bytes()


@pytest.mark.slow
def test_a_scan_has_their_averages(program):
    words = {**GENERATE, "beta": "2.9,3.0", "backend": "cpu"}
    program("scan", *options(**words), "--output", "scan", "--quiet")
    text = (program.folder / "scan" / "scan.csv").read_text()
    heading = next(line for line in text.splitlines() if line[0] != "#")
    assert {"link_trace_trace", "link_trace_trace_error"} <= {*heading.split(",")}


def test_an_option_of_trajectories_has_terms_of_the_action_as_values(program):
    """In headers, over a stop and in cards, as the same terms by their names."""
    words = {**GENERATE, "action": "wilson", "rng": "philox", "backend": "cpu", "format": "ildg"}
    words |= {"algorithm": "hmc", "steps": "8", "precision": "double", "measure": "polyakov"}
    own = {"adjoint": "strength=0.4,strength=-0.1"}
    program("generate", *options(**words, **own), "--output", "adjoint", "--quiet")
    table = (program.folder / "adjoint" / "hmc.csv").read_text()
    assert "# adjoint: strength=0.4,strength=-0.1\n" in table
    heading = next(line for line in table.splitlines() if line.startswith("sweep,"))
    ending = "force_adjoint1,largest_force_adjoint1,force_adjoint2,largest_force_adjoint2"
    assert heading.endswith(f",largest_force,{ending}")
    named = {"monomials": "adjoint-plaquette:beta=0.4,adjoint-plaquette:beta=-0.1"}
    program("generate", *options(**words, **named), "--output", "named", "--quiet")
    rows = [line for line in table.splitlines() if line[0] in "123456789"]
    assert len(rows) == 9
    assert rows == [
        line
        for line in (program.folder / "named" / "hmc.csv").read_text().splitlines()
        if line[0] in "123456789"
    ]
    few = {**words, **own, "configs": "2"}
    program("generate", *options(**few), "--output", "halted", "--quiet")
    program("generate", "--output", "halted", "--configs", "3", "--quiet")
    (program.folder / "adjoint.toml").write_text(
        "[[adjoint]]\nstrength = 0.4\n[[adjoint]]\nstrength = -0.1\n"
    )
    program("generate", *options(**words, card="adjoint.toml"), "--output", "told", "--quiet")
    for name in ("halted", "told"):
        assert (program.folder / name / "hmc.csv").read_text() == table
    assert "adjoint plaquettes strength=0.4, adjoint plaquettes strength=-0.1," in program(
        "status", "adjoint"
    )
    assert "adjoint2" in program("fit", "hmc", "adjoint")
    assert program("generate", *options(**words, adjoint="strength=20"), code=2) == ""


@pytest.mark.slow
def test_qcdml_has_a_part_for_terms_of_an_option(program):
    pytest.importorskip("gauge_mc.extensions.publishing.qcdml")
    words = {**GENERATE, "action": "wilson", "rng": "philox", "backend": "cpu", "format": "ildg"}
    words |= {"algorithm": "hmc", "steps": "8", "precision": "double", "measure": "plaquette"}
    program("generate", *options(**words, adjoint="strength=0.4"), "--output", "own", "--quiet")
    program("publish", "own", "published", "--author", "Doe, Jane")
    document = ET.parse(program.folder / "published" / "ensemble.xml")
    (gluon,) = document.iterfind(".//{*}action/{*}gluon")
    assert [one.text for one in gluon.iterfind("{*}plaquetteGluonAction/{*}beta")] == ["2.9", "0.4"]


@pytest.mark.slow
def test_points_are_added_to_a_scan_and_jobs_submitted(program):
    words = {**GENERATE, "beta": "2.9,3.0", "backend": "cpu", "configs": "1", "format": "none"}
    program("scan", *options(**words), "--output", "grid", "--quiet")
    program("scan", "--output", "grid", "--midpoints", "--quiet")
    found = sorted(one.name.partition("_")[0] for one in (program.folder / "grid").glob("b*_*"))
    assert found == ["b2.9", "b2.95", "b3"]
    words = [*options(**words), "--submit", "grid-engine", "--submit-option", "time=12:00:00"]
    script = program("scan", *words, "--output", "jobs", "--dry-run")
    assert {"#$ -t 1-2", "#$ -l h_rt=12:00:00"} <= {*script.split("\n")}


@pytest.mark.slow
def test_files_are_read_converted_and_verified(program, run):
    copy = program.folder / "copy"
    shutil.copytree(run, copy)
    assert program("column-means", "copy/link_trace.csv").startswith("sweep 7\ntrace ")
    (program.folder / "history").write_text("trajectory plaquette\n10 0.5\n20 0.625\n")
    assert program("column-means", "history") == "sweep 15\nplaquette 0.5625\n"
    line = program("convert", "copy/plaquette.csv", "two.csv", "--columns", "sweep,plaquette")
    assert line == "two.csv: 9 rows\n"
    assert "\nsweep,plaquette\n" in (program.folder / "two.csv").read_text()
    report = program("convert", "copy/plaquette.csv", "one.csv", "--columns", "sweep", "--json")
    assert json.loads(report)["file"] == "one.csv"
    program("convert", "two.csv", "no.csv", "--columns", "sweep", "--to", "nersc", code=2)
    program("report", "copy", "--output", "page.html")
    assert "link_trace.csv: 9 rows</p>" in (program.folder / "page.html").read_text()
    digest = hashlib.sha256((copy / "run.toml").read_bytes()).hexdigest()
    (copy / "SHA256SUMS").write_text(f"{digest}  run.toml\n")
    assert program("verify", "copy").startswith("good  copy/run.toml  as listed\n")
    (copy / "run.toml").write_text("")
    program("verify", "copy", code=1)


@pytest.mark.slow
def test_they_are_timed(program):
    words = ["--lattice", "4x4x4x4", "--backend", "one-core", "--seconds", "0.05"]
    updates = json.loads(program("bench", *words, "--json"))
    assert {"heatbath, splitmix", "counted", "link-trace"} <= {
        one["name"] for one in updates["kernels"]
    }
    found = json.loads(program("bench", *words, "--observables", "--json"))
    assert "link-trace" in found["observables"]
    assert "forward" in found["smearings"]
    assert "six-staples" in found["temporal_links"]
    assert "iwasaki" in found["flows"]
    starts = ["bench", "--starts", *words]
    assert json.loads(program(*starts, "--json"))["start_s"] > 0
    assert program(*starts).startswith("hot start on ")
    program(*starts, "--hmc", code=2)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("", ["column-means Print the means of the columns of a table."]),
        ("column-means", ["TABLE", "Print the means of the columns of a table that have numbers."]),
        ("generate", ["link-trace", "splitmix", "npy", "double-wilson", "one-core", "--adjoint"]),
        ("scan", ["link-trace", "splitmix", "npy", "double-wilson", "--midpoints", "grid-engine"]),
        ("measure", ["link-trace"]),
        ("measure link-trace", ["the average link trace"]),
        ("measure wilson-loops", ["forward", "--forward-weight", "six-staples"]),
        ("measure flow", ["iwasaki"]),
        ("measure mesons", ["row:Y", "minimal-residual", "--shift"]),
        ("measure condensate", ["z3, the third roots"]),
        ("fit", ["mean-trace"]),
        ("plot", ["steps", "link-trace", "NAME-beta"]),
        ("export", [".txt"]),
        ("convert", ["npy", "--columns"]),
        ("bench", ["splitmix", "one-core", "--starts"]),
    ],
)
def test_help_names_them(program, command, words):
    if command in ("measure mesons", "measure condensate"):
        pytest.importorskip("gauge_mc.extensions.quarks.operators")
    text = " ".join(program(*command.split(), "--help").replace("│", " ").split())
    for word in words:
        assert word in text


@pytest.mark.slow
def test_a_function_may_have_the_name_of_an_observable_of_another_package(toys, tmp_path):
    def link_trace(field):
        return 0.25

    def plaquette(field):
        return 0.25

    words = {"lattice": "2x2x2x2", "thermalize": 0, "configs": 1, "output": tmp_path / "run"}
    run = generate(**words, format="none", backend="cpu", observables=[link_trace], progress=False)
    assert [*run["link_trace"]["value"]] == [0.25] * len(run["plaquette"])
    with pytest.raises(UsageError, match="There are two observables named 'plaquette'; rename one"):
        generate(**words, observables=[plaquette])


def test_a_group_is_known_by_its_name_and_has_its_own_heatbath(toys, program, tmp_path):
    """Not by its number of colours, which is that of SU(2), nor are its files those of SU(2)."""
    lattice = Lattice(4, 6, 8, 4)
    assert GROUPS["frozen"].colours == GROUPS["su2"].colours == 2
    for group, frozen in (("frozen", True), ("su2", False)):
        field = Field.hot(lattice, group, "double")
        heatbath(field, 2.3, Random.for_field(field))
        links = field.to_numpy()
        staples = reference.dagger(staple(links, 3))
        norms = np.sqrt(np.linalg.det(staples).real)
        odd = np.indices(links.shape[:4]).sum(axis=0) % 2 == 1  # the links that are updated last
        coldest = np.abs(links[..., 3, :, :] - staples / norms[..., None, None])[odd] < 1e-12
        assert coldest.all() == frozen
        field.save(tmp_path / f"{group}.lime", "ildg")
        assert Field.load(tmp_path / f"{group}.lime").group is GROUPS[group]
        if frozen:
            for format in ("nersc", "hdf5", "npy", "openqcd"):
                with pytest.raises(UsageError, match=r"not (of )?frozen SU\(2\).*ildg"):
                    field.save(tmp_path / format, format)
        else:
            field.save(tmp_path / "su2.nersc", "nersc")
            assert Field.load(tmp_path / "su2.nersc").group is GROUPS[group]
    words = {**GENERATE, "group": "frozen", "format": "ildg", "backend": "cpu", "action": "wilson"}
    program("generate", *options(**words), "--output", "frozen", "--quiet")
    program("measure", "plaquette", "frozen", "--output", "frozen.csv", "--quiet")
    text = (program.folder / "frozen.csv").read_text()
    assert "# group: frozen\n" in text
    last = [line for line in text.splitlines() if line[0] != "#"][-1]
    assert float(last.split(",")[1]) > 0.9


@pytest.mark.slow
def test_pip_installs_the_package_of_toys(program, tmp_path):
    """What `program` imitates: the package itself, built and installed."""
    target = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", target]
    subprocess.run([*pip, TOYS], check=True, capture_output=True)
    installed = Program(target, tmp_path)
    installed("generate", *options(**GENERATE), "--output", "run", "--quiet")
    assert "link_trace.csv  records: 9" in installed("verify", "run")
    installed.end()
