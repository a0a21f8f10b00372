"""Monte Carlo ensembles of SU(N) lattice gauge theory, on CPUs and GPUs."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gauge_mc.benchmarks import bench
    from gauge_mc.devices import open_device
    from gauge_mc.domain.device_group import DeviceGroup, open_device_group
    from gauge_mc.domain.lattice import Lattice
    from gauge_mc.errors import GaugeError, UsageError
    from gauge_mc.exports import export
    from gauge_mc.fields.action_density import action_density
    from gauge_mc.fields.field import Field
    from gauge_mc.fields.random_field import Random
    from gauge_mc.fits import fit
    from gauge_mc.inspection.contents import info
    from gauge_mc.inspection.status import status
    from gauge_mc.inspection.verify import verify
    from gauge_mc.plots.runs.drawing import plot
    from gauge_mc.publication.publish import publish
    from gauge_mc.quantities.flow.observables.flow import flow
    from gauge_mc.quantities.hadrons.observables.parts.propagators import propagator
    from gauge_mc.quarks.hadrons.contractions import meson_correlators
    from gauge_mc.quarks.hadrons.propagator_files import StoredPropagator, read_propagator
    from gauge_mc.quarks.operators import Wilson
    from gauge_mc.quarks.operators.domain_wall import DomainWall
    from gauge_mc.quarks.overlap.quarks import Overlap
    from gauge_mc.reports.page import report
    from gauge_mc.run.chain import Chain
    from gauge_mc.run.conversions import convert_all
    from gauge_mc.run.convert import convert
    from gauge_mc.run.generate import generate, generate_chains
    from gauge_mc.run.measure import measure
    from gauge_mc.run.parameters import Parameters
    from gauge_mc.run.regenerate import regenerate
    from gauge_mc.run.thinning import thin
    from gauge_mc.run.view import open_run
    from gauge_mc.scans.carry_out import scan
    from gauge_mc.updates.heatbath import heatbath
    from gauge_mc.updates.overrelaxation import overrelax

try:
    __version__ = version("gauge-mc")
except PackageNotFoundError:  # the package is not installed, for example in a checkout
    __version__ = "unknown"

_HOMES = {
    "Chain": "run.chain",
    "DeviceGroup": "domain.device_group",
    "DomainWall": "quarks.operators.domain_wall",
    "Field": "fields.field",
    "GaugeError": "errors",
    "Lattice": "domain.lattice",
    "Overlap": "quarks.overlap.quarks",
    "Parameters": "run.parameters",
    "Random": "fields.random_field",
    "StoredPropagator": "quarks.hadrons.propagator_files",
    "UsageError": "errors",
    "Wilson": "quarks.operators",
    "action_density": "fields.action_density",
    "bench": "benchmarks",
    "convert": "run.convert",
    "convert_all": "run.conversions",
    "export": "exports",
    "fit": "fits",
    "flow": "quantities.flow.observables.flow",
    "generate": "run.generate",
    "generate_chains": "run.generate",
    "heatbath": "updates.heatbath",
    "info": "inspection.contents",
    "measure": "run.measure",
    "meson_correlators": "quarks.hadrons.contractions",
    "open_device": "devices",
    "open_device_group": "domain.device_group",
    "open_run": "run.view",
    "overrelax": "updates.overrelaxation",
    "plot": "plots.runs.drawing",
    "propagator": "quantities.hadrons.observables.parts.propagators",
    "publish": "publication.publish",
    "read_propagator": "quarks.hadrons.propagator_files",
    "regenerate": "run.regenerate",
    "report": "reports.page",
    "scan": "scans.carry_out",
    "status": "inspection.status",
    "thin": "run.thinning",
    "verify": "inspection.verify",
}

__all__ = [
    "Chain",
    "DeviceGroup",
    "DomainWall",
    "Field",
    "GaugeError",
    "Lattice",
    "Overlap",
    "Parameters",
    "Random",
    "StoredPropagator",
    "UsageError",
    "Wilson",
    "action_density",
    "bench",
    "convert",
    "convert_all",
    "export",
    "fit",
    "flow",
    "generate",
    "generate_chains",
    "heatbath",
    "info",
    "measure",
    "meson_correlators",
    "open_device",
    "open_device_group",
    "open_run",
    "overrelax",
    "plot",
    "propagator",
    "publish",
    "read_propagator",
    "regenerate",
    "report",
    "scan",
    "status",
    "thin",
    "verify",
]


def __getattr__(name: str) -> Any:
    """Import public names when they are first used, so that the command line starts quickly."""
    if name not in _HOMES:
        from gauge_mc.registry import similar

        guess = similar(name, _HOMES)
        words = f"; did you mean '{guess}'?" if guess else ""
        # Without the name, Python would add a guess of its own.
        raise AttributeError(f"module 'gauge_mc' has no attribute '{name}'{words}", name="")
    return getattr(import_module(f"gauge_mc.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    """List the public names."""
    return [*__all__, "__version__"]
