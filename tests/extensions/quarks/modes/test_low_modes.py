"""Low modes, against dense matrices."""

import numpy as np
import pytest

from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import UsageError
from gauge_mc.extensions.quarks.hopping import LinearOperator
from gauge_mc.extensions.quarks.modes import (
    LowModeRequest,
    all_low_modes,
    joined,
    low_modes,
    modes_up_to,
    random_vector,
)
from gauge_mc.extensions.quarks.modes.chirality import (
    HermitianOperator,
    SquaredOperator,
    norm_bound,
)
from gauge_mc.extensions.quarks.operators import Wilson
from gauge_mc.extensions.quarks.overlap import sign_function as module
from gauge_mc.extensions.quarks.overlap.sign_function import kernel_modes
from gauge_mc.extensions.quarks.vectors import SpinorField
from gauge_mc.extensions.quarks.vectors.algebra import Combine
from gauge_mc.extensions.quarks.vectors.basis import Projection
from tests.extensions.quarks.links import check_divisions, field_of
from tests.extensions.quarks.reference import overlap as reference
from tests.reference.fields import cold_field, random_field

LATTICE = Lattice(4, 2, 4, 2)
RHO = 1.4
KAPPA = 1 / (8 - 2 * RHO)
PHASES = [1, 1, np.exp(0.5j), -1]


@pytest.fixture(scope="module")
def links():
    return random_field(LATTICE.extents, "su2", np.random.default_rng(3))


@pytest.fixture(scope="module")
def dense(links):
    """Q = 2 kappa H as a matrix."""
    return 2 * KAPPA * reference.kernel(links, RHO, PHASES)


def q_of(links, devices):
    return HermitianOperator(Wilson(field_of(links, devices), KAPPA, boundary=PHASES).prepared())


def start_of(q, seed=1):
    return random_vector(SpinorField.empty(q.prepared.operator.field), seed)


@pytest.mark.longer
def test_low_modes(links, dense, best_device):
    values = np.sort(np.linalg.eigvalsh(dense) ** 2)
    q = q_of(links, best_device)
    square = SquaredOperator(q)
    found = low_modes(square, start_of(q), LowModeRequest(6, 1.02 * values[-1]))
    assert np.abs(found.values - values[:6]).max() < 1e-12
    assert found.residuals.max() < 1e-12
    v = found.vectors.to_numpy().reshape(6, -1)
    assert np.abs(v.conj() @ v.T - np.eye(6)).max() < 1e-12
    m = dense @ dense
    assert np.linalg.norm(m @ v.T - v.T * found.values, axis=0).max() < 1e-12
    others = low_modes(square, start_of(q, 2), LowModeRequest(3, 1.02 * values[-1]), found.vectors)
    assert np.abs(others.values - values[6:9]).max() < 1e-12


class Lifted(LinearOperator):
    """Q^2 whose lowest two eigenvalues are replaced by 0 and a small one."""

    parities = (0, 1)

    def __init__(self, square, first, second, small):
        self.square, self.small = square, small
        self.lowest, self.second = joined(first, second), second

    def apply(self, target, source, dagger=False):
        times, rest = self.square.apply(target, source), source.like()
        remove, remove_second = Projection(self.lowest, target), Projection(self.second, rest)
        add = [Combine(target, one, parity=p) for p in self.parities for one in (source, rest)]

        def call():
            times()
            remove.remove()
            rest.copy(source)
            remove_second.remove()
            for one, sign in zip(add, (1, -1, 1, -1), strict=True):  # the part along the second
                one(1, sign * self.small)

        return call


@pytest.mark.longer
def test_a_mode_that_is_zero_is_not_taken_for_a_part_of_the_next_one(links, dense, fast_device):
    """With a loose error, a mixture of both has a small enough residual before they are apart."""
    values = np.sort(np.linalg.eigvalsh(dense) ** 2)
    q, upper = q_of(links, fast_device), 1.02 * values[-1]
    square = SquaredOperator(q)
    first = low_modes(square, start_of(q, 7), LowModeRequest(1, upper)).vectors
    second = low_modes(square, start_of(q, 8), LowModeRequest(1, upper), first).vectors
    small = 2e-3 * values[2]
    operator = Lifted(square, first, second, small)
    request = LowModeRequest(1, upper, 1e-9, costly=True, error=small)
    for seed in range(3):
        found = modes_up_to(operator, start_of(q, seed), request, 1e-4 * small)
        assert found.values == pytest.approx([0, small], abs=1e-3 * small)


