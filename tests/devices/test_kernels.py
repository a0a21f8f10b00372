"""Kernels: what they depend on, their arguments, and that Python and C++ agree about these."""

import shutil
import subprocess
import tempfile
from itertools import cycle, islice
from pathlib import Path

import pytest

from gauge_mc.actions import ACTIONS
from gauge_mc.devices.cache import run_compiler
from gauge_mc.devices.cpu import compiler
from gauge_mc.devices.cuda.compiler import CudaCompiler, find_cuda_compiler
from gauge_mc.devices.cuda.kernel import DEFAULT
from gauge_mc.devices.kernels import Choice, Kernel, Variant
from gauge_mc.devices.source import source_folders
from gauge_mc.domain.lattice import Lattice
from gauge_mc.domain.slab import Layout, work
from gauge_mc.errors import GaugeError
from gauge_mc.fields.file_links import GROUP_LINKS, MATRICES
from gauge_mc.formats.programs import BY_ODD_SITE
from gauge_mc.groups import GROUPS
from gauge_mc.random import GENERATORS
from gauge_mc.storage.links import BY_SITE
from gauge_mc.updates.heatbath import MANY_REPLICAS, ONE_REPLICA
from gauge_mc.updates.sweep import ROUNDED, UNBIASED
from tests import emulator
from tests.samples import all_of

KERNELS = [
    Kernel(path.stem) for one in source_folders() for path in sorted(one.glob("kernels/*.cu"))
]
SU3, WILSON = GROUPS["su3"].choices, ACTIONS["wilson"].choices
PHILOX = GENERATORS["philox"].choice()
VARIANT = Variant("single", (*SU3, *WILSON, UNBIASED, PHILOX, ONE_REPLICA))
LAYOUT = Layout(Lattice(4, 4, 4, 4), "single", (1, 1, 1), 0, 0, 4)


def every_choice():
    """Return variants among which are all headers of groups, actions, generators and precisions."""
    kinds = [
        [GROUPS[name].choices for name in ("su2", "su3", "su4")],
        [one.choices for one in ACTIONS.values()],
        [ONE_REPLICA, MANY_REPLICAS],
        [ROUNDED, UNBIASED],
        [one.choice() for one in GENERATORS.values()],
        [BY_SITE.choice, BY_ODD_SITE.choice],
        [GROUP_LINKS, MATRICES],
        *(kind for several in all_of("SOME_CHOICES", "kernel_choices") for kind in several),
        ["single", "double"],
        [compiler.register_bytes() // 8, 1],
    ]
    rows = zip(*(islice(cycle(kind), max(map(len, kinds))) for kind in kinds), strict=True)
    return [
        Variant(precision, (*group, *action, *choices), lanes)
        for group, action, *choices, precision, lanes in rows
    ]


def enough_variants(kernel):
    """Yield variants of a kernel, each with a header, precision or number of lanes that is new."""
    seen = set()
    for variant in map(kernel.narrowed, every_choice()):
        parts = {*variant.choices, variant.precision, variant.lanes}
        if parts - seen:
            yield variant
        seen |= parts


# What kernels depend on


def test_the_digest_is_of_the_sources_that_a_kernel_depends_on(tmp_path):
    def digest(name, text, *choices):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "plaquette.cu").write_text(text)
        return Kernel("plaquette", folder).digest(Variant("single", choices))

    text = Kernel("plaquette").source.read_text()
    assert digest("a", text, *SU3) == Kernel("plaquette").digest(VARIANT)
    assert digest("b", text, GROUPS["su2"].choice) != Kernel("plaquette").digest(VARIANT)
    assert digest("c", text + "// changed\n", *SU3) != Kernel("plaquette").digest(VARIANT)


# Arguments

LOOPS = {
    "geometry": LAYOUT.geometry,
    "work": work(0, 1, 4, 2),
    "links": 4096,
    "steps": 16384,
    "lines": 8192,
    "upper": 8192,
    "longer": None,
    "end": (1, 2, 3),
    "first": 1,
    "count": 8,
    "slices": 4,
    "lengthened": 4,
    "sums": 12288,
}


@pytest.mark.parametrize(
    ("name", "value", "cpp"),
    [
        ("first", 1.5, "int"),
        ("first", 2**31, "int"),
        ("links", 0.5, "GROUP::Field"),
        ("links", -1, "GROUP::Field"),
        ("sums", 2.0, r"double\*"),
        ("end", 3, r"int\[3\]"),
        ("end", (1, 2), r"int\[3\]"),
        ("work", LAYOUT.geometry, "Work"),
        ("geometry", None, "Geometry"),
    ],
)
def test_an_argument_of_the_wrong_type_is_named(name, value, cpp):
    sentence = f"The argument {name} of the kernel wilson_loops is .* not a value of type {cpp}"
    with pytest.raises(TypeError, match=sentence):
        Kernel("wilson_loops").arguments(VARIANT, **{**LOOPS, name: value})


