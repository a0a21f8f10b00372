"""Diagnosis of the machine: devices, compilers and packages that work, and remedies for others."""

from __future__ import annotations

import os
import platform
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from shlex import quote

import numpy as np

from gauge_mc.devices import BACKENDS, Backend, Device
from gauge_mc.devices.base import Finding
from gauge_mc.devices.cache import cache_folder, limits, make_private_folder
from gauge_mc.devices.kernels import REAL_BYTES
from gauge_mc.domain.lattice import Lattice
from gauge_mc.domain.loops import PLAQUETTES
from gauge_mc.errors import GaugeError
from gauge_mc.fields.action_density import loop_averages
from gauge_mc.fields.field import Field
from gauge_mc.groups import GROUPS
from gauge_mc.libraries import LIBRARIES, OptionalPackage
from gauge_mc.storage.host_links import trace_sums

SAMPLE = Lattice(8, 8, 8, 4)
"""Lattice on which devices are tested. It fills all lanes of the widest registers."""

ROUNDING = 1e-5
"""Maximum deviation from unitarity of links in single precision, per matrix element."""


COMPILE_SECONDS = 120.0
"""Time in seconds within which a kernel must be compiled for a test."""


def examine() -> Iterator[Finding]:
    """Test the backends and their devices, the kernel cache and the optional packages."""
    usual = limits["compile"]
    limits["compile"] = min(usual, COMPILE_SECONDS)
    try:
        yield from _findings()
    finally:
        limits["compile"] = usual


def _findings() -> Iterator[Finding]:
    yield Finding("Python", True, platform.python_version())
    yield _cache()
    for backend in BACKENDS.values():
        yield from backend.findings()
        yield from _devices(backend)
    for name, library in LIBRARIES.items():
        yield _package(name, library)


def _cache() -> Finding:
    folder, another = cache_folder(), "export GAUGE_MC_CACHE=FOLDER"
    try:
        make_private_folder()
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        return Finding("kernel cache", False, f"{folder}: {error.strerror}", another)
    except GaugeError as error:
        own = folder.is_dir() and folder.stat().st_uid == os.geteuid()
        mended = f"chmod 700 {quote(str(folder))}" if own else another
        return Finding("kernel cache", False, str(error), mended)
    kernels = sum(name.endswith(".txt") for name in os.listdir(folder))
    clear = "gauge-mc doctor --clear-cache removes them"
    return Finding("kernel cache", True, f"{folder}, {kernels} kernels; {clear}")


def _devices(backend: Backend) -> Iterator[Finding]:
    """Test every device of a backend."""
    try:
        count = backend.count()
    except GaugeError as error:
        if backend.is_here():
            yield Finding(backend.label, False, str(error), backend.remedy)
        return
    for ordinal in range(count):
        subject = f"{backend.label} {ordinal}" if backend.numbered else backend.label
        yield _device(subject, partial(backend.open, ordinal), backend.remedy)


def _device(subject: str, make: Callable[[], Device], remedy: str) -> Finding:
    """Test a device by compiling and running kernels in both precisions."""
    try:
        device = make()
        wrong = [_wrong(precision, device) for precision in REAL_BYTES]
    except GaugeError as error:
        return Finding(subject, False, str(error), remedy)
    return Finding(subject, not any(wrong), next(filter(None, wrong), device.name), remedy)


def _wrong(precision: str, device: Device) -> str:
    """Return what is wrong with links or with their plaquette; empty if nothing is."""
    field = Field.hot(SAMPLE, next(iter(GROUPS)), precision, device)
    links, colours = field.to_numpy(), field.group.colours
    products = links @ links.conj().swapaxes(-1, -2)
    if not np.abs(products - np.eye(colours)).max() < ROUNDING:
        return f"links in {precision} precision are not unitary"
    slices = links.reshape(SAMPLE.t, -1, 4, colours, colours)
    pairs = zip(slices, np.roll(slices, -1, axis=0), strict=True)
    sums = [trace_sums(SAMPLE.extents[:3], *pair)[:2].sum() for pair in pairs]
    plaquette = loop_averages(field, PLAQUETTES).mean()
    if not abs(plaquette - sum(sums) / (6 * SAMPLE.sites * colours)) < ROUNDING:
        return f"the plaquette in {precision} precision is wrong"
    return ""


def _package(name: str, library: OptionalPackage) -> Finding:
    remedy = f"pip install 'gauge-mc[{library.extra}]'"
    subject = f"{name} ({library.purpose})"
    try:
        found = version(name)
        import_module(name)
    except PackageNotFoundError:
        return Finding(subject, False, "not installed", remedy)
    except ImportError as error:
        return Finding(subject, False, f"does not load: {error}", remedy)
    return Finding(subject, True, found)
