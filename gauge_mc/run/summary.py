"""Summary of a session of a run: time, rate, energy, files."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table

from gauge_mc.domain.energy import EnergyUse
from gauge_mc.numbers import counted
from gauge_mc.results import documented, result_field
from gauge_mc.run.chain import Chain
from gauge_mc.run.directory import Run
from gauge_mc.run.display import Clock, duration, energy_text, link_rate, spent
from gauge_mc.run.parameters import Parameters
from gauge_mc.run.state import COMPLETE, STOPPED, RunState

if TYPE_CHECKING:
    from gauge_mc.run.view import RunResult
from gauge_mc.run.averages import Average, averages_values


@documented
@dataclass(frozen=True)
class RunReport(RunState):
    """Report on a session of a run, for JSON."""

    run: str = result_field("Run directory.")
    parameters: Mapping[str, object] = result_field("Parameters of the run, as in ``run.toml``.")
    stopped: str | None = result_field(
        "Reason why the session stopped before the end; None if all is done."
    )
    seconds: float = result_field("Duration of the session in seconds.")
    nj_per_link: float | None = result_field("Energy per link update in nJ; None if it is unknown.")
    energy_source: str | None = result_field(
        "Where the energy was read, such as ``RAPL`` or ``NVML``, or why it is unknown."
    )
    configurations: int = result_field("Number of configurations.")
    averages: Mapping[str, Average] = result_field("Averages by the label of the quantity.")

    @classmethod
    def of(cls, result: RunResult) -> RunReport:
        """Return the report on the result of `generate`."""
        p = result.parameters
        return cls(
            str(result.path),
            p.values(),
            result.stopped,
            result.seconds,
            result.nj_per_link,
            result.energy_source or None,
            len(result.configs),
            averages_values([Run(result.path)], p),
            state=STOPPED if result.stopped else COMPLETE,
            sweep=result.sweep,
            sweeps=p.updates,
            thermalize=p.thermalize,
            links_per_s=result.links_per_s or None,
            times=result.times,
            joules=result.joules,
        )


@documented
@dataclass(frozen=True)
class RunReports:
    """Report on a session of several runs, for JSON."""

    runs: Sequence[RunReport] = result_field("Runs.")
    stopped: str | None = result_field(
        "Reason why the session stopped before the end; None if all is done."
    )

    @classmethod
    def of(cls, results: Sequence[RunResult]) -> RunReports:
        """Return the report on the results of `generate_chains`."""
        reason = next((one.stopped for one in results if one.stopped), None)
        return cls([RunReport.of(one) for one in results], reason)


def summary(run: Run, parameters: Parameters, averages: RenderableType, table: Table) -> Group:
    """Return the summary of a session: averages, time, rate, energy, files.

    Parameters
    ----------
    run : Run
        The run directory.
    parameters : Parameters
        Parameters of the run.
    averages : RenderableType
        Averages, or why there are none.
    table : Table
        Times and rates of the session, to which the files are added; see `session_table`.
    """
    p = parameters
    configs = (
        counted(len(run.configs()), "configuration") if p.keeps_configs else "no configurations"
    )
    table.add_row("files", f"{run.path} ({configs})")
    return Group(averages, table)


def session_table(
    clock: Clock, chain: Chain, began: int, times: Mapping[str, float], energy: EnergyUse
) -> Table:
    """Return the time, the rate and the energy of a session.

    Parameters
    ----------
    clock : Clock
        Clock of the session.
    chain : Chain
        Chain at the end of the session; one of those that are updated together.
    began : int
        Number of updates done before the session.
    times : mapping of str to float
        Shares of the session's time, in seconds.
    energy : EnergyUse
        Energy that the devices have used in the session.
    """
    table = Table.grid(padding=(0, 2))
    elapsed = duration(time.monotonic() - clock.began)
    table.add_row("time", f"{elapsed} for {counted(chain.sweep - began, 'update')}")
    table.add_row("", spent(times))
    pace = clock.updates_per_second(chain.sweep) * clock.chains
    if pace:
        rate = link_rate(pace * chain.parameters.links_per_update)
        table.add_row("rate", f"{rate}, including measurements and files")
    links = (chain.sweep - began) * chain.parameters.links_per_update * clock.chains
    if energy.joules is not None:
        each = energy.nj_per_link(links)
        words = f", {each:.3g} nJ per link update" if each else ""
        table.add_row("energy", f"{energy_text(energy.joules)} by {energy.source}{words}")
    return table
