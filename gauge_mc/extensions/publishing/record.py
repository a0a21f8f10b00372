"""The record of a published run: its configurations with their checksums, and where it was made.

A folder has ``configurations.csv`` with one row per configuration, ``kernels.csv`` with the SHA-256
of the kernels' sources, ``chain.json`` with the state at the last checkpoint, ``machine.json`` with
the versions of compilers, drivers and packages, and the files of the run itself.
"""

from __future__ import annotations

import csv
import datetime
import hashlib
import io
import json
import mimetypes
import platform
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, get_type_hints

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

from gauge_mc import __version__
from gauge_mc.configurations.reading import open_configuration
from gauge_mc.devices import BACKENDS
from gauge_mc.devices.source import source_folders
from gauge_mc.errors import DamagedError, UsageError
from gauge_mc.files.input import open_regular, read_text
from gauge_mc.files.structured import parse_csv, parse_json
from gauge_mc.groups import GROUPS
from gauge_mc.libraries import LIBRARIES
from gauge_mc.options import READ
from gauge_mc.run.checkpoint import ChainState
from gauge_mc.run.directory import Run, SessionRecord
from gauge_mc.run.parameters import Parameters

LICENSE = "CC-BY-4.0"
"""Usual licence of data."""

UNKNOWN = "unknown"
"""The institution of authors who name none."""


@dataclass(frozen=True)
class Author:
    """An author of a publication."""

    family: str
    """Family name."""
    given: str = ""
    """Given names."""

    @classmethod
    def parse(cls, text: str) -> Author:
        """Read an author, ``Family, Given``, or a single name."""
        family, comma, forename = text.partition(",")
        if not family.strip() or (not comma and len(family.split()) > 1):
            raise UsageError(
                f"'{text}' is not the name of an author with a comma after the family name; give "
                "it as 'Family, Given'."
            )
        return cls(family.strip(), forename.strip())

    def __str__(self) -> str:
        return f"{self.given} {self.family}".strip()


@dataclass(frozen=True)
class Publisher:
    """Authors, institution, title, project and licence of a publication."""

    authors: tuple[Author, ...]
    """Authors; the first one is responsible."""
    institution: str
    """Institution of the first author."""
    title: str
    """Title of the publication."""
    project: str
    """Name of the project or the collaboration."""
    license: str
    """Identifier of the licence in the list of SPDX, in any case."""

    def __post_init__(self) -> None:
        if not self.authors:
            raise UsageError("A publication has an author; name one with --author 'Family, Given'.")
        try:
            identifier = str(canonicalize_license_expression(self.license))
        except InvalidLicenseExpression:
            identifier = ""
        if not re.fullmatch(r"[A-Za-z0-9.+-]+", identifier) or identifier.startswith("LicenseRef"):
            raise UsageError(
                f"The licence '{self.license}' is not an SPDX identifier, such as {LICENSE}; "
                "see https://spdx.org/licenses."
            )
        object.__setattr__(self, "license", identifier)

    @property
    def license_url(self) -> str:
        """Address of the text of the licence."""
        return f"https://spdx.org/licenses/{self.license}.html"


CONFIGURATIONS, KERNELS = Path("configurations.csv"), Path("kernels.csv")
CHAIN, MACHINE, CARD = Path("chain.json"), Path("machine.json"), Path("card.toml")
"""Files of a published run."""

KERNEL_COLUMNS = {"file": str, "sha256": str}
"""Types of the columns of the list of the kernels' sources."""

MOST_BYTES = 2**28
"""Largest size of a list that is read."""

SOURCES = (".h", ".cu", ".cuh", ".cpp")
"""Endings of the kernels' sources."""


@dataclass(frozen=True)
class PublishedConfiguration:
    """A row of the list of configurations."""

    update: int
    """Number of updates after which it was written."""
    file: str
    """Path in the run."""
    bytes: int
    """Size of the file."""
    sha256: str
    """SHA-256 of the file."""
    links: str
    """Digest of the links, which does not depend on the header of the file."""
    plaquette: float
    """Average plaquette."""

    @classmethod
    def of(cls, run: Run, update: int, path: Path) -> PublishedConfiguration:
        """Return the row of a configuration, after the file has been checked."""
        averages, links = open_configuration(path).identified()
        place = path.relative_to(run.path).as_posix()
        return cls(update, place, path.stat().st_size, sha256(path), links, averages.mean)


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal."""
    with open_regular(path, "a file") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def configurations_text(rows: Iterable[PublishedConfiguration]) -> str:
    """Return the list of configurations as a CSV file."""
    return _csv([field.name for field in fields(PublishedConfiguration)], map(astuple, rows))


def read_configurations(folder: Path) -> dict[int, PublishedConfiguration]:
    """Read the list of configurations, by update."""
    rows = _rows(folder / CONFIGURATIONS, get_type_hints(PublishedConfiguration))
    return {row["update"]: PublishedConfiguration(**row) for row in rows}


def kernels_text() -> str:
    """Return the SHA-256 of the sources of this version's kernels as a CSV file."""
    return _csv([*KERNEL_COLUMNS], source_digests().items())


