"""Runs are published and checked where no kernel can be compiled."""

import pytest

from gauge_mc.errors import UNCHECKED
from gauge_mc.extensions.publishing.publish import publish
from gauge_mc.extensions.publishing.record import CRATE, read_configurations
from tests.calls import call, forbid, make_run
from tests.inspection.test_without_kernels import CONFIG, no_compiler


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("run") / "run", group="su3", precision="double")


@pytest.mark.slow
def test_a_run_is_published(run, tmp_path, monkeypatch):
    publish(run, tmp_path / "with", authors=["Doe, Jane"])
    no_compiler(tmp_path, monkeypatch)
    publish(run, tmp_path / "without", authors=["Doe, Jane"])
    one, other = (read_configurations(tmp_path / name) for name in ("with", "without"))
    assert {n: row.links for n, row in one.items()} == {n: row.links for n, row in other.items()}
    assert len(one) == 3
    assert call("verify", tmp_path / "without")[1] == 0


@pytest.mark.parametrize("name", [CRATE, "chain.json", CONFIG])
def test_nor_is_one_of_a_publication(run, tmp_path, monkeypatch, name):
    publish(run, tmp_path / "data", authors=["Doe, Jane"])
    forbid(monkeypatch, tmp_path / "data" / name)
    shown, code = call("verify", tmp_path / "data")
    assert code == UNCHECKED
    assert "Permission denied" in shown
    assert "BAD" not in shown


def test_a_damaged_description_of_a_publication_is_a_verdict(run, tmp_path):
    publish(run, tmp_path / "data", authors=["Doe, Jane"])
    (tmp_path / "data" / CRATE).write_text("{")
    shown, code = call("verify", tmp_path / "data")
    assert shown.startswith(f"BAD   {tmp_path / 'data' / CRATE} is damaged")
    assert code == 1
