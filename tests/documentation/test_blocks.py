"""The list of directives names blocks that there are."""

import re

import pytest

pytest.importorskip("gauge_mc.extensions.publishing")  # as in `tests.test_docs`

from tests.documentation import blocks
from tests.test_docs import FENCE, PAGES, ROOT, name_of


def blocks_of(text):
    """The blocks of a page, as the plugin gives them to the list."""
    return [(language, block) for _, language, block in FENCE.findall(text)]


@pytest.mark.parametrize("page", blocks.entries())
def test_every_entry_is_for_one_block(page):
    found = blocks.directives(page, blocks_of((ROOT / page).read_text()))
    listed = [words for entry in blocks.entries()[page] for words in blocks.directives_of(entry)]
    assert sum(map(len, found)) == len(listed)
    verbs = ("with ", "shorter with ", "loosely because ", "first ")
    verbs += ("not because ", "interrupt when ", "file ", "in ")
    assert [words for words in listed if not words.startswith(verbs)] == []


def test_pages_have_no_directives_themselves():
    comment = re.compile("^<!-- run: ", re.M)
    found = [name_of(path) for path in PAGES if comment.search(path.read_text())]
    assert found == []


PAGE = "```sh\na\n```\n\n```bash\na\nb\n```\n\n```text\nab\n```\n\n```bash\na\nc\n```\n"


@pytest.mark.parametrize(
    ("block", "number"),
    [
        (None, 1),
        ("ab", 2),
        ("a\nb", 1),
        ("a\nc\n", 3),
        ("a", "2 blocks"),
        ("b", "no blocks"),
        ("a\nb\nc", "no blocks"),
    ],
)
def test_an_entry_is_for_the_one_block_that_begins_with_its_lines(monkeypatch, block, number):
    entry = {"run": ["first x", "not because y"], **({"block": block} if block else {})}
    monkeypatch.setattr(blocks, "entries", lambda: {"page.md": [entry]})
    if isinstance(number, str):
        with pytest.raises(ValueError, match=f"{number} of page.md begin with"):
            blocks.directives("page.md", blocks_of(PAGE))
    else:
        found = blocks.directives("page.md", blocks_of(PAGE))
        assert found == [entry["run"] if i == number else [] for i in range(4)]


def test_a_page_without_blocks_has_no_entry(monkeypatch):
    monkeypatch.setattr(blocks, "entries", lambda: {"page.md": [{"run": "in x"}]})
    with pytest.raises(ValueError, match="no blocks"):
        blocks.directives("page.md", [])


def test_pages_that_share_a_folder_are_found(monkeypatch):
    found = {
        "a.md": [{"run": ["in x", "first y"]}],
        "b.md": [{"run": "in z"}],
        "c.md": [{"run": "in x"}],
    }
    monkeypatch.setattr(blocks, "entries", lambda: found)
    assert [*blocks.sharing()] == [["a.md", "c.md"], ["b.md"]]
