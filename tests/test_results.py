"""A field of a result is declared once: its description, its heading and its reading follow."""

import json
from dataclasses import asdict, dataclass, replace

import pytest

from gauge_mc.analysis.timeseries import Estimate
from gauge_mc.cli.document import keys_of, vocabulary
from gauge_mc.files.structured import typed
from gauge_mc.quantities.flow.topology import TopologicalCharge, TopologyResult
from gauge_mc.results import documented, result_field

NUMBER = Estimate(1.5, 0.25, 0.5, 0.1, 20)


@documented
@dataclass(frozen=True, kw_only=True)
class Larger(TopologicalCharge):
    """The distribution of the charge, with one number more."""

    sixth: Estimate = result_field("<Q^6>.", NUMBER, symbol="<Q⁶>", unit="fm")
    shifts: dict[str, tuple[float, ...]] | None = result_field("Shifts by name.", None)


def charge(kind):
    """Return a result with numbers in all fields."""
    numbers = dict.fromkeys(("mean", "square", "kurtosis", "susceptibility"), NUMBER)
    words = {"charge": "clover", "rule": "t = 1", "source": "", "rounded": False}
    return kind(
        **numbers,
        **words,
        t=1.0,
        alpha=1.1,
        deviation=0.1,
        configurations=20,
        updates=10,
        changes=3,
        susceptibility_t0=None,
        fourth_root=None,
        fourth_root_scale_error=None,
        s_max=0.1,
        inadmissible=0.0,
        t0=None,
    )


def test_a_new_field_is_described_shown_and_read(monkeypatch):
    assert keys_of(Larger)["sixth"] == ("Estimate", "<Q^6>.")
    assert keys_of(Larger)["shifts"][0] == "dict of str to tuple of float or None"
    assert "<Q^6>." in vocabulary([Larger])["sixth"].meanings
    monkeypatch.setattr("gauge_mc.quantities.flow.topology.TopologicalCharge", Larger)
    found = replace(charge(Larger), shifts={"a": (1.0, 2.0)})
    (table,) = TopologyResult(found).report()
    assert list(table.columns[0].cells)[-1] == "<Q⁶> (fm)"
    assert list(table.columns[1].cells)[-1] == str(NUMBER)
    values = TopologyResult(found).values()
    assert values["sixth"] == asdict(NUMBER)
    del values["observable"], values["units"]
    values = json.loads(json.dumps(values))
    assert typed(values, Larger) == found
    older = {key: one for key, one in values.items() if key not in ("sixth", "shifts")}
    assert typed(older, Larger) == charge(Larger)


def test_a_new_field_is_in_the_reference():
    pytest.importorskip("gauge_mc.extensions.publishing")  # as in `tests.test_docs`
    hooks = pytest.importorskip("tests.test_docs").hooks
    assert "| `sixth` | Estimate |" in hooks.key_table(Larger)
