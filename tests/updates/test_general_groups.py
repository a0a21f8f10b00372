"""SU(N): updates against NumPy for N = 2 to 8, and averages against expansions."""

from functools import cache
from math import factorial

import numpy as np
import pytest

from gauge_mc.actions import ACTIONS
from gauge_mc.analysis.timeseries import estimate
from gauge_mc.domain.lattice import Lattice
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.groups import GROUPS, GeneralGroup
from gauge_mc.quantities.plaquette import plaquette
from gauge_mc.updates.heatbath import heatbath, overrelax
from tests.domain.conftest import open_group
from tests.reference import updates as reference
from tests.reference.distributions import a0_pvalue, schwinger_dyson
from tests.reference.fields import COLOURS, dagger, parity, random_field
from tests.reference.observables import staple
from tests.updates.every_action import loops_of
from tests.updates.links import start, unitarity_violation
from tests.updates.test_heatbath import SEED, STEP, PhiloxDraws

LATTICE = Lattice(8, 4, 4, 6)
ENSEMBLES = Lattice(4, 6, 8, 8)
SLOW, EVERY = pytest.mark.slow, pytest.mark.every
KINDS = [
    ("su4", "single"),
    *(pytest.param(f"su{n}", "double", marks=SLOW) for n in (4, 7)),
    pytest.param("su5", "single", marks=SLOW),
    *(pytest.param(f"su{n}", "double", marks=EVERY) for n in (5, 6, 8)),
    pytest.param("su8", "single", marks=EVERY),
]
kinds = pytest.mark.parametrize(("name", "real"), KINDS)


@cache
def heated(name, real):
    """The links after a heatbath sweep."""
    links = start(LATTICE, name)
    subgroups = len(reference.SUBGROUPS[COLOURS[name]])
    for mu in range(4):
        draws = PhiloxDraws(LATTICE, SEED, STEP, mu, real, subgroups)
        for odd in range(2):
            links = reference.heatbath_half(links, GROUPS[name].beta, mu, odd, draws)
    return links


def check(found, expected, real):
    """Compare links; an error grows from each link to those that are updated later."""
    difference = np.abs(found - expected).max(axis=(-1, -2))
    assert np.median(difference) < (1e-5 if real == "single" else 1e-11)
    # Rounding may change a narrow acceptance.
    assert np.mean(difference > (1e-3 if real == "single" else 1e-9)) < 0.02


@pytest.mark.longer
@kinds
def test_heatbath(name, real, best_device):
    field = Field.from_slices(LATTICE, name, start(LATTICE, name), real, best_device)
    random = Random.for_field(field, seed=SEED)
    random.step = STEP - 1
    heatbath(field, field.group.beta, random)
    check(field.to_numpy(), heated(name, real), real)


@pytest.mark.longer
@kinds
def test_overrelaxation(name, real, best_device):
    links = start(LATTICE, name)
    field = Field.from_slices(LATTICE, name, links, real, best_device)
    overrelax(field)
    check(field.to_numpy(), reference.overrelax(links), real)


@SLOW
@pytest.mark.parametrize("lattice", [Lattice(4, 8, 4, 4), Lattice(4, 6, 4, 8)], ids=str)
@pytest.mark.parametrize("name", ["su4", pytest.param("su5", marks=EVERY)])
def test_updates_by_four_and_six_colours(name, lattice, best_device):
    """A heatbath sweep and an overrelaxation sweep with rectangles."""
    beta, loops, real = GROUPS[name].beta / 2, loops_of(ACTIONS["iwasaki"]), "double"
    subgroups = len(reference.SUBGROUPS[COLOURS[name]])

    def heat(mu):
        draws = PhiloxDraws(lattice, SEED, STEP, mu, real, subgroups)
        return reference.heat(draws, beta / COLOURS[name])

    field = Field.from_slices(lattice, name, start(lattice, name), real, best_device)
    random = Random.for_field(field, seed=SEED)
    random.step = STEP - 1
    heatbath(field, beta, random, action="iwasaki")
    heated = reference.coloured_sweep(start(lattice, name), loops, heat)
    check(field.to_numpy(), heated, real)
    overrelax(field, action="iwasaki")
    reflected = reference.coloured_sweep(heated, loops, lambda mu: reference.reflect)
    check(field.to_numpy(), reflected, real)


