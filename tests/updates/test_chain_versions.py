"""Versions of the Markov chain."""

import numpy as np
import pytest

from gauge_mc.actions import Coupling
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import UsageError
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.run.cards import read_card
from gauge_mc.run.directory import Run
from gauge_mc.run.parameters import Parameters
from gauge_mc.updates.heatbath import heatbath_sweep, overrelaxation_sweep
from gauge_mc.updates.sweep import ROUNDED, UNBIASED, norms_of

LATTICE = Lattice(8, 8, 8, 8)
ROUNDING = 6e-8
"""The unit roundoff of single precision. Errors of the squares of norms are of this size."""


def updated(group, version, device, kind, sweeps):
    field = Field.hot(LATTICE, group, "single", device, seed=5)
    coupling, random = Coupling.of(2.4 if group == "su2" else 6.0), Random.for_field(field)
    if kind == "heatbath":
        heatbath_sweep(field, [coupling], [random], version)(sweeps, 1)
    else:
        overrelaxation_sweep(field, [coupling.action], version)(sweeps)
    return field.to_numpy()


@pytest.mark.first_quick
@pytest.mark.parametrize("kind", ["heatbath", "overrelaxation"])
@pytest.mark.parametrize(
    "name", ["su2", *(pytest.param(name, marks=pytest.mark.slow) for name in ("su3", "su4"))]
)
def test_norms_have_no_bias_in_version_2(best_device, name, kind):
    links = updated(name, 2, best_device, kind, 3)
    excess = (np.abs(links) ** 2).sum(axis=-1).astype(float) - 1
    assert excess.std() < 3 * ROUNDING
    assert abs(excess.mean()) < 5 * ROUNDING / np.sqrt(excess.size)


@pytest.mark.slow
def test_versions_differ_by_rounding_errors_only(best_device):
    one, two = (updated("su3", n, best_device, "overrelaxation", 1) for n in (1, 2))
    distance = np.abs(one - two)
    assert distance.max() > 0
    assert np.median(distance) < 1e-5  # a sweep magnifies distances by orders of magnitude


def test_versions_are_for_single_precision():
    assert {norms_of("double", version) for version in (1, 2)} == {ROUNDED}
    assert [norms_of("single", version) for version in (1, 2)] == [ROUNDED, UNBIASED]
    for version in (0, 3):
        with pytest.raises(
            UsageError, match=f"--chain-version is {version}; give a whole number from 1 to 2"
        ):
            Parameters(chain_version=version)


def test_files_of_earlier_versions_are_of_version_1(tmp_path):
    """Whatever the default is; a run card that is no run.toml gets the default."""
    run = Run(tmp_path)
    run.write(Parameters(chain_version=2), [])
    assert run.read()[0].chain_version == read_card(run.toml)["chain_version"] == 2
    stated = run.toml.read_text()
    run.toml.write_text(stated.replace("chain_version = 2\n", ""))
    assert run.read()[0].chain_version == read_card(run.toml)["chain_version"] == 1
    card = tmp_path / "card.toml"
    card.write_text("beta = 2.3\n")
    assert read_card(card) == {"beta": 2.3}
    fixed = Parameters(chain_version=1).fixed()
    unstated = {name: value for name, value in fixed.items() if name != "chain_version"}
    assert Parameters(chain_version=1).is_of(unstated)
    assert not Parameters(chain_version=2).is_of(unstated)
