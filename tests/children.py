"""``gauge-mc`` as a child process, on machines that lack something."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

TOOLS = ("c++", "g++", "gcc", "as", "ld")
"""What compiles kernels for a CPU."""


def run(*arguments, **environment):
    """Run the program; return the process that has ended."""
    return subprocess.run(
        [sys.executable, "-m", "gauge_mc", *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        check=False,
    )


def without_modules(folder: Path, *names, search=()):
    """Return environment variables of a child in which these modules are not installed.

    Parameters
    ----------
    folder : Path
        An empty folder.
    *names : str
        The modules.
    search : sequence of path
        Where the child finds others.
    """
    folder.mkdir()
    lines = ["import sys", *(f"sys.modules[{name!r}] = None" for name in names)]
    (folder / "sitecustomize.py").write_text("\n".join(lines) + "\n")
    inherited = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    folders = [str(folder), *map(str, search), *inherited]
    return {"PYTHONPATH": os.pathsep.join(filter(None, folders))}


def only_tools(folder: Path, *names):
    """Return environment variables of a child that finds only these programs and `TOOLS`.

    Parameters
    ----------
    folder : Path
        An empty folder.
    *names : path
        Programs.
    """
    folder.mkdir()
    found = {name: shutil.which(name) for name in TOOLS} | {Path(one).name: one for one in names}
    found["python3"] = str(Path(sys.executable).resolve())
    for name, path in found.items():
        if path:
            (folder / name).symlink_to(path)
    nowhere = str(folder / "none")
    return {"PATH": str(folder), "CUDA_HOME": nowhere, "CUDA_PATH": nowhere}
