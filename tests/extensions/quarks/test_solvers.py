"""Solvers: the solution is that of a dense matrix, and what cannot be solved is refused."""

import numpy as np
import pytest

from gauge_mc.devices.cpu.device import CpuDevice
from gauge_mc.devices.cuda.graphs import EARLY_CAPABILITY
from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.extensions.quarks.operators import Wilson
from gauge_mc.extensions.quarks.solvers import (
    LEAST_TOLERANCE,
    METHODS,
    SOLVERS,
    SolverParameters,
    solve,
)
from gauge_mc.extensions.quarks.solvers.iterations import ResidualWatch
from gauge_mc.extensions.quarks.sources import parse_source
from gauge_mc.extensions.quarks.vectors import STORAGES, SpinorField
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.updates.heatbath import heatbath
from tests.domain.conftest import GPUS
from tests.extensions.quarks.links import check_divisions, field_of
from tests.extensions.quarks.reference import dirac as reference
from tests.reference.fields import random_field

SMALL = Lattice(4, 4, 4, 2)
LATTICE = Lattice(8, 4, 6, 4)
PHASES = [1, 1, 1, -1]


def thermal_field(lattice, group, device, beta, precision="double"):
    field = Field.hot(lattice, group, precision, device)
    heatbath(field, beta, Random.for_field(field), 20)
    return field


@pytest.mark.longer
@pytest.mark.parametrize("parameters", [{}, {"csw": 1.2}, {"csw": 1.0, "mu": 0.2}], ids=str)
def test_against_the_inverse_of_a_dense_matrix(group, parameters, best_device, rng):
    n, kappa = int(group[2]), 0.11
    links = random_field(SMALL.extents, group, rng)
    field = field_of(links, best_device)
    source = reference.random_spinor(SMALL.extents, n, rng)
    matrix = reference.dense(links, kappa, PHASES, **parameters)
    expected = np.linalg.solve(matrix, source.ravel()).reshape(source.shape)
    for solver in SOLVERS:
        found = Wilson(field, kappa, **parameters).solve(source, 1e-12, solver)
        assert np.linalg.norm(found - expected) < 1e-10 * np.linalg.norm(expected)


@pytest.mark.longer
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("inner", STORAGES)
@pytest.mark.parametrize("solver", SOLVERS)
def test_the_true_residual(group, solver, inner, method, best_device, rng):
    field = thermal_field(LATTICE, group, best_device, 2.5 if group == "su2" else 6.0)
    n, kappa = int(group[2]), 0.14
    source = np.stack([reference.random_spinor(LATTICE.extents, n, rng) for _ in range(3)])
    source[1] = 0
    source[2] = 0
    source[2, 0, 0, 0, 0, 0, 0] = 1
    b = SpinorField.from_numpy(field, source)
    found = solve(
        Wilson(field, kappa, csw=1.0), b, solver, SolverParameters(1e-10, 500, method, inner)
    )
    x, links = found.x.to_numpy(), field.to_numpy()
    for one, right, residual in zip(x, source, found.residual, strict=True):
        rest = right - reference.wilson(links, one, kappa, PHASES, csw=1.0)
        norm = np.linalg.norm(right) or 1
        assert np.linalg.norm(rest) <= 1.001e-10 * norm
        assert abs(np.linalg.norm(rest) / norm - residual) < 1e-13
    assert not x[1].any()
    assert found.solver == solver
    assert 10 < found.iterations < 500
    assert found.updates > 0
    assert (found.inner, found.notes) == (inner, ())


@pytest.mark.parametrize("solver", SOLVERS)
def test_point_sources_and_free_quarks(solver, best_device):
    """The unpreconditioned operator couples a point source only to its neighbours."""
    field = Field.cold(Lattice(4, 4, 4, 8), "su3", "double", best_device)
    source = np.zeros((8, 4, 4, 4, 4, 3), complex)
    source[0, 0, 0, 1, 2, 1] = 1  # an odd site
    for kappa in (0.0, 0.1):
        found = Wilson(field, kappa).solve(source, 1e-13, solver, inner="double")
        rest = source - reference.wilson(field.to_numpy(), found, kappa, PHASES)
        assert np.linalg.norm(rest) < 1.01e-13
    assert not Wilson(field, 0.1).solve(np.zeros_like(source), solver=solver).any()


