"""What Python reads of the kernel sources."""

import ctypes
from pathlib import Path

import pytest

from gauge_mc.devices.source import members, structure
from gauge_mc.errors import GaugeError

SOURCE = """
#include "part.h"
constexpr int ROWS = 2, COLUMNS = 3;      // both are read
constexpr int CELLS = ROWS * (COLUMNS - 1) + 8 / 2, HUGE = sizeof(double);
constexpr double HALF = 0.5;
/* struct Arguments { int commented; }; */
struct Arguments {
    Part part;                 // a structure
    unsigned key[ROWS], step[COLUMNS];
    const double* partial;     // a pointer to constants
    float *a, b;
    Matrix links;
    long long table[ROWS][COLUMNS];
    static const int IGNORED = 1;
    int size() const { return ROWS; }
};
"""
PART = """
struct Inner { int x; };
struct Part {
    Inner inner;
    double weight;
};
"""


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


@pytest.fixture
def roots(tmp_path):
    return (write(tmp_path, part_h=PART, some_cu=SOURCE),)


def test_structures_are_laid_out_as_in_cpp(roots):
    kind = structure("Arguments", roots)
    offsets = {name: getattr(kind, name).offset for name, _ in kind._fields_}
    assert offsets == {
        "part": 0,
        "key": 16,
        "step": 24,
        "partial": 40,
        "a": 48,
        "b": 56,
        "links": 64,
        "table": 72,
    }
    assert ctypes.sizeof(kind) == 120
    filled = kind(**WHOLE)
    assert filled.part.inner.x == 7
    assert filled.table[1][2] == 6
    assert structure("Part", roots) is type(filled.part)


NESTED = """
#include "part.h"
struct Outer { Part parts[2]; Inner inner; float factor; unsigned long long large; };
"""
OUTER = {"parts": (((1,), 0.5), ((2,), 1.5)), "inner": (3,), "factor": 0.1, "large": 2**64 - 1}


@pytest.fixture
def outer(tmp_path):
    """Structures in structures, and in arrays in structures."""
    return structure("Outer", (write(tmp_path, part_h=PART, nested_h=NESTED),))


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("parts", (((1,), 0.5), ((2,),))),
        ("parts", (((1,), 0.5), ((2**31,), 1.5))),
        ("parts", (((1,), 0.5), ((2,), "a weight"))),
        ("inner", ()),
        ("large", 2**64),
        ("factor", 10**400),
    ],
)
def test_what_a_member_at_any_depth_cannot_hold_is_refused(member, value, outer):
    sentence = f"The member {member} of the structure Outer in .*nested.h is .* not a value of type"
    with pytest.raises(TypeError, match=sentence):
        outer(**{**OUTER, member: value})


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
