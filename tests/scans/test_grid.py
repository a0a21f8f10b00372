"""Grids: ranges of couplings, lists of lattices, and what is given twice."""

import pytest

from gauge_mc.errors import UsageError
from gauge_mc.scans.grid import Grid, parse_lattices, parse_numbers
from tests.scans.commands import A, B


def test_ranges_are_counted_in_decimals():
    assert parse_numbers("2.2:2.8:0.05") == tuple(round(2.2 + 0.05 * i, 2) for i in range(13))
    assert parse_numbers("0.1:0.3:0.1") == (0.1, 0.2, 0.3)
    assert parse_numbers("2.4") == (2.4,)
    assert parse_numbers("5.7, 5.8:6:0.1,1e1") == (5.7, 5.8, 5.9, 6.0, 10.0)
    assert parse_numbers("2.2:2.2:0.1") == (2.2,)
    assert parse_lattices("4x4x4x2, 4") == (A, B)


def test_grids_are_checked():
    assert Grid((2.2,), (A,)).chains == 1
    with pytest.raises(UsageError, match="1 to 10000 runs, not 0"):
        Grid((), (A,))


@pytest.mark.parametrize(
    "text",
    [
        "sNaN",
        "nan",
        "inf",
        "1_0",
        "1e400",
        "1e-400",
        400 * "9",
        5000 * "9",
        "0x1",
        "٢",
        "2.2:2.3:sNaN",
    ],
)
def test_what_is_not_a_plain_number_is_no_coupling(text):
    with pytest.raises(UsageError, match=r"must consist of|is 0; give a number"):
        parse_numbers(text)


def test_couplings_have_bounds():
    with pytest.raises(UsageError, match="give a number from 1e-06 to 1000000"):
        Grid(parse_numbers("1e7"), (A,))
    with pytest.raises(UsageError, match="give a number from 1e-06"):
        Grid((1e9,), (A,))


def test_what_is_given_twice_counts_once():
    grid = Grid(
        parse_numbers("2.2:2.4:0.1,2.3:2.5:0.1,2.20"), parse_lattices("4,4x4x4x4,4x4x4x2"), 2
    )
    assert grid.beta == (2.2, 2.3, 2.4, 2.5)
    assert grid.lattice == (B, A)
    assert Grid.from_values(grid.values()) == grid
    # The limit is for runs, not for what was typed.
    assert len(Grid(parse_numbers("1:10:0.001,1:10:0.001"), (A,)).beta) == 9001
