"""`python tests/tools/new.py` writes things that are registered, and whose tests pass."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.tools import new

NAMES = {kind: f"new-{kind}" for kind in new.PACKAGES}
NAMES |= {kind: NAMES[kind].replace("-", "") for kind in new.OPTIONS & NAMES.keys()}
NAMES["group"] = "su10"
PARTS = ("gauge_mc", "cuda_src", "tests", "docs/hooks.py", "pyproject.toml")

REGISTERED = """
import json, sys
from tests.toys.installed import all_registries
known, found = {one._group: one for one in all_registries()}, {}
for group, name in json.loads(sys.argv[1]):
    found[group] = [known[group][name].name, known[group]._entries[name].module]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory, root):
    folder = tmp_path_factory.mktemp("checkout")
    for part in PARTS:
        (folder / part).parent.mkdir(exist_ok=True)
        if (root / part).is_dir():
            shutil.copytree(
                root / part, folder / part, ignore=shutil.ignore_patterns("__pycache__")
            )
        else:
            shutil.copy(root / part, folder / part)
    return folder, [path for kind, name in NAMES.items() for path in new.write(kind, name, folder)]


def python(folder: Path, *words: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["observable", "monomial"])
def test_a_package_of_its_own_is_found_and_passes_its_test(tmp_path, root, kind):
    """As if pip had installed it, away from the checkout."""
    words = [sys.executable, root / "tests" / "tools" / "new.py", kind, "my-thing"]
    subprocess.run(
        [*words, "--package", tmp_path / "my-package"], check=True, stdout=subprocess.DEVNULL
    )
    project = tomllib.loads((tmp_path / "my-package" / "pyproject.toml").read_text())["project"]
    about = tmp_path / "my-package" / "my_package-0.1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: my-package\nVersion: 0.1\n")
    ((group, entries),) = project["entry-points"].items()
    lines = [f"[{group}]", *(f"{name} = {value}" for name, value in entries.items())]
    (about / "entry_points.txt").write_text("\n".join(lines))
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_my_thing.py"]
    where = os.pathsep.join([str(root), str(tmp_path / "my-package")])
    done = subprocess.run(
        words,
        cwd=tmp_path / "my-package",
        env={**os.environ, "PYTHONPATH": where},
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]


@pytest.mark.slow
def test_new_things_are_registered(copy):
    pairs = [(f"gauge_mc.{new.PACKAGES[kind]}", name) for kind, name in NAMES.items()]
    found = json.loads(python(copy[0], "-c", REGISTERED, json.dumps(pairs)))
    assert {package: name for package, (name, _) in found.items()} == dict(pairs)
    for package, (_, module) in found.items():
        inside = copy[0].joinpath(*package.split(".")).is_dir()
        home = package if inside else package.rpartition(".")[0]
        assert module == package or module.startswith((f"{home}.", "gauge_mc.quantities."))


@pytest.mark.slow
def test_their_tests_pass_and_their_code_is_clean(copy):
    pytest.importorskip("ruff")
    folder, written = copy
    tests = [str(path) for path in written if path.name.startswith("test_")]
    assert len(tests) == len(NAMES)
    passed = python(folder, "-m", "pytest", "-p", "no:cacheprovider", *tests)
    assert " passed" in passed
    assert " skipped" not in passed
    code = [str(path) for path in written if path.suffix == ".py"]
    python(folder, "-m", "ruff", "check", *code)
    python(folder, "-m", "ruff", "format", "--check", *code)


@pytest.mark.every
def test_types_of_new_things_agree(copy):
    """Those of the package itself, on which they depend, are checked with every change."""
    pytest.importorskip("mypy")
    python(copy[0], "-m", "mypy")


@pytest.mark.parametrize(
    ("kind", "name", "sentence"),
    [
        ("obserable", "some", "no template of a 'obserable'; choose one of action, "),
        ("fit", "Some", "'Some' is not a name"),
        ("fit", "potential", "quantities/potential/fit.py is there already"),
        ("flow", "wilson", "There is a flow 'wilson' already"),
        ("group", "e8", "no template of the group 'e8', only of SU"),
        ("benchmark", "new-one", "'new-one' is not a name of an option; write small letters"),
    ],
)
def test_what_is_refused(kind, name, sentence, root):
    assert sentence in new.refusal(kind, name, root)


def test_a_new_name_is_not_refused(root):
    assert all(new.refusal(kind, name, root) is None for kind, name in NAMES.items())
