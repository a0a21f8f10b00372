import numpy as np

from gauge_mc.quantities.potential.loop_plots import _spread


def test_labels_keep_their_order_and_a_distance(rng):
    levels = np.round(rng.normal(size=30), 2)
    found = _spread(levels, 0.1)
    assert np.diff(np.sort(found)).min() > 0.0999
    assert np.array_equal(np.argsort(found), np.argsort(levels))
    far = 10.0 * rng.permutation(5)
    np.testing.assert_allclose(_spread(far, 0.1), far)
