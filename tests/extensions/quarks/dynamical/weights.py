"""Weights of pseudofermions between two sets of links, which are ratios of determinants."""

import numpy as np

from gauge_mc.fields.field import Field


def check_weights(quarks, moved, logs, components, draws):
    """Check <exp(S(U) - S(U'))> over fields phi drawn for U, and the mean of S(U).

    Parameters
    ----------
    quarks : object
        Quarks on links U, with their `field`, `links`, `monomial` and `random`, and with `draw`.
    moved : ndarray
        The links U'.
    logs : sequence of float
        Logarithms of the weight on U and on U'.
    components : int
        Number of complex components of phi.
    draws : int
        Number of fields phi.
    """
    like = quarks.field
    fields = [
        like,
        Field.from_slices(like.lattice, like.group.name, moved, "double", like.devices),
    ]
    actions = []
    for quarks.random.step in range(1, draws + 1):
        quarks.links.take(fields[0])
        quarks.draw()
        before = float(quarks.monomial.drawn)
        quarks.links.take(fields[1])
        actions.append((before, float(quarks.monomial.action())))
    drawn, after = np.transpose(actions)
    assert abs(drawn.mean() - components) < 4 * np.sqrt(components / draws)
    weights = np.exp(drawn - after)
    error = weights.std() / np.sqrt(draws)
    expected = np.exp(logs[1] - logs[0])
    assert abs(weights.mean() - expected) < 4 * error
    assert abs(expected - 1) > 5 * error
