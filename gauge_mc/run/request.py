"""Requests to begin or to continue a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from gauge_mc.observables import Observable
from gauge_mc.run.chain import check_start
from gauge_mc.run.directory import RUNS, Run
from gauge_mc.run.execution import Execution
from gauge_mc.run.functions import Catalogue, ObservableLike
from gauge_mc.run.measurement import Measurement
from gauge_mc.run.parameters import Parameters


@dataclass(frozen=True)
class RunRequest:
    """A request to begin or to continue a run."""

    values: Mapping[str, object]
    """Given fields of `Parameters` and `Execution` by name."""
    observables: tuple[ObservableLike, ...] = ()
    """User-defined observables."""

    @cached_property
    def execution(self) -> Execution:
        """Where and how the run is carried out."""
        return Execution.from_values(self.values)

    @cached_property
    def run(self) -> Run:
        """The run directory."""
        path = self.execution.output
        return Run(Path(path) if path else RUNS / self.new_parameters.name)

    @cached_property
    def new_parameters(self) -> Parameters:
        """Parameters of the run if it does not exist yet."""
        named = Parameters.from_run(self.values)
        catalogue = self._catalogue(named)
        named.check_observables(catalogue.own)
        return catalogue.measured(named)

    def parameters(self) -> Parameters:
        """Return the parameters of the run, which may exist already.

        Raises
        ------
        UsageError
            If the run exists and its parameters differ from the given ones.
        """
        run = self.run
        if not run.begun():
            return self.new_parameters
        there = run.read()[0]
        values = dict(self.values)
        if self.observables:
            wanted: Any = values.get("measure", there.measure)
            named = replace(there, measure=wanted)
            values["measure"] = self._catalogue(there).measured(named).measure
        return there.continued(values, f"The run {run.path}")

    def chosen(self, parameters: Parameters) -> dict[Measurement, Observable]:
        """Return the observables that the run measures.

        Raises
        ------
        UsageError
            If the run measures a user-defined observable that the request lacks.
        """
        return self._catalogue(parameters).chosen(parameters)

    def checked(self) -> Parameters:
        """Return the parameters of the run; refuse a run that cannot be begun.

        Raises
        ------
        UsageError, GaugeError
            See `parameters`, `chosen` and `check_start`.
        """
        parameters = self.parameters()
        if not self.run.begun():
            check_start(parameters)
            self.chosen(parameters)
        return parameters

    def _catalogue(self, parameters: Parameters) -> Catalogue:
        return Catalogue.of(parameters.lattice, self.observables)
