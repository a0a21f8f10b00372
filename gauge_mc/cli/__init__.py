"""The command line: one module a command.

A command is an entry of `COMMANDS` and a module of its name that holds a function of its name,
annotated for Typer. Modules are imported when their command is called, so that ``gauge-mc --help``
stays fast.
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
"""What one does: the panels of the help text."""


@dataclass(frozen=True)
class Command:
    """A command as it is listed: its panel of the help text, and what it does."""

    panel: str
    help: str


COMMANDS = {
    "generate": Command(GENERATE, "Generate an ensemble of configurations, or continue to."),
    "scan": Command(GENERATE, "Carry out a grid of independent runs."),
    "status": Command(GENERATE, "Show how far a run or a scan is."),
    "measure": Command(ANALYSE, "Measure observables on stored configurations."),
    "fit": Command(ANALYSE, "Determine physical quantities from what was measured."),
    "plot": Command(ANALYSE, "Draw figures of what runs have measured."),
    "export": Command(ANALYSE, "Write the tables of a run to one file for other tools."),
    "info": Command(FILES, "Show the contents of a configuration file, a run or a scan."),
    "verify": Command(FILES, "Look for damage in runs, scans and configuration files."),
    "convert": Command(FILES, "Write a configuration in another format."),
    "bench": Command(MACHINE, "Time the kernels on this machine."),
    "doctor": Command(MACHINE, "Show what works on this machine, and how to mend the rest."),
}

KILLED_BY_SIGINT = 130
"""The exit code of a program that SIGINT ended, by convention of shells."""


class LazyCommand(typer.core.TyperCommand):
    """A command that stands in for the one in its module until it is called."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> Any:
        """Make the context of the real command."""
        return load_command(str(self.name)).make_context(info_name, args, parent, **extra)


class LazyGroup(typer.core.TyperGroup):
    """The commands by name, none of them imported yet."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands, in the order of `COMMANDS`."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the stand-in for a command, or None."""
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
    """Import a command's module and make the command that Typer calls."""
    module = importlib.import_module(f"gauge_mc.cli.{name}")
    function: Callable[..., Any] = getattr(module, name)
    paragraphs = inspect.cleandoc(function.__doc__ or "").split("\n\n")
    single = typer.Typer(add_completion=False, rich_markup_mode="rich")
    single.command(name, help="\n\n".join(" ".join(text.split()) for text in paragraphs))(function)
    return typer.main.get_command(single)


def main() -> None:
    """Run the program. Every failure that is not a bug ends in one sentence on stderr."""
    try:
        code = app(standalone_mode=False) or 0
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
        # Typer's own exceptions have had several bases over its versions.
        if not hasattr(error, "format_message"):
            raise
        sentence = error.format_message()
        end = "" if sentence.endswith((".", "?")) else "."
        code = _complain(sentence + end, getattr(error, "exit_code", 2))
    sys.exit(code)


def _complain(sentence: str, code: int) -> int:
    print(f"gauge-mc: {sentence}", file=sys.stderr)
    return code
