"""Opening a GPU."""

from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from gauge_mc.devices import BACKENDS
from gauge_mc.devices.base import Copy
from gauge_mc.devices.cuda import device
from gauge_mc.devices.cuda.compiler import CudaCompiler
from gauge_mc.devices.cuda.device import CudaDevice
from gauge_mc.devices.kernels import Kernel, Variant
from gauge_mc.errors import GaugeError, NoKernelsError
from gauge_mc.groups import GROUPS

COLD = Kernel("cold")


@pytest.mark.gpu
def test_a_gpu_whose_memory_is_full_works(gpu, monkeypatch):
    """Other programs use it; nothing is wrong with it."""
    driver = gpu._driver

    def full(device, ordinal):
        raise driver.MemoryError("cuDevicePrimaryCtxRetain failed: out of memory")

    contexts = SimpleNamespace(of=full, make_current=lambda context: None)
    monkeypatch.setattr(type(gpu), "_contexts", contexts)
    with pytest.raises(GaugeError, match="The memory of GPU 0 is full") as caught:
        type(gpu)()
    assert "does not work" not in str(caught.value)


def test_a_gpu_before_volta_is_refused(monkeypatch):
    old = SimpleNamespace(name=lambda: "Old GPU", compute_capability=lambda: (6, 1))
    gpus = Mock(count=lambda: 1, return_value=old)
    monkeypatch.setattr(device, "load_driver", lambda: SimpleNamespace(Device=gpus))
    monkeypatch.setattr(device, "usable_compiler", lambda: CudaCompiler("nvcc"))
    with pytest.raises(GaugeError, match=r"Old GPU, has compute capability 6\.1, but .* 7\.0"):
        CudaDevice()


@pytest.mark.gpu
def test_an_architecture_that_the_compiler_does_not_know_is_named(gpu, monkeypatch):
    old = type(gpu)(gpu.ordinal)
    old.architecture = "sm_70"
    monkeypatch.setattr(type(gpu._compiler), "compiles_for", lambda self, name: name != "sm_70")
    monkeypatch.setattr(device, "compiled", Mock(side_effect=NoKernelsError("no such GPU")))
    with pytest.raises(NoKernelsError, match=r"architecture sm_70, for which .* does not"):
        old.kernel(COLD, Variant("single", (GROUPS["su2"].choice,)))
    old.architecture = "sm_90"
    with pytest.raises(NoKernelsError, match="no such GPU"):
        old.kernel(COLD, Variant("single", (GROUPS["su2"].choice,)))


@pytest.mark.gpu
def test_memory_is_freed_after_the_work_of_the_gpus_that_access_it(gpu, monkeypatch):
    """The driver may wait for this GPU, and does not wait for the others."""
    other, waited = type(gpu)(gpu.ordinal), []
    monkeypatch.setattr(type(gpu), "synchronize", lambda self: waited.append(self))
    buffer = gpu.allocate(64)
    del buffer
    assert waited == [gpu]
    buffer = gpu.allocate(64)
    assert other.reaches(gpu)
    del buffer
    assert set(waited[1:]) == {gpu, other}
    buffer = other.allocate(64)
    waited.clear()
    del buffer
    assert waited == [other]


@pytest.mark.gpu
@pytest.mark.parametrize("between", [False, True])
def test_memory_that_is_still_written_is_not_freed(gpu, between):
    """Copies of a GPU are issued, and the memory to which they go is given up at once."""
    if BACKENDS[gpu.backend].count() < 2:
        pytest.skip("there is one GPU")
    one, two = type(gpu)(0), type(gpu)(1)
    target = two if between else one
    source, to = one.allocate(2**20), target.allocate(2**20)
    send = one.prepare_copies([Copy(source.address, target, to.address)], 2**20)
    for _ in range(4):
        send()
    del to
    assert not one.read(source, 0, 2**20).any()
    for used in (one, two):
        used.close()
