"""The command line: its commands, its standard streams, and how the program ends.

A command is an entry in `OWN` and a function of its name, annotated for Typer or made by
`options.is_function`. The module of the function is imported only when the command is called, so
that ``gauge-mc --help`` is fast. Extensions and other packages declare commands by entry points.
"""

from __future__ import annotations

import contextlib
import errno
import io
import json
import mmap
import os
import resource
import select
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pkgutil import resolve_name
from types import FrameType
from typing import Annotated, Any, NoReturn, TextIO

import typer
import typer.core

from gauge_mc import __version__
from gauge_mc.errors import INTERRUPTED, REMEDIES, CautionWarning, GaugeError, UsageError
from gauge_mc.process import note
from gauge_mc.quoting import TYPED, printable, sentence, shortened
from gauge_mc.registry import WHOLE, Registry, in_any_case, nearest, plugin_failure

GENERATE, ANALYSE, FILES, MACHINE = "Generate", "Analyse", "Files", "This machine"
"""Panels of the help text."""


@dataclass(frozen=True)
class Command:
    """The entry of a command in the help text of the program."""

    panel: str
    """Panel in which the command is listed."""
    help: str
    """Short description of the command."""
    function: str = ""
    """Module and name of the function, such as ``my_package.command:average``; for a command here
    the module in this folder, if that does not have the name of the command.
    """
    name: str = ""
    """Name of a command of an extension or another package."""
    several: str = ""
    """Command that takes several couplings and lattices, if this one takes one."""


OWN = {
    "generate": Command(
        GENERATE,
        "Generate an ensemble of configurations, or continue one.",
        "generation",
        several="scan",
    ),
    "scan": Command(GENERATE, "Carry out independent runs on a grid of couplings and lattices."),
    "determine": Command(GENERATE, "Determine a number, such as r0, with a wanted error."),
    "status": Command(GENERATE, "Show the progress of a run or a scan.", "inspection"),
    "watch": Command(
        GENERATE, "Follow a run or a scan, in the terminal or in a browser.", "inspection"
    ),
    "measure": Command(ANALYSE, "Measure an observable on stored configurations.", "tables"),
    "fit": Command(ANALYSE, "Determine physical quantities from the tables of runs.", "results"),
    "plot": Command(ANALYSE, "Draw figures of the results of runs."),
    "report": Command(ANALYSE, "Write a page that shows everything about runs.", "results"),
    "export": Command(ANALYSE, "Write the tables of a run to one file for other tools.", "results"),
    "card": Command(GENERATE, "Write a run card with comments, or check one.", "generation"),
    "info": Command(
        FILES, "Show the contents of a configuration file, a run or a scan.", "inspection"
    ),
    "verify": Command(FILES, "Check runs, scans, configurations and tables for damage.", "files"),
    "regenerate": Command(FILES, "Make configurations again that a run has not kept.", "files"),
    "thin": Command(FILES, "Remove configurations of a run, except every Nth one.", "files"),
    "convert": Command(FILES, "Write a configuration in another format.", "files"),
    "bench": Command(MACHINE, "Time the kernels on this machine.", "machine"),
    "doctor": Command(
        MACHINE, "Show what works on this machine, and how to fix the rest.", "machine"
    ),
}

OTHERS: Registry[Command] = Registry("command", "gauge_mc.cli", Command)
"""The commands of extensions and other packages."""


class Commands(Mapping[str, Command]):
    """All commands by name: those of this package in their order, then the others."""

    def __getitem__(self, name: str) -> Command:
        return OWN[name] if name in OWN else OTHERS[name]

    def __iter__(self) -> Iterator[str]:
        return iter((*OWN, *(name for name in OTHERS if name not in OWN)))

    def __len__(self) -> int:
        return sum(1 for _ in self)  # a list would ask for the length


COMMANDS = Commands()

FIRST = ("generate --lattice 8x8x8x8 --beta 2.4", "measure wilson-loops", "fit potential")
"""Command lines with which to begin."""

COMPLETING = "_GAUGE_MC_COMPLETE"
"""Environment variable with which a shell asks for completions."""

KILLED_BY_SIGINT = 130
"""Exit code of a program that was ended by SIGINT, by convention of shells."""


