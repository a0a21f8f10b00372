"""The description of a published folder: RO-Crate 1.1, CITATION.cff and README."""

from __future__ import annotations

import datetime
import json
import mimetypes
from collections.abc import Sequence
from pathlib import Path

from gauge_mc import __version__
from gauge_mc.errors import DamagedError
from gauge_mc.files.input import read_text
from gauge_mc.files.structured import parse_json
from gauge_mc.groups import GROUPS
from gauge_mc.publication.publisher import Publisher
from gauge_mc.publication.record import CARD, MOST_BYTES, sha256
from gauge_mc.run.directory import SessionRecord
from gauge_mc.run.parameters import Parameters

CRATE, CITATION, README = Path("ro-crate-metadata.json"), Path("CITATION.cff"), Path("README.md")
"""Files that describe the folder."""

SPECIFICATION = "https://w3id.org/ro/crate/1.1"
"""RO-Crate Metadata Specification 1.1 (https://doi.org/10.5281/zenodo.4031327)."""

TYPES = {".toml": "application/toml", ".csv": "text/csv", ".cff": "application/yaml"}
TYPES |= {".xz": "application/x-xz", ".md": "text/markdown"}
"""Types of files that Python does not know everywhere."""


def crate_text(
    folder: Path, publisher: Publisher, description: str, sessions: Sequence[SessionRecord]
) -> str:
    """Return the description of a folder as JSON-LD, with the SHA-256 of all other files."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    names = [one.relative_to(folder).as_posix() for one in paths]
    people = [
        {
            "@id": f"#author{number}",
            "@type": "Person",
            "name": str(one),
            "familyName": one.family,
            "givenName": one.given,
            "affiliation": publisher.institution,
        }
        for number, one in enumerate(publisher.authors, 1)
    ]
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": publisher.title,
        "description": description,
        "datePublished": datetime.date.today().isoformat(),
        "license": {"@id": publisher.license_url},
        "author": [{"@id": one["@id"]} for one in people],
        "hasPart": [{"@id": name} for name in names],
        "mentions": [{"@id": f"#session{number}"} for number, _ in enumerate(sessions, 1)],
    }
    about = {
        "@id": CRATE.name,
        "@type": "CreativeWork",
        "conformsTo": {"@id": SPECIFICATION},
        "about": {"@id": "./"},
    }
    terms = {"@id": publisher.license_url, "@type": "CreativeWork", "name": publisher.license}
    files = [_file(path, name) for path, name in zip(paths, names, strict=True)]
    made = [_session(number, one) for number, one in enumerate(sessions, 1)]
    programs = {one.version: _program(one.version) for one in sessions}
    graph = [about, root, *people, terms, *files, *made, *programs.values()]
    return (
        json.dumps(
            {"@context": f"{SPECIFICATION}/context", "@graph": graph}, indent=1, ensure_ascii=False
        )
        + "\n"
    )


def published_files(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of the files of a published folder, by path.

    Raises
    ------
    GaugeError
        If the description of the folder is damaged.
    """
    path = folder / CRATE
    try:
        graph = parse_json(read_text(path, MOST_BYTES))["@graph"]
        found = {str(one["@id"]): str(one["sha256"]) for one in graph if one["@type"] == "File"}
    except (ValueError, TypeError, KeyError) as error:
        raise DamagedError(f"{path} is damaged: {error}; get the publication again.") from error
    if outside := [one for one in found if Path(one).is_absolute() or ".." in Path(one).parts]:
        raise DamagedError(f"{path} names {outside[0]}, which is outside of the folder.")
    return found


def citation_text(publisher: Publisher) -> str:
    """Return CITATION.cff for the data (Citation File Format 1.2.0)."""
    authors = "".join(
        f"  - family-names: {_quoted(one.family)}\n"
        + (f"    given-names: {_quoted(one.given)}\n" if one.given else "")
        + (f"    affiliation: {_quoted(publisher.institution)}\n" if number == 0 else "")
        for number, one in enumerate(publisher.authors)
    )
    return (
        "cff-version: 1.2.0\n"
        "message: If you use these data, please cite them as below.\n"
        "type: dataset\n"
        f"title: {_quoted(publisher.title)}\n"
        f"authors:\n{authors}"
        f"date-released: {datetime.date.today().isoformat()}\n"
        f"license: {publisher.license}\n"
    )


def readme_text(
    parameters: Parameters, publisher: Publisher, configs: int, whole: int, notes: Sequence[str]
) -> str:
    """Return the README of the folder, with the commands that make and check the ensemble."""
    p = parameters
    remarks = "".join(f"\n{note}\n" for note in notes)
    return f"""# {publisher.title}

{describe(p, configs)}
It was made by gauge-mc; `run.toml` states which versions and devices. {whole} of the configurations
are in `configs/`; `configurations.csv` has the SHA-256, the checksum of the links and the plaquette
of each. All can be made again, with the same links, by the same version on the same kind of device.
Install gauge-mc {__version__} from its sources, of which `kernels.csv` has the SHA-256, then:

```
gauge-mc generate --card {CARD} --output RUN
```

This makes some of them again at random and compares them, after all files have been checked:

```
gauge-mc verify . --regenerate 3
```
{remarks}
Licence: {publisher.license}. `CITATION.cff` says how to cite the data.
"""


def title_of(parameters: Parameters) -> str:
    """Return a title for an ensemble."""
    p = parameters
    group = GROUPS[p.group].label
    return f"{group} gauge configurations on {p.lattice}, {p.action.name} action, β = {p.beta:g}"


def describe(parameters: Parameters, configs: int) -> str:
    """Return what an ensemble is, in a sentence."""
    p = parameters
    return (
        f"{configs} configurations of {GROUPS[p.group].label} on {p.lattice} with the action "
        f"{p.action} at β = {p.beta:g} ({p.action.beta_is}), one after every {p.separation} "
        f"updates ({p.algorithm}), after {p.thermalize} updates of thermalisation."
    )


def _quoted(text: str) -> str:
    """Return a text as a string of YAML."""
    return json.dumps(text, ensure_ascii=False)


def _file(path: Path, name: str) -> dict[str, object]:
    kind = TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0]
    return {
        "@id": name,
        "@type": "File",
        "name": path.name,
        "contentSize": str(path.stat().st_size),
        "sha256": sha256(path),
        "encodingFormat": kind or "application/octet-stream",
    }


def _session(number: int, session: SessionRecord) -> dict[str, object]:
    return {
        "@id": f"#session{number}",
        "@type": "CreateAction",
        "name": f"updates from {session.sweep + 1} on, on {session.device}",
        "startTime": session.started,
        "instrument": {"@id": f"#gauge-mc-{session.version}"},
        "result": {"@id": "./"},
    }


def _program(version: str) -> dict[str, object]:
    return {
        "@id": f"#gauge-mc-{version}",
        "@type": "SoftwareApplication",
        "name": "gauge-mc",
        "version": version,
    }
