"""Scans over numbers of dynamical quarks: what their text stands for, and what becomes of it."""

import pytest

from gauge_mc.errors import UsageError
from gauge_mc.extensions.quarks.dynamical.flavours import DynamicalQuarks
from gauge_mc.files.table import read_table
from gauge_mc.run.directory import Run
from gauge_mc.scans.averages import ScanAverages
from gauge_mc.scans.grid import lists_of, number_of_point
from gauge_mc.scans.ladders import ladders
from gauge_mc.scans.request import ScanRequest
from gauge_mc.scans.scan import Scan
from tests.calls import call, make_run
from tests.scans.commands import scan, written

BASE = {"group": "su3", "lattice": "4x4x4x2", "algorithm": "hmc"}
BASE |= {"precision": "double", "steps": 6, "beta": "5.1"}
TWO = "wilson:kappa=0.13,wilson:kappa=0.12:flavours=1"


def texts(value):
    """Return the lists that a value stands for, as text."""
    return [str(one) for one in lists_of(DynamicalQuarks, value)]


def request(path, **values):
    return ScanRequest.of({**BASE, "output": str(path), **values})


def begun(path, **values):
    with request(path, **values).locked() as found:
        return found


def names(path):
    """Return the names of the runs of a scan that was written, without what all share."""
    every = [one.name for one in Scan.read(path).members()]
    return [name.removeprefix("b5.1_4x4x4x2").removesuffix("_chain1") for name in every]


def test_numbers_of_quarks_may_be_ranges():
    assert texts("wilson:kappa=0.12:0.14:0.01:flavours=1") == [
        f"wilson:kappa={kappa}:flavours=1" for kappa in (0.12, 0.13, 0.14)
    ]
    assert texts("kappa=0.1,0.12:csw=1:imaginary-mu=0,0.5") == [
        "kappa=0.1:csw=1.0",
        "kappa=0.1:csw=1.0:imaginary_mu=0.5",
        "kappa=0.12:csw=1.0",
        "kappa=0.12:csw=1.0:imaginary_mu=0.5",
    ]
    assert texts("domain-wall:LS=8,M5=1.4:1.6:0.2,m=0.1") == [
        f"domain-wall:m=0.1:ls=8:m5={m5}" for m5 in (1.4, 1.6)
    ]
    assert texts(TWO) == [TWO]
    table = {"operator": "wilson", "kappa": [0.12, 0.13], "imaginary-mu": "0.1:0.2:0.1"}
    assert texts([table]) == texts("wilson:kappa=0.12,0.13:imaginary_mu=0.1,0.2")


def test_equal_values_of_several_quarks_vary_together():
    first, second = TWO.split(",")
    assert texts(f"{first}:imaginary_mu=0.1,0.2,{second}:imaginary_mu=0.1:0.2:0.1") == [
        f"wilson:kappa=0.13:imaginary_mu={mu},wilson:kappa=0.12:flavours=1:imaginary_mu={mu}"
        for mu in (0.1, 0.2)
    ]
    assert len(texts(f"{first}:imaginary_mu=0.1,0.2,{second}:imaginary_mu=0.1,0.3")) == 4


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("wilson:kappa=0.14:0.1:0.02", "kappa: in 0.14:0.1:0.02 the last number must not be below"),
        ("wilson:kappa=0.1:0.14", "'0.1:0.14' is not of the form FIRST:LAST:STEP"),
        ("wilson:kappa=0.1,9", "kappa of a table of quarks is 9; give a number from 1e-06 to 1."),
        ("wilson:kappa=0.1,1_0", "kappa: '1_0' must consist of numbers"),
        ("wilson:lambda=0.1:0.3:0.1", "lambda is not an option of a table of quarks"),
        ("wilson:kappa=0.1:m=0.1,0.2", "Quarks with a hopping parameter have no m; leave that out"),
        ("domain-wall:m=0.1,0.2:kappa=0.1", "Quarks with the operator domain-wall have no kappa"),
        ("wilson:kappa=0.1:flavours=1:2:1", "but has one value in a scan; numbers that may vary"),
        (",,", "operator of a table of quarks is empty"),
    ],
)
def test_what_is_no_axis_is_refused_in_a_sentence(text, sentence, tmp_path):
    with pytest.raises(UsageError) as error:
        request(tmp_path / "s", quarks=text).scan()
    assert sentence in str(error.value)


def test_every_run_has_its_quarks(tmp_path):
    begun(tmp_path / "s", quarks="wilson:kappa=0.12,0.13:imaginary_mu=0,0.5")
    found = Scan.read(tmp_path / "s")
    assert [str(one.parameters.algorithm.values["quarks"]) for one in found.members()] == texts(
        "wilson:kappa=0.12,0.13:imaginary_mu=0,0.5"
    )
    assert names(tmp_path / "s") == [
        f"_kappa{kappa}{more}" for kappa in (0.12, 0.13) for more in ("", "_imaginary_mu0.5")
    ]
    assert request(tmp_path / "s", quarks="wilson:kappa=0.13").scan() == found  # nothing new
    assert ScanRequest.of({"output": str(tmp_path / "s")}).scan() == found
    averages = ScanAverages(found)
    averages.write()
    assert "quarks" not in read_table(found.table, text=("lattice",)).header


