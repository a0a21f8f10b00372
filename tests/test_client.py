"""A program that uses the installed package is checked with the package's types."""

import os
import shutil
import subprocess
import sys
import venv
from importlib.util import find_spec
from pathlib import Path
from zipfile import ZipFile

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def packages(root, tmp_path_factory):
    """Packages of an environment in which nothing but the wheel is installed."""
    for tool in ("build", "mypy"):
        pytest.importorskip(tool)
    folder = tmp_path_factory.mktemp("client")
    command = [sys.executable, "-m", "build", "--wheel", "--outdir", folder, root]
    subprocess.run(command, check=True, capture_output=True)
    venv.create(folder / "venv", with_pip=False)
    (packages,) = (folder / "venv" / "lib").glob("python*/site-packages")
    with ZipFile(*folder.glob("*.whl")) as wheel:
        wheel.extractall(packages)
    # The dependencies of the package are those of the tests.
    (packages / "dependencies.pth").write_text(str(Path(find_spec("numpy").origin).parents[1]))
    return packages


def checked(packages, program):
    """Complaints of mypy about a program outside of the checkout; empty if it has none."""
    python = packages.parents[2] / "bin" / "python"
    variables = {
        key: value for key, value in os.environ.items() if key not in ("MYPYPATH", "PYTHONPATH")
    }
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary"]
    command += [f"--python-executable={python}", program.name]
    done = subprocess.run(
        command, cwd=program.parent, env=variables, capture_output=True, text=True
    )
    assert not done.stderr
    return done.stdout


def test_a_client_sees_the_types_of_the_package(packages, root, tmp_path):
    """Uses that are refused must be: an `ignore` that nothing needs is a complaint."""
    program = shutil.copy(root / "tests" / "typed_uses.py", tmp_path / "client.py")
    assert checked(packages, program) == ""


def test_they_come_from_the_wheel(packages, tmp_path):
    """Without its marker the package has no types, wherever else it may be installed."""
    program = tmp_path / "client.py"
    program.write_text("import gauge_mc\n")
    marker = packages / "gauge_mc" / "py.typed"
    marker.rename(tmp_path / "py.typed")
    try:
        assert "missing library stubs or py.typed marker" in checked(packages, program)
    finally:
        (tmp_path / "py.typed").rename(marker)
