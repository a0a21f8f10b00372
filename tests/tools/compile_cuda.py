"""Compile all kernels for GPUs with warnings as errors; this needs a compiler but no GPU.

python tests/tools/compile_cuda.py [--backend cuda] [--architecture sm_90] [--jobs 2] [--changed]
    [--share NUMBER/PARTS] [--values] [--compiler libnvrtc.so.13]

For NVIDIA GPUs the compiler is nvcc or NVRTC, for AMD GPUs, with --backend hip, it is hipcc, and,
with --backend clang, a newer Clang for GPUs that hipcc does not know; see `device_libraries`.

Print the registers that each variant needs and the bytes that it spills. Variants are left out only
as `variants` says and, with --changed, if neither has a source of the kernel changed, as `changes`
says, nor does --share choose the kernel, or if others cover them: each kernel is compiled with each
of its choices, and any two choices meet in some kernel, but not with --values. Strict variants must
have no instruction whose result another processor does not have; see `Toolchain.loose`.
"""

import argparse
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from gauge_mc import defaults
from gauge_mc.actions import ACTIONS
from gauge_mc.devices.cache import run_compiler
from gauge_mc.devices.cuda.compiler import CudaCompiler, GpuCompiler, find_cuda_compiler
from gauge_mc.devices.cuda.kernel import default_bounds
from gauge_mc.devices.hip.compiler import QUIET, HipCompiler, find_hip_compiler, resources_of
from gauge_mc.devices.kernels import REAL_BYTES, Kernel, Variant
from gauge_mc.devices.source import included, source_folders
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError
from gauge_mc.fields.file_links import GROUP_LINKS, MATRICES
from gauge_mc.fields.gradient_flow import FLOW_FORCE, FLOW_STAGE
from gauge_mc.flows import FLOWS
from gauge_mc.formats import FORMATS
from gauge_mc.groups import GROUPS, GeneralGroup
from gauge_mc.random import GENERATORS
from gauge_mc.updates.heatbath import MANY_REPLICAS, ONE_REPLICA
from gauge_mc.updates.sweep import ROUNDED, UNBIASED, norms_of

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tests.covers import beyond_pairs, beyond_values
from tests.samples import all_of
from tests.tools.changes import changed_files
from tests.tools.device_libraries import find_newer_compiler
from tests.tools.share import is_chosen

FILE_ORDERS = {
    one.stored(Lattice(2, 2, 2, 2), group, precision).order.choice
    for one in FORMATS.values()
    if one.suffix
    for group, precision in product(GROUPS.values(), REAL_BYTES)
    if one.refusal(group, precision) is None
}

COLOURINGS = {
    one: action.colouring.choice
    for action in ACTIONS.values()
    for one in (action.choice, action.anisotropic)
    if one
}
"""The colouring of every action."""

COMMITS = 30
"""Commits whose changes are compiled again on main itself."""

CHOICES = {
    "group": [group.choice for group in GROUPS.values()],
    "law": [*dict.fromkeys(group.law for group in GROUPS.values())],
    "action": list(COLOURINGS),
    "random": [generator.choice() for generator in GENERATORS.values()],
    "file_order": list(FILE_ORDERS),
    "content": [GROUP_LINKS, MATRICES],
    "replicas": [ONE_REPLICA, MANY_REPLICAS],
    "norms": [ROUNDED, UNBIASED],
}
for own in all_of("CHOICES", "kernel_choices"):
    CHOICES |= own
"""All choices by kind, also of extensions, with generators at their default quality level."""

GENERAL = [group for group in GROUPS.values() if isinstance(group, GeneralGroup)]
LARGER = {group.choice for group in GENERAL[1:]}
ESSENTIAL = {Kernel(name) for name in ("heatbath", "overrelaxation", "plaquette")}
"""All groups with the general code are one template, so that the kernels are compiled for the
smallest, and for the larger ones only those of a run, with the Wilson action, Philox and single
precision."""

