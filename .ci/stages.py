"""The checks of every change, on a clean checkout without a GPU: the stages of a table.

Of the files with slow tests a quarter is tried, of the pages a half, of kernels for GPUs and of files with tests on
emulated GPUs a sixth, of stages for what rarely breaks a third. A checksum of the sources chooses them, so that each
version of the sources tries others, and the same version the same ones. Kernels that have changed are always compiled.
Once a day, and before a release, all are tried: --every. Stages that run aside are shown when they have ended.
"""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from tests.documentation.blocks import guides
from tests.tools.share import is_chosen, number_of_sources

MOST = "not every and not faults and not gpu"
WARNINGS = re.compile(r"warning: (?!.*(maybe-uninitialized|loop annotation))")


class Stage(NamedTuple):
    """A command of the shell; aside, if it runs beside those that follow; once in `share` versions of the sources."""

    name: str
    command: str
    aside: bool = False
    share: int = 1


def find_python(version: str) -> str | None:
    """Return an interpreter of a version that starts, if there is one."""
    installed = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser().glob(f"versions/{version}.*/bin/python3")
    candidates = filter(None, [*map(str, installed), shutil.which(f"python{version}")])
    return next((x for x in candidates if not subprocess.run([x, "-c", ""], capture_output=True).returncode), None)


def table(number: int, every: bool, coverage: bool) -> list[Stage]:
    """Return all stages, with the shares that a number chooses."""
    share = dict.fromkeys((4, 6), "") if every else {n: f"--share {number}/{n}" for n in (4, 6)}
    slow = "(slow or every)" if every else "slow"
    shown = "--durations=40 --durations-min=4 --forbid-warnings" + " --cov --cov-append --cov-report=" * coverage
    tests = re.search(r"^python3 -m venv .* pytest.*$", Path("README.md").read_text(), re.M)[0]
    tests = tests.replace("[test]", "[dev]") if coverage else tests
    project = " ".join(f"--besides={path}" for path in sorted(Path("tests").glob("test_*.py")))  # of all sources
    kernels = f".venv/bin/python tests/tools/compile_cuda.py {'' if every else f'--changed {share[6]}'}"
    # The first differs most from all others, because it has the smallest registers and no fused operations.
    processors = ["Prescott", "Nehalem", "Sandybridge", "Haswell", "SkylakeX"]
    processors = processors[: (5 if "avx512f" in Path("/proc/cpuinfo").read_text() else 4) if every else 1]
    pythons = {version: find_python(version) for version in (("3.11", "3.12", "3.13") if every else ("3.13",))}
    pages = "\n".join(line for line in guides(ROOT) if every or is_chosen(line, f"{number}/2"))
    return [
        Stage("quick tests", f"export PYTEST_ADDOPTS='{shown}{' --budget' * (not coverage)}'; {tests}"),
        Stage("environment", "get_environment"),
        *(Stage(f"Python {version}", f"try_sample {path}", True, 3) for version, path in pythons.items() if path),
        Stage("oldest dependencies", "try_oldest", True, 3),
        Stage("CUDA kernels", f"{kernels} --jobs 2", True),
        Stage("HIP kernels", f"{kernels} --backend hip --values --jobs 1", True),
        Stage("HIP kernels by Clang", f"{kernels} --backend clang --values --jobs 1", True),
        Stage("slow tests", f"$PYTEST -n 3 -m '{slow} and not gpu' {share[4]} {project} {shown}"),
        Stage("linter and types", ".venv/bin/ruff check .; .venv/bin/ruff format --check .; .venv/bin/mypy", True),
        Stage("documentation", "try_documentation", True),
        Stage("core without extensions", "try_core", True),
        Stage("packages", "try_packages", True, 3),
        Stage("tests on emulated GPUs", f"$PYTEST -n 3 -m 'gpu and not slow' --emulate-gpu {share[6]} {shown}"),
        Stage("tests on emulated AMD GPUs", f"$PYTEST -n 3 -m 'gpu and not slow' --emulate-hip $ON_AMD {shown}"),
        *(Stage(f"numbers as on {name}", f"try_numbers {name} {share[4]}", True) for name in processors),
        Stage("registers", "try_registers", True),
        Stage("README", "try_pages 0 README.md runs/README.md", True),
        Stage("pages", f"try_guides <<'LINES'\n{pages}\nLINES"),
        *([Stage("coverage", ".venv/bin/coverage report --skip-covered --sort=cover --fail-under=90")] * coverage),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", action="store_true", help="try everything, with further processors and Pythons")
    parser.add_argument("--coverage", action="store_true", help="show which lines no test reaches")
    parser.add_argument("--kernels", type=Path, help="a folder that keeps compiled kernels for the next run")
    parser.add_argument("--list", action="store_true", help="print the stages with their commands, and stop")
    options = parser.parse_args()
    os.chdir(ROOT)
    number = number_of_sources(ROOT)
    stages = table(number, options.every, options.coverage)
    if not options.every:
        stages = [stage for stage in stages if is_chosen(stage.name, f"{number}/{stage.share}")]
    if options.list:
        print(*(f"== {stage.name}\n{stage.command}\n" for stage in stages), sep="\n")
        return 0
    shutil.rmtree(".venv", ignore_errors=True)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # every process would begin by compiling Python
    with tempfile.TemporaryDirectory() as temporary:
        cache = options.kernels.resolve() if options.kernels else Path(temporary, "kernels")
        cache.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in warned(cache):  # is compiled again, so that the warning is seen again
            path.unlink()
        os.environ |= {"GAUGE_MC_CACHE": str(cache), "TEMPORARY": temporary, "PIP_COMPILE": "0", "MOST": MOST}
        failed = run(stages, Path(temporary))
        failed += [f"warnings in {path.name}" for path in warned(cache)]  # of pages; those of tests fail
    print(f"\n== {'failed: ' + ', '.join(failed) if failed else 'all passed'}")
    return 1 if failed else 0


def warned(cache: Path) -> list[Path]:
    """Return what the compiler has printed about kernels in the cache that gave warnings."""
    return [path for path in cache.rglob("*.txt") if WARNINGS.search(path.read_text(errors="replace"))]


def run(stages: list[Stage], temporary: Path) -> list[str]:
    """Run stages, also after one that fails, and return the names of those that have failed."""
    began, failed, jobs = time.monotonic(), [], []

    def start(stage: Stage, **options) -> None:
        shown = f"trap 'echo \"-- {stage.name}: $SECONDS s\"' EXIT; source .ci/stages.sh"
        command = ["bash", "-euo", "pipefail", "-c", f"{shown}; {stage.command}"]
        jobs.append((stage, subprocess.Popen(command, start_new_session=True, **options)))

    def end(stage: Stage, process: subprocess.Popen) -> None:
        failed.extend([stage.name] * bool(process.wait()))

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        for stage in stages:
            if stage.aside:
                with (temporary / f"{stage.name}.log").open("w") as file:
                    start(stage, stdout=file, stderr=file, preexec_fn=lambda: os.nice(10))
            else:
                print(f"\n== {stage.name} (after {(time.monotonic() - began) / 60:.1f} min)", flush=True)
                start(stage)
                end(*jobs[-1])
        for stage, process in (job for job in jobs if job[0].aside):
            end(stage, process)
            print(f"\n== {stage.name}\n{(temporary / f'{stage.name}.log').read_text(errors='replace')}")
    finally:
        for _, process in jobs:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
    return failed


if __name__ == "__main__":
    sys.exit(main())
