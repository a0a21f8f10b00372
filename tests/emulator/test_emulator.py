"""Test that the emulated GPU detects the mistakes for which it was made."""

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
extern "C" __global__ void __launch_bounds__(MAX_THREADS, 1) reverse(int* to) {
    __shared__ int copy[MAX_THREADS];
    const int i = threadIdx.y * blockDim.x + threadIdx.x, last = blockDim.x * blockDim.y - 1;
    copy[i] = to[i];
    __syncthreads();
    to[i] = copy[last - i];
}
"""
N = 64


@pytest.fixture(scope="module")
def cubin(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kernels")
    (folder / "some.cu").write_text(SOURCE)
    command = [Path(__file__).parent / "nvcc", "-O3", f"-DMAX_THREADS={N}", "-cubin"]
    words = [*command, folder / "some.cu", "-o", folder / "some.cubin"]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    assert done.stdout.count("entry function") == 2
    return str(folder / "some.cubin")


class Gpu:
    """A GPU with its context, two streams, a little memory and two kernels."""

    def __init__(self, number, cubin):
        self.context = driver.Device(number).retain_primary_context()
        with self:
            self.stream, self.other = driver.Stream(), driver.Stream()
            self.memory = driver.mem_alloc(4 * N)
            module = driver.module_from_file(cubin)
            self.fill = module.get_function("fill").prepare(["P", "i", "i"])
            self.reverse = module.get_function("reverse").prepare(["P"])

    def __enter__(self):
        self.context.push()
        return self

    def __exit__(self, *_):
        self.context.pop()


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
            one.fill.prepared_async_call((1, 1, 1), (N, 1, 1), one.stream, one.memory, N, value)
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


def test_wrong_calls_are_refused(gpus):
    one, two = gpus
    data = np.empty(N + 1, np.int32)
    with one:
        for call in (
            lambda: driver.memcpy_dtoh(data, one.memory),
            lambda: driver.memcpy_dtoh(data[:N], two.memory),
            lambda: driver.memcpy_htod(int(one.memory) - 4, data[:1]),
            lambda: driver.memset_d8(two.memory, 0, 1),
            lambda: driver.memset_d8_async(one.memory, 0, 1, two.stream),
            lambda: driver.Event().record(two.stream),
            lambda: two.fill.prepared_call((1, 1, 1), (1, 1, 1), two.memory, N, 0),
            lambda: one.fill.prepared_call((1, 1, 1), (1, 1, 65), one.memory, N, 0),
        ):
            with pytest.raises(driver.LogicError):
                call()
        with pytest.raises(driver.MemoryError):
            driver.mem_alloc(2**50)
    with pytest.raises(driver.LogicError, match="is current in this thread"):
        driver.mem_alloc(16)


@pytest.mark.parametrize(
    ("name", "threads", "words", "message"),
    [
        ("fill", N, (N + 4, 0), "illegal memory access"),
        ("fill", N, (), "wrong size"),
        ("reverse", 2 * N, (), "launch bounds"),
    ],
)
def test_kernels_that_fail(gpus, name, threads, words, message):
    with gpus[0] as gpu:
        kernel = getattr(gpu, name).prepare(["P", "i", "i"][: 1 + len(words)])
        kernel.prepared_call((2, 1, 1), (threads, 1, 1), gpu.memory, *words)
        with pytest.raises(driver.LaunchError, match=message):
            driver.Context.synchronize()


def test_memory_of_another_gpu_is_out_of_reach_until_access_is_enabled(gpus):
    one, two = gpus
    with one:
        for works in (False, True):
            if works:
                driver.Context.enable_peer_access(two.context)
            one.fill.prepared_call((1, 1, 1), (N, 1, 1), two.memory, N, 7)
            if works:
                driver.Context.synchronize()
            else:
                with pytest.raises(driver.LaunchError, match="illegal memory access"):
                    driver.Context.synchronize()
