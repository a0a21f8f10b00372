"""Overlap quarks on the command line: mesons and baryons, headers, and the table of operators."""

import math
import re

import numpy as np
import pytest

from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import UsageError
from gauge_mc.extensions.quarks.spectroscopy import propagators
from gauge_mc.extensions.quarks.spectroscopy.observables import Baryons, Mesons
from gauge_mc.extensions.quarks.spectroscopy.quarks import QuarkMasses
from gauge_mc.extensions.quarks.vectors.basis import SIXTEEN
from tests.extensions.quarks.links import field_of
from tests.extensions.quarks.reference import hadrons as reference
from tests.extensions.quarks.reference import overlap
from tests.extensions.quarks.spectroscopy.observables.test_residual_mass import column, rows
from tests.reference.fields import random_field

LATTICE = Lattice(2, 2, 2, 4)
PHASES = [1, 1, 1, -1]
WORDS = "overlap:rho=1.3,m=0.5,0.9,accuracy=1e-8,modes=6"
PLACE = (1, 0, 1, 2)


def links_on(rng, device, group="su2"):
    links = random_field(LATTICE.extents, group, rng)
    return field_of(links, device), links


def dense_propagator(links, mass, rho=1.3, csw=0.0):
    """S[t, z, y, x, spin, colour, spin, colour] from `PLACE`, without the contact term."""
    colours, (x, y, z, t) = links.shape[-1], PLACE
    d = overlap.overlap(overlap.kernel(links, rho, PHASES, csw), rho, colours, mass)
    s = (2 * rho * np.linalg.inv(d) - np.eye(len(d))) / (2 * rho - mass)
    size, site = 4 * colours, ((t * LATTICE.z + z) * LATTICE.y + y) * LATTICE.x + x
    columns = s[:, size * site : size * (site + 1)]
    return columns.reshape(*LATTICE.extents[::-1], 4, colours, 4, colours)


@pytest.mark.longer
@pytest.mark.parametrize("words", [WORDS, WORDS + ",deflated=3"])
def test_mesons_of_dense_propagators(words, best_device, rng):
    """Also of two quarks with different masses, whose solutions are found together."""
    field, links = links_on(rng, best_device)
    point = "point:" + ",".join(map(str, PLACE))
    mesons = Mesons.for_lattice(LATTICE, quark=words, source=(point,), tolerance=1e-7)
    found = rows(mesons, field)
    s = {m: dense_propagator(links, m) for m in (0.5, 0.9)}
    still, kappa = np.ones(LATTICE.extents[2::-1]), 1 / (8 - 2 * 1.3)
    label = "point@" + ";".join(map(str, PLACE))
    for one, other, gamma in ((0.5, 0.5, "g5"), (0.5, 0.9, "gx"), (0.9, 0.9, "gtg5")):
        exact = reference.meson(s[one], s[other], SIXTEEN[gamma], SIXTEEN[gamma], still)
        exact = np.roll(exact, -PLACE[3])
        key = (kappa, kappa, 0, 0, one, other, label, gamma, gamma, 0, 0, 0)
        assert np.abs(column(found[key], "re") - exact.real).max() < 1e-6 * np.abs(exact).max()


@pytest.mark.slow
def test_baryons_share_the_operator_and_the_propagators(best_device, rng):
    """Modes are looked for once, and every mass is solved for once."""
    field, _ = links_on(rng, best_device, "su3")
    quark = QuarkMasses("overlap", rho=1.4, m=(0.3, 0.6), accuracy=1e-4, modes=4)
    observables = [
        Mesons.for_lattice(LATTICE, quark=quark, tolerance=1e-3),
        Baryons.for_lattice(LATTICE, quark=quark, tolerance=1e-3).for_group("su3"),
    ]
    with field.devices.measuring():
        mesons, baryons = (one.measurer(field)(field) for one in observables)
    assert [len(one) for one in (mesons, baryons)] == [one.records for one in observables]
    for table in ("solves", "operator"):
        assert mesons.secondary[table] == baryons.secondary[table]  # with the times
    assert len(mesons.secondary["solves"]) == 2
    assert [one[2] for one in mesons.secondary["solves"]] == [0.3, 0.6]


