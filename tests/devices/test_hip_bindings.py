"""The calls of HIP's library, compared with its interface, and what is said if they fail."""

import ctypes
import gc
import re
import threading
from pathlib import Path

import numpy as np
import pytest

from gauge_mc.devices.cuda.kernel import CudaBuffer
from gauge_mc.devices.hip import bindings, driver
from gauge_mc.devices.hip import bindings as loader
from gauge_mc.errors import GaugeError
from tests.emulator.hip import SIGNATURES, WORDS, Library

HEADER = Path("/usr/include/hip/hip_runtime_api.h")
HANDLES = (
    "hipStream_t|hipEvent_t|hipModule_t|hipFunction_t|hipDeviceptr_t|hipGraph_t|hipGraphExec_t"
)


@pytest.fixture
def library(monkeypatch):
    """HIP's library on emulated GPUs."""
    made = Library()
    monkeypatch.setattr(loader, "hip_library", lambda: made)
    bindings.Context(0).push()
    return made


@pytest.fixture
def stream(library):
    return bindings.Stream()


def type_of(parameter):
    """Return the type of a parameter that the header declares, as `SIGNATURES` writes it."""
    text = re.sub(r"\bconst\b|=.*|__dparm.*", "", parameter).strip()
    text = re.sub(r"\bunsigned long long\b", "size_t", text)  # ctypes has one type for both
    text = re.sub(r"\bunsigned int\b", "unsigned", text)
    text = re.sub(rf"\b({HANDLES})\b", "void*", text)
    text = re.sub(r"\bhip(Device_t|StreamCaptureMode)\b", "int", text)
    text = re.sub(r"\bhipDeviceProp_t\b", "char", text)
    text = re.sub(r"\bhipIpc\w+Handle_t\b", "handle", text)
    return re.match(r"\w+ ?\**", text)[0].replace(" ", "")


@pytest.mark.skipif(not HEADER.is_file(), reason="the header of HIP is not installed")
@pytest.mark.parametrize("name", SIGNATURES)
def test_the_interface_is_that_of_the_header(name):
    found = re.search(rf"^hipError_t {name}\(([^;]*?)\);", HEADER.read_text(), re.MULTILINE)
    parameters = [] if found[1].strip() in ("", "void") else found[1].split(",")
    assert " ".join(map(type_of, parameters)) == SIGNATURES[name]


def test_data_go_to_a_gpu_and_back(stream):
    data = np.arange(100, dtype=np.int32)
    memory, pinned = bindings.mem_alloc(data.nbytes), bindings.pagelocked_empty(100, np.int32)
    bindings.memcpy_htod(int(memory), data)
    bindings.memcpy_dtoh_async(pinned, int(memory), stream)
    bindings.Event().record(stream).synchronize()
    assert np.array_equal(pinned, data)
    pinned += 1
    bindings.memcpy_htod_async(int(memory), pinned, stream)
    other = bindings.mem_alloc(data.nbytes)
    bindings.memset_d8(other, 0, data.nbytes)
    bindings.memcpy_dtod_async(int(other), int(memory), 200, stream)
    result = np.empty_like(data)
    bindings.memcpy_dtoh(result, int(other))
    assert np.array_equal(result, [*range(1, 51), *[0] * 50])
    free, total = bindings.mem_get_info()
    assert 0 < free < total


def test_gpus_copy_to_each_other(library):
    contexts = [bindings.Device(ordinal).retain_primary_context() for ordinal in (1, 3)]
    data, found = np.arange(16.0), np.empty(16)
    memory = []
    for context in contexts:
        context.push()
        memory.append(bindings.mem_alloc(data.nbytes))
    bindings.memcpy_htod(int(memory[1]), data)
    stream = bindings.Stream()
    places = int(memory[0]), int(memory[1])
    bindings.memcpy_peer_async(*places, data.nbytes, *contexts, stream)
    bindings.Event().record(stream).synchronize()
    contexts[0].push()
    bindings.memcpy_dtoh(found, places[0])
    assert np.array_equal(found, data)
    assert bindings.Device(0).can_access_peer(bindings.Device(1))
    bindings.Context.enable_peer_access(contexts[1])
    with pytest.raises(bindings.LogicError, match="hipErrorPeerAccessAlreadyEnabled"):
        bindings.Context.enable_peer_access(contexts[1])


def test_memory_of_a_cycle_is_freed_after_the_wait_for_it(library):
    """Destructors of a cycle are called after weak references to what is in it."""

    def wait():
        library.calls.append("waited")

    buffer = CudaBuffer(bindings.mem_alloc(64), 64, wait)
    buffer.itself = buffer
    library.calls.clear()
    del buffer
    gc.collect()
    done = [name for name in library.calls if name in ("waited", "hipFree")]
    assert done == ["waited", "hipFree"]