ANISOTROPIC_FLOW = FLOWS["wilson"].with_anisotropy(2.0)
FLOW_ACTIONS = [*dict.fromkeys(flow.action for flow in (*FLOWS.values(), ANISOTROPIC_FLOW))]
"""Actions that flows follow, for the kernels of the gradient flow."""


def variants(kernel: Kernel) -> Iterator[Variant]:
    """Yield the variants of a kernel that are compiled.

    Left out are larger groups with the same template, combinations of an action, a generator,
    indices of 64 bits and strictness of which two are not the default, and these indices in double
    precision.
    """
    for variant in all_variants(kernel):
        usual = LARGER.isdisjoint(variant.choices) or is_essential(kernel, variant)
        if usual and not is_product(variant):
            yield variant


def is_product(variant: Variant) -> bool:
    """Return whether two of action, generator, norms, indices and strictness are not the default.

    The staples of an action, the numbers of a generator, the norms of links and the type of indices
    do not meet in the code, nor do indices and precision, so that it is enough to compile each with
    the others' usual. Strictness is in what all have in common. Norms without a bias are for
    single precision.
    """
    usual = {ACTIONS[defaults.ACTION].choice, GENERATORS[defaults.RNG].choice(), ROUNDED}
    parts = {one for one in variant.choices if one.kind in ("action", "random", "norms")}
    unusual = len(parts - usual) + variant.large + variant.strict
    only_single = variant.large or UNBIASED in parts
    return unusual > 1 or (only_single and variant.precision == "double")


def is_essential(kernel: Kernel, variant: Variant) -> bool:
    """Return whether a variant for a larger group is compiled."""
    usual = {
        *ACTIONS[defaults.ACTION].choices,
        GENERATORS[defaults.RNG].choice(),
        ONE_REPLICA,
        norms_of("single"),
        *CHOICES["law"],
        *LARGER,
    }
    small = variant.precision == "single" and not (variant.large or variant.strict)
    return kernel in ESSENTIAL and small and usual.issuperset(variant.choices)


def all_variants(kernel: Kernel) -> Iterator[Variant]:
    """Yield all variants of a kernel, for the choices on which it depends."""
    for several in all_of("variants_of", "kernel_choices"):
        if found := [*several(kernel, CHOICES)]:
            yield from found
            return
    choices = {**CHOICES, "action": FLOW_ACTIONS} if kernel in (FLOW_FORCE, FLOW_STAGE) else CHOICES
    kinds = (choices[kind] for kind in choices if kind in kernel.kinds)
    # Orders of files copy numbers, so that there is nothing to round.
    strict = (False,) if "file_order" in kernel.kinds else (False, True)
    for *choices, precision, large, exact in product(*kinds, REAL_BYTES, (False, True), strict):
        if "colouring" in kernel.kinds:
            choices += [COLOURINGS[one] for one in choices if one.kind == "action"]
        yield Variant(precision, tuple(choices), large=large, strict=exact)


PTX = re.compile(
    r"""
    ^\s* (?:@!?%p\d+\s+)?
    ( \w+(?:\.\w+)*\.(?:approx|full|ftz)[.\w]* | (?:add|sub|mul|mad)\.f(?:32|64) ) \s
    """,
    re.MULTILINE | re.VERBOSE,
)
"""Instructions of PTX that are not those of IEEE 754: approximations, subnormal numbers that become
0, and sums and products without a rounding, which the assembler may fuse.
"""

MEMORY = re.compile(r"^\s*(?:@!?%p\d+\s+)?(?:ld|st|atom|red)\.(?!param)", re.MULTILINE)
"""Instructions of PTX that need the memory, without those that read arguments."""

LLVM = re.compile(
    r"""
    \b( f(?:add|sub|mul|div|neg|rem)\ (?:\w+\ )*?(?:fast|reassoc|arcp|contract|afn)
    | llvm\.(?:fmuladd|exp2?|log(?:2|10)?|sin|cos|pow)\.\w+
    | llvm\.amdgcn\.(?:rcp|exp|log|sin|cos)\.f\w+ )\b
    | ( !fpmath | "denormal-fp-math(?:-f32)?"="preserve-sign )
    """,
    re.VERBOSE,
)
"""The same in LLVM's language: what may be reordered, fused or approximated, and functions of
which each machine has its own. Divisions and roots of the libraries are built from fused operations
behind an approximation.
"""