def source_digests() -> dict[str, str]:
    """Return the SHA-256 of the kernels' sources, by path."""
    paths = ((root, path) for root in source_folders() for path in root.rglob("*"))
    sources = ((root, path) for root, path in paths if path.suffix in SOURCES)
    return dict(sorted((path.relative_to(root).as_posix(), sha256(path)) for root, path in sources))


def other_sources(folder: Path) -> list[str]:
    """Return the kernels' sources that differ from those that a publication lists."""
    listed = {row["file"]: row["sha256"] for row in _rows(folder / KERNELS, KERNEL_COLUMNS)}
    digests = source_digests()
    return sorted(name for name in {*listed, *digests} if listed.get(name) != digests.get(name))


def chain_text(state: ChainState) -> str:
    """Return the state of a chain as JSON."""
    return json.dumps(state.entries(), indent=1) + "\n"


def machine_text() -> str:
    """Return the versions of the system, of compilers, drivers and packages as JSON."""
    findings = [f for backend in BACKENDS.values() for f in backend.findings()]
    packages = {name: _version(name) for name in ("numpy", *LIBRARIES)}
    machine = {
        "gauge-mc": __version__,
        "system": platform.platform(),
        "processor": platform.machine(),
        "python": platform.python_version(),
        "devices": {f.subject: asdict(f) for f in findings},
        "packages": {name: p for name, p in packages.items() if p},
    }
    return json.dumps(machine, indent=1) + "\n"


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _rows(path: Path, kinds: Mapping[str, type]) -> list[dict[str, Any]]:
    """Read the rows of a list, given the types of its columns."""
    try:
        rows = parse_csv(read_text(path, MOST_BYTES), [*kinds])
        return [{name: READ[kind](row[name]) for name, kind in kinds.items()} for row in rows]
    except ValueError as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise DamagedError(f"{path} is damaged: {reason}; get the publication again.") from error


def _csv(names: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(rows)
    return out.getvalue()


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
    names = [path.relative_to(folder).as_posix() for path in paths]
    people = [
        {
            "@id": f"#author{number}",
            "@type": "Person",
            "name": str(author),
            "familyName": author.family,
            "givenName": author.given,
            "affiliation": publisher.institution,
        }
        for number, author in enumerate(publisher.authors, 1)
    ]
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": publisher.title,
        "description": description,
        "datePublished": datetime.date.today().isoformat(),
        "license": {"@id": publisher.license_url},
        "author": [{"@id": x["@id"]} for x in people],
        "hasPart": [{"@id": name} for name in names],
        "mentions": [{"@id": f"#session{number}"} for number, _ in enumerate(sessions, 1)],
    }
    about = {"@id": CRATE.name, "@type": "CreativeWork", "conformsTo": {"@id": SPECIFICATION}}
    about |= {"about": {"@id": "./"}}
    terms = {"@id": publisher.license_url, "@type": "CreativeWork", "name": publisher.license}
    files = [_file(path, name) for path, name in zip(paths, names, strict=True)]
    updates = [
        {
            "@id": f"#session{number}",
            "@type": "CreateAction",
            "name": f"updates from {s.sweep + 1} on, on {s.device}",
            "startTime": s.started,
            "instrument": {"@id": f"#gauge-mc-{s.version}"},
            "result": {"@id": "./"},
        }
        for number, s in enumerate(sessions, 1)
    ]
    program = {"@type": "SoftwareApplication", "name": "gauge-mc"}
    programs = [
        {"@id": f"#gauge-mc-{version}", **program, "version": version}
        for version in dict.fromkeys(s.version for s in sessions)
    ]
    graph = [about, root, *people, terms, *files, *updates, *programs]
    crate = {"@context": f"{SPECIFICATION}/context", "@graph": graph}
    return json.dumps(crate, indent=1, ensure_ascii=False) + "\n"


def published_files(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of the files of a published folder, by path."""
    path = folder / CRATE
    try:
        graph = parse_json(read_text(path, MOST_BYTES))["@graph"]
        digests = {str(x["@id"]): str(x["sha256"]) for x in graph if x["@type"] == "File"}
    except (ValueError, TypeError, KeyError) as error:
        raise DamagedError(f"{path} is damaged: {error}; get the publication again.") from error
    if outside := [x for x in digests if Path(x).is_absolute() or ".." in Path(x).parts]:
        raise DamagedError(f"{path} names {outside[0]}, which is outside of the folder.")
    return digests


def citation_text(publisher: Publisher) -> str:
    """Return CITATION.cff for the data (Citation File Format 1.2.0)."""
    authors = "".join(
        f"  - family-names: {_quoted(author.family)}\n"
        + (f"    given-names: {_quoted(author.given)}\n" if author.given else "")
        + (f"    affiliation: {_quoted(publisher.institution)}\n" if number == 0 else "")
        for number, author in enumerate(publisher.authors)
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
    parameters: Parameters, publisher: Publisher, configs: int, count: int, notes: Sequence[str]
) -> str:
    """Return the README of the folder, with the commands that make and check the ensemble."""
    p = parameters
    remarks = "".join(f"\n{note}\n" for note in notes)
    return f"""# {publisher.title}

{describe(p, configs)}
It was made by gauge-mc; `run.toml` states which versions and devices. {count} of the configurations
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
