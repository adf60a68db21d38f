"""What made a result: from its manifest, without times and hosts, which decide nothing."""

from __future__ import annotations

import shlex
from typing import Any

from cprsim.page.content import Block, Column, Facts, Table
from cprsim.results import Result
from cprsim.results.words import NO_NUMBER, count


def provenance(result: Result) -> list[Block]:
    """Command, seed, versions and digests of a result, and the files of its folder."""
    manifest = result.manifest
    program = manifest.get("cprsim") or {}
    entries = [
        ("command", shlex.join(map(str, manifest.get("command") or [])) or NO_NUMBER),
        ("results folder", result.path.resolve().name),
        ("digest of all that decides the result", str(manifest.get("digest", NO_NUMBER))),
        ("seed", str(manifest.get("seed", NO_NUMBER))),
        ("replications", _replications(manifest.get("replications") or {})),
        ("cprsim", str(program.get("version", NO_NUMBER))),
        ("digest of its source", str(program.get("source", NO_NUMBER))),
        ("commit", _commit(program.get("git"))),
        ("Python", str(manifest.get("python", NO_NUMBER))),
        ("libraries", ", ".join(f"{k} {v}" for k, v in (manifest.get("libraries") or {}).items())),
        *(
            (f"input {name}", str(digest))
            for name, digest in (manifest.get("inputs") or {}).items()
        ),
    ]
    return [Facts(entries), _files(manifest.get("files") or {})]


def _replications(by_strategy: dict[str, int]) -> str:
    return ", ".join(f"{name} {n:,}" for name, n in by_strategy.items()) or NO_NUMBER


def _commit(git: dict[str, Any] | None) -> str:
    if not git:
        return "not run from a checkout"
    return f"{git.get('commit')}{', with uncommitted changes' if git.get('dirty') else ''}"


def _files(files: dict[str, Any]) -> Table:
    return Table(
        caption=f"The {count(len(files), 'file')} of the results folder, by SHA-256",
        columns=[
            Column("file", is_number=False),
            Column("bytes"),
            Column("SHA-256", is_number=False),
        ],
        rows=[[name, f"{entry['bytes']:,}", str(entry["sha256"])] for name, entry in files.items()],
    )
