"""Readers of files of quarks whose values are not tried as in ``tests/files/test_extremes.py``."""

import pytest

from tests.files.extremes import calls_of_parsers

OWN = {"modes.mode_files": "it has a digest, and tests of kept modes"}
"""Modules with calls of parsers."""


@pytest.mark.slow
def test_no_other_reader_is_not_tried():
    here = "extensions.quarks."
    found = {name.removeprefix(here) for name in calls_of_parsers() if name.startswith(here)}
    assert {next((one for one in OWN if name.startswith(one)), name) for name in found} == {*OWN}
