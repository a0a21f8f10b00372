"""ARM processors, emulated: the bits of strict kernels are those of x86, and usual ones are right.

All other tests of kernels can be run on these processors as well; see the plugin `tests.qemu`.
"""

from dataclasses import replace

import pytest

from tests.qemu import PROCESSORS, EmulatedDevice
from tests.qemu.arm import NEEDS, open_processor, processors

pytestmark = NEEDS


@pytest.fixture
def device(name):
    with open_processor(name) as device:
        yield device


@processors(*PROCESSORS)
def test_a_process_has_the_vectors_for_which_kernels_are_compiled(name, device):
    """And a processor with others is refused."""
    one = PROCESSORS[name]
    assert device.lanes("single") == one.register_bytes / 4
    with pytest.raises(AssertionError, match=f"Vectors have {one.vector_bytes} bytes"):
        EmulatedDevice(replace(one, vector_bytes=one.vector_bytes + 16))
