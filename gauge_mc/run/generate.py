"""Generation of ensembles: begin runs, continue them, or report that they are complete."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from gauge_mc import defaults
from gauge_mc.arguments import checks_types
from gauge_mc.errors import UsageError
from gauge_mc.run.cards import ParametersLike, named_values
from gauge_mc.run.conductor import conduct
from gauge_mc.run.directory import Run
from gauge_mc.run.execution import Execution
from gauge_mc.run.functions import ObservableLike
from gauge_mc.run.parameters import Parameters, run_options
from gauge_mc.run.request import RunRequest
from gauge_mc.run.session_plan import OnUpdate
from gauge_mc.run.settings import check_starts, start_of_chain
from gauge_mc.run.view import RunResult
from gauge_mc.signatures import with_fields

if TYPE_CHECKING:
    from gauge_mc.keywords import GenerateKeywords

MAX_CHAINS = 10_000
"""Largest number of chains, each with a directory and open files of its own, to catch typing
errors."""


@with_fields(Parameters, Execution, options=run_options)
@checks_types
def generate(
    parameters: ParametersLike = None,
    *,
    output: str | Path | None = None,
    observables: Iterable[ObservableLike] = (),
    on_update: OnUpdate | None = None,
    progress: bool = True,
    **options: Unpack[GenerateKeywords],
) -> RunResult:
    """Generate an ensemble of configurations, and measure observables along the way.

    If the run already exists, it is continued, and values that are not given are taken from it. If
    this function is called in the main thread, the signals SIGINT, SIGTERM, SIGHUP and SIGUSR1
    write a checkpoint and stop the run.

    Parameters
    ----------
    parameters : Parameters, mapping or path, optional
        `Parameters`; or a mapping of the parameters that differ from the defaults, by name; or the
        path of a run card. Not needed to continue a run.
    output : path, optional
        Run directory; by default ``runs/`` and the name of the parameters.
    observables : iterable, optional
        Further observables, in addition to ``measure``: functions of a field that return a number,
        a record (mapping, data class or named tuple) or an array; or instances or subclasses of
        `Observable`. A pair such as ``(function, 10)`` is measured after every tenth update.
    on_update : callable, optional
        Function that is called with the `Chain` after every update. If it returns a true value, a
        checkpoint is written and the run stops. The chain and its field must not be used after the
        run has ended.
    progress : bool
        Whether to show progress and a summary.
    **options : object
        Other fields of `Parameters` and `Execution` by name, such as ``beta``, ``devices``,
        ``threads`` or ``time_limit`` (``"HH:MM:SS"``).

    Returns
    -------
    RunResult
        The run, with its tables as NumPy arrays.

    Raises
    ------
    UsageError
        If a value is invalid, or differs from that of the existing run.
    GaugeError
        If the run cannot be carried out.
    Exception
        If an observable or `on_update` raises an exception. The run can be continued.
    """
    values = named_values(parameters, {"output": output, **options})
    return conduct([RunRequest(values, tuple(observables))], on_update, progress)[0]


@with_fields(Parameters, Execution, options=run_options)
@checks_types
def generate_chains(
    parameters: ParametersLike = None,
    *,
    chains: int,
    output: str | Path | None = None,
    progress: bool = True,
    **options: Unpack[GenerateKeywords],
) -> list[RunResult]:
    """Generate several independent chains with the same parameters and consecutive seeds.

    The chains are updated together, which is much faster than one after the other if the lattice
    is small. Each has a run directory of its own, which does not depend on the other chains; it
    can be continued alone or with any number of chains.

    Parameters
    ----------
    parameters : Parameters, mapping or path, optional
        See `gauge_mc.generate`; the seed is that of the first chain. A start such as
        ``"hot,cold"`` is a list that the chains take in turn.
    chains : int
        Number of chains.
    output : path, optional
        Beginning of the names of the run directories, to which ``_chain1``, ``_chain2``, … are
        added; by default as for `gauge_mc.generate`.
    progress : bool
        Whether to show progress and a summary.
    **options : object
        Other fields of `Parameters` and `Execution` by name.

    Returns
    -------
    list of RunResult
        One per chain.

    Raises
    ------
    UsageError, GaugeError
        See `gauge_mc.generate`.
    """
    values = named_values(parameters, {"output": output, **options})
    return generate_together(chain_values(values, chains), progress)


def chain_values(values: Mapping[str, object], chains: int) -> list[dict[str, object]]:
    """Return the values of `Parameters` and `Execution` for each of several chains.

    Raises
    ------
    UsageError
        If there are no chains, more than `MAX_CHAINS` or fewer than starts, or a value is
        invalid.
    """
    if not 1 <= chains <= MAX_CHAINS:
        raise UsageError(f"chains must lie between 1 and {MAX_CHAINS}, not {chains}.")
    base = RunRequest(values).run.path
    start = str(values.get("start", defaults.START))
    check_starts(start, chains)
    found = []
    for number in range(chains):
        run = Run(Path(f"{base}_chain{number + 1}"))
        own = {**values, "output": str(run.path)}
        if "seed" in values or not run.begun():
            first: Any = values.get("seed", defaults.SEED)
            own["seed"] = first + number
        if "start" in values:
            own["start"] = start_of_chain(start, number)
        found.append(own)
    return found


def generate_from(values: Mapping[str, object]) -> RunResult:
    """Generate an ensemble from the values of options or of a run card; see `generate`.

    Parameters
    ----------
    values : mapping of str to object
        Fields of `Parameters` and `Execution` by name.
    """
    return conduct([RunRequest(values)])[0]


def generate_together(
    requests: Sequence[Mapping[str, object]], progress: bool = False
) -> list[RunResult]:
    """Generate several ensembles on one device, in batches of those that can be updated together.

    Parameters
    ----------
    requests : sequence of mapping
        For each run, fields of `Parameters` and `Execution` by name. All have the same `Execution`
        except for `output`.
    progress : bool
        Whether to show progress and a summary.

    Returns
    -------
    list of RunResult
        In the order of the requests. If the session is stopped, also for runs that have not begun.

    Raises
    ------
    UsageError, GaugeError
        See `generate`; also if there are several devices or processes.
    """
    return conduct([RunRequest(values) for values in requests], progress=progress)
