"""Text of others is shown without effect on the terminal."""

from gauge_mc.quoting import LONGEST_MESSAGE, printable, sentence, shortened


def test_what_controls_a_terminal_is_shown_as_an_escape_sequence():
    assert printable("a\x1b[31mb\rc\x07\x9bd") == r"a\x1b[31mb\rc\x07\x9bd"
    assert printable("‮evil​") == r"\u202eevil\u200b"
    assert printable("β = 2.5, two\nlines") == "β = 2.5, two\nlines"


def test_bytes_that_are_not_utf8_are_shown():
    name = b"caf\xe9\xff".decode("utf-8", "surrogateescape")
    assert printable(name) == r"caf\xe9\xff"
    assert printable("\ud800") == r"\ud800"


def test_what_is_long_is_shortened():
    assert shortened("short") == "short"
    word = shortened(5000 * "9")
    assert len(word) <= 300
    assert "(5000 characters)" in word


def test_a_message_is_one_line_of_bounded_length():
    assert sentence("one\ntwo") == "one two"
    path = "/".join(["folder"] * 30)
    assert sentence(f"{path} is missing.") == f"{path} is missing."
    assert len(sentence(f"value {5000 * '9'} is too large.")) < 400
    assert len(sentence(10000 * "a ")) <= LONGEST_MESSAGE
