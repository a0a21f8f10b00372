"""Monte Carlo ensembles of SU(N) lattice gauge theory, on CPUs and GPUs."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gauge_mc.benchmarks.plan import bench as bench
    from gauge_mc.determinations import determine as determine
    from gauge_mc.devices import open_device as open_device
    from gauge_mc.domain.device_group import DeviceGroup as DeviceGroup
    from gauge_mc.domain.device_group import open_device_group as open_device_group
    from gauge_mc.domain.lattice import Lattice as Lattice
    from gauge_mc.errors import GaugeError as GaugeError
    from gauge_mc.errors import UsageError as UsageError
    from gauge_mc.exports import export as export
    from gauge_mc.fields.field import Field as Field
    from gauge_mc.fields.random_field import Random as Random
    from gauge_mc.fields.sums import action_density as action_density
    from gauge_mc.fits import fit as fit
    from gauge_mc.inspection.contents import info as info
    from gauge_mc.inspection.status import status as status
    from gauge_mc.inspection.verify import verify as verify
    from gauge_mc.plots.drawing import plot as plot
    from gauge_mc.quantities.flow.observable import flow as flow
    from gauge_mc.reports.page import report as report
    from gauge_mc.run.chain import Chain as Chain
    from gauge_mc.run.convert import convert as convert
    from gauge_mc.run.generate import generate as generate
    from gauge_mc.run.generate import generate_chains as generate_chains
    from gauge_mc.run.parameters import Parameters as Parameters
    from gauge_mc.run.results import open_run as open_run
    from gauge_mc.scans.carry_out import scan as scan
    from gauge_mc.stored.conversions import convert_all as convert_all
    from gauge_mc.stored.measure import measure as measure
    from gauge_mc.stored.regenerate import regenerate as regenerate
    from gauge_mc.stored.thinning import thin as thin
    from gauge_mc.updates.heatbath import heatbath as heatbath
    from gauge_mc.updates.heatbath import overrelax as overrelax

try:
    __version__ = version("gauge-mc")
except PackageNotFoundError:  # the package is not installed, for example in a checkout
    __version__ = "unknown"

_HOMES = {
    "Chain": "run.chain",
    "DeviceGroup": "domain.device_group",
    "Field": "fields.field",
    "GaugeError": "errors",
    "Lattice": "domain.lattice",
    "Parameters": "run.parameters",
    "Random": "fields.random_field",
    "UsageError": "errors",
    "action_density": "fields.sums",
    "bench": "benchmarks.plan",
    "convert": "run.convert",
    "convert_all": "stored.conversions",
    "determine": "determinations",
    "export": "exports",
    "fit": "fits",
    "flow": "quantities.flow.observable",
    "generate": "run.generate",
    "generate_chains": "run.generate",
    "heatbath": "updates.heatbath",
    "info": "inspection.contents",
    "measure": "stored.measure",
    "open_device": "devices",
    "open_device_group": "domain.device_group",
    "open_run": "run.results",
    "overrelax": "updates.heatbath",
    "plot": "plots.drawing",
    "regenerate": "stored.regenerate",
    "report": "reports.page",
    "scan": "scans.carry_out",
    "status": "inspection.status",
    "thin": "stored.thinning",
    "verify": "inspection.verify",
}

__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    """Import public names when they are first used, so that the command line starts quickly.

    Extensions and other packages declare names by entry points of the group ``gauge_mc``.
    """
    if name not in _HOMES:
        from gauge_mc.registry import entry_points, similar

        plugins = {entry.name: entry for entry in entry_points("gauge_mc")}
        if name in plugins:
            return plugins[name].load()
        guess = similar(name, [*_HOMES, *plugins])
        words = f"; did you mean '{guess}'?" if guess else ""
        # Without the name, Python would add a guess of its own.
        raise AttributeError(f"module 'gauge_mc' has no attribute '{name}'{words}", name="")
    return getattr(import_module(f"gauge_mc.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    """List the public names."""
    return [*__all__, "__version__"]
