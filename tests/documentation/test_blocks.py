"""The list of directives names blocks that there are."""

import pytest

pytest.importorskip("gauge_mc.extensions.publishing")  # as in `tests.test_docs`

from tests.documentation import blocks
from tests.test_docs import FENCE, ROOT


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
