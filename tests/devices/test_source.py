"""The cache of compiled kernels."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from gauge_mc.devices import source
from gauge_mc.errors import GaugeError


@pytest.fixture
def compilations(tmp_path, monkeypatch):
    """The kernels that were compiled, by a compiler that takes its time and knows one kernel."""
    monkeypatch.setenv("GAUGE_MC_CACHE", str(tmp_path / "cache"))
    done = []

    def run_compiler(kernel, command, output):
        time.sleep(0.05)
        done.append((kernel, threading.get_ident()))
        if kernel != "good":
            raise GaugeError("failed")
        output.write_bytes(b"object")
        return "printed"

    monkeypatch.setattr(source, "run_compiler", run_compiler)
    return done


def test_a_kernel_is_compiled_once_however_many_want_it(compilations):
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: source.compiled("good", ["c"], "", ".so"), range(8)))
    assert len(compilations) == 1
    path = found[0][0]
    assert found == 8 * [(path, "printed")]
    assert path.read_bytes() == b"object"
    source.compiled("good", ["c", "-O1"], "", ".so")
    assert len(compilations) == 2


def test_one_that_fails_leaves_the_next_to_try(compilations):
    for _ in range(2):
        with pytest.raises(GaugeError, match="failed"):
            source.compiled("bad", ["c"], "", ".so")
    assert len(compilations) == 2
