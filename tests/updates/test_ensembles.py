"""Ensemble averages against published and exact values, with errors for autocorrelated data."""

import numpy as np
import pytest

from gauge_mc.analysis.timeseries import estimate
from gauge_mc.domain.lattice import Lattice
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.quantities.plaquette import plaquette
from gauge_mc.updates.heatbath import heatbath, overrelax
from tests.reference.distributions import schwinger_dyson, su2_strong_coupling_plaquette

pytestmark = pytest.mark.slow


def chain(lattice, group, beta, device, updates, generator="philox", precision="single"):
    """Yield the field after every update of a thermalised chain."""
    field = Field.hot(lattice, group, precision, device, seed=17)
    random = Random.for_field(field, generator, seed=23)
    for update in range(-100, updates):
        heatbath(field, beta, random)
        overrelax(field, 3)
        if update >= 0:
            yield field


@pytest.mark.parametrize(
    ("group", "beta", "extent", "updates", "expected", "uncertainty", "generator"),
    [
        ("su2", 2.5, 12, 300, 0.65215, 0.00008, "philox"),
        ("su2", 2.5, 12, 300, 0.65215, 0.00008, "lcg"),
        # Boyd et al., Nucl. Phys. B469 (1996) 419 [hep-lat/9602007], table 1.
        ("su3", 6.0, 12, 150, 0.59368, 0.00001, "philox"),
        *(
            pytest.param(*one, marks=pytest.mark.every)
            for one in (
                ("su2", 2.2, 12, 1000, 0.56923, 0.00009, "philox"),
                ("su3", 5.7, 12, 400, 0.5493, 0.0003, "philox"),
                ("su3", 5.7, 12, 400, 0.5493, 0.0003, "lcg"),
                ("su3", 6.0, 16, 200, 0.59368, 0.00001, "philox"),
            )
        ),
    ],
)
def test_plaquette(group, beta, extent, updates, expected, uncertainty, generator, best_device):
    lattice = Lattice(extent, extent, extent, extent)
    fields = chain(lattice, group, beta, best_device, updates, generator)
    series = [plaquette(field) for field in fields]
    result = estimate(np.array(series))
    assert result.error < 3e-4
    assert abs(result.value - expected) < 4 * np.hypot(result.error, uncertainty)


def test_plaquette_at_strong_coupling(best_device):
    lattice = Lattice(12, 12, 12, 12)
    series = [plaquette(f) for f in chain(lattice, "su2", 1.0, best_device, 400)]
    result = estimate(np.array(series))
    assert result.error < 1e-4
    assert abs(result.value - su2_strong_coupling_plaquette(1.0)) < 4 * result.error


@pytest.mark.parametrize(("group", "beta"), [("su2", 2.3), ("su3", 5.8)])
def test_schwinger_dyson_identity(group, beta, precision, best_device):
    """Exact at any volume, and broken at once by another beta."""
    lattice = Lattice(8, 8, 8, 8)
    fields = chain(lattice, group, beta, best_device, 100, precision=precision)
    right, wrong = [], []
    for field in (f for n, f in enumerate(fields) if n % 5 == 0):
        links = field.to_numpy()
        right.append(schwinger_dyson(links, beta))
        wrong.append(schwinger_dyson(links, 1.03 * beta))
    error = np.std(right, ddof=1) / np.sqrt(len(right))
    assert abs(np.mean(right)) < 4 * error
    assert abs(np.mean(wrong)) > 5 * error


def test_cold_and_hot_starts_meet(group, best_device):
    beta = {"su2": 2.3, "su3": 5.7}[group]
    means = []
    for make in (Field.cold, Field.hot):
        field = make(Lattice(8, 8, 8, 8), group, "single", best_device)
        random = Random.for_field(field, seed=31)
        heatbath(field, beta, random, sweeps=200)
        values = []
        for _ in range(300):
            heatbath(field, beta, random)
            overrelax(field, 2)
            values.append(plaquette(field))
        means.append(estimate(np.array(values)))
    error = np.hypot(means[0].error, means[1].error)
    assert abs(means[0].value - means[1].value) < 4 * error