@dataclass(frozen=True)
class Toolchain:
    """The compilation of kernels for GPUs of a maker."""

    name: str
    """Name of the interface by which GPUs are used."""
    find: Callable[[], GpuCompiler | None]
    """Function that returns the compiler of this machine."""
    compiler: Callable[[str], GpuCompiler]
    """Function that returns the compiler in a file."""
    missing: str
    """Words for what was not found."""
    architecture: str
    """Architecture for which kernels are compiled by default."""
    warnings: Sequence[str]
    """Options for more warnings."""
    text: dict[str, Sequence[str]]
    """Options that take the place of others, to write what the assembler reads."""
    pattern: re.Pattern[str]
    """Pattern of what is not the same on all machines."""
    others: Sequence[str]
    """Patterns of headers that are not read."""
    wait: str = ""
    """Instruction, if there is one, that kernels must have before any that needs the memory."""

    def loose(self, text: str) -> list[str]:
        """Return the instructions that are not the same on all machines, each once."""
        return sorted({"".join(found) for found in self.pattern.findall(text)})

    def hasty(self, text: str) -> list[str]:
        """Return the functions that need the memory before they wait for the launch before."""
        functions = [one.partition("(") for one in text.split(".entry")[1:]]
        before = [(name.strip(), body.partition(self.wait)) for name, _, body in functions]
        return [name for name, (a, waits, _) in before if not waits or MEMORY.search(a)]


TOOLCHAINS = {
    "cuda": Toolchain(
        name="CUDA",
        find=find_cuda_compiler,
        compiler=CudaCompiler,
        missing="nvcc and NVRTC were",
        architecture="sm_90",
        warnings=("-Xcompiler", "-Wall,-Wextra"),
        text={"-cubin": ["-ptx"]},
        pattern=PTX,
        others=("arch/cpu*.h", "arch/hip.h"),
        wait="griddepcontrol.wait",
    ),
    "hip": Toolchain(
        name="HIP",
        find=find_hip_compiler,
        compiler=HipCompiler,
        missing="hipcc was",
        architecture="gfx90a",
        warnings=("-Wall", "-Wextra", *QUIET),  # which -Wall has brought back
        text={"-c": ["-S", "-emit-llvm"]},
        pattern=LLVM,
        others=("arch/cpu*.h",),
    ),
}
TOOLCHAINS["clang"] = replace(
    TOOLCHAINS["hip"],
    name="Clang",
    find=find_newer_compiler,
    missing="Clang 17 or later with the libraries of ROCm was",
    architecture="gfx942",
)


def sources_of(kernel: Kernel, tools: Toolchain) -> set[Path]:
    """Return the files from which a compiler makes the variants of a kernel."""
    paths = {path for variant in variants(kernel) for path in included(kernel.roots(variant))}
    return {path for path in paths if not any(map(path.match, tools.others))}


def cover(
    jobs: Sequence[tuple[Kernel, Variant]], values: bool = False
) -> list[tuple[Kernel, Variant]]:
    """Return variants in which every pair of a kernel and a choice, and of two choices, occurs.

    With `values`, it is only every kernel and every choice.
    """
    found = [
        {
            "kernel": kernel.name,
            "precision": variant.precision,
            "large": variant.large,
            "strict": variant.strict,
            **{one.kind: one for one in variant.choices},
        }
        for kernel, variant in jobs
    ]
    left_out = {*(beyond_values if values else beyond_pairs)(found)}
    return [job for number, job in enumerate(jobs) if number not in left_out]


