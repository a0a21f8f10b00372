"""A plugin of pytest: run kernels with shorter SIMD registers than the processor has.

``python -m pytest -p tests.tools.registers --registers 16`` compiles kernels for registers of 16
bytes, as they are on a processor with SSE alone, 32 as with AVX2, and 64 as with AVX-512. The tests
of this process are concerned, not programs that they start.
"""

from __future__ import annotations

import pytest

from gauge_mc.devices.cpu import compiler

SIZES = (16, 32, 64)
"""Sizes of registers in bytes."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option of this plugin."""
    parser.addoption("--registers", type=int, choices=SIZES, help="bytes of a SIMD register")


def pytest_configure(config: pytest.Config) -> None:
    """Let registers have another size, before anything is compiled."""
    size = config.getoption("--registers")
    if size is not None:
        compiler.register_bytes = lambda: size


def pytest_report_header(config: pytest.Config) -> str:
    """Say which registers are used."""
    return f"SIMD registers of {compiler.register_bytes()} bytes"
