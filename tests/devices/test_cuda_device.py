"""Opening a GPU."""

from types import SimpleNamespace

import pytest

from gauge_mc.devices.cuda.device import CudaDevice
from gauge_mc.errors import GaugeError


@pytest.mark.gpu
def test_a_gpu_whose_memory_is_full_works(gpu, monkeypatch):
    """Other programs use it; nothing is wrong with it."""
    driver = gpu._driver

    def full(device, ordinal):
        raise driver.MemoryError("cuDevicePrimaryCtxRetain failed: out of memory")

    contexts = SimpleNamespace(of=full, make_current=lambda context: None)
    monkeypatch.setattr(CudaDevice, "_contexts", contexts)
    with pytest.raises(GaugeError, match="The memory of GPU 0 is full") as caught:
        CudaDevice()
    assert "does not work" not in str(caught.value)


@pytest.mark.gpu
def test_memory_is_freed_after_the_work_of_the_gpus_that_access_it(gpu, monkeypatch):
    """The driver does not wait for the others."""
    other, waited = CudaDevice(gpu.ordinal), []
    monkeypatch.setattr(CudaDevice, "synchronize", lambda self: waited.append(self))
    buffer = gpu.allocate(64)
    assert other.reaches(gpu)
    del buffer
    assert set(waited) == {gpu, other}
    waited.clear()
    gpu._users.clear()
    buffer = gpu.allocate(64)
    del buffer
    assert not waited