def test_the_pion_of_free_quarks(best_device):
    """Against sums over momenta, and against published numbers of another program.

    S(p) = (W - i gamma . s) / (W^2 + s^2), s = sin p, W = m0 + sum of 1 - cos p, so that the sum
    over spins and colours of |S|^2 is a sum over pairs of momenta. The numbers of the other program
    were computed with a tolerance of about 1e-7.
    """
    lattice, kappa = Lattice(4, 4, 4, 8), 0.1
    phases = np.exp(np.pi * 1j * np.array([0.2, 0.4, 0.0, 0.0]))
    field = Field.cold(lattice, "su3", "double", best_device)
    sources = np.zeros((12, 8, 4, 4, 4, 4, 3), complex)
    for n in range(12):
        sources[n, 0, 0, 0, 0, n // 3, n % 3] = 1
    found = 2 * kappa * Wilson(field, kappa, boundary=phases).solve(sources, 1e-13)
    pion = (np.abs(found) ** 2).sum(axis=(0, 2, 3, 4, 5, 6))
    modes = np.meshgrid(*(range(n) for n in lattice.extents[::-1]), indexing="ij")[::-1]
    extents = np.array(lattice.extents).reshape(4, 1, 1, 1, 1)
    p = (2 * np.pi * np.array(modes) + np.angle(phases).reshape(4, 1, 1, 1, 1)) / extents
    w = 1 / (2 * kappa) - 4 + (1 - np.cos(p)).sum(axis=0)
    numerator = w[..., None, None] * np.eye(4) - 1j * np.einsum(
        "m...,mij->...ij", np.sin(p), reference.GAMMA
    )
    in_space = numerator / (w**2 + (np.sin(p) ** 2).sum(axis=0))[..., None, None]
    at_times = np.fft.ifft(in_space, axis=0)  # the phase in t is 1
    exact = 3 * (np.abs(at_times) ** 2).sum(axis=(1, 2, 3, 4, 5)) / 64
    assert np.abs(pion / exact - 1).max() < 1e-11
    published = [0.550448091581, 0.018777678858, 0.001913035711, 0.000304754974, 0.000111618742]
    assert np.abs(pion[:5] / published - 1).max() < 2e-7


@pytest.mark.longer
@pytest.mark.parametrize("size", [1e-300, 1e-33, 1e33, 1e300])
@pytest.mark.parametrize("solver", SOLVERS)
def test_tiny_and_huge_sources(solver, size, best_device, rng):
    field = thermal_field(LATTICE, "su2", best_device, 2.5)
    source = reference.random_spinor(LATTICE.extents, 2, rng)
    operator = Wilson(field, 0.13)
    ordinary = operator.solve(source, solver=solver, inner="half")
    found = operator.solve(source * size, solver=solver, inner="half") / size
    assert np.linalg.norm(found - ordinary) < 1e-8 * np.linalg.norm(ordinary)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["cpu-16", *GPUS])
@pytest.mark.parametrize("solver", SOLVERS)
def test_slabs_give_the_same_bytes(solver, kind, rng):
    links = random_field((4, 4, 4, 10), "su3", rng)
    source = np.stack([reference.random_spinor((4, 4, 4, 10), 3, rng) for _ in range(2)])

    def calculate(devices):
        operator = Wilson(field_of(links, devices), 0.11, csw=0.5)
        return operator.solve(source, solver=solver, inner="half")

    check_divisions(kind, [(10,), (4, 6), (2, 3, 5)], calculate)


def test_what_is_refused(rng):
    field = Field.cold(SMALL, "su2", "double", CpuDevice(1))
    operator = Wilson(field, 0.12)
    source = reference.random_spinor(SMALL.extents, 2, rng)
    for words, message in (
        *(({"tolerance": one}, "The tolerance is") for one in (0, 1, -1e-10, float("nan"))),
        ({"solver": "bicgstub"}, "no solver 'bicgstub'; did you mean 'bicgstab'"),
        ({"method": "both"}, "no method 'both'; choose reliable or defect"),
        ({"inner": "quarter"}, "no precision 'quarter'"),
        ({"iterations": 0}, "number of iterations is 0"),
        ({"reduction": 1}, "--reduction is 1; give a number between 0 and 1"),
        ({"reals": 13}, "cannot be stored as 13 reals; choose 4 or 8"),
    ):
        with pytest.raises(UsageError, match=message):
            operator.solve(source, **words)
    source[0, 0, 0, 0, 0, 0] = np.nan
    with pytest.raises(GaugeError, match="The source contains a value that is not a number"):
        operator.solve(source)


@pytest.mark.parametrize("solver", SOLVERS)
def test_what_cannot_be_solved(solver, rng):
    field = Field.cold(Lattice(4, 4, 4, 4), "su2", "double", CpuDevice(1))
    source = reference.random_spinor((4, 4, 4, 4), 2, rng)
    with pytest.raises(GaugeError, match="after 3 iterations, and not 1e-10: allow more"):
        Wilson(field, 0.12).solve(source, solver=solver, iterations=3)
    with pytest.raises(UsageError, match=r"The tolerance is .*; give .* from 2.2e-16 to below 1"):
        Wilson(field, 0.12).solve(source, LEAST_TOLERANCE / 2, solver=solver)
    # There is a zero mode, to which the source is not orthogonal.
    singular = Wilson(field, 1 / 8, boundary=1)
    with pytest.raises(GaugeError, match=r"does not become smaller|after 300 iterations"):
        singular.solve(source, solver=solver, iterations=300)


