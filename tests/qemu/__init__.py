"""ARM processors emulated by QEMU: kernels are compiled for ARM, and run by a process of QEMU.

The process maps the memory of the device at the same addresses, loads kernels and runs them. As a
plugin of pytest it lets all CPUs of tests be such processors:
``python -m pytest -p tests.qemu --arm sve256 tests/extensions/quarks/test_solvers.py``. The tests
of this process are concerned, not programs that they start.
"""

import ctypes
import functools
import itertools
import mmap
import os
import shutil
import subprocess
import tempfile
import threading
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import pytest

from gauge_mc.devices.base import split_steps
from gauge_mc.devices.cpu import device
from gauge_mc.devices.cpu.compiler import Compiler, version
from gauge_mc.devices.kernels import REAL_BYTES

COMPILER, QEMU, LIBRARIES = "aarch64-linux-gnu-g++", "qemu-aarch64", "/usr/aarch64-linux-gnu"
AVAILABLE = all(map(shutil.which, (COMPILER, QEMU)))
"""Whether compiler and emulator are installed: Debian's g++-aarch64-linux-gnu and qemu-user."""

LEVEL = "-O3"
"""Level of optimisation."""


@dataclass(frozen=True)
class Processor:
    """A processor: how kernels are compiled for it, and how a program for it is run."""

    compiler: str
    runs: tuple[str, ...]
    vector_bytes: int
    """Length of the vectors of SVE; 0 without SVE."""
    register_bytes: int


def arm(options, model, vector_bytes=0):
    runs = (QEMU, "-cpu", model, "-L", LIBRARIES)
    return Processor(f"{COMPILER} {LEVEL} {options}", runs, vector_bytes, vector_bytes or 16)