@pytest.mark.slow
def test_the_tables_beside_that_of_the_correlators(best_device, rng):
    field, _ = links_on(rng, best_device)
    words = "overlap:m=1,1.5,accuracy=1e-2,modes=4,approximation=zolotarev"
    sources = ("point:0,0,0,0", "wall:1")
    mesons = Mesons.for_lattice(LATTICE, quark=words, tolerance=0.1, source=sources)
    assert [one.name for one in mesons.secondary_tables] == ["solves", "operator"]
    found = mesons.measurer(field)(field).secondary
    assert [(one[2], one[3]) for one in found["solves"]] == [
        (mass, label) for label in ("point@0;0;0;0", "wall@1") for mass in (1, 1.5)
    ]
    assert max(one[-2] for one in found["solves"]) <= 0.1
    (operator,) = found["operator"]
    named = dict(zip(mesons.secondary_tables[1].columns.names, operator, strict=True))
    assert named["approximation"] == "zolotarev"
    assert 0 < named["bound"] <= 1e-2
    assert 0 < named["modes"] <= 4


@pytest.mark.longer
@pytest.mark.parametrize(("options", "columns"), [({}, 4), ({"together": 3}, 3)])
def test_lines_about_the_columns_that_are_solved_for(
    options, columns, best_device, rng, monkeypatch, capsys
):
    """They are only there if work takes long; by default four columns of SU(2) have a chirality."""
    field, _ = links_on(rng, best_device)
    words = "overlap:rho=1.3,m=0.9,accuracy=1e-3,modes=6"
    mesons = Mesons.for_lattice(LATTICE, quark=words, tolerance=1e-2, **options)
    monkeypatch.setattr(propagators, "SILENCE", math.inf)  # no work takes so long
    rows(mesons, field)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(propagators, "SILENCE", 0.0)
    rows(Mesons.for_lattice(LATTICE, quark=words, tolerance=1e-2, **options), field)
    prepared, first, *_, last = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"gauge-mc: operator: overlap, prepared in \d+\.\d s", prepared)
    assert f": {columns} of 8 columns, the last {columns} with " in first
    assert ": 8 of 8 columns, the last " in last


def test_headers():
    header = Mesons.for_lattice(LATTICE, quark=WORDS).header
    assert header["operator"] == "overlap:rho=1.3:modes=6:accuracy=1e-08"
    assert header["m"] == "0.5,0.9"
    assert "S = (1 - D(0) / (2 rho)) D(m)^-1" in header["normalisation"]
    deflated = Mesons.for_lattice(LATTICE, quark="overlap:m=0.1,deflated=4").header["operator"]
    assert deflated == "overlap:deflated=4:rho=1.4:accuracy=1e-08:modes=20"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"quark": "overlap:rho=2,m=0.1"}, "rho of --quark overlap is 2; give a number between 0"),
        ({"quark": "overlap:rho=1,m=0.1,2"}, "give numbers from 0 to below 2 rho, which is 2"),
        ({"quark": "overlap:m=-0.1"}, "m of --quark overlap is -0.1"),
        ({"quark": "overlap:m=0.1,accuracy=0"}, "accuracy"),
        ({"quark": "overlap:m=0.1,approximation=pade"}, "There is no approximation 'pade' of the"),
        ({"quark": "overlap:LS=4,m=0.1"}, "The operator overlap has no parameter ls"),
        ({"quark": "overlap:m=0.1", "solver": "bicgstab"}, "are solved for by cg, not by bicgstab"),
        ({"quark": "overlap:m=0.1", "inner": "single"}, "--inner has no effect"),
        ({"quark": "overlap:m=0.1", "reduction": 0.1}, "--reduction has no effect"),
        ({"quark": "overlap:m=0.1", "links": 18}, "--links has no effect"),
    ],
)
def test_what_is_refused(options, message):
    with pytest.raises(UsageError, match=message):
        assert Mesons.for_lattice(LATTICE, **options).records
