"""Kernels of quarks for AMD GPUs."""

import pytest

from gauge_mc.extensions.quarks.vectors import STORAGES
from tests.devices.test_hip_compiler import check_nothing_spills, needs_hipcc


@pytest.mark.slow
@needs_hipcc
@pytest.mark.parametrize("name", ["combine_spinors", "advance_direction", "quark_pairs"])
def test_neither_arguments_nor_spinors_are_copied_into_scratch_memory(tmp_path, name):
    check_nothing_spills(tmp_path, name, "su3", [STORAGES["single"].choice])
