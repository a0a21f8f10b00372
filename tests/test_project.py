"""What the files at the top of the checkout say of the project agrees."""

import json
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.tools.check_links import broken_links, pages


@pytest.fixture(scope="module")
def project(root: Path) -> dict:
    return tomllib.loads((root / "pyproject.toml").read_text())["project"]


def test_the_citation_has_the_version_and_the_licence(root, project):
    citation = dict(re.findall(r"^([\w-]+): (.+)$", (root / "CITATION.cff").read_text(), re.M))
    assert citation["version"] == project["version"]
    assert citation["license"] == project["license"]
    assert citation["title"] == project["name"]


@pytest.mark.parametrize("name", [".zenodo.json", "codemeta.json"])
def test_descriptions_for_archives_say_what_the_project_says(root, project, name):
    found = json.loads((root / name).read_text())
    for key in ("version", "description", "keywords"):
        assert found[key] == project[key]
    assert found.get("name", found.get("title")) == project["name"]
    assert found["license"].endswith(project["license"])
    (author,) = found.get("author", found.get("creators"))
    assert author["name"] == project["authors"][0]["name"]


def test_the_changelog_begins_with_the_version_or_what_comes_after_it(root, project):
    found = re.findall(r"^## ([\w.]+) \((.+)\)$", (root / "CHANGELOG.md").read_text(), re.M)
    coming = [version for version, date in found if date == "not yet released"]
    versions = [version for version, _ in found]
    assert coming in ([], versions[:1])
    assert project["version"] in versions[: len(coming) + 1]
    assert len(set(versions)) == len(versions)


def test_every_page_with_commands_or_programs_is_run(root):
    """By the stages of `.ci/run --every`, one of which is the test command of the README."""
    command = ["sh", ".ci/run", "--every", "--list"]
    stages = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    block = re.compile("^```(bash|python)$", re.M)
    places = [root / "README.md", root / "runs/README.md", root / "docs/tutorial.md"]
    places += [*root.glob("docs/how-to/*.md"), *root.glob("docs/extensions/*/*.md")]
    pages = {str(path.relative_to(root)) for path in places if block.search(path.read_text())}
    showing_tests = {page for page in pages if page.endswith("/extending.md")}
    assert pages - {*stages.split()} == showing_tests


def test_links_of_pages_lead_somewhere(root):
    if not (root / "docs" / "extensions").is_dir():
        pytest.skip("there are no pages of extensions, to which others lead")
    found = {page: [*broken_links(page)] for page in pages(root)}
    assert root / ".github" / "CONTRIBUTING.md" in found
    assert not {page: links for page, links in found.items() if links}
