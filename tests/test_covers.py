"""Covers by pairs."""

from itertools import combinations, product

from tests.conftest import ONCE, QUICK, function_of, kind_of, runs_kernels
from tests.covers import beyond_pairs
from tests.tools.share import is_chosen


def pairs(choices):
    return {pair for choice in choices for pair in combinations(sorted(choice.items()), 2)}


def test_every_pair_occurs_in_few_choices():
    values = {"a": range(4), "b": range(3), "c": range(3), "d": range(2)}
    every = [dict(zip(values, one, strict=True)) for one in product(*values.values())]
    left_out = {*beyond_pairs(every)}
    cover = [choice for number, choice in enumerate(every) if number not in left_out]
    assert pairs(cover) == pairs(every)
    assert 12 <= len(cover) <= 15  # of 72


def test_shares_change_with_the_number():
    names = [f"tests/test_{number}.py" for number in range(80)]
    shares = [{one for one in names if is_chosen(one, f"{number}/4")} for number in range(30)]
    assert set.union(*shares) == {*names}
    assert all(5 < len(one) < 40 for one in shares)
    assert len({*map(frozenset, shares)}) == 30
    assert all(is_chosen(one, "7/1") for one in names)


def test_quick_tests_of_kernels_have_few_kinds(request):
    """One, and in one file of every folder a second one; `first_quick` means one instance."""
    quick = [one for one in request.session.items if not one.get_closest_marker("slow")]
    kinds = {one: kind_of(one) for one in quick if runs_kernels(one)}
    assert {*kinds.values()} <= QUICK | {(None, None)}
    seconds = {one.path for one, kind in kinds.items() if kind == ONCE}
    assert len(seconds) == len({path.parent for path in seconds})
    firsts = [
        function_of(one)
        for one in quick
        if one.get_closest_marker("first_quick") and not one.get_closest_marker("gpu")
    ]
    assert len(firsts) == len({*firsts})