@pytest.mark.parametrize("apart", [False, True])
def test_handles_are_released_on_their_gpu_and_the_current_one_stays(library, apart):
    """By whichever thread lets the last reference go."""
    bindings.Context(1).push()
    things = [bindings.Stream(), bindings.Event(), bindings.mem_alloc(64)]
    things += [bindings.pagelocked_empty(8, np.uint8)]
    bindings.Context(2).push()
    library.calls.clear()
    if apart:
        thread = threading.Thread(target=things.clear)
        thread.start()
        thread.join()
    else:
        things.clear()
    released = [name for name in library.calls if "Get" not in name and "Set" not in name]
    assert sorted(released) == ["hipEventDestroy", "hipFree", "hipHostFree", "hipStreamDestroy"]
    assert bindings._made("hipGetDevice", kind=ctypes.c_int) == 2


def test_events_are_reached_when_the_work_before_them_has_ended(library, stream):
    event = bindings.Event().record(stream)
    event.synchronize()
    assert event.query()
    library.failing["hipEventQuery"] = 600
    assert not event.query()
    library.failing["hipEventQuery"] = 719
    with pytest.raises(bindings.LogicError, match="hipEventQuery failed: hipErrorLaunchFailure"):
        event.query()


@pytest.mark.parametrize(("code", "kind"), [(2, "MemoryError"), (719, "LogicError")])
def test_whatever_fails_is_said_in_the_words_of_the_library(library, code, kind):
    """All calls go the same way."""
    for name, call in (
        ("hipGetDeviceCount", bindings.Device.count),
        ("hipStreamCreate", bindings.Stream),
        ("hipMalloc", lambda: bindings.mem_alloc(64)),
        ("hipModuleLoad", lambda: bindings.module_from_file("nowhere.hsaco")),
    ):
        library.failing = {name: code}
        with pytest.raises(getattr(bindings, kind), match=f"{name} failed: {WORDS[code]}"):
            call()
    library.failing = {}


def test_a_release_without_a_function_is_named(library, monkeypatch):
    monkeypatch.delitem(SIGNATURES, "hipMemGetInfo")
    with pytest.raises(bindings.LogicError, match="HIP's library has no hipMemGetInfo"):
        bindings.mem_get_info()


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"AMD Instinct MI210".ljust(396, b"\0") + b"gfx90a:sramecc+:xnack-\0", "gfx90a"),
        (b"gfx1030".ljust(256, b"\0") + bytes(904) + b"gfx1032\0", "gfx1032"),
        (b"AMD Radeon Graphics".ljust(1160, b"\0") + b"gfx1100\0", "gfx1100"),
        (b"AMD Instinct MI300X".ljust(1160, b"\0") + b"gfx942:sramecc+:xnack-\0", "gfx942"),
        (b"Some GPU\0", None),
    ],
)
def test_the_architecture_is_found_in_the_properties_of_any_release(library, content, expected):
    def write(data, ordinal):
        ctypes.memmove(data, content, len(content))
        return 0

    library.hipGetDeviceProperties = write
    gpu = bindings.Device(0)
    if expected:
        assert gpu.architecture() == expected
        return
    with pytest.raises(bindings.LogicError, match="hipGetDeviceProperties names no architecture"):
        gpu.architecture()


def test_a_machine_without_the_library(monkeypatch):
    monkeypatch.setattr(loader, "hip_library", lambda: None)
    with pytest.raises(GaugeError, match=r"HIP's library libamdhip64\.so was not found: install"):
        driver.load_driver()


@pytest.mark.parametrize("closed", [False, True])
def test_a_machine_without_a_gpu_that_can_be_used(library, monkeypatch, tmp_path, closed):
    library.failing["hipInit"] = 100
    place = tmp_path / "kfd"
    monkeypatch.setattr(driver, "INTERFACE", place)
    sentence = r"HIP finds no usable GPU \(hipInit failed: hipErrorNoDevice\): check the output of"
    if closed:
        place.touch()
        monkeypatch.setattr(driver.os, "access", lambda *_: False)
        sentence = f"The GPU cannot be used: you may not open {place}: run `sudo usermod"
    with pytest.raises(GaugeError, match=sentence):
        driver.load_driver()


def test_gpus_are_those_with_compute_units_among_the_nodes_of_the_system(monkeypatch, tmp_path):
    for number, units in enumerate((0, 440, 440)):
        node = tmp_path / str(number)
        node.mkdir()
        (node / "properties").write_text(f"cpu_cores_count 0\nsimd_count {units}\nmem 1\n")
    monkeypatch.setattr(driver, "NODES", tmp_path)
    assert driver.gpus_of_system() == 2
    monkeypatch.setattr(driver, "NODES", tmp_path / "none")
    assert driver.gpus_of_system() == 0


def test_the_real_library_without_a_gpu():
    if loader.hip_library() is None or driver.gpus_of_system():
        pytest.skip("this needs HIP's library, and no GPU")
    with pytest.raises(GaugeError, match=r"HIP finds no usable GPU \(hipInit failed: hipError"):
        driver.load_driver()
