"""What the files at the top of the checkout say of the project agrees."""

import re
import tomllib
from pathlib import Path

import pytest

LONGEST_README = 150
"""Lines that a newcomer is asked to read."""


@pytest.fixture(scope="module")
def project(root: Path) -> dict:
    return tomllib.loads((root / "pyproject.toml").read_text())["project"]


def test_the_citation_has_the_version_and_the_licence(root, project):
    citation = dict(re.findall(r"^([\w-]+): (.+)$", (root / "CITATION.cff").read_text(), re.M))
    assert citation["version"] == project["version"]
    assert citation["license"] == project["license"]
    assert citation["title"] == project["name"]


def test_the_changelog_begins_with_the_version(root, project):
    versions = re.findall(r"^## ([\w.]+) \(.+\)$", (root / "CHANGELOG.md").read_text(), re.M)
    assert versions[0] == project["version"]
    assert len(set(versions)) == len(versions)


def test_the_readme_is_short_and_has_the_command_of_the_tests(root):
    shown = re.sub(r"<!--.*?-->\n\n?", "", (root / "README.md").read_text(), flags=re.S)
    lines = shown.splitlines()
    assert len(lines) <= LONGEST_README
    assert len([line for line in lines if re.match("python3 -m venv .* pytest", line)]) == 1


def test_links_of_the_readmes_lead_somewhere(root):
    for page in (root / "README.md", *(root / "runs").rglob("*.md"), root / "CHANGELOG.md"):
        for link in re.findall(r"\]\(([^)#]+)", page.read_text()):
            assert link.startswith("https://") or (page.parent / link).exists(), (page, link)
