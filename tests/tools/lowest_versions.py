"""Print the oldest versions that pyproject.toml allows, as constraints for pip.

python tests/tools/lowest_versions.py >constraints.txt
pip install --constraint constraints.txt '.[test,notebook]'
"""

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REQUIREMENT = re.compile(r"([\w.-]+)(?:\[[\w,-]+\])?\s*>=\s*([\w.]+)$")


def constraints(project: dict) -> Iterator[str]:
    """Yield the oldest version of each dependency that has a lower bound, extras included."""
    optional = project.get("optional-dependencies", {}).values()
    for requirement in dict.fromkeys(sum(optional, project["dependencies"])):
        if found := REQUIREMENT.match(requirement):
            yield f"{found[1]}=={found[2]}"
        elif not requirement.startswith(f"{project['name']}["):
            print(f"{requirement} has no lower bound alone: left out", file=sys.stderr)


if __name__ == "__main__":
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    print(*constraints(project), sep="\n")
