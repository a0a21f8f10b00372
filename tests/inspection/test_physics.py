"""``gauge-mc doctor --physics``: averages of every device against those of long runs."""

import json
import math
from dataclasses import replace

import pytest

from gauge_mc.analysis.timeseries import Estimate
from gauge_mc.devices import BACKENDS
from gauge_mc.errors import GaugeError
from gauge_mc.inspection import doctor as physics
from gauge_mc.inspection.doctor import compare, known_ensembles
from tests.calls import call_apart

KNOWN = known_ensembles()
SU2, SU3 = KNOWN


def found_at(known, pull, error=1e-3):
    """Averages that are larger than those known by so many errors of both."""
    return [
        Estimate(one.value + pull * math.hypot(error, one.error), error, 0.5, 0.1, 100)
        for one in known.averages
    ]


@pytest.mark.parametrize("known", KNOWN, ids=[one.parameters["group"] for one in KNOWN])
def test_differences_are_measured_in_errors_of_both(known):
    close = compare("CPU", known, found_at(known, 4.9))
    assert close.works
    assert "4 averages are within 4.9 errors" in close.detail
    far = compare("CPU", known, found_at(known, -5.1))
    assert not far.works
    assert far.remedy == "gauge-mc doctor --clear-cache"
    assert all(one.name in far.detail for one in known.averages)
    assert not compare("CPU", known, found_at(known, math.nan)).works


def test_one_wrong_average_is_enough():
    found = found_at(SU3, 0.0)
    found[1] = Estimate(0.3, 1e-3, 0.5, 0.1, 100)
    finding = compare("CPU", SU3, found)
    assert not finding.works
    assert "rectangle is 0.3000(10) and should be 0.259" in finding.detail
    assert "plaquette" not in finding.detail


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setattr(physics, "UPDATES", 60)
    monkeypatch.setattr(physics, "PRECISIONS", ("single",))
    monkeypatch.setattr(physics, "known_ensembles", lambda: (SU2,))
    monkeypatch.setattr(BACKENDS["cuda"], "count", lambda: 0)


@pytest.mark.slow
def test_a_device_that_computes_rightly(short):
    shown, _, code = call_apart("doctor", "--physics")
    assert code == 0, shown
    (line,) = shown.splitlines()
    assert line.startswith("works   CPU, su2 in single precision: plaquette 0.5")


@pytest.mark.slow
def test_another_ensemble_is_found_to_be_wrong(short, monkeypatch):
    """As from a device with another coupling."""
    other = replace(SU2, parameters={**SU2.parameters, "beta": 2.3})
    monkeypatch.setattr(physics, "known_ensembles", lambda: (other,))
    shown, _, code = call_apart("doctor", "--physics", "--json")
    assert code == 1
    document = json.loads(shown)
    assert document["works"] is False
    (finding,) = document["findings"]
    assert finding["detail"].startswith("averages are wrong: plaquette is 0.6")
    shown, _, code = call_apart("doctor", "--physics")
    assert (code, shown[:8]) == (1, "wrong   ")


def test_a_machine_without_devices(monkeypatch):
    def missing():
        raise GaugeError("There is none.")

    for backend in BACKENDS.values():
        monkeypatch.setattr(backend, "count", missing)
    shown, _, code = call_apart("doctor", "--physics")
    assert (code, shown) == (1, "No device works; `gauge-mc doctor` says why.\n")


@pytest.mark.slow
def test_all_averages_of_this_machine():
    shown, _, code = call_apart("doctor", "--physics")
    assert code == 0, shown
    assert shown.count("\n") >= 4
