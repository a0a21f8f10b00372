"""Compilation of kernels, and the cache of compiled kernels on disk."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from shlex import quote

from platformdirs import user_cache_path

from gauge_mc.devices.kernels import Kernel, Variant
from gauge_mc.devices.source import LAYOUT, source_folders
from gauge_mc.errors import REMEDIES, GaugeError, NoKernelsError
from gauge_mc.files.atomic import write_file
from gauge_mc.process import LOOK_SECONDS
from gauge_mc.process import check as check_signal

ERROR = r"\b(error|fatal)\b[ #\w-]*:"
"""Pattern that matches the lines in which compilers report errors."""


def cache_folder() -> Path:
    """Return the folder of compiled kernels: ``$GAUGE_MC_CACHE``, or the user's cache folder."""
    folder = os.environ.get("GAUGE_MC_CACHE")
    return Path(folder) if folder else user_cache_path("gauge-mc") / "kernels"


OWN_FILES = re.compile(
    r"\.?.+-[0-9a-f]{24}\.(so|cubin|hsaco|txt|lock|json)(\..+\.tmp)?"
    r"|\.?bounds-.+\.(json|\d+)(\..+\.tmp)?"
)
"""Pattern of the names of files of the cache; other files may be in the same folder."""

SCRATCH = "tmp"
"""Beginning of the names of folders in the cache in which kernels are compiled."""

VERSION_SECONDS = 20.0
"""Time in seconds within which a compiler must state its version."""

COMPILE_SECONDS = 1200.0
"""Time in seconds within which a kernel must be compiled; usually it takes some seconds."""


_watchers: list[Callable[[str], object]] = []


@contextmanager
def watching(watcher: Callable[[str], object]) -> Iterator[None]:
    """Call a function with the name of every kernel whose compilation begins within a context.

    Kernels are compiled in several threads, and the function is called in these.
    """
    _watchers.append(watcher)
    try:
        yield
    finally:
        _watchers.remove(watcher)


def clear_cache() -> int:
    """Remove all compiled kernels and what tuning has found; return the number of files removed."""
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
    for name in names:
        if name.startswith(SCRATCH):  # left by a process that was killed
            shutil.rmtree(folder / name, ignore_errors=True)
    with suppress(OSError):  # other files are in it
        folder.rmdir()
    return len(files)


def make_private_folder() -> Path:
    """Return the folder of compiled kernels, which is created if necessary.

    Kernels are code that this process executes. So nobody else may write to the folder.
    """
    folder = cache_folder()
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
    _refuse_foreign(folder)
    return folder


def _refuse_foreign(folder: Path) -> None:
    status = folder.stat()
    name_another = "name another folder in the environment variable GAUGE_MC_CACHE"
    if not stat.S_ISDIR(status.st_mode):
        raise NoKernelsError(
            f"{folder}, where compiled kernels would be stored, is not a folder: {name_another}."
        )
    if status.st_uid not in (os.geteuid(), 0):
        raise NoKernelsError(
            f"The folder of compiled kernels {folder} belongs to another user, who could put "
            f"programs there that you would execute: {name_another}."
        )
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise NoKernelsError(
            f"Others may write to the folder of compiled kernels {folder}, and could put programs "
            "there that you would execute: run `gauge-mc doctor --clear-cache`, then "
            f"`chmod 700 {quote(str(folder))}` if it is still there; or {name_another}."
        )


def keep(path: Path, content: bytes) -> None:
    """Write a file of the cache, with the checksum of its content in the first line."""
    write_file(path, hashlib.sha256(content).hexdigest().encode() + b"\n" + content)


def kept(path: Path) -> bytes | None:
    """Return the content of a file that `keep` has written; None if it is missing or damaged."""
    digest, _, content = (_own_file(path) or b"").partition(b"\n")
    return content if digest == hashlib.sha256(content).hexdigest().encode() else None


def _own_file(path: Path) -> bytes | None:
    """Return the content of a file in a folder that only this user can write to, or None."""
    try:
        _refuse_foreign(path.parent)
        # Opening a pipe without O_NONBLOCK would wait for somebody who writes to it.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with open(os.open(path, flags), "rb") as file:
            return file.read() if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else None
    except OSError:
        return None


