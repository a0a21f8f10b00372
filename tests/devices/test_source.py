"""What Python reads of the kernel sources."""

import re
from pathlib import Path

import pytest

from gauge_mc.devices.source import members, source_folders
from gauge_mc.errors import GaugeError

WHOLE = {
    "part": ((7,), 0.5),
    "key": (1, 2),
    "step": (1, 2, 3),
    "partial": None,
    "a": 4096,
    "b": 0.1,
    "links": 0,
    "table": ((1, 2, 3), (4, 5, 6)),
}
"""Values of all members of the structure ``Arguments``."""


def write(folder: Path, **files: str) -> Path:
    """Write source files; return the last one."""
    for name, text in files.items():
        path = folder / name.replace("_", ".")
        path.write_text(text)
    return path


def test_of_several_declarations_that_in_a_root_counts(tmp_path):
    """An action may include another one, which has coefficients of its own."""
    one = write(tmp_path, one_h="struct One { struct Coefficients { double a; }; };")
    two = write(
        tmp_path, two_h='#include "one.h"\nstruct Two { struct Coefficients { double b, c; }; };'
    )
    kernel = write(tmp_path, kernel_cu="#include ACTION_HEADER\n")
    for header, names in ((one, ["a"]), (two, ["b", "c"])):
        found = members("ACTION::Coefficients", (header, kernel))
        assert [member.name for member in found] == names


@pytest.mark.parametrize(
    ("declaration", "sentence"),
    [
        ("struct Arguments : Base { int a; };", "No structure Arguments is declared in .*bad.cu"),
        ("struct Arguments { int a : 3; };", "The member 'int a : 3' of Arguments in .*bad.cu"),
        ("struct Arguments {\n#if A == 1\nint a;\n#endif\n};", "member '#if A == 1 int a' of"),
        ("struct Arguments { int (&a)[2]; int b = 1; };", "The member 'int b = 1' of Arguments"),
    ],
)
def test_what_cannot_be_read_is_refused(declaration, sentence, tmp_path):
    path = write(tmp_path, bad_cu=declaration)
    with pytest.raises(GaugeError, match=sentence):
        members("Arguments", (path,))


def test_only_arch_knows_the_machine():
    paths = [
        path for one in source_folders() for path in one.rglob("*") if path.suffix in (".h", ".cu")
    ]
    naming = {path.parent.name for path in paths if re.search("__(CUDACC|HIP)__", path.read_text())}
    assert len(paths) > 20
    assert naming == {"arch"}
