"""The command ``gauge-mc scan`` on lattices so small that it takes seconds, and its results."""

from gauge_mc.domain.lattice import Lattice
from gauge_mc.files.table import read_table
from tests.calls import call

SMALL = ("--thermalize", 5, "--configs", 1, "--separation", 40, "--backend", "cpu")
LONG = ("--beta", "2.3,2.4", "--lattice", 8, "--configs", 5000, "--backend", "cpu")
A, B = Lattice(4, 4, 4, 2), Lattice(4, 4, 4, 4)


def scan(*words, expect=0):
    """Call the command; return what it prints."""
    shown, code = call("scan", *words)
    assert code == expect, shown
    return shown


def written(path):
    """Read what a run has written and what must not depend on how it was carried out."""
    return {item.name: item.read_bytes() for item in [*path.glob("configs/*"), *path.glob("*.csv")]}


def rows(path):
    columns = read_table(path / "scan.csv", text=("lattice",)).columns
    records = (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
    return {(float(one["beta"]), str(one["lattice"])): one for one in records}
