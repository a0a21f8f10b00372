"""Tables for the fits of this package and of its extensions."""

from pathlib import Path

import numpy as np

from gauge_mc.errors import GaugeError
from gauge_mc.fits import FITS
from tests.analysis.synthetic_flow import synthetic_flow, write_flow
from tests.analysis.synthetic_loops import synthetic_loops, write_loops
from tests.quantities import test_continuum, test_hmc
from tests.quantities.polyakov import test_screening
from tests.quantities.potential.test_ratios import synthetic as planar_loops
from tests.quantities.thermodynamics import test_field_correlators, test_thermodynamics
from tests.quantities.transition import test_transition
from tests.samples import all_of


def write_tables(folder: Path) -> Path:
    """Write the tables, with random numbers that are always the same."""
    rng = np.random.default_rng(1)
    write_loops(folder / "wilson_loops.csv", synthetic_loops(rng, 60))
    write_flow(folder / "flow.csv", synthetic_flow(rng, 20))
    planar_loops(folder / "planar_loops.csv", 1e-3, 20)
    for write in all_of("write_tables"):
        write(folder)
    return folder


def has_table(name: str, folder: Path) -> bool:
    """Return whether a fit finds its table in a folder; that of a further fit may be missing."""
    try:
        FITS[name].find_table(folder, {})
    except GaugeError:
        return False
    return True


def write_target(name: str, folder: Path) -> Path:
    """Write what a fit takes, a run or a folder of runs, and return its path."""
    rng = np.random.default_rng(2)
    folder.mkdir()
    match name:
        case "transition":
            test_transition.write_study(folder, size=400)
        case "thermodynamics":
            for beta in test_thermodynamics.BETAS:
                for lattice in (test_thermodynamics.HOT, test_thermodynamics.COLD):
                    run = folder / f"{lattice}_{beta:.4g}"
                    test_thermodynamics.write_plaquettes(run, rng, beta, lattice)
        case "energy-momentum":
            test_thermodynamics.write_flows(folder, rng, 3, 6.0, 1e-5)
        case "free-energy":
            test_screening.write_correlators(folder, 0.04)
        case "screening":
            test_screening.write_planes(folder)
        case "field-correlators":
            test_field_correlators.write_correlators(folder)
        case "continuum":
            test_continuum.write_runs(folder)
        case "hmc":
            test_hmc.write_trajectories(folder)
        case _ if not any([write(name, folder) for write in all_of("write_target")]):
            write_tables(folder)
    return folder
