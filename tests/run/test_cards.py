"""The run cards in runs/ are those of their README, and are accepted."""

import pytest

from gauge_mc.run.cards import read_card
from gauge_mc.run.parameters import Parameters


def test_the_readme_has_a_command_for_every_card(root):
    pytest.importorskip("gauge_mc.extensions.quarks")
    text = (root / "runs" / "README.md").read_text()
    cards = sorted((root / "runs").glob("*.toml"))
    assert cards
    for path in cards:
        Parameters.from_values({"beta": 2.5} | read_card(path))
        assert f"--card runs/{path.name}" in text or path.name in text, path.name
