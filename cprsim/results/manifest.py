"""The manifest of a results folder: written last, and the only file that knows times and hosts.

It holds a digest of every other file, and one of itself, so that whatever was damaged is found.
Digests are no signatures: whoever changes a folder on purpose can renew them.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from cprsim.errors import UNUSABLE, ResultError, one_line
from cprsim.files import digest_of, json_text, write_whole
from cprsim.results.identity import Identity, file_digest, source_digest
from cprsim.version import PACKAGE, __version__

MANIFEST = "manifest.json"
FORMAT = 3
DIGEST = "manifest_sha256"  # of all its other entries
LIBRARIES = ("numpy", "scipy", "pandas", "pyarrow", "simpy", "matplotlib", "pydantic")


def write_manifest(
    folder: Path, identity: Identity, about: Mapping[str, Any], started: datetime
) -> None:
    """Describe a folder whose other files are complete; this one appears at once, as a whole."""
    now = datetime.now(UTC)
    manifest = {
        "format": FORMAT,
        "name": identity.name,
        "replay": identity.replay,
        "digest": identity.digest,
        **about,
        "inputs": dict(identity.inputs),
        "cprsim": {"version": __version__, "source": source_digest(), "git": git_state()},
        "python": platform.python_version(),
        "libraries": {name: _installed(name) for name in LIBRARIES},
        "files": _listed(folder),
        "started_at": started.isoformat(timespec="seconds"),
        "finished_at": now.isoformat(timespec="seconds"),
        "took_s": round((now - started).total_seconds(), 3),
        "host": {"name": platform.node(), "platform": platform.platform(), "cores": os.cpu_count()},
    }
    manifest[DIGEST] = _digest(manifest)
    write_whole(folder / MANIFEST, json_text(manifest))


def list_again(folder: Path) -> None:
    """Write the manifest anew for a folder that got further files, and is whole but for that."""
    manifest = read_manifest(folder)
    manifest["files"] = _listed(folder)
    manifest[DIGEST] = _digest(manifest)
    write_whole(folder / MANIFEST, json_text(manifest))


def _listed(folder: Path) -> dict[str, Any]:
    """Every file but the manifest, by its name."""
    return {
        path.name: {"sha256": file_digest(path), "bytes": path.stat().st_size}
        for path in sorted(folder.iterdir())
        if path.name != MANIFEST
    }


def results_in(folder: Path) -> list[Path]:
    """The finished results folders within one, sorted."""
    return [path.parent for path in sorted(folder.glob(f"*/{MANIFEST}"))]


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a finished folder whose files are what it says."""
    if not folder.is_dir():
        raise ResultError(f"{folder} is no folder")
    try:
        manifest = _whole(json.loads((folder / MANIFEST).read_bytes()), folder)
    except FileNotFoundError:
        inside = ", ".join(str(one) for one in results_in(folder)[:3])
        instead = f"; name one in it, such as {inside}" if inside else ""
        message = f"{folder} is no finished result: it has no {MANIFEST}{instead}"
        raise ResultError(message) from None
    except OSError as error:
        raise ResultError(f"{folder / MANIFEST} can't be read: {error.strerror or error}") from None
    except UNUSABLE as error:
        raise ResultError(f"{folder / MANIFEST} is damaged: it is no manifest") from error
    if not manifest["files"]:
        raise ResultError(f"{folder / MANIFEST} is damaged: it lists no file")
    for name, entry in manifest["files"].items():
        if Path(name).name != name:
            raise ResultError(
                f"{folder / MANIFEST} is damaged: {one_line(name)} is no file of this folder"
            )
        if not (folder / name).is_file():
            raise ResultError(f"{folder} is damaged: {one_line(name)} is missing")
        if file_digest(folder / name) != entry["sha256"]:
            raise ResultError(f"{folder} is damaged: {one_line(name)} differs from its digest")
    return manifest


def _whole(manifest: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The manifest, if its format is known and its digest holds. Raises ResultError."""
    found = manifest.get("format")
    if found != FORMAT:
        shown = "no format" if found is None else f"format {one_line(str(found))}"
        raise ResultError(
            f"{folder / MANIFEST} has {shown}; this cprsim reads {FORMAT}: it is damaged, or comes "
            "from another version"
        )
    if manifest.get(DIGEST) != _digest(manifest):
        raise ResultError(
            f"{folder / MANIFEST} is damaged or was changed by hand: it differs from its digest"
        )
    return manifest


def _digest(manifest: Mapping[str, Any]) -> str:
    """Digest of a manifest's entries but the digest itself."""
    return digest_of({key: value for key, value in manifest.items() if key != DIGEST})


def damage(folder: Path) -> str | None:
    """What is wrong with a results folder, None where it is sound."""
    try:
        read_manifest(folder)
    except ResultError as error:
        return str(error)
    return None


@cache  # the code that runs is that of its first import
def git_state() -> dict[str, Any] | None:
    """Commit of the checkout that cprsim runs from and whether it has uncommitted changes."""
    try:
        _git(PACKAGE, "ls-files", "--error-unmatch", "__init__.py")
        commit = _git(PACKAGE, "rev-parse", "HEAD")
        changes = _git(PACKAGE, "status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.SubprocessError):
        return None
    return {"commit": commit, "dirty": bool(changes)}


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    return done.stdout.strip()


@cache
def _installed(library: str) -> str | None:
    try:
        return version(library)
    except PackageNotFoundError:
        return None