def test_quarks_are_added_to_a_scan(tmp_path):
    """Neither the names of runs change, nor their seeds."""
    path = tmp_path / "s"
    begun(path, quarks="wilson:kappa=0.12", beta="5,5.1")
    before = Scan.read(path).members()
    begun(path, quarks="wilson:kappa=0.13,0.14", beta=None)
    after = Scan.read(path).members()
    assert after[:2] == [type(one)(one.parameters, one.chain, one.run) for one in before]
    assert [one.name for one in after[2:]] == [
        f"b{beta}_4x4x4x2_kappa{kappa}_chain1" for kappa in (0.13, 0.14) for beta in ("5", "5.1")
    ]
    begun(path, beta="5.2", quarks=None)
    assert len(Scan.read(path).members()) == 9
    begun(path, beta=None, quarks=None, chains=2)
    assert len(Scan.read(path).members()) == 18


@pytest.mark.parametrize("text", ["wilson:kappa=0.14:solver=bicgstab", TWO, "kappa=0.14:csw=1"])
def test_other_quarks_belong_to_another_scan(text, tmp_path):
    begun(tmp_path / "s", quarks="wilson:kappa=0.12,0.13")
    with pytest.raises(UsageError, match=r"has quarks = wilson:kappa=0\.12, not .*choose another"):
        request(tmp_path / "s", quarks=text).scan()


def test_runs_of_different_quarks_exchange_no_couplings(tmp_path):
    values = {"quarks": "wilson:kappa=0.12,0.13", "tempering": True}
    with pytest.raises(UsageError, match=r"there is only β = 5.1; give --beta several values"):
        request(tmp_path / "s", **values).scan()
    found = request(tmp_path / "s", **{**values, "beta": "5,5.1"}).scan()
    for each in (several := ladders(found.members())):
        assert [one.parameters.beta for one in each] == [5.0, 5.1]
        assert len({one.parameters.algorithm for one in each}) == 1
    assert len(several) == 2


def test_numbers_of_later_quarks_have_names_symbols_and_tags(tmp_path):
    begun(tmp_path / "s", quarks=TWO.replace("0.12", "0.11,0.12"))
    *_, last = Scan.read(tmp_path / "s").members()
    assert last.point.numbers == {"anisotropy": 1.0, "kappa": 0.13, "kappa2": 0.12}
    assert last.name == "b5.1_4x4x4x2_kappa0.13_quarks2-kappa0.12_chain1"
    assert number_of_point("kappa").said(0.1) == "κ = 0.1"
    assert number_of_point("kappa2").said(0.1) == "κ (2) = 0.1"
    assert number_of_point("m52").tagged(1.8) == "quarks2-m51.8"


@pytest.mark.slow
def test_a_scan_over_quarks_from_beginning_to_end(tmp_path, monkeypatch, sketched):
    monkeypatch.chdir(tmp_path)
    words = [word for key, value in BASE.items() for word in (f"--{key}", value)]
    words += ["--thermalize", 2, "--configs", 20, "--separation", 1, "--format", "none"]
    words += ["--measure", "+condensate:1:sources=2", "--start", "hot", "--backend", "cpu"]
    shown = scan(*words, "--quarks", "wilson:kappa=0.1:imaginary_mu=0:0.4:0.2", "--output", "s")
    assert "κ = 0.1, μ_I/(πT) = 0 to 0.4 (3 values) on 4x4x4x2" in shown
    found = Scan.read(tmp_path / "s")
    table = read_table(found.table, text=("lattice",))
    assert table["imaginary_mu"].tolist() == [0, 0.2, 0.4]
    assert "kappa" not in table.columns
    last = found.members()[-1]
    header = read_table(last.run.table("condensate")).header
    assert (header["kappa"], header["imaginary_mu"]) == ("0.1", "0.4")  # the dynamical quark's
    alone = make_run(tmp_path / "alone", **last.parameters.values())
    assert written(Run(alone).path).keys() == written(last.run.path).keys()
    for name in ("hmc.csv", "condensate.csv", "polyakov.csv"):
        assert written(Run(alone).path)[name] == written(last.run.path)[name]
    said, code = call("verify", "s")
    assert code == 0, said
    said, code = call("fit", "crossover", "s")
    assert "x = imaginary_mu" in said
    said, code = call("fit", "transition", "s")
    assert code == 1
    assert said.rstrip().endswith("`gauge-mc fit crossover s`.")
    said, code = call("plot", "scan", "s")
    assert code == 0, said
