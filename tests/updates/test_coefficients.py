"""Coefficients that C++ does not have are refused wherever kernels take them."""

import pytest

from gauge_mc.actions import ACTIONS, Coupling
from gauge_mc.domain.lattice import Lattice
from gauge_mc.fields.field import AlgebraField, Field
from gauge_mc.fields.gradient_flow import GradientFlow
from gauge_mc.fields.random_field import Random
from gauge_mc.flows import FLOWS
from gauge_mc.updates.heatbath import heatbath, overrelax
from gauge_mc.updates.monomials.gauge import KICK, GaugeMonomial
from gauge_mc.updates.sweep import ONE_REPLICA, couplings_in_memory
from tests.updates.moving import gauge_kick


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
