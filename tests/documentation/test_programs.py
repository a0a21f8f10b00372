"""The programs in ``runs``: that each does on a small lattice what its page says."""

import subprocess
import sys

import pytest

pytest.importorskip("gauge_mc.extensions.publishing")  # as in `tests.test_docs`

from tests.test_docs import ROOT

SMALL = "--lattice 4x4x4x4"

PROGRAMS = {
    "hmc/averages.py": (
        "FOLDER --first 20 --updates 20 --thermalize 4 --only su2_wilson_b2.0_4x6",
        "su2,wilson,2.0,4x6x8x10,plaquette,",
    ),
    "hmc/cost.py": (f"FOLDER {SMALL} --updates 40 --only overrelax", "per independent config"),
    "hmc/reweighting.py": ("FOLDER --case wilson --chains 1 --trajectories 40", "pull"),
    "hmc/trajectories.py": (
        f"runs/hmc/thesis_a.toml --glue 4.1 --heavier mu=0.3 --steps 1 --thermal 0 {SMALL} "
        "--seconds 0",
        "levels omf2:1,omf2:4, length 0.1:\n    3 trajectories of 1 steps",
    ),
    "solvers/deflation.py": (f"{SMALL} --sweeps 5 --kappa 0.12 --modes 0,4", "\n0.12, 4, "),
    "solvers/mixed_precision.py": (
        f"{SMALL} --sweeps 5 --kappa 0.12 --reductions 0.1 --reals 12",
        "\nsingle, half, 12, defect, 0.1, 1e-05, ",
    ),
}
"""Arguments of every program, where FOLDER is an empty one, and a part of what it prints."""


def is_program(path):
    return "__main__" in path.read_text()


def test_all_programs_are_tried():
    found = {path.relative_to(ROOT / "runs").as_posix(): path for path in ROOT.glob("runs/**/*.py")}
    assert {name for name, path in found.items() if is_program(path)} == {*PROGRAMS}


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_does_what_it_says(name, tmp_path):
    arguments, printed = PROGRAMS[name]
    words = [str(tmp_path) if word == "FOLDER" else word for word in arguments.split()]
    module = "runs." + name.removesuffix(".py").replace("/", ".")
    as_file = [f"runs/{name}"] if name != "hmc/reweighting.py" else ["-m", module]
    ended = subprocess.run(
        [sys.executable, *as_file, *words], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert printed in ended.stdout
