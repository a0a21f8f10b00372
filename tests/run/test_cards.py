"""The run cards in runs/ are what their README says."""

import pytest

from gauge_mc.run.cards import read_card
from gauge_mc.run.parameters import Parameters

NAMED = {
    "su2_levels_b2.55",
    "su2_levels_b2.65",
    "su2_levels_b2.8",
    "su2_overlap_b2.4",
    "su3_clover_hadrons_b6.0",
    "su3_iwasaki_b2.6",
    "su3_overlap_b5.85",
    "su3_overlap_pions_b6.0",
    "su3_polyakov_b6.0",
    "su3_walls_b5.7",
    "su3_walls_b6.0",
    "su3_walls_dbw2_b1.04",
    "su3_walls_iwasaki_b2.6",
    "su3_wilson_hadrons_b6.0",
}
"""Cards whose commands name the run."""

OTHERS = {
    "su3_iwasaki_nt4": ("--beta 2.275:2.3:0.0025 --configs 33000", 8000),
    "su2_ladders": ("--beta 2.4:2.47:0.01", 100000),
    "su2_nt4_volumes": ("--beta 2.27:2.32:0.01", 12000),
    "su3_nt4": ("--beta 5.684:5.7:0.004", 8000),
    "su3_ladders": ("--beta 5.876:5.912:0.006", 20000),
    "su3_critical_scale": ("--beta 5.894", 200),
    "sun_plaquette": ("--group $1 --beta $2", 1),
}
"""Options and numbers of configurations of cards that are not for a list of beta."""


def test_cards_make_the_runs_that_the_commands_name(root):
    pytest.importorskip("gauge_mc.extensions.quarks")
    text = (root / "runs" / "README.md").read_text()
    cards = sorted((root / "runs").glob("*.toml"))
    assert cards
    for path in cards:
        card = read_card(path)
        parameters = Parameters.from_values({"beta": 2.5} | card)
        if "beta" in card:
            assert path.name in text
            command = f"--card runs/{path.name} --output runs/{path.stem}\n"
            assert command in text if path.stem in NAMED else parameters.name in text
            least = {"_t0_": 150, "_polyakov_": 60, "_hadrons_": 200, "_pions_": 50}
            assert parameters.configs >= next((n for k, n in least.items() if k in path.name), 500)
        else:
            options, configs = OTHERS.get(path.stem, ("--beta $beta", 1))
            assert f"--card runs/{path.name} {options}" in text
            assert parameters.configs == configs
