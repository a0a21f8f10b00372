"""Recipes for other ways to install the package say what `pyproject.toml` says."""

import ast
import os
import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

pytest.importorskip("gauge_mc.extensions.publishing")  # as in `tests.test_docs`

from tests.test_docs import complaint_about

DECLARED = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())
PROJECT = DECLARED["project"]
EXTRAS = PROJECT["optional-dependencies"]
ELSEWHERE = {"matplotlib": "matplotlib-base", "nvidia-cuda-nvrtc": "cuda-nvrtc"}
"""Names that conda-forge has for packages of PyPI."""

LMOD = Path("/usr/share/lmod/lmod/init/bash")


@pytest.fixture(scope="module")
def recipes(root):
    return {path.name: path.read_text() for path in (root / "docs/recipes").iterdir()}


def requirements(*extras):
    """Names and versions of what the package and some extras require, on whatever system."""
    texts = [*PROJECT["dependencies"], *(one for extra in extras for one in EXTRAS[extra])]
    return dict(re.fullmatch(r"([\w-]+)([^;]*).*", text).groups() for text in texts)


def test_versions_are_those_of_the_package(recipes):
    found = {name: {*re.findall(r"\b0\.\d+\.\d+\b", text)} for name, text in recipes.items()}
    assert {name for name, one in found.items() if one} >= {"recipe.yaml", "package.py"}
    assert not [name for name, one in found.items() if one - {PROJECT["version"]}]
    python = PROJECT["requires-python"].removeprefix(">=")
    assert f'python_min: "{python}"' in recipes["recipe.yaml"]
    assert f'depends_on("python@{python}:")' in recipes["package.py"]


def conda_lines(text, key):
    """Names and versions in a list of `recipe.yaml`."""
    lines = re.search(rf"^( +){key}:\n((?:\1  - .*\n)+)", text, re.M)[2]
    return dict(re.findall(r"^ +- ([\w-]+) ([^ \n#]\S*)$", lines, re.M))


def test_conda_packages_need_what_the_wheel_needs(recipes):
    first, second = recipes["recipe.yaml"].split("name: gauge-mc-cuda")
    needed = requirements()
    assert conda_lines(first, "run") == needed
    assert "- cxx-compiler" in first
    optional = requirements("analysis", "hdf5", "parquet", "mpi").items() - needed.items()
    assert conda_lines(first, "run_constraints") == {
        ELSEWHERE.get(key, key): version for key, version in optional
    }
    gpus = requirements("cuda").items() - needed.items()
    assert conda_lines(second, "run") == {
        ELSEWHERE.get(key, key): version.removeprefix("==") for key, version in gpus
    }


