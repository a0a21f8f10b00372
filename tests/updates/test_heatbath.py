"""Heatbath and overrelaxation against NumPy, and the distribution of links."""

from functools import cache

import numpy as np
import pytest

from gauge_mc.actions import ACTIONS, Coupling
from gauge_mc.devices.cpu.device import CpuDevice
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import UsageError
from gauge_mc.fields.field import AlgebraField, Field
from gauge_mc.fields.gradient_flow import GradientFlow
from gauge_mc.fields.random_field import Random
from gauge_mc.flows import FLOWS
from gauge_mc.quantities.plaquette import plaquette
from gauge_mc.random import GENERATORS
from gauge_mc.updates.heatbath import heatbath, overrelax
from gauge_mc.updates.monomials.gauge import KICK, GaugeMonomial
from gauge_mc.updates.sweep import ONE_REPLICA, couplings_in_memory
from tests.reference import updates as reference
from tests.reference.distributions import a0_pvalue
from tests.reference.fields import dagger, parity, random_field
from tests.reference.observables import staple
from tests.reference.randoms import philox4x32
from tests.updates.links import LATTICES, assert_overrelaxed, start, unitarity_violation
from tests.updates.moving import gauge_kick


class PhiloxDraws:
    """The heatbath's draws by the definitions of the generator and of the sampler."""

    def __init__(self, lattice, seed, step, mu, precision, subgroups=3):
        self.site = np.arange(lattice.sites, dtype=np.uint64)
        self.shape = (lattice.t, lattice.z, lattice.y, lattice.x)
        self.seed, self.step, self.mu, self.precision = seed, step, mu, precision
        self.subgroups = max(3, subgroups)

    def block(self, stream, number):
        word = self.mu | stream % 4 << 2 | number << 4 | stream // 4 << 16
        counter = np.empty((self.site.size, 4), np.uint32)
        counter[:, 0] = self.site
        counter[:, 1:] = word, self.step & 0xFFFFFFFF, self.step >> 32
        key = np.array([self.seed & 0xFFFFFFFF, self.seed >> 32], np.uint32)
        words = philox4x32(counter, np.broadcast_to(key, (*counter.shape[:-1], 2)))
        words = words.astype(np.uint64)
        if self.precision == "single":
            uniform = ((words >> 1) + 0.5) * 2.0**-31
        else:
            pairs = words[..., 0::2] << np.uint64(32) | words[..., 1::2]
            uniform = (pairs >> np.uint64(12)) * 2.0**-52 + 2.0**-53
        return uniform.reshape(*self.shape, -1)

    def uniforms(self, stream, first, count):
        per_block = 4 if self.precision == "single" else 2
        blocks = range(first * -(-count // per_block), (first + 1) * -(-count // per_block))
        return np.concatenate([self.block(stream, b) for b in blocks], axis=-1)[..., :count]

    def __call__(self, subgroup, alpha):
        delta = np.full(self.shape, np.nan)
        attempt, c = 0, 0.25 + 0.75 / (1 + 4 * alpha)
        while np.isnan(delta).any():
            u = np.moveaxis(self.uniforms(subgroup, attempt, 4), -1, 0)
            gamma = -(np.log(u[0]) + np.log(u[1]) * np.cos(np.pi * u[2] / 2) ** 2)
            trial = gamma / (alpha + c)
            # The wanted density over the proposed one, whose maximum is at delta = 2 - 1 / (2 c).
            ratio = np.sqrt(np.maximum(1 - trial / 2, 0)) * np.exp(c * trial)
            accept = np.isnan(delta) & (
                u[3] <= ratio / (np.sqrt(1 / (4 * c)) * np.exp(2 * c - 0.5))
            )
            delta[accept] = trial[accept]
            attempt += 1
        directions = self.uniforms(self.subgroups, 0, 2 * self.subgroups)
        u = directions[..., 2 * subgroup : 2 * subgroup + 2]
        cosine, phi = 2 * u[..., 0] - 1, 2 * np.pi * (u[..., 1] - 0.5)
        sine = np.sqrt(1 - cosine**2)
        unit = np.stack([sine * np.cos(phi), sine * np.sin(phi), cosine], axis=-1)
        return reference.given((1 - delta)[None], unit[None])(0, alpha)


SEED, STEP = 2**40 + 7, 2**33


@cache
def heated(lattice, group, beta, precision):
    links = start(lattice, group)
    for mu in range(4):
        draws = PhiloxDraws(lattice, SEED, STEP, mu, precision)
        for odd in range(2):
            links = reference.heatbath_half(links, beta, mu, odd, draws)
    return links


@pytest.mark.longer
@pytest.mark.parametrize("lattice", LATTICES, ids=str)
@pytest.mark.parametrize("beta", [0.3, 5.0])
def test_heatbath(lattice, beta, group, precision, device):
    field = Field.from_slices(lattice, group, start(lattice, group), precision, device)
    random = Random.for_field(field, seed=SEED)
    random.step = STEP - 1
    heatbath(field, beta, random)
    assert random.step == STEP
    difference = np.abs(field.to_numpy() - heated(lattice, group, beta, precision)).max(
        axis=(-1, -2)
    )
    if precision == "double":
        assert difference.max() < 1e-11
        assert np.sqrt(np.mean(difference**2)) < 1e-13
    else:
        # Rounding may change a narrow acceptance, and so a link and those updated after it.
        assert np.median(difference) < 4e-6
        assert np.mean(difference > 1e-4) < 0.01


@pytest.mark.longer
@pytest.mark.parametrize(
    ("generator", "alpha"),
    [
        pytest.param(
            generator,
            alpha,
            marks=() if generator == "philox" and alpha in (0.01, 1.7, 100.0) else pytest.mark.slow,
        )
        for generator in GENERATORS
        for alpha in (0.01, 0.5, 1.6, 1.7, 5.0, 100.0)
    ],
)
def test_heatbath_distribution(alpha, generator, precision, best_device):
    """On a cold field the staples of the first update set add up to 6 everywhere."""
    lattice = Lattice(32, 32, 32, 8)
    field = Field.cold(lattice, "su2", precision, best_device)
    heatbath(field, alpha / 6, Random.for_field(field, generator, seed=11))
    even = parity(lattice.extents) == 0
    links = field.to_numpy()[..., 0, :, :][even]
    a0 = links[:, 0, 0].real
    assert a0.size > 1e5
    assert a0_pvalue(a0, alpha) > 1e-3
    # The other components are isotropic.
    vector = np.stack([links[:, 0, 1].imag, links[:, 0, 1].real, links[:, 0, 0].imag])
    unit = vector / np.linalg.norm(vector, axis=0)
    assert np.abs(unit.mean(axis=1)).max() < 4 / np.sqrt(3 * a0.size)
    assert np.abs(unit @ unit.T / a0.size - np.eye(3) / 3).max() < 4 * 0.3 / np.sqrt(a0.size)


@pytest.mark.parametrize("group", ["su3"])
def test_su3_heatbath_distribution(group, precision, best_device, rng):
    """The last subgroup's quaternion follows its distribution at the alpha of every link."""
    lattice = Lattice(16, 16, 16, 16)
    links = random_field(lattice.extents, group, rng)
    field = Field.from_slices(lattice, group, links, precision, best_device)
    heatbath(field, 6.0, Random.for_field(field, seed=12))
    after = field.to_numpy()
    # Links along t on odd sites were updated last: their staples are still those of then.
    odd = parity(lattice.extents) == 1
    w = (after[..., 3, :, :] @ staple(after, 3))[odd]
    q = reference.quaternion(w, 1, 2)
    k = np.linalg.norm(q, axis=-1)
    assert a0_pvalue(q[:, 0] / k, 2 * 6.0 / 3 * k) > 1e-3


@pytest.mark.longer
def test_where_staples_cancel_links_are_haar_distributed(group, precision, best_device, rng):
    lattice = Lattice(8, 8, 8, 8)
    links = random_field(lattice.extents, group, rng)
    links[..., 1:, :, :] = 0  # the staples of the links along x, which are updated first, are 0
    field = Field.from_slices(lattice, group, links, precision, best_device)
    heatbath(field, 2.0, Random.for_field(field))
    updated = field.to_numpy()[..., 0, :, :]
    assert unitarity_violation(updated) < (1e-6 if precision == "single" else 1e-13)
    traces = np.trace(updated, axis1=-2, axis2=-1).ravel()
    assert abs(np.mean(np.abs(traces) ** 2) - 1) < 4.5 / np.sqrt(traces.size)
    overlap = np.trace(updated @ dagger(links[..., 0, :, :]), axis1=-2, axis2=-1)
    assert abs(overlap.mean()) < 4.5 / np.sqrt(traces.size)


@pytest.mark.longer
def test_links_stay_in_the_group(group, precision, best_device):
    field = Field.hot(Lattice(8, 8, 8, 8), group, precision, best_device)
    random = Random.for_field(field)
    for _ in range(20):
        heatbath(field, 6.0, random, sweeps=5)
        overrelax(field, sweeps=5)
    assert unitarity_violation(field.to_numpy()) < (1e-6 if precision == "single" else 1e-14)


@pytest.mark.parametrize("beta", [0.0, -1.0, float("nan"), float("inf")])
def test_beta_must_be_positive(beta):
    field = Field.cold(Lattice(4, 4, 4, 4), "su2", device=CpuDevice(1))
    with pytest.raises(UsageError, match="must be positive"):
        heatbath(field, beta, Random.for_field(field))


TOLERANCE = {"single": 1e-5, "double": 1e-13}


@cache
def overrelaxed(lattice, group):
    return reference.overrelax(start(lattice, group))


@pytest.mark.parametrize("lattice", LATTICES, ids=str)
def test_overrelaxation(lattice, group, precision, device):
    field = Field.from_slices(lattice, group, start(lattice, group), precision, device)
    overrelax(field)
    assert_overrelaxed(field, overrelaxed(lattice, group), TOLERANCE[precision])


@pytest.mark.longer
def test_overrelaxation_keeps_the_action_and_moves(group, precision, best_device):
    field = Field.hot(Lattice(8, 8, 8, 8), group, precision, best_device)
    heatbath(field, 2.5 if group == "su2" else 6.0, Random.for_field(field), sweeps=5)
    before, links = plaquette(field), field.to_numpy()
    overrelax(field, sweeps=20)
    tolerance = 1e-6 if precision == "single" else 1e-13
    assert plaquette(field) == pytest.approx(before, rel=tolerance)
    # As far from where it was as another configuration would be.
    overlap = np.trace(field.to_numpy() @ dagger(links), axis1=-2, axis2=-1).real.mean()
    assert overlap < 0.75 * links.shape[-1]


def test_an_unknown_action_is_refused(best_device):
    field = Field.cold(Lattice(4, 4, 4, 4), "su2", device=best_device)
    with pytest.raises(UsageError, match="There is no action 'wilso'; did you mean 'wilson'"):
        overrelax(field, action="wilso")


def kick(field):
    gauge_kick(GaugeMonomial([Coupling.of(2.0)], field), field, AlgebraField.like(field), 0.1)


def replicas(field):
    choices = ACTIONS["wilson"].choice, ONE_REPLICA
    couplings_in_memory(field, KICK, choices, [Coupling.of(2.0).coefficients(field.group)] * 2)


@pytest.mark.parametrize(
    "update",
    [lambda one: heatbath(one, 2.0, Random.for_field(one)), overrelax, kick, replicas],
    ids=["heatbath", "overrelaxation", "kick", "replicas"],
)
def test_a_misspelt_coefficient_of_an_action_is_named(update, monkeypatch):
    action = type(ACTIONS["wilson"])
    monkeypatch.setattr(action, "coefficients", lambda self, group, beta: {"beta_by_n": beta / 2})
    sentence = "of the structure ACTION::Coefficients in .*: missing beta_over_n, unknown beta_by_n"
    with pytest.raises(TypeError, match=sentence):
        update(Field.cold(Lattice(4, 6, 8, 10), "su2", "single"))


def test_a_misspelt_coefficient_of_a_flow_is_named(monkeypatch):
    monkeypatch.setattr(FLOWS["wilson"], "coefficients", {"beta": 1.0})
    field = Field.cold(Lattice(4, 4, 4, 4), "su2", "single")
    flow = GradientFlow(FLOWS["wilson"], field)
    flow.start(field)
    with pytest.raises(TypeError, match="missing beta_over_n, unknown beta"):
        flow.step(0.01)