# Python and C++ agree about arguments


@pytest.fixture(
    params=[
        "C++ compiler",
        pytest.param("emulated nvcc", marks=pytest.mark.slow),
        pytest.param("CUDA compiler", marks=pytest.mark.slow),
    ]
)
def build(request, tmp_path):
    """Compile a kernel as a device does: for the CPU, or for a GPU, perhaps emulated."""
    if request.param == "C++ compiler":
        cuda = None
    elif request.param == "emulated nvcc":
        cuda = CudaCompiler(str(emulator.NVCC))
    else:
        cuda = find_cuda_compiler()
        if cuda is None:
            pytest.skip("There is no CUDA compiler on this machine.")

    def compile_text(text, *choices, precision="single"):
        folder = Path(tempfile.mkdtemp(dir=tmp_path))
        (folder / "tiny.cu").write_text(text)
        kernel, variant = Kernel("tiny", folder), Variant(precision, choices)
        if cuda:
            command = cuda.command("sm_80", variant, DEFAULT)
            unit = kernel.translation_unit(variant, "Tile")
        else:
            command = [*compiler.find_compiler().words, *compiler.FLAGS, "-O0"]
            command += variant.definitions
            unit = kernel.translation_unit(variant)
        return run_compiler("tiny", unit, command, folder / "built.object")

    return compile_text


TINY = """
#include "arch/launch.h"
{before}
struct Arguments {{
    Geometry geometry;
    Work work;
    {member}
    int* last;
}};
INLINE void tiny_site(const Arguments& a, const Site& site) {{ a.last[site.slot] = 1; }}
SITE_KERNEL(tiny, tiny_site)
"""


@pytest.mark.parametrize(
    ("before", "member"),
    [
        ("", "int a; double b;"),
        ("constexpr int N = 3;", "float a[N][2]; unsigned* b[2]; unsigned long long c;"),
        ("struct Field { double* at; };", "Field field;"),
        ("struct Inner { float a, b; }; struct Part { Inner inner[2]; int n; };", "Part part;"),
    ],
)
def test_what_is_read_rightly_is_compiled(build, before, member):
    build(TINY.format(before=before, member=member))


@pytest.mark.kernels
@pytest.mark.parametrize(
    ("before", "member", "named"),
    [
        ("", "short number;", "Arguments::number"),
        ("", "bool flag;", "Arguments::flag"),
        ("", "size_t bytes;", "Arguments::bytes"),
        ("", "scalar weight;", "Arguments::weight"),
        ("enum Way : long long { UP };", "Way way;", "Arguments::way"),
        ("typedef struct { double a, b; } Pair;", "Pair pair;", "Arguments::pair"),
        ("struct Part { int n; short m; };", "Part part;", "Part::m"),
        ("struct Inner { bool b; }; struct Part { Inner inner[2]; };", "Part part;", "Inner::b"),
        ("#define int long", "int number;\n#undef int\n", "Arguments::number"),
        ("", "alignas(64) char room[64];", "Arguments::last"),
    ],
)
def test_a_member_that_is_read_wrongly_fails_the_build(build, before, member, named, precision):
    sentence = f"The kernel 'tiny' declares {named} in a way that Python cannot read: use only"
    with pytest.raises(GaugeError, match=sentence):
        build(TINY.format(before=before, member=member), precision=precision)


def test_coefficients_that_are_read_wrongly_fail_the_build(build, tmp_path):
    header = tmp_path / "odd.h"
    choice = Choice.of("action", "odd", header, "Odd")
    text = TINY.format(before='#include "action/action.h"', member="ACTION::Coefficients action;")
    header.write_text("struct Odd { struct Coefficients { double c0; short c1; }; };")
    with pytest.raises(GaugeError, match="declares Coefficients::c1 in a way that Python"):
        build(text, choice)


@pytest.mark.parametrize(
    ("member", "after", "message"),
    [
        ("int a; int a;", "", r"\ba\b"),
        ("Unknown a;", "", "Unknown"),
        ("", "int rubbish = unknown;", "unknown"),
        ("", "static_assert(sizeof(int) == 3);", "assert"),
        ("", 'static_assert(sizeof(int) == 3, "strange");', "strange"),
    ],
)
def test_other_errors_are_the_compilers(build, member, after, message):
    said = rf"^The kernel 'tiny' cannot be compiled: .*tiny.cu[:(]\d+.*{message}[^`]*$"
    with pytest.raises(GaugeError, match=said):
        build(TINY.format(before="", member=member) + after)


# Warnings


@pytest.mark.every
@pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not on this machine.")
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_kernels_compile_without_warnings(kernel):
    folders = [f"-I{one}" for one in source_folders()]
    options = [*compiler.FLAGS, "-Werror", "-fsyntax-only", *folders]
    for variant in enough_variants(kernel):
        done = subprocess.run(
            ["g++", *options, *variant.definitions, "-"],
            input=kernel.translation_unit(variant),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