@pytest.fixture
def general(request):
    """A group whose special header is replaced by the general one."""
    group = GeneralGroup(request.param, beta=2.0)
    group.name = f"su{request.param}-general"
    yield GROUPS.register(group)
    GROUPS.remove(group.name)


@pytest.mark.longer
@pytest.mark.parametrize("general", [pytest.param(2, marks=SLOW), 3], indirect=True)
def test_special_groups_agree_with_the_general_one(general, best_device):
    n = general.colours
    links = start(LATTICE, f"su{n}")
    found = []
    for name in (f"su{n}", general.name):
        field = Field.from_slices(LATTICE, name, links, "double", best_device)
        heatbath(field, 5.0, Random.for_field(field, seed=3), sweeps=2)
        overrelax(field)
        found.append(field.to_numpy())
    np.testing.assert_allclose(*found, rtol=0, atol=1e-11)


@kinds
def test_random_links_are_in_the_group_and_haar_distributed(name, real, best_device):
    field = Field.hot(Lattice(8, 8, 8, 8), name, real, best_device, seed=2)
    links = field.to_numpy()
    assert unitarity_violation(links) < (2e-6 if real == "single" else 1e-14)
    traces = np.trace(links, axis1=-2, axis2=-1).ravel()
    # For N >= 4 the moments of the trace up to |Tr U|^6 are those of a complex Gaussian number.
    for power, exact, variance in ((1, 1, 1), (2, 2, 20)):
        found = np.mean(np.abs(traces) ** (2 * power))
        assert abs(found - exact) < 4.5 * np.sqrt(variance / traces.size)
    assert abs(traces.mean()) < 4.5 / np.sqrt(traces.size)
    determinants = np.linalg.det(links[..., : field.group.colours // 2, : field.group.colours // 2])
    assert abs(determinants.mean()) < 4.5 / np.sqrt(traces.size)  # no phase is preferred


@kinds
def test_overrelaxation_keeps_the_action_and_links_stay_in_the_group(name, real, best_device):
    field = Field.hot(LATTICE, name, real, best_device)
    random, beta = Random.for_field(field), field.group.beta
    heatbath(field, beta, random, sweeps=10)
    before, links = plaquette(field), field.to_numpy()
    overrelax(field, sweeps=10)
    assert plaquette(field) == pytest.approx(before, rel=2e-6 if real == "single" else 1e-13)
    overlap = np.trace(field.to_numpy() @ dagger(links), axis1=-2, axis2=-1).real.mean()
    assert overlap < 0.75 * field.group.colours
    heatbath(field, beta, random, sweeps=40)
    assert unitarity_violation(field.to_numpy()) < (2e-6 if real == "single" else 1e-14)


@pytest.mark.parametrize("name", ["su4"])
def test_heatbath_distribution(name, best_device, rng):
    """The last subgroup's quaternion follows its distribution at the alpha of every link."""
    lattice, n = Lattice(8, 8, 8, 8), COLOURS[name]
    links = random_field(lattice.extents, name, rng)
    field = Field.from_slices(lattice, name, links, "single", best_device)
    heatbath(field, 10.0, Random.for_field(field, seed=12))
    after = field.to_numpy()
    odd = parity(lattice.extents) == 1
    w = (after[..., 3, :, :] @ staple(after, 3))[odd]
    q = reference.quaternion(w, n - 2, n - 1)
    k = np.linalg.norm(q, axis=-1)
    assert a0_pvalue(q[:, 0] / k, 2 * 10.0 / n * k) > 1e-3


@pytest.mark.parametrize("name", ["su4"])
@pytest.mark.parametrize("generator", ["philox", pytest.param("ranlux", marks=SLOW)])
@pytest.mark.parametrize("kind", ["cpu-16", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_links_do_not_depend_on_the_division(name, generator, kind):
    found = []
    for devices in (open_group(kind, slices) for slices in ((6,), (2, 4), (2, 2, 2))):
        field = Field.hot(LATTICE, name, "single", devices, seed=5)
        heatbath(field, 10.0, Random.for_field(field, generator, seed=6), sweeps=2)
        overrelax(field)
        found.append(np.stack(list(field.packed_slices())))
    np.testing.assert_array_equal(found[1], found[0])
    np.testing.assert_array_equal(found[2], found[0])


def chain(name, beta, device, updates, lattice=ENSEMBLES, real="single", make=Field.hot):
    """Yield the field after every update of a thermalised chain."""
    field = make(lattice, name, real, device)
    random = Random.for_field(field, seed=23)
    for update in range(-60, updates):
        heatbath(field, beta, random)
        overrelax(field, 2)
        if update >= 0:
            yield field


def strong_coupling_plaquette(n, beta):
    """Return the plaquette of SU(N), N >= 4, at small beta in four dimensions.

    With x = beta / (2 N^2) the weight of a plaquette U is exp(N x (Tr U + Tr U^dagger)). The
    logarithm of its integral is (N x)^2 + 2 (N x)^N / N! + ...: the first term is that of U(N),
    without corrections up to the order x^(2 N + 1), and the second one is due to det U = 1, since
    the N-th power of the fundamental representation contains the trivial one once. The derivative
    is x + N^(N-2) x^(N-1) / (N-1)!. The four cubes at each plaquette add 4 x^5 (Drouffe and Zuber,
    Phys. Rept. 102 (1983) 1).
    """
    x = beta / (2 * n**2)
    return x + n ** (n - 2) * x ** (n - 1) / factorial(n - 1) + 4 * x**5


@SLOW
@pytest.mark.parametrize(
    ("name", "x"),
    [("su4", 0.1), *(pytest.param(*one, marks=EVERY) for one in (("su5", 0.1), ("su6", 0.15)))],
)
def test_plaquette_at_strong_coupling(name, x, best_device):
    n = COLOURS[name]
    series = [plaquette(field) for field in chain(name, 2 * n**2 * x, best_device, 200)]
    result = estimate(np.array(series))
    assert result.error < 2e-4
    assert abs(result.value - strong_coupling_plaquette(n, 2 * n**2 * x)) < 4 * result.error + 2e-5


@SLOW
@pytest.mark.parametrize("name", ["su4", pytest.param("su6", marks=EVERY)])
def test_schwinger_dyson_identity(name, best_device):
    """Exact at any volume, and broken at once by another beta."""
    beta = GROUPS[name].beta
    right, wrong = [], []
    for update, field in enumerate(chain(name, beta, best_device, 60, real="double")):
        if update % 3 == 0:
            links = field.to_numpy()
            right.append(schwinger_dyson(links, beta))
            wrong.append(schwinger_dyson(links, 1.03 * beta))
    error = np.std(right, ddof=1) / np.sqrt(len(right))
    assert abs(np.mean(right)) < 4 * error
    assert abs(np.mean(wrong)) > 5 * error


def weak_coupling_plaquette(n, beta):
    """Return the plaquette at large beta to the order g^6, in an infinite volume.

    1 - P = c1 g^2 + c2 g^4 + c3 g^6 with g^2 = 2 N / beta and the coefficients of B. Alles, A. Feo
    and H. Panagopoulos, hep-lat/9801003. For SU(3) it is 2 / beta + 1.2208 / beta^2 + 2.960 /
    beta^3.
    """
    g2, generators = 2 * n / beta, n**2 - 1
    c1 = generators / (8 * n)
    c2 = generators * (0.0051069297 - 1 / (128 * n**2))
    c3 = generators * (0.0023152583 / n**3 - 0.002265487 / n + 0.000794223 * n)
    return 1 - c1 * g2 - c2 * g2**2 - c3 * g2**3


@SLOW
@pytest.mark.parametrize("name", ["su3", "su4", pytest.param("su6", marks=EVERY)])
def test_plaquette_at_weak_coupling(name, best_device):
    """The next term is about 5e-5; the zero modes of the finite volume are fewer than 1 in 4000."""
    n = COLOURS[name]
    beta = 2 * n * n / 0.8  # g^2 N = 0.8
    fields = chain(name, beta, best_device, 60, Lattice(8, 8, 8, 8), make=Field.cold)
    series = [plaquette(field) for field in fields]
    result = estimate(np.array(series))
    assert result.error < 1e-4
    assert abs(result.value - weak_coupling_plaquette(n, beta)) < 4 * result.error + 1.5e-4
