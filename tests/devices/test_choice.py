"""What ``--devices``, ``--backend`` and ``--threads`` choose."""

import os
from types import SimpleNamespace

import pytest

from gauge_mc.devices import BACKENDS, DeviceChoice, choose_devices, cuda
from gauge_mc.devices.cuda import compiler
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.registry import in_words


def no_gpu():
    raise GaugeError("CUDA finds no usable GPU.")


@pytest.fixture
def four_gpus(monkeypatch):
    """Four GPUs and a compiler, as far as choosing devices can see."""
    driver = SimpleNamespace(Device=SimpleNamespace(count=lambda: 4))
    monkeypatch.setattr(cuda, "load_driver", lambda: driver)
    one = compiler.CudaCompiler("/usr/local/cuda/bin/nvcc")
    monkeypatch.setattr(compiler, "find_cuda_compiler", lambda: one)


@pytest.mark.parametrize(
    ("devices", "ordinals"),
    [("1", [0]), ("3", [0, 1, 2]), ("all", [0, 1, 2, 3]), ("3,0", [3, 0]), ("2,", [2])],
)
@pytest.mark.parametrize("backend", ["auto", "cuda"])
def test_gpus(four_gpus, devices, ordinals, backend):
    expected = tuple(DeviceChoice("cuda", ordinal) for ordinal in ordinals)
    assert choose_devices(devices, backend) == expected


@pytest.mark.parametrize("backend", ["auto", "cpu"])
@pytest.mark.parametrize(
    ("devices", "threads", "shares"),
    [
        ("cpu", None, [None]),
        ("cpu:1", 3, [3]),
        ("cpu:2", 4, [2, 2]),
        ("cpu:3", 8, [3, 3, 2]),
        ("cpu:3", 2, [1, 1, 1]),
    ],
)
def test_parts_of_the_cpu_share_its_threads(devices, threads, shares, backend):
    expected = tuple(DeviceChoice("cpu", threads=share) for share in shares)
    assert choose_devices(devices, backend, threads) == expected


def test_parts_of_the_cpu_share_all_cores():
    cores = len(os.sched_getaffinity(0))
    shares = [choice.threads for choice in choose_devices(f"cpu:{cores}")]
    assert shares == ([None] if cores == 1 else [1] * cores)
    assert "1 thread" in choose_devices("cpu:2", threads=2)[1].open().name


def test_one_device_by_default(four_gpus, monkeypatch):
    assert choose_devices(backend="cuda") == choose_devices() == (DeviceChoice("cuda"),)
    assert choose_devices(backend="cpu", threads=2) == (DeviceChoice("cpu", threads=2),)
    monkeypatch.setattr(compiler, "find_cuda_compiler", lambda: None)
    assert choose_devices() == (DeviceChoice("cpu"),)
    monkeypatch.setattr(cuda, "load_driver", no_gpu)
    assert choose_devices(threads=1) == (DeviceChoice("cpu", threads=1),)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("cpu:0",), "N in cpu:N must lie between 1 and 1024"),
        (("cpu:two", "cpu"), "N in cpu:N must lie between 1 and 1024"),
        (("cpu:2", "auto", 0), "--threads is 0; give a whole number from 1 to 1024"),
        (("cpu:2", "cuda"), "not possible with --backend cuda"),
        (("2", "cpu"), "not possible with --backend cpu"),
        (("gpu",), "--devices gpu is not possible"),
        (("",), "is not possible"),
        (("0,,1",), "--devices 0,,1 is not possible"),
        (("0",), "means no GPU at all; give how many to take, such as 1, or numbers with a comma"),
        (("1,1",), "names a GPU twice; give each number once"),
        (("cpu:٢",), "N in cpu:N must lie between 1 and 1024"),
        ((5000 * "9",), "is not possible"),
        ((None, "vulkan"), f"There is no backend 'vulkan'; choose {in_words(BACKENDS, 'or')}"),
    ],
)
def test_what_cannot_be_chosen(four_gpus, arguments, sentence):
    with pytest.raises(UsageError, match=sentence):
        choose_devices(*arguments)


def test_gpus_that_are_not_here(four_gpus, monkeypatch):
    for devices, missing in (("5", 4), ("1,7", 7)):
        with pytest.raises(GaugeError, match=f"needs GPU {missing}, but there are 4"):
            choose_devices(devices)
    monkeypatch.setattr(cuda, "load_driver", no_gpu)
    with pytest.raises(GaugeError, match="no usable GPU"):
        choose_devices("all")
