"""What ``gauge-mc convert`` advises if a format cannot hold a configuration."""

import re

import pytest

from gauge_mc.configurations.reading import open_configuration
from gauge_mc.formats import FORMATS, writable_formats
from gauge_mc.groups import GROUPS
from tests.calls import call
from tests.formats.format_samples import sample

pytestmark = [pytest.mark.slow, pytest.mark.kernels]


@pytest.mark.parametrize(
    ("group", "precision", "to", "options"),
    [
        ("su2", "double", "openqcd", ()),
        ("su2", "single", "openqcd", ()),
        ("su2", "single", "openqcd", ("--precision", "double")),
        ("su3", "double", "openqcd", ("--precision", "single")),
        ("su2", "double", "milc", ()),
        ("su3", "double", "milc", ("--precision", "double")),
    ],
)
def test_only_formats_that_can_hold_it_are_named(
    tmp_path, monkeypatch, group, precision, to, options
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").write_bytes(sample("ildg", group, precision)[1])
    shown, code = call("convert", "in", "out", "--to", to, *options)
    assert code == 2
    assert FORMATS[to].title in shown
    named = re.search(r"choose (.+)\.\n$", shown)[1].replace(" or ", ", ").split(", ")
    wanted = options[1] if options else precision
    held_by = {
        name for name in writable_formats() if FORMATS[name].refusal(GROUPS[group], wanted) is None
    }
    assert {*named} == held_by >= {"ildg", "hdf5", "nersc"}
    assert named[0] == "ildg"
    for name in named:
        assert call("convert", "in", f"out.{name}", "--to", name, *options)[1] == 0
        assert open_configuration(f"out.{name}").header.group == group
    assert not (tmp_path / "out").exists()


def test_a_precision_that_fits_is_taken_by_itself(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").write_bytes(sample("milc", "su3", "single")[1])
    assert call("convert", "in", "out", "--to", "openqcd")[1] == 0
    assert open_configuration("out").header.precision == "double"
    assert call("convert", "out", "back", "--to", "milc")[1] == 0
    assert open_configuration("back").header.precision == "single"