class LazyCommand(typer.core.TyperCommand):
    """A placeholder for a command, whose module is imported only when the command is called."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> Any:
        """Return the context of the real command."""
        return load_command(str(self.name)).make_context(info_name, args, parent, **extra)


class LazyGroup(typer.core.TyperGroup):
    """The group of all commands, whose modules are not imported yet."""

    def get_help(self, ctx: Any) -> NoReturn:
        """Show the help text, and end the program."""
        from gauge_mc.cli.help import Sections, show_help

        panels: Sections = {}
        for name, command in COMMANDS.items():
            panels.setdefault(command.panel, []).append((name, "", command.help))
        show_help(self, ctx, panels, [f"gauge-mc {line}" for line in FIRST])

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments; Click calls this."""
        if ctx.resilient_parsing:
            from gauge_mc.cli.help import leave_values

            leave_values(self.get_params(ctx))
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Return name, command and arguments; a name may be written in any case."""
        if args[0] not in COMMANDS and not ctx.resilient_parsing:
            name, *rest = args
            args = [in_any_case(name, COMMANDS), *rest]
            if args[0] in ("help", "version"):
                raise typer.Exit(app([*rest, f"--{args[0]}"], "gauge-mc", standalone_mode=False))
            if args[0] not in COMMANDS:
                raise UsageError(
                    f"There is no command '{shortened(name)}'{nearest(name, COMMANDS)}"
                )
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands, in their order."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the placeholder for a command, or None."""
        if cmd_name not in COMMANDS:
            return None
        command = COMMANDS[cmd_name]
        return LazyCommand(cmd_name, help=command.help, rich_help_panel=command.panel)


