"""``gauge-mc bench``: how fast the kernels are here."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gauge_mc.cli import options as o
from gauge_mc.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from gauge_mc.bench import Benchmark
    from gauge_mc.lattice import Lattice
    from gauge_mc.ring import Ring

DEFAULT_LATTICE = {"cpu": "16x16x16x16", "cuda": "48x48x48x48"}


def bench(
    group: o.Group = None,
    lattice: o.Extents = None,
    precision: o.Precision = None,
    rng: o.Generator = None,
    luxury: o.Luxury = None,
    backend: o.Backend = None,
    threads: o.Threads = None,
    devices: o.Devices = None,
    share_gpus: o.ShareGpus = None,
    seconds: Annotated[
        float, typer.Option(help="About how long to time each kernel.", min=0.05)
    ] = 1.0,
    loops: Annotated[
        bool, typer.Option(help="Time Wilson loops and smearing instead, in heatbath sweeps.")
    ] = False,
    tune: Annotated[
        bool,
        typer.Option("--tune", help="First find the fastest launch bounds for this kind of GPU."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    save: Annotated[
        Path | None, typer.Option(help="Also write the JSON object to a file.", metavar="FILE")
    ] = None,
    compare: Annotated[
        Path | None, typer.Option(help="Show ratios to a saved result.", metavar="FILE")
    ] = None,
) -> None:
    """Time every kernel on a thermal field and compare with what the memory allows.

    A lattice of --lattice is by default 16⁴ on a CPU and 48⁴ on a GPU. "Roofline" is the time
    that the least possible traffic takes at the bandwidth of a large copy, measured in the same
    run, as a part of the kernel's time; above 100 % the caches hold the field.
    """
    from rich.console import Console

    from gauge_mc.bench import benchmark, loops_time
    from gauge_mc.lattice import Lattice
    from gauge_mc.parameters import Parameters
    from gauge_mc.ring import open_ring
    from gauge_mc.ring.mpi import find_processes

    before = _saved(compare) if compare else None
    console = Console(highlight=False, stderr=as_json)
    processes = find_processes()
    with processes.together():
        ring = open_ring(devices, backend or "auto", threads, processes, bool(share_gpus))
        group, precision, rng = group or "su2", precision or "single", rng or "philox"
        extents = Lattice.parse(lattice or DEFAULT_LATTICE[ring.devices[0].backend])
        luxury = Parameters().luxury if luxury is None else luxury
        if tune:
            _tune(ring, console, group, extents, precision, rng, luxury)
        if loops:
            found = loops_time(ring, group, extents, precision, seconds)
            if ring.root:
                print(json.dumps(asdict(found), indent=2) if as_json else found)
            return
        result = benchmark(ring, group, extents, precision, rng, seconds, luxury)
    if not ring.root:
        return
    text = json.dumps(asdict(result), indent=2)
    if save:
        save.write_text(text + "\n")
    if as_json:
        print(text)
        return
    console.print(_title(result), soft_wrap=True)
    console.print(_table(result, before))
    if result.hidden is not None:
        console.print(f"{result.hidden:.0%} of the exchange is hidden behind the heatbath")


def _tune(ring: Ring, console: Console, group: str, lattice: Lattice, *kind: Any) -> None:
    """Show the trials of launch bounds, those that were fastest so far with a star."""
    from gauge_mc.devices.cuda import CudaDevice
    from gauge_mc.tune import tune

    device = ring.devices[0]
    if not isinstance(device, CudaDevice) or ring.processes.size > 1:
        raise UsageError("--tune is for a GPU and one process: there is nothing to tune on a CPU.")
    for trial in tune(device, group, lattice, *kind):
        registers = f"{trial.registers.count:3} registers" if trial.registers else ""
        spilled = f"{trial.registers.spilled:4} B spilled" if trial.registers else ""
        bounds = f"blocks of {trial.bounds.threads:3}, {trial.bounds.blocks:2} at once"
        time = f"{trial.ns_per_link:.4g} ns/link{'  *' * trial.kept}"
        console.print(f"{trial.kernel:14}  {bounds}  {registers}  {spilled}  {time}")


def _saved(path: Path) -> dict[str, float]:
    """Times in ns per link by kernel."""
    try:
        kernels = json.loads(path.read_text())["kernels"]
        return {kernel["name"]: float(kernel["ns_per_link"]) for kernel in kernels}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"{path} is not a result of gauge-mc bench: write one with --save."
        ) from error


def _title(result: Benchmark) -> str:
    return (
        f"{result.group.upper()} {result.lattice}, {result.precision} precision, "
        f"{result.random} on {result.device}, {result.lanes} "
        f"site{'s' * (result.lanes > 1)} a register; copy {result.copy_gb_per_s:.4g} GB/s"
    )


def _table(result: Benchmark, before: dict[str, float] | None) -> Table:
    from rich.table import Table

    table = Table()
    columns = ["ns/link", "±", "Mlink/s", "B/link", "roofline"]
    registers = any(kernel.registers is not None for kernel in result.kernels)
    columns += ["regs", "spill"] * registers + ["ratio"] * (before is not None)
    table.add_column("kernel", no_wrap=True)
    for column in columns:
        table.add_column(column, justify="right")
    for kernel in result.kernels:
        row: list[Any] = [
            kernel.name,
            f"{kernel.ns_per_link:.4g}",
            f"{kernel.spread / 2:.0%}",
            f"{kernel.links_per_s / 1e6:.0f}",
            f"{kernel.bytes_per_link:g}",
            f"{kernel.roofline:.0%}",
        ]
        row += [str(kernel.registers), str(kernel.spilled)] * registers
        if before is not None:
            old = before.get(kernel.name)
            row.append(f"{kernel.ns_per_link / old:.3f}" if old else "–")
        table.add_row(*row)
    return table
