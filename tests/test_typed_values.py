"""Values of options in Python: numbers, sequences and objects, as well as text."""

from pathlib import Path

import numpy as np
import pytest

import gauge_mc
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import UsageError
from gauge_mc.exports import EXPORTS, export_to
from gauge_mc.fields.field import Field
from gauge_mc.fits import FITS
from gauge_mc.groups import GROUPS
from gauge_mc.observables import OBSERVABLES
from gauge_mc.options import check_options
from gauge_mc.quantities.potential.fit import parse_levels
from gauge_mc.run.parameters import Parameters
from gauge_mc.smearing import SmearingSequence as Smeared
from gauge_mc.smearing.kinds import Ape, Stout

MATRICES = Lattice(4, 4, 4, 8)


@pytest.mark.parametrize(
    ("observable", "text", "typed"),
    [
        ("wilson-loops", {"iterations": "0,10"}, {"iterations": [10, 0]}),
        ("wilson-loops", {"iterations": "7"}, {"iterations": 7}),
        ("wilson-loops", {"iterations": "0,3"}, {"iterations": np.array([0, 3])}),
        ("wilson-loops", {"r_max": 1}, {"r_max": np.int64(1)}),
        ("wilson-loops", {"multilevel": "4,10"}, {"multilevel": (4, 10)}),
        ("wilson-loops", {"multilevel": "4,10/2,5"}, {"multilevel": [(4, 10), [2, 5]]}),
        ("wilson-loops", {"smear": "ape:0.3"}, {"smear": Ape(0.3)}),
        (
            "wilson-loops",
            {"smear": ["ape:0.3x2", "stout:0.1", "ape:0.3x3"]},
            {"smear": [Smeared(((Ape(0.3), 2),)), Stout(0.1), "ape:0.3x3"]},
        ),
    ],
)
def test_options_take_numbers_and_objects_as_well_as_text(observable, text, typed):
    kind = OBSERVABLES[observable]
    first, second = (kind.for_lattice(MATRICES, **one) for one in (text, typed))
    assert first.header == second.header
    assert first.records == second.records
    usual = kind.for_lattice(MATRICES)
    assert (usual.header, usual.records) != (second.header, second.records)


@pytest.mark.parametrize(
    ("observable", "options", "sentence"),
    [
        ("wilson-loops", {"iterations": [0, 2.5]}, "--iterations is .*; give a whole number, or"),
        ("wilson-loops", {"iterations": [[0], [1]]}, "give a whole number, or several"),
        ("wilson-loops", {"iterations": []}, "--iterations is empty"),
        ("wilson-loops", {"iterations": True}, "give a whole number, or several"),
        ("wilson-loops", {"iterations": -1}, "A smearing level is negative"),
        ("wilson-loops", {"multilevel": "4x10"}, "'4x10' is not of the form THICKNESS,VALUES"),
        ("wilson-loops", {"multilevel": (4, 10, 3)}, "is not of the form THICKNESS,VALUES"),
        ("wilson-loops", {"multilevel": [(4, 10, 3)]}, "is not of the form THICKNESS,VALUES"),
        ("wilson-loops", {"smear": [0.3]}, "give text, or several texts"),
        ("wilson-loops", {"smear": Ape(), "rho": 0.1}, "--rho is not for --smear ape"),
        ("wilson-loops", {"temporal": 3}, "give text"),
    ],
)
def test_other_values_are_refused(observable, options, sentence):
    with pytest.raises(UsageError, match=sentence):
        OBSERVABLES[observable].for_lattice(MATRICES, **options)


def test_fits_take_numbers():
    given = {"levels": [25, 0, 5], "t_min": 2}
    found = check_options(FITS["potential"].options, given, "fit potential")
    assert parse_levels(found["levels"]) == parse_levels("0,5,25") == [0, 5, 25]
    assert found["t_min"] == 2
    for wrong in ({"levels": [-1, 2]}, {"t_min": 2.5}):
        with pytest.raises(UsageError, match="number"):
            check_options(FITS["potential"].options, wrong, "fit potential")


def test_a_lattice_is_also_given_by_its_extents():
    assert Lattice.parse((4, 6, 8, 10)) == Lattice.parse([4, 6, 8, 10]) == Lattice(4, 6, 8, 10)
    for wrong in ((4, 4), (4, 4, 4, 4.0), ("4", 4, 4, 4), (4, 4, 4, True)):
        with pytest.raises(UsageError, match="does not have the form XxYxZxT"):
            Lattice.parse(wrong)


def test_the_lattice_of_a_run_is_also_given_by_its_extents():
    for given in ((4, 6, 8, 10), [4, 6, 8, 10], "4x6x8x10"):
        assert gauge_mc.Parameters(lattice=given).lattice == Lattice(4, 6, 8, 10)
        assert gauge_mc.Parameters.from_values({"lattice": given}).lattice == Lattice(4, 6, 8, 10)
    with pytest.raises(UsageError, match="The extent in z is 5"):
        gauge_mc.Parameters(lattice=(4, 4, 5, 4))
    with pytest.raises(UsageError, match="lattice must be a string, not 4"):
        gauge_mc.Parameters(lattice=4)


def test_names_are_taken_in_any_case():
    values = {"group": "SU3", "action": "Iwasaki", "measure": "Plaquette,Wilson-Loops:20"}
    values |= {"precision": "Double", "rng": "PHILOX", "format": "NERSC", "start": "Hot"}
    values |= {"algorithm": "HMC", "levels": "OMF2:4,Leapfrog:2"}
    found = Parameters.from_values(values)
    assert found == Parameters.from_values({key: one.lower() for key, one in values.items()})
    assert (found.group, found.measure[1].observable) == ("su3", "wilson-loops")
    assert Field.hot(MATRICES, "SU3").group is GROUPS["su3"]
    assert FITS["Potential"] is FITS["potential"]
    assert export_to(Path("RUN.H5")) is EXPORTS["hdf5"]
    with pytest.raises(UsageError, match="There is no group 'Su33'; did you mean 'su3'"):
        Parameters.from_values({"group": "Su33"})