def report(
    kernel: Kernel, variant: Variant, tools: Toolchain, compiler: GpuCompiler, architecture: str
) -> str:
    """Compile a variant and return a line with its register usage."""
    command = compiler.command(architecture, variant, default_bounds(variant))
    unit = kernel.translation_unit(variant, "Tile")
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / f"{kernel.name}.object"
        further = [] if getattr(compiler, "is_library", False) else tools.warnings
        printed = run_compiler(kernel.name, unit, [*command, *further], output)
        if warning := re.search(r".*\bwarning\b.*", printed, re.IGNORECASE):
            raise GaugeError(f"The kernel {kernel.name} ({variant}): {warning[0]}")
        if variant.strict:
            check_strict(kernel, unit, tools, command, Path(folder))
    needs = usage(printed, kernel.name, compiler)
    return f"{kernel.name:21}{variant!s:28}{'large' * variant.large:6}{needs}"


def usage(printed: str, function: str, compiler: GpuCompiler) -> str:
    """Return what a function needs, in words."""
    if found := resources_of(printed, function):
        needs = f"{found.shared:6} bytes of LDS {found.waves:2} waves"
        return f"{found.vectors:4} registers {found.spilled:4} bytes spilled {needs}"
    found = compiler.registers_of(printed, function)
    return f"{found.count:4} registers {found.spilled:4} bytes spilled" if found else printed


def check_strict(
    kernel: Kernel, unit: str, tools: Toolchain, command: Sequence[str], folder: Path
) -> None:
    """Compile a strict kernel to text, and refuse instructions that are not those of IEEE 754.

    Refuse kernels, too, that need the memory too early.

    Raises
    ------
    GaugeError
        If there are any.
    """
    output = folder / f"{kernel.name}.ptx"
    words = [new for one in command for new in tools.text.get(one, [one])]
    run_compiler(kernel.name, unit, words, output)
    text = output.read_text()
    if tools.wait and (found := tools.hasty(text)):
        raise GaugeError(
            f"In the kernel {kernel.name}, {', '.join(found)} needs the memory before it waits for "
            "the launch before it: call wait_for_launches first."
        )
    if found := tools.loose(text):
        raise GaugeError(
            f"The strict variant of the kernel {kernel.name} has {', '.join(found)}, whose results "
            "depend on the machine; compute them from operations of IEEE 754."
        )


def main() -> int:
    """Compile all variants; return 1 if any fails."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--backend", choices=TOOLCHAINS, default="cuda")
    parser.add_argument("--architecture", help="by default sm_90, gfx90a or gfx942")
    parser.add_argument("--compiler", help="file of nvcc, of the library NVRTC, or of hipcc")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument(
        "--changed",
        action="store_true",
        help="only a cover of the variants of kernels whose sources differ from main's",
    )
    parser.add_argument(
        "--values", action="store_true", help="a cover of all kernels and choices, but not of pairs"
    )
    parser.add_argument("--share", metavar="NUMBER/PARTS", help="with --changed: and some kernels")
    arguments = parser.parse_args()
    named, tools = arguments.compiler, TOOLCHAINS[arguments.backend]
    architecture = arguments.architecture or tools.architecture
    compiler = tools.compiler(named) if named else tools.find()
    if compiler is None:
        print(f"{tools.missing} not found: no {tools.name} kernels were compiled")
        return 0
    kernels = [
        Kernel(path.stem) for one in source_folders() for path in sorted(one.glob("kernels/*.cu"))
    ]
    if arguments.changed:
        changed, share = changed_files(COMMITS), arguments.share
        kernels = [
            kernel
            for kernel in kernels
            if changed & sources_of(kernel, tools) or (share and is_chosen(kernel.name, share))
        ]
    differing = [(kernel, variant) for kernel in kernels for variant in variants(kernel)]
    is_covered = arguments.changed or arguments.values
    chosen = cover(differing, arguments.values) if is_covered else differing
    with ThreadPoolExecutor(arguments.jobs) as pool:
        jobs = [
            pool.submit(report, kernel, variant, tools, compiler, architecture)
            for kernel, variant in chosen
        ]
        try:
            for job in jobs:
                print(job.result(), flush=True)
        except GaugeError as error:
            print(error)
            pool.shutdown(cancel_futures=True)
            return 1
    print(compiler)
    found = f"{len(jobs)} of {len(differing)} variants of {len(kernels)} kernels"
    print(f"{found} compiled for {architecture}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
