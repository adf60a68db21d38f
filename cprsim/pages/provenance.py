"""Provenance of a result, from its manifest, without times and hosts, which do not affect it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from cprsim.errors import ResultError
from cprsim.pages.document import ListingBlock, Section, Table


def origin(
    manifest: Mapping[str, Any],
    folder: Path,
    note: str = "as it was read",
    scenarios: Iterable[str] = ("scenario.yaml",),
) -> list[Section]:
    """The last sections of every document of a results folder.

    Raises ResultError: a file can't be read.
    """
    listings = [_listing(folder / name, note) for name in scenarios]
    files = manifest.get("files") or {}
    facts = Table("What made them", ["", "value"], _facts(manifest, folder), ["value"])
    table = Table(
        "Files of the results folder",
        ["file", "bytes", "SHA-256"],
        [[name, f"{entry['bytes']:,}", str(entry["sha256"])] for name, entry in files.items()],
        ["SHA-256"],
    )
    return [
        Section("The scenario" if len(listings) == 1 else "The scenarios", listings),
        Section("Where these numbers come from", [facts, table]),
    ]


def _facts(manifest: Mapping[str, Any], folder: Path) -> list[tuple[str, str]]:
    program, git = manifest.get("cprsim") or {}, (manifest.get("cprsim") or {}).get("git")
    dirty = ", with uncommitted changes" if git and git.get("dirty") else ""
    entries = {
        "command": shlex.join(map(str, manifest.get("command") or [])),
        "results folder": folder.resolve().name,
        "digest of code and inputs": manifest.get("digest"),
        "effort": manifest.get("effort"),
        "seed": manifest.get("seed"),
        "replications": _listed(manifest.get("replications") or {}),
        "cprsim": program.get("version"),
        "digest of its source": program.get("source"),
        "commit": f"{git.get('commit')}{dirty}" if git else "not run from a checkout",
        "Python": manifest.get("python"),
        "libraries": _listed(manifest.get("libraries") or {}),
        **{f"input {name}": digest for name, digest in (manifest.get("inputs") or {}).items()},
    }
    return [(term, str(value)) for term, value in entries.items() if value not in (None, "")]


def _listed(entries: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in entries.items())


def _listing(path: Path, note: str) -> ListingBlock:
    try:
        return ListingBlock(f"{path.name}, {note}", path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ResultError(f"{path} can't be read: {error}") from error
