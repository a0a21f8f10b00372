"""The command line, with one module per command.

A command is an entry in `COMMANDS` and a module of its name, which contains a function of the same
name, annotated for Typer. The module is imported only when the command is called, so that
``gauge-mc --help`` is fast.
"""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import typer
import typer.core

from gauge_mc import __version__
from gauge_mc.errors import GaugeError

GENERATE, ANALYSE, FILES, MACHINE = "Generate", "Analyse", "Files", "This machine"
"""Panels of the help text."""


@dataclass(frozen=True)
class Command:
    """The entry of a command in the help text of the program.

    Attributes
    ----------
    panel : str
        Panel in which the command is listed.
    help : str
        Short description of the command.
    """

    panel: str
    help: str


COMMANDS = {
    "generate": Command(GENERATE, "Generate an ensemble of configurations, or continue one."),
    "scan": Command(GENERATE, "Carry out independent runs on a grid of couplings and lattices."),
    "status": Command(GENERATE, "Show the progress of a run or a scan."),
    "measure": Command(ANALYSE, "Measure an observable on stored configurations."),
    "fit": Command(ANALYSE, "Determine physical quantities from the tables of runs."),
    "plot": Command(ANALYSE, "Draw figures of the results of runs."),
    "export": Command(ANALYSE, "Write the tables of a run to one file for other tools."),
    "info": Command(FILES, "Show the contents of a configuration file, a run or a scan."),
    "verify": Command(FILES, "Check runs, scans, configurations and tables for damage."),
    "convert": Command(FILES, "Write a configuration in another format."),
    "bench": Command(MACHINE, "Time the kernels on this machine."),
    "doctor": Command(MACHINE, "Show what works on this machine, and how to fix the rest."),
}

KILLED_BY_SIGINT = 130
"""Exit code of a program that was ended by SIGINT, by convention of shells."""

VERBATIM = "\b\n"
"""Beginning of a paragraph of help text whose line breaks are kept."""


class LazyCommand(typer.core.TyperCommand):
    """A placeholder for a command, whose module is imported only when the command is called."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> Any:
        """Return the context of the real command."""
        return load_command(str(self.name)).make_context(info_name, args, parent, **extra)


class LazyGroup(typer.core.TyperGroup):
    """The group of all commands, whose modules are not imported yet."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands, in the order of `COMMANDS`."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the placeholder for a command, or None."""
        if cmd_name not in COMMANDS:
            return None
        command = COMMANDS[cmd_name]
        return LazyCommand(cmd_name, help=command.help, rich_help_panel=command.panel)


app = typer.Typer(cls=LazyGroup, pretty_exceptions_enable=False, rich_markup_mode="rich")


@app.callback(invoke_without_command=True)
def gauge_mc(
    ctx: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    """Monte Carlo ensembles of SU(2) and SU(3) lattice gauge theory, on CPUs and GPUs."""
    if version:
        print(f"gauge-mc {__version__}")
    elif ctx.invoked_subcommand is None:
        print(ctx.get_help())


def load_command(name: str) -> Any:
    """Import the module of a command, and return the command for Typer."""
    module = importlib.import_module(f"gauge_mc.cli.{name}")
    function: Callable[..., Any] = getattr(module, name)
    paragraphs = inspect.cleandoc(function.__doc__ or "").split("\n\n")
    single = typer.Typer(add_completion=False, rich_markup_mode="rich")
    single.command(name, help="\n\n".join(map(_filled, paragraphs)))(function)
    return typer.main.get_command(single)


def _filled(paragraph: str) -> str:
    """Return a paragraph as one line, unless it is marked as `VERBATIM`."""
    if paragraph.startswith(VERBATIM):
        return paragraph.removeprefix(VERBATIM)
    return " ".join(paragraph.split())


def main() -> None:
    """Run the program. Every expected error is reported in one sentence on stderr."""
    sys.exit(report_errors(lambda: app(standalone_mode=False) or 0))


def report_errors(function: Callable[[], int]) -> int:
    """Call a function that returns an exit code; report expected errors in one sentence."""
    try:
        code = function()
    except GaugeError as error:
        code = _complain(str(error), error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        code = _complain("Interrupted.", KILLED_BY_SIGINT)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        code = _complain(f"{where}{error.strerror or error}.", 1)
    except MemoryError:
        code = _complain("Not enough memory; choose a smaller lattice or single precision.", 1)
    except Exception as error:
        # The base class of Typer's exceptions depends on its version.
        if not hasattr(error, "format_message"):
            raise
        sentence = error.format_message()
        end = "" if sentence.endswith((".", "?")) else "."
        code = _complain(sentence + end, getattr(error, "exit_code", 2))
    return code


def _complain(sentence: str, code: int) -> int:
    print(f"gauge-mc: {sentence}", file=sys.stderr)
    return code
