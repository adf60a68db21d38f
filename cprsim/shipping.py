"""What comes with the program, found by name: scenarios, schema, curves.

Imports next to nothing: shells ask for these names.
"""

from __future__ import annotations

import re
from itertools import takewhile
from pathlib import Path

from cprsim.files import write_new
from cprsim.version import PACKAGE

FOLDER = PACKAGE / "scenario" / "shipped"
CURVES = PACKAGE / "curves" / "shipped"
SCHEMA = "scenario.schema.json"  # which the scenarios name in their first lines, for editors
NAMES_SCHEMA = f"# yaml-language-server: $schema={SCHEMA}"


def shipped_scenarios() -> dict[str, Path]:
    """The files of the scenarios that come with the program, by name, sorted."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.yaml"))}


def file_or_shipped(path: Path) -> Path:
    """A scenario's file; where there is none and the path is a shipped scenario's name, that."""
    if path.is_file():
        return path
    return shipped_scenarios().get(str(path), path)


def put_schema_beside(scenario: Path) -> Path | None:
    """Write the schema that a scenario's first line names beside it; None where one is there.

    The name there is relative, so that the two files hold together wherever they are taken.

    Raises ResultError where it can't be written.
    """
    schema = scenario.with_name(SCHEMA)
    if schema.exists():
        return None
    write_new(schema, (FOLDER / SCHEMA).read_text("utf-8"))
    return schema


def about(path: Path) -> str:
    """What a shipped scenario is: its first comment, up to the end of a sentence or a colon."""
    lines = path.read_text("utf-8").splitlines()[1:]  # the first names the schema
    comment = takewhile(lambda line: line.startswith("#"), lines)
    text = " ".join(line.removeprefix("#").strip() for line in comment)
    return re.split(r"[.:](?:\s|$)", text, maxsplit=1)[0]
