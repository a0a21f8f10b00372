"""Solvers in several processes: the same bytes as in one."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

import gauge_mc as package
from tests.patience import PATIENCE

MPIEXEC = Path(sys.executable).with_name("mpiexec")

PROGRAM = """
import hashlib, sys
import numpy as np
from gauge_mc import Field, Lattice, Wilson, open_device_group
from gauge_mc.domain.mpi import find_processes

processes = find_processes()
devices = open_device_group(sys.argv[1], "cpu", processes=processes)
field = Field.hot(Lattice(4, 4, 4, 8), "su3", "double", devices, seed=3)
rng = np.random.default_rng(3)
source = rng.normal(size=(2, 8, 4, 4, 4, 4, 3)) + 1j * rng.normal(size=(2, 8, 4, 4, 4, 4, 3))
digests = [
    hashlib.sha256(Wilson(field, 0.11, csw=1.0).solve(source, solver=s, inner="half")).hexdigest()
    for s in ("cg", "bicgstab")
]
assert len(set(processes.allgather(tuple(digests)))) == 1
if processes.rank == 0:
    print(*digests)
"""


@pytest.mark.slow
@pytest.mark.skipif(
    not (MPIEXEC.exists() and importlib.util.find_spec("mpi4py")),
    reason="there is no mpiexec beside Python, or no mpi4py",
)
def test_processes_give_the_same_bytes(tmp_path):
    script = tmp_path / "solve.py"
    script.write_text(PROGRAM)
    environment = os.environ | {"PYTHONPATH": str(Path(package.__file__).parent.parent)}

    def digests(*launcher, devices):
        words = [*map(str, launcher), sys.executable, str(script), devices]
        done = subprocess.run(
            words, capture_output=True, text=True, env=environment, timeout=PATIENCE, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    alone = digests(devices="cpu:1")
    assert len(alone) == 2
    assert digests(MPIEXEC, "-n", 2, devices="cpu:1") == alone
    assert digests(MPIEXEC, "-n", 2, devices="cpu:2") == alone
