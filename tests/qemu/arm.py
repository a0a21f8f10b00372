"""Tests on emulated ARM processors."""

from contextlib import closing
from dataclasses import replace

import pytest

from tests.qemu import AVAILABLE, PROCESSORS, EmulatedDevice

NEEDS = [
    pytest.mark.slow,
    pytest.mark.skipif(not AVAILABLE, reason="needs g++-aarch64-linux-gnu and qemu-user"),
]
"""Marks of such tests."""


def processors(*slow):
    """The processors that slow tests have; the others are marked `every`."""
    marks = {name: () if name in slow else pytest.mark.every for name in PROCESSORS}
    return pytest.mark.parametrize("name", [pytest.param(one, marks=marks[one]) for one in marks])


def open_processor(name):
    """A processor whose kernels are compiled sooner than with the usual level of optimisation."""
    one = PROCESSORS[name]
    return closing(EmulatedDevice(replace(one, compiler=f"{one.compiler} -O1")))
