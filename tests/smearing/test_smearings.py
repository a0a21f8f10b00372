"""Smearings by name, with options as on the command line."""

import pytest

from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import UsageError
from gauge_mc.quantities.potential.observables import WilsonLoops
from gauge_mc.registry import in_words
from gauge_mc.smearing import SMEARINGS, SmearingSequence, make_smearing
from gauge_mc.smearing.kinds import Ape, Hyp, Stout
from gauge_mc.temporal_links import make_temporal_links


@pytest.mark.parametrize(
    ("name", "values", "sentence"),
    [
        ("none", {"weight": 0.2}, "--weight is not for --smear none"),
        ("ape", {"rho": 0.1}, "--rho is not an option of --smear ape"),
        ("ape", {"weight": 0.2, "alpha": 0.5}, "--weight and --alpha are two forms of the same"),
        ("ape", {"dims": 3.5}, "--dims is 3.5; give a whole number"),
        ("ape", {"dims": 5}, "--dims is 5; give a whole number from 3 to 4"),
        ("rice", {}, f"There is no smearing 'rice'; choose {in_words([*SMEARINGS, 'none'], 'or')}"),
        ("hyb", {}, "There is no smearing 'hyb'; did you mean 'hyp'"),
        ("ape:0.2", {"dims": 4}, "--dims is for one --smear without parameters; .* ape:dims=VALUE"),
        (("ape", "hyp"), {"weight": 0.2}, "--weight is for one --smear without parameters"),
        (("ape", "none"), {}, "--smear none excludes other smearings; leave one of them out"),
        ("ape:0.2,3,1", {}, "--smear ape: '1' is one number too many; give at most 2"),
        ("ape:a", {}, "weight of --smear ape is 'a', but needs a number; write weight="),
        ("ape:0.2,weight=0.3", {}, "has the option weight twice"),
        ("ape:rho=0.2", {}, "rho is not an option of --smear ape"),
        ("stout:0.1x0", {}, "There are 0 iterations of the smearing stout; choose 1 to 10000"),
        ("stout:7", {}, "rho of --smear stout is 7; give a number from 0 to 1"),
    ],
)
def test_names_and_options_that_are_refused(name, values, sentence):
    with pytest.raises(UsageError, match=sentence):
        make_smearing(name, values)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Ape(-0.1), "weight of the smearing ape is -0.1; give a number from 0 to 1000000"),
        (lambda: Ape(float("nan")), "weight of the smearing ape is nan"),
        (lambda: Ape(dims=2), "dims of the smearing ape is 2; give a whole number from 3 to 4"),
        (lambda: Ape(exclude="s"), "excluded directions are 's'"),
        (lambda: Ape(projection="best"), "no projection 'best'; choose maximal or polar"),
        (lambda: Ape.from_alpha(1.0), "alpha of the smearing ape is 1; give a number from"),
        (lambda: Ape.from_alpha(0.5, dims=5), "dims of the smearing ape is 5"),
        (lambda: Hyp(-0.1), "alpha1 of the smearing hyp is -0.1; give a number from 0 to 1"),
        (lambda: Hyp(alpha2=1.5), "alpha2 of the smearing hyp is 1.5"),
        (lambda: Hyp(alpha3=float("nan")), "alpha3 of the smearing hyp is nan"),
        (lambda: Hyp(exclude="q"), "excluded directions are 'q'"),
        (lambda: Hyp(projection="best"), "no projection 'best'"),
        (lambda: make_temporal_links("hyp3"), "no temporal links 'hyp3'; did you mean 'hyp"),
        (lambda: Stout(-0.1), "rho of the smearing stout is -0.1; give a number from 0 to 1"),
        (lambda: Stout(float("nan")), "rho of the smearing stout is nan"),
        (lambda: Stout(1.5), "rho of the smearing stout is 1.5"),
        (lambda: Stout(exclude="w"), "excluded directions are 'w'; choose none, one or two of"),
        (lambda: Stout(exclude="xyz"), "excluded directions are 'xyz'"),
        (lambda: Stout(exclude="xx"), "excluded directions are 'xx'"),
        (lambda: Stout(exclude=""), "excluded directions are ''"),
    ],
)
def test_values_that_are_refused(make, sentence):
    with pytest.raises(UsageError, match=sentence):
        make()


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ("ape:0.3", Ape(0.3)),
        ("ape:0.3,4,projection=polar", Ape(0.3, 4, "polar")),
        ("ape:alpha=0.5", Ape.from_alpha(0.5)),
        ("ape:0.2x25", SmearingSequence(((Ape(0.2), 25),))),
        ("hypx3", SmearingSequence(((Hyp(), 3),))),
        ("hyp:0.7,0.5,0.2,exclude=none", Hyp(0.7, 0.5, 0.2, "none")),
        ("stout:exclude=yxx2", SmearingSequence(((Stout(exclude="yx"), 2),))),
        (("ape:0.2x25", "hyp:0.75,0.6,0.3x1"), SmearingSequence(((Ape(0.2), 25), (Hyp(), 1)))),
        (["stout", "ape"], SmearingSequence(((Stout(), 1), (Ape(), 1)))),
    ],
)
def test_texts_with_parameters(texts, expected):
    assert make_smearing(texts, {"weight": None}) == expected


def test_a_chain_does_its_iterations_in_order():
    chain = make_smearing(("ape:0.2x2", "hyp:exclude=none", "stoutx2"), {})
    assert [chain.iteration(n).name for n in range(chain.most)] == [
        *("ape", "ape", "hyp", "stout", "stout")
    ]
    assert (chain.smears_time, chain.uses_time) == (True, True)
    assert str(chain) == f"2 x ({Ape(0.2)}), then 1 x ({Hyp(exclude='none')}), then 2 x ({Stout()})"
    with pytest.raises(IndexError):
        chain.iteration(5)


def test_levels_of_chains():
    lattice = Lattice(4, 4, 4, 4)
    make = WilsonLoops.for_lattice
    assert make(lattice, smear=("ape:0.2x25", "hypx1")).levels == (26,)
    assert make(lattice, smear=["ape:0.2x25", "hyp"], iterations="0,25,26").levels == (0, 25, 26)
    assert make(lattice, smear="hyp").levels == (25,)
    # A single smearing has the same header in both forms.
    plain = make(lattice, weight=0.2, iterations="7")
    assert make(lattice, smear="ape:0.2x7").header == plain.header
    with pytest.raises(UsageError, match="There are 26 smearing iterations in all, fewer than 30"):
        make(lattice, smear=("ape:0.2x25", "hypx1"), iterations="30")
    with pytest.raises(UsageError, match="--smear is 3; give text"):
        make(lattice, smear=3)


@pytest.mark.parametrize(
    ("smearing", "smears_time", "uses_time"),
    [
        (Ape(), False, False),
        (Ape(dims=4), False, True),
        (Ape(exclude="none"), True, True),
        (Ape(exclude="zt"), False, False),
        (Stout(), False, False),
        (Stout(exclude="none"), True, True),
        (Stout(exclude="x"), True, True),
        (Hyp(), False, False),
        (Hyp(exclude="none"), True, True),
    ],
    ids=str,
)
def test_whether_links_along_time_matter(smearing, smears_time, uses_time):
    assert (smearing.smears_time, smearing.uses_time) == (smears_time, uses_time)
