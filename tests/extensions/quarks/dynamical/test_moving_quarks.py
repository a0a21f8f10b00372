"""Chains with quarks that move together: each does what it does alone."""

import numpy as np
import pytest

from gauge_mc.actions import Coupling
from gauge_mc.algorithms import Tuning, hmc, parse
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import ChainError
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.updates import molecular_dynamics as moving_chains
from gauge_mc.updates.molecular_dynamics import bytes_of_trajectory

LATTICE = Lattice(4, 2, 2, 6)
STEPS = (2, 3, 2, 4)
BETAS = (5.0, 1.0, 5.6, 6.0)


class Chains:
    """Chains of random links, together or alone, with what they record."""

    def __init__(self, device, options, group="su3", rng_name="philox", together=True, **numbers):
        algorithm = parse("hmc").with_options(**{"length": 0.4, **options}).check()
        singles = [Field.hot(LATTICE, group, "double", device, seed=n) for n in range(4)]
        alone = [Random.for_field(one, rng_name, seed=4 + n) for n, one in enumerate(singles)]
        couplings = [Coupling.of(beta) for beta in BETAS]
        self.tunings = [
            Tuning(1, {"steps": one, "trajectories": 0, "squares": 0.0, **numbers}) for one in STEPS
        ]
        self.fields, randoms = singles, alone
        if together:
            field = singles[0].repeated(4)
            memory = alone[0].repeated_states(4)
            for replica, one in zip(field.replicas, singles, strict=True):
                replica.copy(one)
            pairs = enumerate(zip(alone, field.replicas, strict=True))
            randoms = [one.moved(replica, memory, n) for n, (one, replica) in pairs]
            self.fields = field.replicas
            self.updates = [algorithm.prepare(field, couplings, randoms, 2, self.tunings)]
        else:
            each = zip(singles, couplings, randoms, self.tunings, strict=True)
            self.updates = [
                algorithm.prepare(one, [coupling], [random], 2, [tuning])
                for one, coupling, random, tuning in each
            ]

    def update(self):
        return [row for one in self.updates for row in one()]

    def state(self):
        links = [b"".join(one.tobytes() for one in own.packed_slices()) for own in self.fields]
        return links, [one.numbers for one in self.tunings]


LEVELS = {"levels": "omf2,leapfrog:2"}

CASES = {
    "wilson": ("kappa=0.13", {}, "su3"),
    "levels": ("twisted-mass:kappa=0.13:mu=0.1:heavier=mu=0.5", LEVELS, "su3"),
    "clover": ("kappa=0.12:csw=1.3", {}, "su3"),
    "clover levels": (
        "kappa=0.13:csw=1.1:mu=0.1:heavier=kappa=0.11/kappa=0.11+mu=0.4:level=0,1,0",
        LEVELS,
    ),
    "gradient": (
        "kappa=0.12:heavier=kappa=0.1:level=0,1",
        {"levels": "force-gradient,omf2:1"},
        "su3",
    ),
    "inner gradient": ("kappa=0.12:csw=1", {"levels": "omf2,force-gradient:1", "length": 0.3}),
    "one gradient": ("kappa=0.12", {"integrator": "force-gradient"}),
    "outer": (
        "kappa=0.12:inner=double:level=1",
        {"levels": "omf2:gauge,leapfrog:2"},
        "su2",
        "ranlux",
    ),
    "fourth": ("kappa=0.1,kappa=0.12", {"integrator": "omf4"}, "su2", "lcg"),
    "fails": ("kappa=0.15:iterations=40",),
    "bicgstab": ("twisted-mass:kappa=0.13:mu=0.1:heavier=mu=0.5:solver=bicgstab", {}, "su3"),
    "history": ("kappa=0.13:csw=1:history=2:force_tolerance=1e-10:heavier=kappa=0.11", LEVELS),
    "bicgstab history": (
        "kappa=0.13:solver=bicgstab:history=3:force_tolerance=1e-10:inner=double",
    ),
    "one flavour": ("kappa=0.13:flavours=1:force_tolerance=1e-6", {}, "su3"),
    "doublet": ("kappa=0.12:mu_sigma=0.1:mu_delta=0.2",),
    "domain walls": (
        "domain-wall:ls=4:c=1:m=0.1:heavier=m=0.4:history=1:force_tolerance=1e-10",
        LEVELS,
        "su2",
        "ranlux",
    ),
    "domain walls fail": ("domain-wall:ls=4:optimal=0.2,5:c=1:m=0.1:iterations=150",),
    "one flavour on domain walls": (
        "domain-wall:ls=2:m=0.1:flavours=1:range=0.001,30:force_tolerance=1e-6",
    ),
    "one clover flavour": (
        "kappa=0.12:csw=1:flavours=1,kappa=0.1",
        {"levels": "force-gradient,omf2:1"},
        "su2",
        "ranlux",
    ),
}
"""Quarks, other options, the group and the random numbers."""


def case_of(quarks, options=None, group="su2", rng_name="philox"):
    return {"quarks": quarks, **(options or {})}, group, rng_name


def together_and_alone(device, *given):
    """Chains that move together, and the same ones alone."""
    return [Chains(device, *given, together) for together in (True, False)]


@pytest.mark.longer
@pytest.mark.parametrize("case", CASES)
def test_chains_with_quarks_move_as_each_does_alone(case, best_device):
    """Each with its coupling, its numbers of steps and of iterations, and its failures."""
    together, alone = together_and_alone(best_device, *case_of(*CASES[case]))
    counts = set()
    for _ in range(3):
        rows = together.update()
        assert rows == alone.update()
        assert together.state() == alone.state()
        counts |= {row[-1] for row in rows}
    assert len(counts) >= len(STEPS)