app = typer.Typer(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


@app.callback(invoke_without_command=True)
def gauge_mc(
    ctx: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    """Monte Carlo ensembles of SU(N) lattice gauge theory, N = 2 to 8, on CPUs and GPUs."""
    if version:
        print(f"gauge-mc {__version__}")
    elif ctx.invoked_subcommand is None:
        ctx.get_help()


def function_of(name: str) -> Callable[..., Any]:
    """Import the module of a command, and return its function."""
    place = COMMANDS[name].function or name
    function: Callable[..., Any] = resolve_name(
        place if ":" in place else f"gauge_mc.cli.{place}:{name}"
    )
    return function


def load_command(name: str) -> Any:
    """Import the module of a command, and return the command for Click."""
    from gauge_mc.cli.command import command_of

    command = command_of(function_of(name))
    command.several = COMMANDS[name].several
    return command


class TerminatedError(BaseException):
    """A signal that ends the program after unfinished files have been removed."""

    def __init__(self, number: int) -> None:
        self.number = number


@contextlib.contextmanager
def _ending_in_order() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end the program in order; a second signal ends it at once.

    A command that can save its work handles these signals itself; see `gauge_mc.run.state`.
    """

    def end(number: int, frame: FrameType | None) -> NoReturn:
        signal.signal(number, signal.SIG_DFL)
        note(signal.Signals(number).name)
        raise TerminatedError(number)

    numbers = (signal.SIGTERM, signal.SIGHUP)
    is_main = threading.current_thread() is threading.main_thread()
    usual = [number for number in numbers if is_main and signal.getsignal(number) is signal.SIG_DFL]
    try:
        for number in usual:
            signal.signal(number, end)
        yield
    except TerminatedError as error:
        signal.signal(error.number, signal.SIG_DFL)
        os.kill(os.getpid(), error.number)
    finally:
        for number in usual:
            signal.signal(number, signal.SIG_DFL)


def main(program: Callable[[], Any] | None = None) -> None:
    """Run the program.

    Every expected error is reported in one sentence on stderr. Results are kept if standard output
    cannot be written. The exit code is then 1, unless the reader closed the pipe.
    """
    program = program or partial(app, prog_name="gauge-mc", standalone_mode=False)
    TYPED.set(tuple(sys.argv[1:]))
    if COMPLETING in os.environ:
        with contextlib.redirect_stderr(io.StringIO()), contextlib.suppress(Exception):
            sys.exit(int(program() or 0))
        sys.exit(1)  # after a failure the typed line stays as it is
    if os.environ.get("COLUMNS", "").strip("0") == "":
        os.environ.pop("COLUMNS", None)  # a width of 0 means that it is unknown
    streams = Streams()
    warnings.formatwarning = _warning  # type: ignore[assignment]
    with _ending_in_order():
        code = _run(program)
        failure = streams.failure()
    if failure and not code:
        code = _complain(
            f"The output could not be shown ({failure.strerror}), but everything else is done.", 1
        )
        streams.failure()
    sys.exit(code)


def child() -> None:
    """Carry out runs of a scan, whose values are a JSON list on standard input.

    This process writes a checkpoint and stops if the one that has started it dies.
    """
    from gauge_mc.scans.pool import begin_child

    begin_child()  # before imports that take long
    sys.argv[:] = ["gauge-mc", "scan"]  # as logs name the command
    main(_generate)


def _generate() -> int:
    from gauge_mc.run.generate import generate_together, requests_of

    requests = [x for values in json.load(sys.stdin) for x in requests_of(values)]
    results = generate_together(requests)
    return INTERRUPTED if any(result.stopped for result in results) else 0


def _warning(
    message: Warning | str, category: type[Warning], file: str, line: int, text: str | None = None
) -> str:
    """Return a warning as a line; a caution is one of the program."""
    if issubclass(category, CautionWarning):
        return f"gauge-mc: {printable(str(message))}\n"
    return f"{category.__name__}: {message}\n"


def _run(program: Callable[[], Any]) -> int:
    """Run the program, and return its exit code."""
    try:
        _try_numpy()
        code = int(program() or 0)
    except GaugeError as error:
        code = _complain(str(error), error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        code = _complain("Interrupted.", KILLED_BY_SIGINT)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        remedy = REMEDIES.get(error.errno or 0, "check the files and the system")
        code = _complain(f"{where}{error.strerror or error}; {remedy}.", 1)
    except UnicodeEncodeError as error:
        text = shortened(str(error.object))
        code = _complain(f"'{text}' is not text in UTF-8; choose another name or value.", 2)
    except MemoryError:
        code = _complain("Not enough memory; choose a smaller lattice or single precision.", 1)
    except Exception as error:
        # The base class of Typer's exceptions depends on its version.
        if not hasattr(error, "format_message"):
            return _of_plugin(error)
        message = error.format_message().replace(": Value error, ", ": ")
        end = "" if message.endswith((".", "?")) else "."
        code = _complain(message + end, getattr(error, "exit_code", 2))
    return code


def _try_numpy() -> None:
    """Import NumPy in a copy of the process if memory is limited.

    OpenBLAS ends a process for which there is too little, with words of its own.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return
    child = os.fork()
    if not child:
        with contextlib.suppress(BaseException):
            os.dup2(os.open(os.devnull, os.O_RDWR), 2)
            with mmap.mmap(-1, RESERVE):
                __import__("numpy")
            os._exit(0)
        os._exit(1)
    if os.waitpid(child, 0)[1]:
        raise GaugeError(
            f"NumPy and its work need more memory than the limit of {limit >> 20} MiB; raise it "
            "(ulimit -v), or set the environment variable OPENBLAS_NUM_THREADS=1."
        )


RESERVE = 1 << 26
"""Number of bytes of memory that the work of the program needs at least besides NumPy."""


def _of_plugin(error: Exception) -> int:
    """Say in one sentence where the code of a plug-in fails; raise any other error again."""
    failure = plugin_failure(error)
    if failure is None or os.environ.get(WHOLE):
        raise error
    return _complain(
        f"The package {failure.package} fails in {failure.place} ({type(error).__name__}: "
        f"{error}); repair that package, or set the environment variable {WHOLE}=1 to see the "
        "whole traceback.",
        1,
    )


def _complain(message: str, code: int) -> int:
    print(f"gauge-mc: {sentence(message)}", file=sys.stderr)
    return code


def say(*texts: str, error: bool = False) -> None:
    """Print lines on standard output or standard error, without effect on the terminal."""
    for text in texts:
        print(printable(text), file=sys.stderr if error else sys.stdout)


SILENT = (errno.EPIPE, errno.EBADF)
"""Failures without a message: there is no reader of the output."""


class LenientFile(io.RawIOBase):
    """A file for writing that records failures of the system instead of raising them.

    Parameters
    ----------
    number : int
        File descriptor.

    Attributes
    ----------
    failure : OSError or None
        First failure.
    """

    def __init__(self, number: int) -> None:
        self._number = number
        self.failure: OSError | None = None

    def fileno(self) -> int:
        """Return the file descriptor."""
        return self._number

    def isatty(self) -> bool:
        """Return whether the file is a terminal."""
        return os.isatty(self._number)

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, data: Any) -> int:
        """Write bytes, and return how many; after a failure they are lost."""
        try:
            return os.write(self._number, data)
        except BlockingIOError:
            select.select([], [self._number], [])
            return 0
        except OSError as error:
            self.failure = self.failure or error
            return len(data)


class Streams:
    """Lenient standard output and standard error, which also encode everything.

    Streams that were closed when the program began are replaced by ``/dev/null``, since otherwise
    the next file that is opened would take their place. Streams that are not those of the process
    stay as they are.
    """

    def __init__(self) -> None:
        self._files: list[LenientFile] = []
        for number in range(3):
            _occupy(number)
        self.stdout = sys.stdout = self._lenient(sys.stdout, 1)
        self.stderr = sys.stderr = self._lenient(sys.stderr, 2)

    def _lenient(self, stream: TextIO | None, number: int) -> TextIO:
        if stream is not None and type(stream) is not io.TextIOWrapper:
            return stream
        encoding = stream.encoding if stream else "utf-8"
        file = LenientFile(number)
        self._files.append(file)
        lines = number == 2 or file.isatty()
        return io.TextIOWrapper(
            io.BufferedWriter(file), encoding, "backslashreplace", line_buffering=lines
        )

    def failure(self) -> OSError | None:
        """Return the failure of an output that has a reader, after the last output."""
        for stream in (self.stdout, self.stderr):
            stream.flush()
        failures = (file.failure for file in self._files)
        return next((f for f in failures if f and f.errno not in SILENT), None)


def _occupy(number: int) -> None:
    """Open ``/dev/null`` as a standard stream that is closed."""
    try:
        os.fstat(number)
    except OSError:
        os.open(os.devnull, os.O_RDWR)  # gets the smallest free number
