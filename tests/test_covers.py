"""Covers by pairs."""

from itertools import combinations, product

import pytest

from tests.conftest import ONCE, QUICK, choice_of, function_of, kind_of, runs_kernels
from tests.covers import beyond_pairs, beyond_values
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


def test_a_cover_can_be_enlarged():
    every = [dict(zip("abc", one, strict=True)) for one in product(range(3), range(3), range(3))]
    left_out = {*beyond_pairs(every)}
    cover = [choice for number, choice in enumerate(every) if number not in left_out]
    larger = [{"d": n, **one} for n in range(2) for one in every]
    chosen = [{"d": 0, **one} for one in cover]
    assert len({*beyond_pairs(every, cover)}) == 27
    others = {*beyond_pairs(larger, chosen)}
    more = [choice for number, choice in enumerate(larger) if number not in others]
    assert pairs(chosen) < pairs(larger) == pairs(chosen + more)
    assert len(more) <= 9  # of 54


def test_choices_that_a_product_lacks_are_not_necessary():
    assert beyond_pairs([{"a": 0, "b": 0, "c": 0}, {"a": 1, "b": 1, "c": 1}]) == []


def test_one_or_two_parameters_keep_all_choices():
    assert beyond_pairs([{"a": n} for n in range(5)]) == []
    assert beyond_pairs([{"a": n, "b": m} for n in range(5) for m in range(3)]) == []


@pytest.mark.parametrize("a", [1000, 2000])
@pytest.mark.parametrize(("b", "c"), [(3000, 4000), (3000, 5000), (6000, 4000)])
def test_instances_of_a_test_share_elements_of_its_parametrisations(request, a, b, c):
    """Otherwise no instance would be beyond a cover."""
    assert choice_of(request.node) == {("a",): (id(a),), ("b", "c"): (id(b), id(c))}
    found = request.node.parent.collect()
    every = [one for one in found if one.originalname == request.node.originalname]
    choices = [choice_of(one) for one in every]
    assert len(choices) == 6
    assert [len({one[name] for one in choices}) for name in (("a",), ("b", "c"))] == [2, 3]


def test_every_value_occurs_in_fewer_choices():
    every = [dict(zip("abc", one, strict=True)) for one in product(range(4), range(3), range(2))]
    left_out = {*beyond_values(every)}
    cover = [choice for number, choice in enumerate(every) if number not in left_out]
    assert [{one[name] for one in cover} for name in "abc"] == [{0, 1, 2, 3}, {0, 1, 2}, {0, 1}]
    assert len(cover) == 4  # of 24
    assert len({*beyond_values(every, cover)}) == 24
    assert beyond_values([{"a": 5, "b": 0, "c": 0}, *every], cover) == [*range(1, 25)]


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
