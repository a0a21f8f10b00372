"""The notebooks of the site: that they can be carried out, and show what is stored in them."""

import pytest

pytest.importorskip("gauge_mc.extensions.publishing")  # as in `tests.test_docs`

from tests.test_docs import ROOT

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
