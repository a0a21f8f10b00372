"""What a user of Python and of notebooks meets: names, errors and progress."""

import pytest

import gauge_mc
from gauge_mc.errors import GaugeError, UsageError


def test_a_misspelt_name_of_the_package_is_answered_with_the_right_one():
    with pytest.raises(AttributeError, match=r"no attribute 'genrate'; did you mean 'generate'\?$"):
        gauge_mc.genrate  # noqa: B018
    with pytest.raises(AttributeError, match=r"no attribute 'xyz'$") as caught:
        gauge_mc.xyz  # noqa: B018
    assert not caught.value.name  # by which Python would add its own guess


def test_a_misspelt_fit_is_answered_with_the_right_one():
    with pytest.raises(UsageError, match=r"There is no fit 'potental'; did you mean 'potential'\?"):
        gauge_mc.fit("potental")


def test_an_error_is_one_line_in_a_notebook(capsys):
    shell = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell()
    shell.run_cell("import gauge_mc; gauge_mc.fit('potental')")
    said = capsys.readouterr()
    assert (said.out + said.err).splitlines() == [
        "UnknownNameError: There is no fit 'potental'; did you mean 'potential'?"
    ]


def test_an_error_shows_control_characters_of_what_it_quotes():
    assert GaugeError("a\x1b[2J\nb")._render_traceback_() == ["GaugeError: a\\x1b[2J b"]
