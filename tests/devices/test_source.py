"""What Python reads of the kernel sources."""

import ctypes
from pathlib import Path

import pytest

from gauge_mc.devices.source import (
    constants,
    digest_of,
    included,
    members,
    source_folder,
    structure,
)
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


def write(folder: Path, **files: str) -> Path:
    """Write source files; return the last one."""
    for name, text in files.items():
        path = folder / name.replace("_", ".")
        path.write_text(text)
    return path


@pytest.fixture
def roots(tmp_path):
    return (write(tmp_path, part_h=PART, some_cu=SOURCE),)


def test_members_of_a_structure(roots):
    found = {one.name: (one.cpp, one.extents) for one in members("Arguments", roots)}
    assert found == {
        "part": ("Part", ()),
        "key": ("unsigned", (2,)),
        "step": ("unsigned", (3,)),
        "partial": ("double*", ()),
        "a": ("float*", ()),
        "b": ("float", ()),
        "links": ("Matrix", ()),
        "table": ("long long", (2, 3)),
    }


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
    filled = kind(part=((7,), 0.5), table=((1, 2, 3), (4, 5, 6)))
    assert filled.part.inner.x == 7
    assert filled.table[1][2] == 6
    assert structure("Part", roots) is type(filled.part)


def test_a_declaration_is_one_class_whichever_source_includes_it(roots, tmp_path):
    other = (write(tmp_path, other_cu='#include "part.h"\n'),)
    assert structure("Part", roots) is structure("Part", other)


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


def test_constants_that_can_be_evaluated(roots):
    assert constants(roots[0]) == {"ROWS": 2, "COLUMNS": 3, "CELLS": 8}


def test_includes_come_once_and_the_innermost_first(roots, tmp_path):
    twice = write(tmp_path, twice_cu='#include "part.h"\n#  include "some.cu"\n#include <vector>\n')
    names = [path.name for path in included((twice,))]
    assert names == ["part.h", "some.cu", "twice.cu"]
    arch = included((source_folder() / "arch" / "arch.h",))
    assert {"cpu.h", "gpu.h"} <= {path.name for path in arch}


def test_digests_tell_contents_apart_but_not_folders(roots, tmp_path):
    (tmp_path / "copy").mkdir()
    copy = write(tmp_path / "copy", part_h=PART, some_cu=SOURCE)
    assert digest_of(included((copy,))) == digest_of(included(roots))
    before = digest_of(included(roots))
    (tmp_path / "part.h").write_text(PART.replace("weight", "height"))
    assert digest_of(included(roots)) != before


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
    paths = [path for path in source_folder().rglob("*") if path.suffix in (".h", ".cu")]
    naming = {path.parent.name for path in paths if "__CUDACC__" in path.read_text()}
    assert len(paths) > 20
    assert naming == {"arch"}
