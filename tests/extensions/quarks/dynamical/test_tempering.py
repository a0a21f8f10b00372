"""Runs with quarks that exchange couplings."""

import pytest

from tests.run.test_tempering import HMC, check_resumed


@pytest.mark.longer
@pytest.mark.slow
def test_stopped_anywhere_and_resumed_runs_are_the_same(tmp_path, best_device):
    check_resumed(tmp_path, best_device, HMC | {"quarks": "kappa=0.1", "lattice": "4x4x4x4"})
