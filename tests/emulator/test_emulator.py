"""Test that the emulated GPU detects the mistakes for which it was made."""

import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.emulator.pycuda import driver

SOURCE = """
extern "C" __global__ void fill(int* to, int n, int value) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] = value + i;
}
"""
N = 64


@pytest.fixture(scope="module")
def cubin(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kernels")
    (folder / "some.cu").write_text(SOURCE)
    command = [Path(__file__).parent / "nvcc", "-O3", "-cubin", folder / "some.cu"]
    subprocess.run([*command, "-o", folder / "some.cubin"], check=True, capture_output=True)
    return str(folder / "some.cubin")


class Gpu:
    """A GPU with its context, two streams, a little memory and a kernel."""

    def __init__(self, number, cubin):
        self.context = driver.Device(number).retain_primary_context()
        with self:
            self.stream, self.other = driver.Stream(), driver.Stream()
            self.memory = driver.mem_alloc(4 * N)
            self.kernel = driver.module_from_file(cubin).get_function("fill")

    def __enter__(self):
        self.context.push()
        return self

    def __exit__(self, *_):
        self.context.pop()

    def fill(self, memory, value):
        """Write numbers from a value on."""
        parameters = struct.pack("Pii", int(memory), N, value)
        self.kernel._launch_kernel((1, 1, 1), (N, 1, 1), parameters, 0, self.stream)


@pytest.fixture
def gpus(cubin):
    """Two GPUs, which cannot access each other, whatever tests before have enabled."""
    found = [Gpu(number, cubin) for number in range(2)]
    for one in found:
        one.context._gpu.peers.clear()
    return found


@pytest.mark.parametrize("waits", [False, True])
def test_what_is_not_waited_for_goes_wrong(gpus, waits):
    """Run a kernel; copy its result to another GPU in a second stream, and then to the host."""
    one, two = gpus
    right = []
    for value in range(40):
        with one:
            data = driver.pagelocked_empty(N, np.int32)
            one.fill(one.memory, value)
            filled = driver.Event().record(one.stream)
            if waits:
                one.other.wait_for_event(filled)
            contexts = two.context, one.context
            driver.memcpy_peer_async(two.memory, one.memory, 4 * N, *contexts, one.other)
            copied = driver.Event().record(one.other)
        with two:
            if waits:
                two.stream.wait_for_event(copied)
            driver.memcpy_dtoh_async(data, two.memory, two.stream)
            two.stream.synchronize()
        right.append(data.tolist() == list(range(value, value + N)))
    with one:
        driver.Context.synchronize()
    assert all(right) if waits else right.count(False) > 0


def test_memory_of_another_gpu_is_out_of_reach_until_access_is_enabled(gpus):
    one, two = gpus
    with one:
        for works in (False, True):
            if works:
                driver.Context.enable_peer_access(two.context)
            one.fill(two.memory, 7)
            if works:
                driver.Context.synchronize()
            else:
                with pytest.raises(driver.LaunchError, match="illegal memory access"):
                    driver.Context.synchronize()
