"""The export as plain text."""

from gauge_mc.exports import EXPORTS
from tests.calls import call, make_run


def test_tables_and_their_columns_are_named(tmp_path):
    run = make_run(tmp_path / "run", precision="single", measure="plaquette")
    out = tmp_path / f"tables{EXPORTS['text'].ending}"
    assert call("export", run, out) == (f"{out}: plaquette\n", 0)
    assert out.read_text().startswith("plaquette: sweep, ")
