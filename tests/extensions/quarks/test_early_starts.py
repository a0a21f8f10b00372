"""Iterations of solvers on a GPU, whose launches begin early."""

import numpy as np
import pytest

from gauge_mc.devices.cuda.graphs import EARLY_CAPABILITY
from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.domain.lattice import Lattice
from gauge_mc.extensions.quarks.operators import Wilson
from gauge_mc.extensions.quarks.solvers import SolverParameters, solve
from gauge_mc.extensions.quarks.vectors.spinors import SpinorField
from gauge_mc.fields.field import Field


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
