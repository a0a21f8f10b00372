"""The package of toys, as if it were installed: fixtures."""

import importlib
import shutil
import sys
import tomllib
from pathlib import Path

import pytest

from gauge_mc.registry import Registry, installed, is_ours, ours

TOYS = Path(__file__).resolve().parent
PROJECT = tomllib.loads((TOYS / "pyproject.toml").read_text())["project"]


def registries():
    """Return the registries of all modules that have been imported."""
    modules = [one for name, one in [*sys.modules.items()] if name.startswith("gauge_mc")]
    found = [value for one in modules for value in vars(one).values()]
    return [*{id(one): one for one in found if isinstance(one, Registry)}.values()]


def all_registries():
    """Return the registries of all kinds, whose packages are imported.

    Each kind has a toy. Kinds of extensions that are not there are left out.
    """
    for group in sorted({*PROJECT["entry-points"], *ours().groups}):
        extension = Path(*group.split(".")[:3]) if ".extensions." in group else Path()
        if (TOYS.parents[1] / extension).is_dir():
            importlib.import_module(group)
    return registries()


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """A folder in which the package of toys is installed."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(TOYS / "gauge_mc_toys", folder / "gauge_mc_toys")
    about = folder / f"gauge_mc_toys-{PROJECT['version']}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {PROJECT['name']}\nVersion: {PROJECT['version']}\n"
    )
    lines = []
    for group, entries in PROJECT["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in entries.items())]
    (about / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture
def toys(site, monkeypatch):
    """See the toys in this process, for as long as a test lasts."""
    monkeypatch.syspath_prepend(str(site))
    importlib.invalidate_caches()
    installed.cache_clear()
    for one in registries():
        vars(one).pop("_entries", None)
    yield
    for one in registries():
        for entry in one._entries.values():
            if not is_ours(entry):
                one.remove(entry.name)
        vars(one).pop("_entries", None)
    installed.cache_clear()
