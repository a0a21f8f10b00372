"""The on-disk cache of compiled kernels."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from gauge_mc.devices import cache
from gauge_mc.devices.kernels import Kernel, Variant
from gauge_mc.errors import GaugeError
from gauge_mc.groups import GROUPS

GOOD, BAD = Kernel("plaquette"), Kernel("copy")
SU2 = Variant("single", (GROUPS["su2"].choice,))
SU3 = Variant("single", (GROUPS["su3"].choice,))


@pytest.fixture
def compilations(tmp_path, monkeypatch):
    """The kernels that were compiled, by a compiler that takes its time and knows one kernel."""
    monkeypatch.setenv("GAUGE_MC_CACHE", str(tmp_path / "cache"))
    done = []

    def run_compiler(kernel, unit, command, output):
        time.sleep(0.05)
        done.append((kernel, threading.get_ident()))
        if kernel != GOOD.name:
            raise GaugeError("failed")
        output.write_bytes(b"object")
        return "printed"

    monkeypatch.setattr(cache, "run_compiler", run_compiler)
    return done


def test_a_kernel_is_compiled_once_however_many_want_it(compilations):
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: cache.compiled(GOOD, SU2, ["c"], "", ".so"), range(8)))
    assert len(compilations) == 1
    path = found[0][0]
    assert found == 8 * [(path, "printed")]
    assert path.read_bytes() == b"object"
    cache.compiled(GOOD, SU2, ["c", "-O1"], "", ".so")
    assert len(compilations) == 2


def test_a_kernel_that_fails_is_left_for_the_next_to_try(compilations):
    for _ in range(2):
        with pytest.raises(GaugeError, match="failed"):
            cache.compiled(BAD, SU2, ["c"], "", ".so")
    assert len(compilations) == 2


def test_a_kernel_is_compiled_anew_for_whatever_it_depends_on(compilations):
    ways = [
        (SU2, ["c"], "", ".so"),
        (SU3, ["c"], "", ".so"),
        (SU2, ["d"], "", ".so"),
        (SU2, ["c"], "another version", ".so"),
        (SU2, ["c"], "", ".cubin"),
        (SU2, ["c"], "", ".so", "Tile"),
    ]
    paths = [cache.compiled(GOOD, *way)[0] for way in ways for _ in range(2)]
    assert len(set(paths)) == len(compilations) == len(ways)


def test_clearing_removes_everything(compilations):
    path, _ = cache.compiled(GOOD, SU2, ["c"], "", ".so")
    files = [one for one in cache.cache_folder().rglob("*") if one.is_file()]
    assert path in files
    assert cache.clear_cache() == len(files)
    assert not cache.cache_folder().exists()
    assert cache.clear_cache() == 0
    cache.compiled(GOOD, SU2, ["c"], "", ".so")
    assert len(compilations) == 2


def test_a_folder_that_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("GAUGE_MC_CACHE", str(tmp_path / "file"))
    with pytest.raises(GaugeError, match="name another folder in the environment variable"):
        cache.compiled(GOOD, SU2, ["c"], "", ".so")
