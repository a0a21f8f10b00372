"""The notebooks of the site: that they can be carried out, and show what is stored in them."""

import copy
import json
import re
from pathlib import Path

import pytest

pytest.importorskip("gauge_mc.extensions.publishing")  # as in `tests.test_docs`

from tests.test_docs import ROOT, hooks

nbformat = pytest.importorskip("nbformat")
notebooks = pytest.importorskip("tests.tools.notebooks")
differences = notebooks.differences

pytestmark = pytest.mark.slow  # what they need is not a part of the quick tests' environment

NOTEBOOKS = sorted((ROOT / "docs").rglob("*.ipynb"))


def test_there_are_notebooks_and_each_is_a_page():
    assert NOTEBOOKS
    pages = [path.read_text() for path in (ROOT / "docs").rglob("*.md")]
    for path in NOTEBOOKS:
        place = f"<!-- notebook: {path.relative_to(ROOT / 'docs').as_posix()} -->"
        assert sum(place in page for page in pages) == 1


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_shows_what_is_stored_in_it(path, tmp_path):
    stored = nbformat.read(path, as_version=4)
    assert all(cell.outputs for cell in stored.cells if cell.cell_type == "code")
    assert differences(stored, notebooks.executed(path, tmp_path)) == []


def test_a_changed_word_or_digit_is_seen():
    stored = nbformat.read(NOTEBOOKS[0], as_version=4)
    text = json.dumps(stored)
    assert differences(stored, copy.deepcopy(stored)) == []
    number = re.search(r"r0/a = (\d\.)(\d)(\d*)", text)
    other = f"r0/a = {number[1]}{(int(number[2]) + 1) % 10}{number[3]}"
    for changed in (text.replace(number[0], other), text.replace("r0/a =", "r0 / a =")):
        assert differences(stored, nbformat.reads(changed, as_version=4))


def test_a_page_has_the_cells_and_their_outputs():
    (page,) = (p for p in Path(ROOT / "docs").rglob("*.md") if "<!-- notebook:" in p.read_text())
    shown = hooks.filled(page.read_text())
    assert "```python\nimport gauge_mc" in shown
    assert shown.count("<svg") >= 2
    for block in re.findall(r'<div class="output">.*', shown):
        assert block.endswith("</div>")
