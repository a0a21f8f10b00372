"""Several chains with quarks that are generated together."""

import pytest

from gauge_mc.devices import BACKENDS
from tests.calls import call

WORDS = ("--lattice", "4x4x4x6", "--backend", "cpu")


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("more", "busy", "how"),
    [
        ("", 2**14, "together"),
        ("", 4**3 * 6, "one after the other"),
        (":solver=bicgstab", 2**14, "together"),
    ],
)
def test_the_command_says_how_chains_with_quarks_move(monkeypatch, more, busy, how):
    """Those of large lattices move one after the other, whatever the solver."""
    monkeypatch.setattr(type(BACKENDS["cpu"]), "busy_sites", busy)
    words = ["--algorithm", "hmc:steps=2", "--quarks", f"kappa=0.1{more}", "--precision", "double"]
    few = ["--thermalize", "0", "--configs", "1", "--separation", "1"]
    shown, code = call("generate", *WORDS, *words, *few, "--chains", "2")
    assert code == 0
    assert f"2 chains are updated {how}" in shown