def compiled(
    kernel: Kernel,
    variant: Variant,
    command: Sequence[str],
    identity: str,
    suffix: str,
    *checked: str,
) -> tuple[Path, str]:
    """Compile a kernel, unless it is in the cache."""
    unit = kernel.translation_unit(variant, *checked)
    digest = hashlib.sha256(kernel.digest(variant))
    # The same sources in another folder, as in another virtual environment, give the same object.
    text = "\0".join([unit, *command, identity])
    for root in source_folders():
        text = text.replace(f"{root}/", "")
    digest.update(text.encode(errors="surrogateescape"))
    path = cache_folder() / f"{kernel.name}-{digest.hexdigest()[:24]}{suffix}"
    report = _report(path)
    if report is not None:
        return path, report
    try:
        folder = make_private_folder()
        with _locked(path), tempfile.TemporaryDirectory(prefix=SCRATCH, dir=folder) as scratch:
            report = _report(path)
            if report is not None:
                return path, report
            for watcher in tuple(_watchers):
                watcher(kernel.name)
            built = Path(scratch) / path.name
            printed = run_compiler(kernel.name, unit, command, built)
            content = built.read_bytes()
            checksum = hashlib.sha256(content).hexdigest()
            keep(path.with_suffix(".txt"), f"{checksum}\n{printed}".encode())
            write_file(path, content)
    except OSError as error:
        remedy = REMEDIES.get(error.errno or 0, "check the disk")
        raise NoKernelsError(
            f"Compiled kernels cannot be stored in {cache_folder()} ({error.strerror}): {remedy}, "
            "or name another folder in the environment variable GAUGE_MC_CACHE."
        ) from error
    return path, printed


def _report(path: Path) -> str | None:
    """Return the report on an object file; None if either is missing or damaged."""
    digest, _, printed = (kept(path.with_suffix(".txt")) or b"").partition(b"\n")
    if not digest:
        return None
    content = _own_file(path)
    if content is None or hashlib.sha256(content).hexdigest().encode() != digest:
        return None
    return printed.decode()


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock of an object file, so that only one thread or process compiles it.

    Without effect on file systems that do not support locks.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(path.with_suffix(".lock"), flags, 0o600), "w") as lock:
        with suppress(OSError):
            while not _lock_now(lock.fileno()):
                check_signal("while another process was compiling a kernel")
                time.sleep(LOOK_SECONDS)
        yield


def _lock_now(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except BlockingIOError:
        return False


def run_compiler(kernel: str, unit: str, command: Sequence[str], output: Path) -> str:
    """Compile a translation unit; return the output of the compiler.

    The source file is written to the folder of the object file.
    """
    source = output.with_suffix(".cu")
    source.write_text(unit, encoding="utf-8")
    folders = [f"-I{folder}" for folder in source_folders()]
    words = [*command, *folders, str(source), "-o", str(output)]
    try:
        code, printed = _output_of(words, limits["compile"], "while a kernel was compiled")
    except subprocess.TimeoutExpired as error:
        raise NoKernelsError(
            f"The compiler {command[0]} had not finished the kernel '{kernel}' within "
            f"{error.timeout:g} seconds and was ended: run `gauge-mc doctor` to see which "
            "compilers work, and choose one in the environment variable CXX."
        ) from error
    if code == 0 and output.exists():
        return printed
    errors = (line for line in printed.splitlines() if re.search(ERROR, line))
    first = next(errors, printed[:200]).strip() or "it has written no file and no message"
    disagreement = re.search(rf"{LAYOUT} (\w+(?:::\w+)?)", first)
    if disagreement:
        raise GaugeError(
            f"The kernel '{kernel}' declares {disagreement[1]} in a way that Python cannot read: "
            "use only numbers, arrays, pointers and structures of these in its arguments."
        )
    names = re.findall(r'"(/[^"]*)"', "\n".join([unit, *command]))
    foreign = [name for name in names if not {*source_folders()} & {*Path(name).parents}]
    files = "|".join(map(re.escape, foreign)) or "$^"
    place = re.search(rf"(?<!from )(?:{files})[:(]\d+", printed)  # not where it includes another
    if place:  # in a source of another package, not in the compiler
        where = "" if place[0] in first else f", from {place[0]}"
        raise NoKernelsError(f"The kernel '{kernel}' cannot be compiled: {first}{where}.")
    raise NoKernelsError(
        f"The compiler {command[0]} failed on the kernel '{kernel}': {first}. "
        "Run `gauge-mc doctor` to see which compilers work."
    )


limits = {"compile": COMPILE_SECONDS, "version": VERSION_SECONDS}
"""Times in seconds within which compilers must end."""


def _output_of(command: Sequence[str], seconds: float, when: str) -> tuple[int, str]:
    """Run a program; return its exit code and its output. What is not UTF-8 is escaped."""
    # The program gets its own session, so that signals from the terminal reach only this process.
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    deadline = time.monotonic() + seconds
    try:
        while True:
            try:
                printed = process.communicate(timeout=LOOK_SECONDS)[0]
                return process.returncode, printed.decode(errors="backslashreplace")
            except subprocess.TimeoutExpired:
                check_signal(when)
                if time.monotonic() > deadline:
                    raise subprocess.TimeoutExpired(command, seconds) from None
    except BaseException:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    finally:
        if process.stdout:  # its children may still hold the other end
            process.stdout.close()


def version_of(*command: str) -> str | None:
    """Return the output of ``command --version``, or None if the compiler does not run."""
    code, printed = answer_of(*command, "--version")
    return printed if code == 0 else None


@cache
def answer_of(*command: str) -> tuple[int | None, str]:
    """Return exit code and output of a compiler that is asked about itself; None if it cannot run.

    It may take no longer than to state its version.
    """
    try:
        return _output_of(command, limits["version"], "while a compiler was started")
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None, ""
