"""A folder of its own for every test of scans."""

from pathlib import Path

import pytest

import gauge_mc as package


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder to work in, where children find what the tests import, installed or not."""
    monkeypatch.setenv("PYTHONPATH", str(Path(package.__file__).parent.parent))
    monkeypatch.chdir(tmp_path)
    return tmp_path
