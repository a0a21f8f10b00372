"""Plaquettes in the adjoint representation, compared with NumPy and at strong coupling."""

import dataclasses

import numpy as np
import pytest

from gauge_mc.analysis.timeseries import estimate
from gauge_mc.domain.device_group import open_device_group
from gauge_mc.domain.lattice import Lattice
from gauge_mc.fields.field import Field
from gauge_mc.run.directory import Run
from gauge_mc.updates.monomials.gauge import AdjointPlaquette
from gauge_mc.updates.terms import TermLinks
from tests.reference.fields import COLOURS, random_field, trace
from tests.reference.observables import plaquette_matrix
from tests.run.sessions import carry_out, carry_out_batch
from tests.run.test_hmc import SIGMAS, parameters, series
from tests.updates.monomials.trajectories import OneChain, check_force

LATTICE = Lattice(4, 2, 4, 6)
BETA = -0.7
TOLERANCE = {"double": 1e-11, "single": 1e-4}


def value(links):
    """The sum over all plaquettes of 1 - Tr_A U_p / (N^2 - 1), in the adjoint representation."""
    n = links.shape[-1]
    planes = [plaquette_matrix(links, mu, nu) for mu in range(4) for nu in range(mu)]
    return sum((1 - (abs(trace(one)) ** 2 - 1) / (n * n - 1)).sum() for one in planes)


@pytest.mark.parametrize("precision", ["double", "single"])
@pytest.mark.parametrize("group", COLOURS)
def test_value_and_force(rng, group, precision, device):
    links = random_field(LATTICE.extents, group, rng)
    field = Field.from_slices(LATTICE, group, links, precision, device)
    monomial = AdjointPlaquette(TermLinks(field).field, "own", beta=BETA)
    tolerance = TOLERANCE[precision]
    found = float(OneChain(monomial).action())
    assert found == pytest.approx(BETA * value(links), rel=tolerance)
    check_force(monomial, lambda u: BETA * value(u), links, rng, tolerance)


def one_plaquette(beta, adjoint):
    """The average of Re Tr U / 2 for SU(2) with the action of a single plaquette."""
    cosine = np.cos(np.linspace(0, np.pi, 1000))
    weight = (1 - cosine**2) * np.exp(beta * cosine + adjoint * (4 * cosine**2 - 1) / 3)
    return (cosine * weight).sum() / weight.sum()


@pytest.mark.parametrize("configs", [100, pytest.param(3000, marks=pytest.mark.slow)])
def test_averages_are_those_of_strong_coupling(tmp_path, fast_device, configs):
    """In four dimensions each plaquette is a side of four cubes, whose other sides are u^5.

    The next terms are smaller by u^2 and the ratio of adjoint to fundamental coefficients to the
    power 5. Without the monomial the average is smaller by more than 0.02.
    """
    beta, adjoint = 0.6, 0.8
    values = {"beta": beta, "monomials": f"adjoint-plaquette:beta={adjoint}", "start": "hot"}
    values |= {"precision": "single", "integrator": "leapfrog", "steps": 6, "configs": configs}
    own, plaquettes = series(tmp_path / "run", fast_device, **values)
    weights = estimate(np.exp(-own["delta_h"]))
    assert 0.002 < weights.error < 0.1
    assert abs(weights.value - 1) < SIGMAS * weights.error
    assert 0.2 < own["accepted"].mean() < 0.97
    found, u = estimate(plaquettes), one_plaquette(beta, adjoint)
    assert found.error < 0.004
    assert abs(found.value - u - 4 * u**5) < SIGMAS * found.error
    assert u - one_plaquette(beta, 0) > 0.02


def short(**values):
    """Parameters of a few trajectories."""
    named = {"monomials": "adjoint-plaquette:beta=0.8:level=0", "levels": "omf2:2,omf2:2"}
    return parameters(precision="single", thermalize=2, configs=2, **named, **values)


def text(path, p, devices):
    """The table of the trajectories of a run."""
    run = Run(path)
    carry_out(run, p, devices)
    return run.table("hmc").read_text()


def test_slabs_have_the_bytes_of_the_whole(tmp_path):
    whole, slabs = (text(tmp_path / n, short(), open_device_group(f"cpu:{n}")) for n in "12")
    assert slabs == whole


@pytest.mark.slow
def test_chains_that_move_together_have_the_bytes_of_each_alone(tmp_path, best_device):
    members = [dataclasses.replace(short(), seed=seed) for seed in (4, 5, 6)]
    runs = [(Run(tmp_path / f"batch_{p.seed}"), p) for p in members]
    carry_out_batch(runs, best_device)
    for run, p in runs:
        assert run.table("hmc").read_text() == text(tmp_path / f"alone_{p.seed}", p, best_device)
