"""Observables of thermal flows against NumPy, and the same for any division."""

import numpy as np
import pytest

from gauge_mc import measure
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.fields.field import Field
from gauge_mc.quantities.thermodynamics.observables import FieldCorrelators, ThermalFlow
from tests.reference import flow as reference
from tests.reference.fields import gauge_transform, random_su
from tests.reference.observables import field_correlator, polyakov_loop

LATTICE = Lattice(4, 2, 8, 6)


def parts(links):
    """Return electric and magnetic energy from the clover and from plaquettes."""
    magnetic = reference.energy_clover(links, xi=0.0).mean()
    found = [reference.energy_clover(links).mean() - magnetic, magnetic]
    n = links.shape[-1]
    sums = {True: 0.0, False: 0.0}
    for mu, nu in reference.PLANES:
        plaquettes = reference.trace(reference.plaquette_matrix(links, mu, nu)).real
        sums[nu == 3] += 2 * (n - plaquettes).mean()
    return [*found, sums[True], sums[False]]


@pytest.mark.first_quick
@pytest.mark.parametrize("kind", ["wilson", "zeuthen"])
def test_records_are_those_of_the_reference(group, best_device, kind):
    field = Field.hot(LATTICE, group, "double", best_device, seed=3)
    observable = ThermalFlow.for_lattice(LATTICE, flow=kind, to=0.1, every=0.05, step=0.05)
    found = np.array(observable.measurer(field)(field))
    links = field.to_numpy()
    np.testing.assert_allclose(found[:, 0], [0, 0.05, 0.1])
    for n, row in enumerate(found):
        flowed = reference.flow(links, 0.05 * n, n, kind) if n else links
        loop = polyakov_loop(flowed)
        np.testing.assert_allclose(row[1:5], parts(flowed), rtol=1e-10)
        np.testing.assert_allclose(row[5:], [loop.real, loop.imag], atol=1e-11)
        assert np.ptp(row[1:5]) > 1e-3
    assert np.array_equal(field.to_numpy(), links)


def test_the_energies_are_those_of_the_gradient_flow(best_device):
    """Their sums, which the other observable measures with another launch."""
    field = Field.hot(LATTICE, "su2", "single", best_device, seed=5)
    whole = measure(field, "flow", to=0.4)
    found = measure(field, "thermal-flow", to=0.4)
    np.testing.assert_array_equal(found["t"], whole["t"])
    both = {"clover": ("electric", "magnetic")}
    both["plaquette"] = ("electric_plaquette", "magnetic_plaquette")
    for name, parts_of_it in both.items():
        total = sum(found[one] for one in parts_of_it)
        np.testing.assert_allclose(total, whole[f"energy_{name}"], rtol=1e-12)


def test_options_of_the_gradient_flow_that_it_lacks_are_refused():
    with pytest.raises(UsageError, match="slices"):
        ThermalFlow.for_lattice(LATTICE, slices=True)
    with pytest.raises(UsageError, match="exclude each other"):
        ThermalFlow.for_lattice(LATTICE, to=1.0, until=0.3)
    assert ThermalFlow.for_lattice(LATTICE, until=0.3).records == 0
    assert ThermalFlow.for_lattice(LATTICE, to=0.5).records == 6


@pytest.mark.parametrize("name", ["thermal-flow", "field-correlators"])
def test_links_that_are_not_numbers_end_the_flow(name):
    field = Field.hot(LATTICE, "su2", "single", seed=1)
    links = field.to_numpy()
    links[3, 2, 1, 0, 2] = np.nan
    broken = Field.from_slices(LATTICE, "su2", links, "single")
    with pytest.raises(GaugeError, match="not all numbers at the flow time 0"):
        measure(broken, name, to=0.1)


ELECTRIC, MAGNETIC = ((0, 3), (1, 3), (2, 3)), ((1, 2), (2, 0), (0, 1))


def expected(links):
    """Return the rows of a field: real and imaginary parts of both correlators and of the loop."""
    kinds = (ELECTRIC, MAGNETIC)
    both = [[reference.field_strength(links, *plane) for plane in one] for one in kinds]
    loop = polyakov_loop(links)
    rows = []
    for tau in range(1, links.shape[0] // 2 + 1):
        values = [*(field_correlator(links, fields, tau) for fields in both), loop]
        rows.append([x for one in values for x in (one.real, one.imag)])
    return np.array(rows)


def test_correlators_are_those_of_the_reference(group, best_device):
    field = Field.hot(LATTICE, group, "double", best_device, seed=3)
    observable = FieldCorrelators.for_lattice(LATTICE, to=0.05, every=0.05, step=0.05)
    found = np.array(observable.measurer(field)(field)).reshape(2, 3, -1)
    links = field.to_numpy()
    for n, t in enumerate((0, 0.05)):
        rows = expected(reference.flow(links, t, 1, "wilson") if n else links)
        np.testing.assert_allclose(found[n, :, 0], t)
        assert found[n, :, 1].tolist() == [1, 2, 3]
        np.testing.assert_allclose(found[n, :, 2:], rows, rtol=1e-9, atol=1e-12)
        assert np.abs(rows[:, ::2]).min() > 1e-5
        assert (np.abs(rows[:, 1::2]).min() > 1e-5) == (group != "su2")
    assert np.array_equal(field.to_numpy(), links)


@pytest.mark.first_quick
def test_gauge_transformations_change_nothing(group, rng):
    field = Field.hot(LATTICE, group, "double", seed=5)
    links = field.to_numpy()
    turned = gauge_transform(links, random_su(links.shape[-1], links.shape[:4], rng))
    other = Field.from_slices(LATTICE, group, turned, "double")
    one, two = (measure(each, "field-correlators", to=0.1) for each in (field, other))
    for name, values in dict(one).items():
        np.testing.assert_allclose(two[name], values, rtol=1e-9, atol=1e-13)
