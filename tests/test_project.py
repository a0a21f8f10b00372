"""What the files at the top of the checkout say of the project agrees."""

import json
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.tools.check_links import broken_links, pages

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


def test_the_readme_is_short_and_has_the_command_of_the_tests(root):
    lines = (root / "README.md").read_text().splitlines()
    assert len(lines) <= LONGEST_README
    assert len([line for line in lines if re.match("python3 -m venv .* pytest", line)]) == 1


def test_every_page_with_commands_or_programs_is_run(root):
    """With `--every`, for which no stage has passed before."""
    script = (root / ".ci/run").read_text().replace("\\\n", " ")
    find_pages = re.search(r"^find_pages\(\) \{.*?^\}$", script, re.M | re.S)[0]
    others = re.findall(r'^begin "\w+" try_pages \d (.*)$', script, re.M)
    assert len(others) == 1
    program = f"wanted() {{ true; }}\n{find_pages}\nfind_pages\necho {' '.join(others)}"
    done = subprocess.run(["bash", "-c", program], cwd=root, capture_output=True, text=True)
    places = [root / "README.md", root / "runs/README.md", root / "docs/tutorial.md"]
    places += [*root.glob("docs/how-to/*.md"), *root.glob("docs/extensions/*/*.md")]
    block = re.compile("^```(bash|python)$", re.M)
    places = [one for one in places if one.name != "extending.md"]  # which shows files of tests
    found = [str(one.relative_to(root)) for one in places if block.search(one.read_text())]
    assert sorted(done.stdout.split()) == sorted(found)


def test_no_test_depends_on_the_speed_of_the_machine(root):
    """Limits are those of `tests.patience`."""
    timed = re.compile(r"(timeout=|\.wait\(|(monotonic|perf_counter)\(\) - \w+ <=? )\d+\b(?!\.)")
    found = {
        f"{path.relative_to(root)}: {line.strip()}"
        for path in (root / "tests").rglob("test_*.py")
        for line in path.read_text().splitlines()
        if timed.search(line)
    }
    assert found == set()


def test_links_of_pages_lead_somewhere(root):
    if not (root / "docs" / "extensions").is_dir():
        pytest.skip("there are no pages of extensions, to which others lead")
    found = {page: [*broken_links(page)] for page in pages(root)}
    assert root / ".github" / "CONTRIBUTING.md" in found
    assert not {page: links for page, links in found.items() if links}


@pytest.mark.parametrize(
    ("link", "broken"),
    [
        ("other.md", False),
        ("other.md#the-second-part", False),
        ("other.md#named", False),
        ("#here", False),
        ("https://example.org/x.md", False),
        ("missing.md", True),
        ("other.md#the-third-part", True),
        ("#there", True),
    ],
)
def test_a_link_that_leads_nowhere_is_found(tmp_path, link, broken):
    (tmp_path / "other.md").write_text("# A\n\n## The *second* part\n\n## More { #named }\n")
    page = tmp_path / "page.md"
    page.write_text(f"## Here\n\n[a]({link})\n\n```\n[b](nowhere.md)\n```\n`[c](nowhere)`\n")
    assert [*broken_links(page)] == [link] * broken


@pytest.mark.slow
def test_hooks_before_a_commit_and_forms_of_issues_are_valid(root):
    yaml = pytest.importorskip("yaml")
    hooks = yaml.safe_load((root / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    assert [hook["id"] for hook in hooks] == ["ruff-check", "ruff-format", "mypy", "links"]
    for hook in hooks:
        words = hook["entry"].split()
        assert words[0] == ".venv/bin/python"
        assert hook["language"] == "system"  # nothing is fetched
        assert all((root / word).is_file() for word in words if word.endswith(".py"))
    forms = {*(root / ".github" / "ISSUE_TEMPLATE").glob("*.yml")} - {
        root / ".github" / "ISSUE_TEMPLATE" / "config.yml"
    }
    assert {path.stem for path in forms} == {"bug", "feature", "wrong_number"}
    for path in forms:
        form = yaml.safe_load(path.read_text())
        assert form["name"]
        assert form["description"]
        ids = [part["id"] for part in form["body"]]
        assert len(ids) == len({*ids}) > 1
        assert all(part["attributes"]["label"] for part in form["body"])
        assert any(part.get("validations", {}).get("required") for part in form["body"])
