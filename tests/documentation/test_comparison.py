"""The comparison of outputs can fail, and writes what a page shows."""

import pytest

from tests.documentation.comparison import difference, renewed


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        ("plaquette 0.5677(6) 3.2(6)", "plaquette   0.5690(5)  3.0(4)"),
        ("│ a │ 1.5(1) │\n└───┘", "┃ a ┃ 1.52 (2)".replace(" (", "(")),
        ("first\n…\nlast 3", "first\nsecond\nlast 3\n"),
        ("…\nlast", "a\nb\nlast"),
        ("first\n…", "first\nb"),
        ("time 3 s\nend", "time    0:02:10 for 7 updates\nend"),
        ("on AMD EPYC, 2 threads", "on Intel(R) Xeon(R), 16 threads"),
        ("<Field 4, on AMD EPYC, 2 threads>", "<Field 4, on AMD EPYC, 1 thread>"),
        ("0.0302854", "0.0302853"),
        ("-4(9)e-05", "3(8)e-05"),
        ("r₀/a = 3.668(17)(30), a = 0.1427(13)(2) fm", "r₀/a = 3.66(3), a = 0.143(2)(1) fm"),
        ("end", "compiling kernels, which are kept\nupdate 1/9  ETA 3 s\nend"),
    ],
)
def test_what_agrees(expected, found):
    assert not difference(expected, found)


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        ("plaquette 0.5677(6)", "plaquette 0.5777(6)"),
        ("plaquette 0.5677(6)", "plaquettes 0.5677(6)"),
        ("400 configurations", "401 configurations"),
        ("0.0302854", "0.0302754"),
        ("first\n…\nlast", "first\nsecond"),
        ("first\nlast", "first\nsecond\nlast"),
        ("first", "first\na hint that the page does not have"),
        ("first", "a warning\nfirst"),
        ("time 3 s", "rate 3 s"),
        ("0.5(1)", "0.5"),
        ("3.668(17)(30)", "3.868(17)(30)"),
        ("1fed536daebbf2b0 one.csv", "1fed536daebbf2b1 one.csv"),
        ("0000210.lime", "0000220.lime"),
        ("on 8x8x8x4", "on 8x8x8x8"),
    ],
)
def test_what_differs(expected, found):
    assert difference(expected, found)


def test_numbers_of_shorter_runs():
    assert difference("400 configurations of 0.5(1)", "20 configurations of 0.6(2)")
    assert not difference("400 configurations of 0.5(1)", "20 configurations of 0.6(2)", True)
    assert difference("400 configurations of 0.5(1)", "20 configurations of 1.6(1)", True)
    assert difference("400 configurations", "20 chains", True)


def test_what_is_left_out_stays_left_out():
    page = "│ 1 │ 2 │ 0.5(1) │\n…\n│ 1 │ 4 │ 0.7(1) │\nend"
    new = "│ 1 │ 2 │ 0.6(1) │\n│ 1 │ 3 │ 0.9(1) │\n│ 1 │ 4 │ 0.8(1) │\nend"
    assert renewed(page, new) == "│ 1 │ 2 │ 0.6(1) │\n…\n│ 1 │ 4 │ 0.8(1) │\nend"
    with pytest.raises(ValueError, match="no line such as this one is printed any more: end"):
        renewed(page, new.replace("end", "fin"))
    assert renewed("a 1\n", "b 2 \nupdate 1/9  ETA 3 s\nc\n") == "b 2\nc"
