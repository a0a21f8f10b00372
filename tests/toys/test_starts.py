"""The benchmark of hot starts."""

import pytest

from gauge_mc.benchmarks.plan import bench


@pytest.mark.kernels
def test_it_takes_some_time():
    chosen = {"starts": True, "lattice": "4x4x4x4", "seconds": 0.05}
    found = bench(**chosen, backend="cpu", threads=1)
    assert found.lattice == "4x4x4x4"
    assert 1e-6 < found.start_s < 10
    (line,) = found.report()
    assert line == f"hot start on {found.device}: {1e3 * found.start_s:.4g} ms"