@pytest.mark.longer
@pytest.mark.parametrize("levels", ["", "force-gradient,omf2:2:gauge"])
def test_chains_without_quarks_have_no_numbers_of_failures(levels, best_device):
    """Their numbers are those of a chain alone, which are in checkpoints."""
    options = {"integrator": "force-gradient", "levels": levels}
    together, alone = together_and_alone(best_device, options, "su2", "philox")
    for _ in range(2):
        assert together.update() == alone.update()
        assert together.state() == alone.state()
    assert not any(moving_chains.FAILURES in one for one in together.state()[1])


LEAVING = "kappa=0.15:flavours=1:range=0.2,2.39,kappa=0.1"
"""Quarks whose spectrum leaves the range in some chains, also before a trajectory."""


@pytest.mark.longer
@pytest.mark.parametrize(
    ("quarks", "rng_name"),
    [
        ("kappa=0.15:iterations=40", "philox"),
        ("kappa=0.15:iterations=40:history=1:force_tolerance=1e-10", "philox"),
        ("kappa=0.15:iterations=13:solver=bicgstab", "philox"),
        (LEAVING, "ranlux"),
    ],
)
def test_chains_fail_alone(quarks, rng_name, best_device):
    """In some trajectories solvers need too many iterations, or the spectrum leaves the range.

    A chain that fails draws no further pseudofermions, from random numbers that have a state.
    """
    together, alone = together_and_alone(best_device, {"quarks": quarks}, "su2", rng_name)
    failed = []
    for _ in range(4):
        rows = together.update()
        assert rows == alone.update()
        assert together.state() == alone.state()
        failed.append([row[8] for row in rows])
    assert 0 < np.sum(failed) < np.size(failed)
    for numbers, own in zip(together.state()[1], np.transpose(failed).tolist(), strict=True):
        in_a_row = next((n for n, one in enumerate(own[::-1]) if not one), len(own))
        assert numbers[moving_chains.FAILURES] == in_a_row


@pytest.mark.longer
@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value", "ignore:divide by zero")
@pytest.mark.parametrize(
    "quarks",
    [
        "kappa=0.13",
        "kappa=0.13:history=2:force_tolerance=1e-10",
        "kappa=0.13:solver=bicgstab",
        "kappa=0.13:flavours=1",
    ],
)
def test_a_chain_that_diverges_spoils_nothing(quarks, best_device):
    """Neither the others nor its own later trajectories, although its force is not a number."""
    together, alone = together_and_alone(best_device, {"quarks": quarks}, "su3", "philox")
    slab = together.fields[1].slabs[0]
    kept = slab.device.read(slab.buffer, 0, slab.buffer.nbytes)
    write(together, np.full(64, np.nan).view(np.uint8))
    rows, expected = together.update(), alone.update()
    assert rows[1][8] == 1
    assert [rows[n] for n in (0, 2, 3)] == [expected[n] for n in (0, 2, 3)]
    write(together, kept)
    rows, expected = together.update(), alone.update()
    assert rows[1][8] == 0
    assert np.isfinite([float(one) for one in rows[1]]).all()
    assert [rows[n] for n in (0, 2, 3)] == [expected[n] for n in (0, 2, 3)]


def write(chains, data):
    """Write to the beginning of the links of the second chain."""
    slab = chains.fields[1].slabs[0]
    slab.device.write(slab.buffer, 0, data)
    for one in chains.tunings:
        one.links_changed = True


@pytest.mark.longer
@pytest.mark.parametrize("size", [2, 3])
def test_groups_change_no_bits(size, best_device, monkeypatch):
    """Also if one is smaller; groups of one size share memory."""
    whole = Chains(best_device, {"quarks": "kappa=0.13"})
    parts = [slice(n, min(n + size, 4)) for n in range(0, 4, size)]
    monkeypatch.setattr(hmc, "divided", lambda *_: parts)
    divided = Chains(best_device, {"quarks": "kappa=0.13"})
    for _ in range(2):
        assert divided.update() == whole.update()
    assert divided.state() == whole.state()


@pytest.mark.longer
@pytest.mark.parametrize(
    "case",
    [
        one
        for one in CASES
        if "fail" not in one and one not in ("gradient", "inner gradient", "fourth")
    ],
)
def test_memory_is_that_for_which_groups_are_made(case, best_device):
    """With all solvers that may be needed, and not much less."""
    options, group, _ = case_of(*CASES[case])
    field = Field.empty(LATTICE, group, "double", best_device)
    vectors = sum(one.vectors for one in parse("hmc").with_options(**options).terms)
    expected = 4 * bytes_of_trajectory(field, vectors, "gradient" in case)
    before = best_device.allocated_bytes()
    chains = Chains(best_device, options, group)
    chains.update()
    used = best_device.allocated_bytes() - before
    assert used < expected < 4 * used


@pytest.mark.longer
def test_a_chain_ends_if_solvers_fail_too_often(best_device):
    together = Chains(best_device, {"quarks": "kappa=0.13:iterations=2", "failures": 2})
    before = together.state()[0]
    for _ in range(2):
        together.update()
    with pytest.raises(ChainError, match=r"failed in 2 trajectories in a row.* after 2 iterations"):
        together.update()
    assert together.state()[0] == before
