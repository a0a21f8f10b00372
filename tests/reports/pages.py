"""Runs with made tables, for pages about them."""

from pathlib import Path

import numpy as np

from gauge_mc.files.table import write_table
from gauge_mc.run.directory import Run, SessionRecord
from gauge_mc.run.parameters import Parameters
from tests.analysis.synthetic_loops import autoregressive

HOSTILE = "</script><img src=x onerror=document.title='taken'>\"'&"
"""Words of a run that a page must show as text and nothing else."""


def write_run(path: Path, samples=400, beta=5.7, seed=1, device="a CPU", start="cold", **tables):
    """Write a run with plaquettes that thermalise and Polyakov loops, and further tables."""
    run = Run(path)
    path.mkdir(parents=True)
    parameters = Parameters(
        group="su3", beta=beta, lattice="4x4x4x8", thermalize=0, configs=samples, separation=1,
        seed=seed, measure="plaquette,polyakov", format="none", start=start,
    )  # fmt: skip
    run.write(parameters, [SessionRecord.begin(0, device)])
    head = {"group": "su3", "beta": f"{beta:g}", "lattice": "4x4x4x8"}
    plaquette, re, im = autoregressive(np.random.default_rng(seed), samples, 3, 0.5).T
    plaquette = 0.55 + 0.01 * plaquette + 0.1 * np.exp(-np.arange(samples) / 8)
    series = {
        "plaquette": {"plaquette": plaquette, "spatial": plaquette, "temporal": plaquette},
        "polyakov": {"re": re, "im": im, "abs": np.hypot(re, im)},
        **tables,
    }
    for name, columns in series.items():
        write_columns(path / f"{name}.csv", columns, {"observable": name, **head})
    return path


def write_columns(path: Path, columns, header):
    values = [np.asarray(one).tolist() for one in columns.values()]
    rows = zip(range(1, len(values[0]) + 1), *values, strict=True)
    write_table(path, header, ("sweep", *columns), rows)