def spack_calls(text, function):
    """The first argument of every call of a function in `package.py`, with `when`."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == function:
            words = {one.arg: ast.unparse(one.value) for one in node.keywords}
            yield node.args[0].value, words.get("when", "''").strip("'+")


def test_spack_needs_what_the_wheel_needs(recipes):
    extras = [name for name, _ in spack_calls(recipes["package.py"], "variant")]
    found = {}
    for spec, variant in spack_calls(recipes["package.py"], "depends_on"):
        name, _, version = spec.partition("@")
        if name.startswith("py-"):
            exact = version and not version.endswith(":")
            version = f"=={version}.*" if exact else f">={version.removesuffix(':')}"
            found[name.removeprefix("py-")] = version, variant
    (builder,) = DECLARED["build-system"]["requires"]
    assert builder == f"hatchling{found.pop('hatchling')[0]}"
    known = {key: (version, "") for key, version in requirements().items()}
    for extra in extras:
        more = requirements("cuda12" if extra == "cuda" else extra).items() - requirements().items()
        known |= {key: (one, extra) for key, one in more if not key.startswith("nvidia-")}
    assert found == known


def commands(text):
    """The words after ``gauge-mc`` of every such command in a recipe."""
    text = text.replace("\\\n", " ")
    for line in re.findall(r"^ *(?:- )?gauge-mc +(\w.*|-.*)$", text, re.M):
        yield shlex.split(line.partition(" >")[0])


def test_commands_of_recipes_exist(recipes):
    found = {
        (name, " ".join(words)): complaint_about(words)
        for name, text in recipes.items()
        for words in commands(text)
    }
    assert {name for name, _ in found} == {"recipe.yaml", "image.sh", "gauge-mc.def"}
    assert not {line: why for line, why in found.items() if why}


def test_images_are_made_of_files_that_are_there(recipes, root):
    """And by scripts that a shell can read."""
    copied = re.findall(r"^COPY (.*) \S+$", recipes["Containerfile"], re.M)[0].split()
    files = re.search(r"^%files\n(.*?)\n\n", recipes["gauge-mc.def"], re.M | re.S)[1]
    assert copied == [line.split()[0] for line in files.splitlines()]
    built, made = [f"docs/recipes/{name}" for name in ("image.sh", "start.sh")], copied[2:]
    assert copied[:2] == built
    assert made == ["dist/gauge_mc-*.whl"]
    for path in built:
        subprocess.run(["sh", "-n", root / path], check=True)
    sections = re.findall(r"^%(\w+)$", recipes["gauge-mc.def"], re.M)
    known = "arguments files post environment runscript test help"
    assert sections == known.split()
    assert (
        re.search(r"^Bootstrap: docker\nFrom: (\S+)$", recipes["gauge-mc.def"], re.M)[1]
        == (re.search(r"^FROM docker.io/library/(\S+)$", recipes["Containerfile"], re.M)[1])
    )


@pytest.mark.parametrize("own", [False, True])
def test_an_image_starts_with_a_copy_of_its_kernels(recipes, tmp_path, own):
    """In the user's folder, or in another one if that cannot be made."""
    (tmp_path / "image").mkdir()
    (tmp_path / "image" / "one.so").write_text("kernel")
    script = recipes["start.sh"].replace("/opt/gauge-mc/kernels", str(tmp_path / "image"))
    (tmp_path / "gauge-mc").write_text(
        '#!/bin/sh\necho "$GAUGE_MC_CACHE"; echo "$CXX"; echo "$@"\n'
    )
    (tmp_path / "gauge-mc").chmod(0o755)
    (tmp_path / "file").write_text("")
    home = tmp_path if own else tmp_path / "file"  # no folder can be made in a file
    variables = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(home)}
    for _ in range(2):
        command = ["sh", "-c", f"umask 002; {script}", "start.sh", "info", "a run"]
        variables["TMPDIR"] = str(tmp_path)
        done = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
        folder, compiler, words = done.stdout.splitlines()
        assert (Path(folder) == tmp_path / ".cache/gauge-mc/kernels") == own
        assert (Path(folder) / "one.so").read_text() == "kernel"
        assert Path(folder).stat().st_mode & 0o777 == 0o700
        assert re.fullmatch(r"g\+\+ -march=(native|x86-64-v[34])", compiler)
        assert words == "info a run"


@pytest.mark.slow
@pytest.mark.skipif(not LMOD.exists(), reason="there is no Lmod")
def test_the_module_is_loaded(recipes, tmp_path):
    version = PROJECT["version"]
    commands = tmp_path / "software" / version / "commands"
    commands.mkdir(parents=True)
    (commands / "gauge-mc").write_text(f"#!/bin/sh\necho gauge-mc {version}\n")
    (commands / "gauge-mc").chmod(0o755)
    module = tmp_path / "modules" / "gauge-mc" / f"{version}.lua"
    module.parent.mkdir(parents=True)
    text = recipes["gauge-mc.lua"]
    module.write_text(text.replace('"/opt/gauge-mc"', f'"{tmp_path / "software"}"'))
    script = f"""
        source {LMOD}
        module use {tmp_path / "modules"}
        module load gauge-mc
        gauge-mc --version
        module unload gauge-mc
        command -v gauge-mc || echo gone
    """
    variables = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    done = subprocess.run(
        [shutil.which("bash"), "-c", script], env=variables, capture_output=True, text=True
    )
    assert done.stdout.splitlines() == [f"gauge-mc {version}", "gone"], done.stderr
