"""Compilation of kernels, and the cache of compiled kernels on disk."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from platformdirs import user_cache_path

from gauge_mc.devices.kernels import Kernel, Variant
from gauge_mc.devices.source import LAYOUT, source_folder
from gauge_mc.errors import GaugeError

ERROR = r"\b(error|fatal)\b[ #\w-]*:"
"""Pattern that matches the lines in which compilers report errors."""


def cache_folder() -> Path:
    """Return the folder of compiled kernels: ``$GAUGE_MC_CACHE``, or the user's cache folder."""
    chosen = os.environ.get("GAUGE_MC_CACHE")
    return Path(chosen) if chosen else user_cache_path("gauge-mc") / "kernels"


OWN_FILES = re.compile(r".+-[0-9a-f]{24}\.(so|cubin|txt|lock|json)|bounds-.+\.(json|\d+)")
"""Pattern of the names of files of the cache; other files may be in the same folder."""


def clear_cache() -> int:
    """Remove all compiled kernels and what tuning has found; return the number of files removed.

    Raises
    ------
    GaugeError
        If a file cannot be removed.
    """
    folder = cache_folder()
    try:
        names = os.listdir(folder) if folder.is_dir() else []
        files = [folder / name for name in names if OWN_FILES.fullmatch(name)]
        for path in files:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise GaugeError(
            f"{error.filename} cannot be removed ({error.strerror}): remove it by hand."
        ) from error
    with suppress(OSError):  # other files are in it
        folder.rmdir()
    return len(files)


def compiled(
    kernel: Kernel,
    variant: Variant,
    command: Sequence[str],
    identity: str,
    suffix: str,
    *checked: str,
) -> tuple[Path, str]:
    """Compile a kernel, unless it is in the cache.

    Parameters
    ----------
    kernel : Kernel
    variant : Variant
    command : sequence of str
        The compiler and its options, without the input and output files.
    identity : str
        Everything else that the result depends on, such as the compiler version.
    suffix : str
        Suffix of the object file.
    checked : str
        Names of structures whose layout is checked in addition to the kernel's arguments.

    Returns
    -------
    path : Path
        The object file.
    report : str
        Output of the compiler.

    Raises
    ------
    GaugeError
        If the compiler fails or the cache cannot be written.
    """
    unit = kernel.translation_unit(variant, *checked)
    digest = hashlib.sha256(kernel.digest(variant))
    digest.update("\0".join([unit, *command, identity]).encode())
    folder = cache_folder()
    path = folder / f"{kernel.name}-{digest.hexdigest()[:24]}{suffix}"
    report = path.with_suffix(".txt")
    if path.exists() and report.exists():
        return path, report.read_text()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(path), tempfile.TemporaryDirectory(dir=folder) as scratch:
            if path.exists() and report.exists():
                return path, report.read_text()
            built = Path(scratch) / path.name
            printed = run_compiler(kernel.name, unit, command, built)
            (Path(scratch) / report.name).write_text(printed)
            os.replace(Path(scratch) / report.name, report)
            os.replace(built, path)
    except OSError as error:
        raise GaugeError(
            f"Compiled kernels cannot be stored in {folder} ({error.strerror}): free some space, "
            "or name another folder in the environment variable GAUGE_MC_CACHE."
        ) from error
    return path, printed


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock of an object file, so that only one thread or process compiles it.

    Without effect on file systems that do not support locks.
    """
    with path.with_suffix(".lock").open("w") as lock:
        with suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def run_compiler(kernel: str, unit: str, command: Sequence[str], output: Path) -> str:
    """Compile a translation unit; return the output of the compiler.

    The source file is written to the folder of the object file.

    Raises
    ------
    GaugeError
        If the compiler fails. If Python and C++ disagree on the layout of a structure, the message
        names the member.
    """
    source = output.with_suffix(".cu")
    source.write_text(unit, encoding="utf-8")
    # The compiler gets its own session, so that signals from the terminal reach only this process.
    with subprocess.Popen(
        [*command, f"-I{source_folder()}", str(source), "-o", str(output)],
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
    if process.returncode == 0 and output.exists():
        return printed
    errors = (line for line in printed.splitlines() if re.search(ERROR, line))
    first = next(errors, printed[:200])
    disagreement = re.search(rf"{LAYOUT} (\w+(?:::\w+)?)", first)
    if disagreement:
        raise GaugeError(
            f"The kernel '{kernel}' declares {disagreement[1]} in a way that Python cannot read: "
            "use only numbers, arrays, pointers and structures of these in its arguments."
        )
    raise GaugeError(
        f"The compiler {command[0]} failed on the kernel '{kernel}': {first.strip()}. "
        "Run `gauge-mc doctor` to see which compilers work."
    )


@cache
def version_of(compiler: str) -> str | None:
    """Return the output of ``compiler --version``, or None if the compiler does not run."""
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