@pytest.mark.longer
def test_eigenvalues_that_occur_several_times(fast_device):
    """On cold links, of which a single Krylov space has one vector of each."""
    links = cold_field(LATTICE.extents, "su2")
    values = np.sort(np.linalg.eigvalsh(2 * KAPPA * reference.kernel(links, RHO, PHASES)) ** 2)
    q = q_of(links, fast_device)
    request = LowModeRequest(6, 1.02 * values[-1])
    assert values[3] - values[0] < 1e-12
    found = all_low_modes(SquaredOperator(q), start_of(q), request)
    assert np.abs(found.values - values[:6]).max() < 1e-11


def test_the_norm(links, dense, best_device):
    largest = np.abs(np.linalg.eigvalsh(dense)).max() ** 2
    q = q_of(links, best_device)
    assert largest < norm_bound(SquaredOperator(q), start_of(q)) < 1.1 * largest


@pytest.mark.longer
def test_kernel_modes(links, dense, best_device):
    """The modes next to 0 with their signs, up to a gap, and true bounds of all others."""
    values = np.linalg.eigvalsh(dense)
    values = values[np.argsort(np.abs(values))]
    modes = kernel_modes(q_of(links, best_device), 8)
    n = modes.number
    assert 4 <= n <= 8
    assert np.abs(modes.values - values[:n]).max() < 1e-12
    assert modes.residuals.max() < 1e-11
    assert modes.edge <= np.abs(values[n]) <= 1.01 * modes.edge
    assert modes.norm > np.abs(values[-1])
    assert modes.gap == pytest.approx(np.abs(values[n] / values[n - 1]), rel=1e-10)
    expected = []
    for k in range(n):
        same = values[:n] * values[k] > 0
        others = np.concatenate([values[:n][~same], values[n:]])
        expected.append(np.abs(others - values[k]).min())
    # The edge is a bound of eigenvalues of both signs.
    assert (modes.distances <= np.array(expected)).all()
    assert (modes.distances > 0).all()


@pytest.mark.longer
def test_modes_of_both_signs_with_equal_sizes(fast_device):
    """On cold links Q has x with -x, so that vectors of Q^2 are not those of Q."""
    links = cold_field(LATTICE.extents, "su2")
    dense = 2 * KAPPA * reference.kernel(links, RHO, PHASES)
    sizes = np.sort(np.abs(np.linalg.eigvalsh(dense)))
    modes = kernel_modes(q_of(links, fast_device), 8)
    assert modes.number == 0 or modes.residuals.max() < 1e-11
    assert modes.edge <= sizes[modes.number] < 1.01 * modes.edge


@pytest.mark.longer
def test_a_missed_mode_is_found_by_the_ritz_functional(links, dense, best_device, monkeypatch):
    """If the first search leaves out the lowest mode, the next one finds it."""
    values = np.sort(np.abs(np.linalg.eigvalsh(dense)))
    searches = []

    def incomplete(operator, start, request, outside=None):
        searches.append(outside)
        found = low_modes(operator, start, request, outside)
        if len(searches) == 1:
            rest = SpinorField.empty(start.field, count=request.number - 1)
            rest.copy(found.vectors, 1)
            return type(found)(found.values[1:], found.residuals[1:], rest, found.applications)
        return found

    monkeypatch.setattr(module, "low_modes", incomplete)
    modes = kernel_modes(q_of(links, best_device), 6)
    assert len(searches) == 2
    assert np.abs(np.abs(modes.values) - values[: modes.number]).max() < 1e-12


def test_refusals(links, best_device):
    q = q_of(links, best_device)
    for number in (-1, 100000):
        with pytest.raises(UsageError, match="number of low modes"):
            kernel_modes(q, number)
    with pytest.raises(UsageError, match="too many on a lattice of 64 sites"):
        kernel_modes(q, 400)


@pytest.mark.slow
def test_same_bytes_on_several_slabs(rng):
    links = random_field((4, 2, 4, 4), "su2", rng)

    def calculate(devices):
        q = q_of(links, devices)
        low = low_modes(SquaredOperator(q), start_of(q), LowModeRequest(2, 5.0, 1e-8))
        return low.values, low.vectors.to_numpy()

    check_divisions("cpu-16", [(4,), (2, 2)], calculate)
