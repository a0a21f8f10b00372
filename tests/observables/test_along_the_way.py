"""Observables along the way of a run are what stored configurations give."""

import pytest

from tests.calls import call, make_run

pytestmark = pytest.mark.kernels


@pytest.mark.first_quick
@pytest.mark.parametrize(
    ("name", "to", "rows"),
    [("field-correlators", "0.1", 6), ("thermal-flow", "0.2", 3), ("flow", "0.5", 6)],
)
def test_rows_are_the_same(tmp_path, monkeypatch, name, to, rows):
    """To the byte, since links in files have all their bits."""
    monkeypatch.chdir(tmp_path)
    kind = {"precision": "double", "lattice": "4x4x4x6"}
    run, stem = (
        make_run(tmp_path / "run", measure=f"{name}:3:to={to}", **kind),
        name.replace("-", "_"),
    )
    shown, code = call("measure", name, "run", "--to", to, "--backend", "cpu")
    assert (shown.endswith(f"run/{stem}_configs.csv\n"), code) == (True, 0)
    first, second = (
        [line for line in (run / file).read_text().splitlines() if line[0] not in "#s"]
        for file in (f"{stem}.csv", f"{stem}_configs.csv")
    )
    assert first == second
    assert len(first) == 3 * rows
    shown, code = call("verify", "run")
    assert (f"{stem}.csv  records: {3 * rows}" in shown, code) == (True, 0)
    assert name in call("info", "run")[0]
