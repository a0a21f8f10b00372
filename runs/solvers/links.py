"""The links on which the scripts of this folder solve."""

import argparse
from pathlib import Path

from gauge_mc import Field, Random, heatbath
from gauge_mc.domain.lattice import Lattice


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `links_of`."""
    parser.add_argument("file", type=Path, nargs="?")
    parser.add_argument("--lattice", default="8x8x8x16")
    parser.add_argument("--beta", type=float, default=6.0)
    parser.add_argument("--sweeps", type=int, default=200)


def links_of(given: argparse.Namespace) -> Field:
    """Return the links of a file, or those after sweeps of the heatbath."""
    if given.file:
        return Field.load(given.file, precision="double")
    field = Field.hot(Lattice.parse(given.lattice), "su3", "double")
    heatbath(field, given.beta, Random.for_field(field), given.sweeps)
    return field
