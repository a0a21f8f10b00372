"""Results that measurements of the same links share."""

from gauge_mc.domain.device_group import ResultCache


def test_results_are_computed_once_in_a_context():
    shared, calls = ResultCache(), []

    def once(owner, key):
        return shared.once(owner, key, lambda: calls.append((owner, key)) or len(calls))

    assert [once("a", 1), once("a", 1)] == [1, 2]  # outside, nothing is kept
    with shared.links_stay():
        assert [once("a", 1), once("a", 2), once("a", 1)] == [3, 4, 3]
        with shared.links_stay():
            assert once("a", 2) == 4
        assert once("a", 1) == 3
        assert once("b", 1) == 5  # another owner takes the place of the first
        assert once("a", 1) == 6
    assert once("a", 1) == 7
    with shared.links_stay():
        assert once("a", 1) == 8
