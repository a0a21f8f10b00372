"""Kernel sources and the on-disk cache of what compilers made of them."""

from __future__ import annotations

import fcntl
import hashlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from platformdirs import user_cache_path

from gauge_mc.errors import GaugeError

GENERATORS = {"philox": "Philox", "lcg": "Lcg", "ranlux": "Ranlux"}
"""Names of the random number generators, and of their classes in ``cuda_src/random``."""

LUXURY_PERIODS = (24, 48, 97, 223, 389)
"""The p of RANLUX at its luxury levels 0 to 4."""

DEFAULT_LUXURY = 3


@dataclass(frozen=True)
class Variant:
    """What a kernel is compiled for.

    Parameters
    ----------
    group : str
        ``su2`` or ``su3``.
    precision : str
        ``single`` or ``double``.
    random : str
        The generator; kernels that draw nothing are the same for all.
    luxury : int
        The luxury level of ``ranlux``, 0 to 4.
    lanes : int
        Sites in a register (CPU); 1 on a GPU.
    large : bool
        Whether a field has 2**32 pieces of 16 bytes or more (GPU).
    """

    group: str
    precision: str
    random: str = "philox"
    luxury: int = DEFAULT_LUXURY
    lanes: int = 1
    large: bool = False

    @property
    def definitions(self) -> list[str]:
        """The compiler's options that select this variant."""
        return [
            f"-DGROUP={self.group.upper()}",
            f"-DREAL_BYTES={4 if self.precision == 'single' else 8}",
            f"-DRANDOM={GENERATORS[self.random]}",
            f"-DLUXURY_PERIOD={LUXURY_PERIODS[self.luxury]}",
            f"-DLANES={self.lanes}",
            f"-DLARGE={int(self.large)}",
        ]


@cache
def source_folder() -> Path:
    """The folder ``cuda_src``: inside an installed package, or beside it in a checkout."""
    package = Path(__file__).resolve().parent.parent
    inside = package / "cuda_src"
    return inside if inside.is_dir() else package.parent / "cuda_src"


@cache
def source_digest() -> bytes:
    """A hash of all kernel sources."""
    digest = hashlib.sha256()
    for path in sorted(source_folder().rglob("*")):
        if path.suffix in (".h", ".cu"):
            digest.update(str(path.relative_to(source_folder())).encode())
            digest.update(path.read_bytes())
    return digest.digest()


def cache_folder() -> Path:
    """Where compiled kernels are kept: ``$GAUGE_MC_CACHE``, or the user's cache folder."""
    chosen = os.environ.get("GAUGE_MC_CACHE")
    return Path(chosen) if chosen else user_cache_path("gauge-mc") / "kernels"


def compiled(kernel: str, command: Sequence[str], identity: str, suffix: str) -> tuple[Path, str]:
    """Compile ``cuda_src/kernels/<kernel>.cu``, or find it compiled.

    Parameters
    ----------
    kernel : str
        The kernel's name.
    command : sequence of str
        The compiler and its options, without input and output.
    identity : str
        Whatever else the result depends on: compiler version, processor.
    suffix : str
        Of the object file.

    Returns
    -------
    path : Path
        The compiled object.
    report : str
        What the compiler printed.

    Raises
    ------
    GaugeError
        If the compiler fails, or the cache cannot be written.
    """
    digest = hashlib.sha256(source_digest())
    digest.update("\0".join([kernel, *command, identity]).encode())
    folder = cache_folder()
    path = folder / f"{kernel}-{digest.hexdigest()[:24]}{suffix}"
    report = path.with_suffix(".txt")
    if path.exists() and report.exists():
        return path, report.read_text()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _alone(path), tempfile.TemporaryDirectory(dir=folder) as scratch:
            if path.exists() and report.exists():
                return path, report.read_text()
            built = Path(scratch) / path.name
            printed = run_compiler(kernel, command, built)
            (Path(scratch) / report.name).write_text(printed)
            os.replace(Path(scratch) / report.name, report)
            os.replace(built, path)
    except OSError as error:
        raise GaugeError(
            f"Compiled kernels cannot be kept in {folder} ({error.strerror}): free some space, or "
            "name another folder in the environment variable GAUGE_MC_CACHE."
        ) from error
    return path, printed


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Let others who want the same wait, threads or processes, where the file system has locks."""
    with path.with_suffix(".lock").open("w") as lock:
        with suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def run_compiler(kernel: str, command: Sequence[str], output: Path) -> str:
    """Compile a kernel; return what the compiler printed, or raise GaugeError if it fails."""
    source = source_folder() / "kernels" / f"{kernel}.cu"
    # In a session of its own, since a signal from the terminal is for this process to handle.
    with subprocess.Popen(
        [*command, str(source), "-o", str(output)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            printed = process.communicate()[0]
        except BaseException:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise
    if process.returncode != 0 or not output.exists():
        first = next((line for line in printed.splitlines() if "error" in line), printed[:200])
        raise GaugeError(
            f"The compiler {command[0]} failed on the kernel '{kernel}': {first.strip()}. "
            "Run `gauge-mc doctor` to see which compilers work here."
        )
    return printed


@cache
def version_of(compiler: str) -> str | None:
    """What ``compiler --version`` prints, or None if it does not run."""
    try:
        done = subprocess.run(
            [*compiler.split(), "--version"],
            capture_output=True,
            text=True,
            check=False,
            start_new_session=True,
        )
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None
