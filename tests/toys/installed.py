"""The package of toys, as if it were installed: fixtures."""

import importlib
import shutil
import tomllib
from pathlib import Path

import pytest

from gauge_mc.actions import ACTIONS
from gauge_mc.algorithms import ALGORITHMS
from gauge_mc.devices import BACKENDS
from gauge_mc.exports import EXPORTS
from gauge_mc.fits import FITS
from gauge_mc.flows import FLOWS
from gauge_mc.formats import FORMATS
from gauge_mc.groups import GROUPS
from gauge_mc.observables import OBSERVABLES
from gauge_mc.plots import PLOTS
from gauge_mc.plugins import installed
from gauge_mc.quarks.diagonal import TERMS
from gauge_mc.quarks.noise import NOISES
from gauge_mc.quarks.operators import OPERATORS
from gauge_mc.quarks.solvers import SOLVERS
from gauge_mc.quarks.sources import SOURCES
from gauge_mc.random import GENERATORS
from gauge_mc.smearing import SMEARINGS
from gauge_mc.temporal_links import TEMPORAL_LINKS
from gauge_mc.updates.integrators import INTEGRATORS
from gauge_mc.updates.monomials import MONOMIALS

TOYS = Path(__file__).resolve().parent
PROJECT = tomllib.loads((TOYS / "pyproject.toml").read_text())["project"]

REGISTRIES = (
    ALGORITHMS,
    INTEGRATORS,
    MONOMIALS,
    OBSERVABLES,
    FORMATS,
    GENERATORS,
    SMEARINGS,
    TEMPORAL_LINKS,
    ACTIONS,
    FLOWS,
    BACKENDS,
    GROUPS,
    OPERATORS,
    NOISES,
    TERMS,
    SOLVERS,
    SOURCES,
    FITS,
    PLOTS,
    EXPORTS,
)
"""Registries of everything that can be declared."""


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
    for one in REGISTRIES:
        vars(one).pop("_entries", None)
    yield
    for one in REGISTRIES:
        for name in one._entries:
            one.remove(name)
        vars(one).pop("_entries", None)
    installed.cache_clear()
