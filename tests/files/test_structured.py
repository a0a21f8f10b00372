"""TOML and JSON that a parser cannot cope with are refused like what is invalid."""

import pytest

from gauge_mc.files.structured import parse_json, parse_toml

DEEP = 100_000


def test_what_is_valid_is_read():
    assert parse_toml("a = [1, {b = 2.5}]") == {"a": [1, {"b": 2.5}]}
    assert parse_json(b'{"a": [1, null]}') == {"a": [1, None]}


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (parse_toml, "a = " + DEEP * "["),
        (parse_toml, "a = " + DEEP * "{a = "),
        (parse_json, DEEP * "["),
        (parse_json, DEEP * '{"a":'),
        (parse_toml, "a = " + 5000 * "9"),
        (parse_json, 5000 * "9"),
        (parse_toml, "a = 1\na = 2"),
        (parse_json, "{"),
        (parse_json, b"\xff"),
    ],
)
def test_everything_else_is_a_value_error(parse, text):
    with pytest.raises(ValueError):  # noqa: PT011 - the parsers' own messages
        parse(text)
