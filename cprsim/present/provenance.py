"""What made a result: from its manifest, without times and hosts, which decide nothing."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from cprsim.errors import ResultError
from cprsim.present.document import (
    Block,
    Column,
    Facts,
    ListingBlock,
    Section,
    Table,
    row_columns,
)
from cprsim.results.words import count


def origin(
    manifest: Mapping[str, Any],
    folder: Path,
    what: str = "as it was read",
    scenarios: Iterable[str] = ("scenario.yaml",),
) -> list[Section]:
    """The last sections of every document of a results folder.

    Raises ResultError: a file can't be read.
    """
    listings = [_file_listing(folder / name, what) for name in scenarios]
    return [
        Section("The scenario" if len(listings) == 1 else "The scenarios", listings),
        Section("Where these numbers come from", _provenance(manifest, folder)),
    ]


def _provenance(manifest: Mapping[str, Any], folder: Path) -> list[Block]:
    """Command, seed, versions and digests of a result, and the files of its folder."""
    program = manifest.get("cprsim") or {}
    libraries = manifest.get("libraries") or {}
    entries = {
        "command": shlex.join(map(str, manifest.get("command") or [])),
        "results folder": folder.resolve().name,
        "digest of all that decides the result": manifest.get("digest"),
        "effort": manifest.get("effort"),
        "seed": manifest.get("seed"),
        "replications": _replications(manifest.get("replications") or {}),
        "cprsim": program.get("version"),
        "digest of its source": program.get("source"),
        "commit": _commit(program.get("git")),
        "Python": manifest.get("python"),
        "libraries": ", ".join(f"{name} {version}" for name, version in libraries.items()),
        **{f"input {name}": digest for name, digest in (manifest.get("inputs") or {}).items()},
    }
    shown = [(term, str(what)) for term, what in entries.items() if what not in (None, "")]
    return [Facts(shown), _files(manifest.get("files") or {})]


def _replications(by_strategy: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {n:,}" for name, n in by_strategy.items())


def _commit(git: Mapping[str, Any] | None) -> str:
    if not git:
        return "not run from a checkout"
    return f"{git.get('commit')}{', with uncommitted changes' if git.get('dirty') else ''}"


def _files(files: Mapping[str, Any]) -> Table:
    return Table(
        caption=f"The {count(len(files), 'file')} of the results folder, by SHA-256",
        columns=[*row_columns("file", "bytes"), Column("SHA-256", is_number=False)],
        rows=[[name, f"{entry['bytes']:,}", str(entry["sha256"])] for name, entry in files.items()],
    )


def _file_listing(path: Path, what: str) -> ListingBlock:
    """A text file of the results folder as it is. Raises ResultError where it can't be read."""
    try:
        return ListingBlock(f"{path.name}, {what}", path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ResultError(f"{path} can't be read: {error}") from error
