"""The run cards in runs/ are what their README says."""

import re

import pytest

from gauge_mc.domain.lattice import Lattice
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


@pytest.mark.parametrize(
    ("card", "lattice", "group", "beta"),
    [
        ("su2_b2.5", Lattice(24, 24, 24, 32), "su2", 2.5),
        ("su2_b2.8", Lattice(24, 24, 24, 48), "su2", 2.8),
        ("su3_b6.0", Lattice(16, 16, 16, 32), "su3", 6.0),
        ("su3_polyakov_b5.7", Lattice(24, 24, 24, 12), "su3", 5.7),
        ("su3_levels_b6.2", Lattice(24, 24, 24, 48), "su3", 6.2),
        ("su2_levels_b2.55", Lattice(24, 24, 24, 32), "su2", 2.55),
        ("su2_levels_b2.65", Lattice(32, 32, 32, 48), "su2", 2.65),
        ("su2_levels_b2.8", Lattice(40, 40, 40, 48), "su2", 2.8),
    ],
)
def test_cards_of_potentials(root, card, lattice, group, beta):
    parameters = Parameters.from_values(read_card(root / "runs" / f"{card}.toml"))
    assert (parameters.lattice, parameters.group, parameters.beta) == (lattice, group, beta)


@pytest.mark.slow
def test_options_in_commands_exist(root):
    """A command of the README that names an option which is not there would be refused."""
    pytest.importorskip("gauge_mc.extensions.quarks")
    from gauge_mc.cli import load_command
    from gauge_mc.cli.command import Chooser

    text = (root / "runs" / "README.md").read_text()
    for command in ("generate", "measure", "fit", "plot"):
        for line in re.findall(rf"gauge-mc {command} (.*)", text):
            one = load_command(command)
            if isinstance(one, Chooser) and line.split()[0] in one.kind.names():
                one = one.subcommand(line.split()[0])
            known = {name for option in one.params for name in option.opts}
            assert set(re.findall(r"--[a-z-]+", line)) <= known, line