def with_sve(bits):
    options = f"-march=armv8.2-a+sve -msve-vector-bits={bits}"
    return arm(options, f"max,sve-max-vq={bits // 128}", bits // 8)


PROCESSORS = {
    "neon": arm("-march=armv8-a", "cortex-a72"),
    **{f"sve{bits}": with_sve(bits) for bits in (128, 256, 512)},
}

ADDRESS, SIZE = 1 << 44, 1 << 28
places = itertools.count(ADDRESS, SIZE)
"""Addresses of the memory of devices, of which several may be open."""

TABLES = {"lanes": 16, "lane_orders": 27, "lane_site": 1, "lane_origin": 3}
"""Tables of the lanes, with upper limits for their size in registers."""

FIXED_SHARED = 0x11


class SharedBuffer:
    """A part of the memory that both processes see, which is used again when it is not needed."""

    def __init__(self, address, nbytes, free, events):
        self.address, self.nbytes, self._free, self._events = address, nbytes, free, events
        ctypes.memset(address, 0, nbytes)

    def __del__(self):
        self._events().synchronize()
        self._free.append(self.address)


class EmulatedKernel:
    def __init__(self, device, name, worker):
        self._device, self._name, self._worker = device, name, worker

    def launches(self, steps, lengths, side=False):
        return (functools.partial(self, part) for part in split_steps(steps, lengths))

    def prepared(self, steps):
        return functools.partial(self, steps)

    def registers(self, steps=None):
        return None

    def __call__(self, steps):
        run = functools.partial(self._device.run, self._name, type(steps).from_buffer_copy(steps))
        self._worker.do(run) if self._worker else run()


class EmulatedDevice(device.CpuDevice):
    """One core of an emulated processor.

    Parameters
    ----------
    processor : Processor
        The processor.
    lanes, worker
        See `CpuDevice`.
    """

    in_host_memory = False
    libraries = ()

    def __init__(self, processor=PROCESSORS["neon"], lanes=None, worker=False):
        super().__init__(1, lanes, worker)
        self.processor = processor
        self._lock, self._free = threading.Lock(), defaultdict(list)
        self.compiler = Compiler(processor.compiler, version(processor.compiler))
        self._folder = tempfile.TemporaryDirectory()
        self._begin = self._next = next(places)
        self._tables = {}
        memory, server = (Path(self._folder.name) / name for name in ("memory", "server"))
        memory.touch()
        os.truncate(memory, SIZE)
        source = Path(__file__).parent / "server.cpp"
        build = [*self.compiler.words[:1], "-std=c++17", "-O1", source, "-o", server, "-ldl"]
        subprocess.run(build, check=True)
        libc = ctypes.CDLL(None)
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
        with memory.open("r+b") as file:
            access, place = mmap.PROT_READ | mmap.PROT_WRITE, self._begin
            assert libc.mmap(place, SIZE, access, FIXED_SHARED, file.fileno(), 0) == place
        command = [*processor.runs, server, memory, str(self._begin), str(SIZE)]
        self._server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        has = int(self._server.stdout.readline())
        assert has == processor.vector_bytes, f"Vectors have {has} bytes"

    def lanes(self, precision):
        most = self.processor.register_bytes // REAL_BYTES[precision]
        return min(most, self._lanes or most)

    def kernel(self, kernel, variant):
        key = (kernel, kernel.narrowed(variant))
        if key not in self._kernels:
            name = f"{kernel.name}_{len(self._kernels)}"
            self._send(f"load {name} {kernel.name} {self._compiled_file(*key)}\n".encode())
            self._kernels[key] = EmulatedKernel(self, name, self._worker)
        return self._kernels[key]

    def allocate(self, nbytes):
        size = -(-max(nbytes, 1) // 128) * 128
        if not self._free[size]:
            self._free[size].append(self._next)
            self._next += size
            assert self._next <= self._begin + SIZE
        return SharedBuffer(self._free[size].pop(), nbytes, self._free[size], self.event)

    def allocated_bytes(self):
        return self._next - self._begin

    def run(self, name, steps):
        size = self.processor.register_bytes
        tables = {table: size * number for table, number in TABLES.items()}
        for step in steps:
            x, y, z, _ = step.geometry.full
            self._share_tables(step, {**tables, "places": 4 * x * y * z})
        self._send(f"run {name} {len(steps)} {ctypes.sizeof(steps)}\n".encode() + bytes(steps))

    def _share_tables(self, structure, sizes):
        """Replace addresses of tables of the host by those of copies which both processes see."""
        for name, kind, *_ in structure._fields_:
            value = getattr(structure, name)
            if isinstance(value, ctypes.Structure):
                self._share_tables(value, sizes)
            elif name in sizes and kind is ctypes.c_void_p and value:
                content = ctypes.string_at(value, sizes[name])
                if content not in self._tables:
                    self._tables[content] = self.allocate(len(content))
                    ctypes.memmove(self._tables[content].address, content, len(content))
                setattr(structure, name, self._tables[content].address)

    def _send(self, message):
        with self._lock:
            self._server.stdin.write(message)
            self._server.stdin.flush()
            answer = self._server.stdout.readline()
        assert answer == b"done\n", f"The process of QEMU has failed: {answer!r}"

    def close(self):
        self.synchronize()
        self._server.stdin.close()
        self._server.wait()
        self._server.stdout.close()
        ctypes.CDLL(None).munmap(ctypes.c_void_p(self._begin), ctypes.c_size_t(SIZE))
        self._folder.cleanup()
        super().close()


def pytest_addoption(parser):
    """Add the option of this plugin."""
    words = "let CPUs be an emulated ARM processor"
    parser.addoption("--arm", choices=list(PROCESSORS), help=words)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config):
    """Let CPUs be emulated before tests have their class."""
    if name := early_config.known_args_namespace.arm:

        class ArmDevice(EmulatedDevice):
            def __init__(self, threads=None, lanes=None, worker=False):
                super().__init__(PROCESSORS[name], lanes, worker)

        device.CpuDevice = ArmDevice


def pytest_report_header(config):
    """Say which processor is emulated."""
    name = config.getoption("--arm")
    return f"CPUs are {name} of ARM, emulated by QEMU" if name else None
