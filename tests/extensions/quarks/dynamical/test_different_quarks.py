"""Fits of runs with other quarks than those beside them."""

import numpy as np
import pytest

import gauge_mc
from gauge_mc.errors import GaugeError
from tests.quantities.thermodynamics.test_thermodynamics import COLD, HOT, write_plaquettes
from tests.quantities.transition.synthetic import LATTICES, two_phase_chain
from tests.quantities.transition.test_transition import write_run


def test_they_have_no_common_pressure(tmp_path):
    rng = np.random.default_rng(1)
    write_plaquettes(tmp_path / "a", rng, 5.7, HOT)
    write_plaquettes(tmp_path / "b", rng, 5.7, COLD, quarks="wilson")
    words = "has quarks wilson, but other runs beside it have unset"
    with pytest.raises(GaugeError, match=words):
        gauge_mc.fit("thermodynamics", tmp_path)


def test_they_have_no_common_transition(tmp_path):
    rng, lattice = np.random.default_rng(1), LATTICES[0]
    write_run(tmp_path / "a", two_phase_chain(rng, 5.69, lattice, 50), lattice)
    write_run(tmp_path / "b", two_phase_chain(rng, 5.70, lattice, 50), lattice, quarks="wilson")
    with pytest.raises(GaugeError, match=r"have different dynamical quarks.*fit crossover"):
        gauge_mc.fit("transition", tmp_path)
