"""ARM processors emulated by QEMU: kernels are compiled for ARM, and run by a process of QEMU.

The process maps the memory of the device at the same addresses, loads kernels and runs them.
"""

import ctypes
import mmap
import os
import shutil
import subprocess
import tempfile
from functools import partial
from pathlib import Path

from gauge_mc.devices.base import split_steps
from gauge_mc.devices.cache import compiled
from gauge_mc.devices.cpu import compiler
from gauge_mc.devices.cpu.device import CpuDevice
from gauge_mc.devices.kernels import REAL_BYTES

COMPILER, QEMU, LIBRARIES = "aarch64-linux-gnu-g++", "qemu-aarch64", "/usr/aarch64-linux-gnu"
AVAILABLE = all(map(shutil.which, (COMPILER, QEMU)))
"""Whether compiler and emulator are installed: Debian's g++-aarch64-linux-gnu and qemu-user."""

ADDRESS, SIZE = 1 << 44, 1 << 28
REGISTER_BYTES = 16
TABLES = {
    "lanes": 16 * REGISTER_BYTES,
    "lane_orders": 27 * REGISTER_BYTES,
    "lane_site": REGISTER_BYTES,
}
TABLES["lane_origin"] = 3 * REGISTER_BYTES
"""Tables of the lanes, with upper limits for their bytes."""

FIXED_SHARED = 0x11


class ArmBuffer:
    """A part of the memory that both processes see."""

    def __init__(self, address, nbytes):
        self.address, self.nbytes = address, nbytes


class ArmKernel:
    def __init__(self, device, name):
        self._device, self._name = device, name

    def launches(self, steps, lengths, side=False):
        return (partial(self, part) for part in split_steps(steps, lengths))

    def prepared(self, steps):
        return partial(self, steps)

    def registers(self, steps=None):
        return None

    def __call__(self, steps):
        self._device.run(self._name, type(steps).from_buffer_copy(steps))


class ArmDevice(CpuDevice):
    """One core of an emulated ARM processor."""

    in_host_memory = False
    libraries = ()

    def __init__(self):
        super().__init__(1)
        self._folder = tempfile.TemporaryDirectory()
        self._next, self._tables = ADDRESS, {}
        memory, server = (Path(self._folder.name) / name for name in ("memory", "server"))
        memory.touch()
        os.truncate(memory, SIZE)
        source = Path(__file__).parent / "server.cpp"
        subprocess.run([COMPILER, "-std=c++17", "-O1", source, "-o", server, "-ldl"], check=True)
        libc = ctypes.CDLL(None)
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
        with memory.open("r+b") as file:
            access = mmap.PROT_READ | mmap.PROT_WRITE
            assert libc.mmap(ADDRESS, SIZE, access, FIXED_SHARED, file.fileno(), 0) == ADDRESS
        command = [QEMU, "-L", LIBRARIES, server, memory, str(ADDRESS), str(SIZE)]
        self._server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def lanes(self, precision):
        return REGISTER_BYTES // REAL_BYTES[precision]

    def _compiled_file(self, kernel, variant):
        flags = [one.replace("-march=native", "-march=armv8-a") for one in compiler.FLAGS]
        command = [COMPILER, *flags, compiler.CONTRACTIONS[variant.strict], *variant.definitions]
        return str(compiled(kernel, variant, command, "ARM", ".so")[0])

    def kernel(self, kernel, variant):
        key = (kernel, kernel.narrowed(variant))
        if key not in self._kernels:
            name = f"{kernel.name}_{len(self._kernels)}"
            self._send(f"load {name} {kernel.name} {self._compiled_file(*key)}\n".encode())
            self._kernels[key] = ArmKernel(self, name)
        return self._kernels[key]

    def allocate(self, nbytes):
        buffer = ArmBuffer(self._next, nbytes)
        self._next += -(-max(nbytes, 1) // 128) * 128
        assert self._next <= ADDRESS + SIZE
        return buffer

    def allocated_bytes(self):
        return self._next - ADDRESS

    def run(self, name, steps):
        for step in steps:
            x, y, z, _ = step.geometry.full
            self._share_tables(step, {**TABLES, "places": 4 * x * y * z})
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
        self._server.stdin.write(message)
        self._server.stdin.flush()
        answer = self._server.stdout.readline()
        assert answer == b"done\n", f"The process of QEMU has failed: {answer!r}"

    def close(self):
        self._server.stdin.close()
        self._server.wait()
        self._server.stdout.close()
        ctypes.CDLL(None).munmap(ctypes.c_void_p(ADDRESS), ctypes.c_size_t(SIZE))
        self._folder.cleanup()
        super().close()
