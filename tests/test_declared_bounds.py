"""Bounds that options declare, compared with what the things that have the options accept."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from gauge_mc.actions import ACTIONS
from gauge_mc.algorithms import ALGORITHMS
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import UsageError
from gauge_mc.observables import OBSERVABLES
from gauge_mc.options import Option
from gauge_mc.run.parameters import Parameters
from gauge_mc.run.settings import options_of
from gauge_mc.smearing import SMEARINGS
from tests.samples import all_of

LATTICE = Lattice(4, 4, 4, 4)


@dataclass(frozen=True)
class Owner:
    """A thing with options, what refuses values out of bounds, and what need not have links."""

    name: str
    options: Sequence[Option]
    make: Callable[..., object]
    accept: Callable[..., object]


COMPANIONS: dict[tuple[str, str], Mapping[str, Any]] = {
    ("Parameters", "exchange_every"): {"tempering": True, "separation": 10**12}
}
"""Values of other options without which the end of an option is refused, as c above b."""

ELSEWHERE: dict[tuple[str, str, float], str] = {}
"""Ends that a thing refuses although the option allows them, and how."""

COMPARED = {"rectangle", "hmc", "ape", "measure flow", "Parameters"}
"""Some of the things that are compared."""

for found, name in ((COMPANIONS, "COMPANIONS"), (ELSEWHERE, "ELSEWHERE"), (COMPARED, "COMPARED")):
    for one in all_of(name, "bounds"):
        found.update(one)


def _owners() -> Iterator[Owner]:
    for kinds in (ACTIONS, ALGORITHMS):
        for name, thing in kinds.items():
            yield Owner(name, thing.options, thing.with_options, thing.with_options)
    for name, kind in SMEARINGS.items():
        yield Owner(name, kind.options, _smearing(kind), _smearing(kind))
    for name, kind in OBSERVABLES.items():
        made = _observable(kind)
        yield Owner(f"measure {name}", kind.options, made, made)
    for owners in all_of("owners", "bounds"):
        yield from (Owner(*one) for one in owners())
    yield Owner("Parameters", [*options_of(Parameters).values()], Parameters, _no_matter)


def _smearing(kind: Any) -> Callable[..., object]:
    return lambda **values: kind.from_options(values)


def _observable(kind: Any) -> Callable[..., object]:
    return lambda **values: kind.for_lattice(LATTICE, **values)


def _no_matter(**values: Any) -> None:
    """Accept everything: the ends of parameters of runs depend on each other."""


def _numbers(owners: Iterator[Owner]) -> Iterator[tuple[Owner, Option]]:
    """Yield the options that are numbers with bounds, with their owners."""
    for owner in owners:
        for one in owner.options:
            if one.kind in (int, float) and not (math.isinf(one.least) and math.isinf(one.most)):
                yield owner, one


CASES = [*_numbers(_owners())]
IDS = [f"{owner.name}-{one.name}" for owner, one in CASES]


def _refusal(make: Callable[..., object], **values: Any) -> str:
    try:
        make(**values)
    except UsageError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(("owner", "option"), CASES, ids=IDS)
def test_a_thing_refuses_what_is_outside_of_the_declared_bounds(owner, option):
    """The sentence names the option and the bounds."""
    also = COMPANIONS.get((owner.name, option.name), {})
    for bound, side in ((option.least, -1), (option.most, 1)):
        if math.isinf(bound):
            continue
        beyond = bound + side if option.kind is int else math.nextafter(bound, side * math.inf)
        for value in (beyond, bound) if option.inside else (beyond,):
            said = _refusal(owner.make, **{option.name: option.kind(value)}, **also)
            if owner.name == "SolverParameters":
                assert said
            else:
                assert f"{option.wanted}." in said
                assert said.startswith((f"{option.flag} is", f"{option.written or option.name} of"))


@pytest.mark.parametrize(("owner", "option"), CASES, ids=IDS)
def test_a_thing_accepts_the_ends_of_the_declared_bounds(owner, option):
    """They may be unfit for other reasons, as a large loop on a small lattice."""
    for bound in (option.least, option.most):
        if math.isinf(bound) or option.inside:
            continue
        also = COMPANIONS.get((owner.name, option.name), {})
        said = _refusal(owner.accept, **{option.name: option.kind(bound)}, **also)
        assert option.wanted not in said
        expected = ELSEWHERE.get((owner.name, option.name, bound), "")
        if owner.name not in ("Parameters",) and not owner.name.startswith("measure"):
            assert (expected in said) if expected else not said


def test_some_things_of_every_kind_are_compared():
    assert {owner.name for owner, _ in CASES} >= COMPARED