@pytest.mark.slow
def test_half_precision_falls_back_to_higher_ones(rng):
    field = Field.cold(Lattice(4, 4, 4, 4), "su2", "double", CpuDevice(1))
    b = SpinorField.from_numpy(field, reference.random_spinor((4, 4, 4, 4), 2, rng))
    nearly_singular = Wilson(field, 1 / 8 - 1e-5, boundary=1)
    for solver in ("bicgstab", "cg"):
        found = solve(nearly_singular, b, solver, SolverParameters(1e-9, 3000, inner="half"))
        assert found.inner != "half"
        assert "did not become smaller in half precision, so that the iteration" in found.notes[0]
        assert found.residual[0] <= 1e-9


@pytest.mark.slow
def test_a_solver_without_patience_hands_over_to_a_safer_one(monkeypatch, rng):
    """The solution goes on where it is, with the other form of the operator."""
    monkeypatch.setattr(SOLVERS["bicgstab"], "patience", -1)
    field = thermal_field(LATTICE, "su3", CpuDevice(1), 6.0)
    b = SpinorField.from_numpy(field, reference.random_spinor(LATTICE.extents, 3, rng))
    found = solve(Wilson(field, 0.14, csw=1.0), b, "bicgstab", SolverParameters(inner="single"))
    assert (found.solver, found.inner, len(found.notes)) == ("cg", "single", 2)
    assert "with bicgstab in double precision, so that the iteration" in found.notes[1]
    assert "went on with cg in single precision" in found.notes[1]
    rest = b.to_numpy()[0] - reference.wilson(
        field.to_numpy(), found.x.to_numpy()[0], 0.14, PHASES, csw=1.0
    )
    assert np.linalg.norm(rest) <= 1.001e-10 * np.linalg.norm(b.to_numpy())


@pytest.mark.slow
def test_bicgstab_hands_over_where_it_does_not_converge():
    """Beyond the critical kappa of configurations, where BiCGstab converges by chance or not."""
    lattice, solvers = Lattice(4, 4, 4, 8), []
    for seed, sweeps in ((5, 100), (4, 120)):
        field = Field.hot(lattice, "su3", "double", CpuDevice(1), seed=seed)
        heatbath(field, 5.7, Random.for_field(field, seed=seed), sweeps)
        b = SpinorField.empty(field, "double", 12)
        parse_source("point", lattice).fill(b, field)
        for inner in ("half", "single", "double"):
            found = solve(
                Wilson(field, 0.15, csw=1.5), b, "bicgstab", SolverParameters(inner=inner)
            )
            assert (found.residual <= 1e-10).all()
            assert found.iterations < 5000
            solvers.append(found.solver)
            if found.solver == "cg":
                notes = " ".join(found.notes)
                assert "smaller with bicgstab in double precision, so that the iteration" in notes
    assert "cg" in solvers


@pytest.mark.parametrize("method", METHODS)
def test_the_true_residual_is_computed_after_the_reduction_that_was_chosen(method):
    """The largest iterated residual counts from which it falls, also one above the first."""
    usual = {"half": 0.1, "single": {"reliable": 1e-3, "defect": 1e-4}[method], "double": 1e-6}
    for inner in STORAGES:
        for chosen, reduction in ((None, usual[inner]), (0.25, 0.25), (1e-5, 1e-5)):
            request = SolverParameters(1e-12, 500, method, inner, reduction=chosen)
            watch = ResidualWatch(request.falls, 500, np.ones(1), np.full(1, 1e-12), 200, 1)
            residuals = (8 * np.array([now]) for now in (1.0, 1.001 * reduction, 0.999 * reduction))
            asked = [watch.asks(now, np.ones(1, bool), np.ones(1))[0].item() for now in residuals]
            assert asked == [False, False, True]


@pytest.mark.gpu
def test_iterations_of_a_solver_begin_early_with_the_same_bytes(gpu, monkeypatch):
    kind, used = type(gpu), []

    def solution():
        field = Field.hot(Lattice(4, 6, 4, 8), "su3", "double", DeviceGroup([gpu]), seed=3)
        b = SpinorField.empty(field)
        values = np.random.default_rng(5).normal(size=(*b.to_numpy().shape, 2))
        b = SpinorField.from_numpy(field, values.view(complex)[..., 0])
        return solve(Wilson(field, 0.125), b, "cg", SolverParameters(1e-10)).x.to_numpy().tobytes()

    def noted(device, begin=kind._early_starts):
        early = begin(device)
        return early and (lambda graph: used.append(early(graph)) or used[-1])

    monkeypatch.setattr(kind, "_early_starts", noted)
    found = solution()
    monkeypatch.setattr(kind, "_early_starts", lambda device: None)
    assert solution() == found
    assert all(used)
    assert len(used) == (kind._graph_functions() is not None and is_able(gpu))


def is_able(gpu):
    return gpu.backend == "cuda" and gpu._device.compute_capability() >= EARLY_CAPABILITY
