"""The manifest of a results folder: written last, and the only file that knows times and hosts."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Protocol

import cprsim
from cprsim.errors import ResultError
from cprsim.results.identity import file_digest, source_digest

MANIFEST = "manifest.json"
LIBRARIES = ("numpy", "scipy", "pandas", "pyarrow", "simpy", "matplotlib", "pydantic", "pint")


class Identified(Protocol):
    """What decides a result, and how it is called."""

    @property
    def name(self) -> str: ...

    @property
    def replay(self) -> int | None: ...

    @property
    def inputs(self) -> Mapping[str, str]: ...

    @property
    def digest(self) -> str: ...


def write_manifest(
    folder: Path, identity: Identified, about: Mapping[str, Any], started: datetime
) -> None:
    """Describe a folder whose other files are complete; this one appears at once, as a whole.

    Parameters
    ----------
    folder : holds every other file of the result
    identity : what decides the result
    about : what else to say: command, seed, replications, failures_digest, ...
    started : when the run began
    """
    now = datetime.now(UTC)
    manifest = {
        "format": 1,
        "name": identity.name,
        "replay": identity.replay,
        "digest": identity.digest,
        **about,
        "inputs": dict(identity.inputs),
        "cprsim": {"version": cprsim.__version__, "source": source_digest(), "git": git_state()},
        "python": platform.python_version(),
        "libraries": {name: _installed(name) for name in LIBRARIES},
        "files": {
            path.name: {"sha256": file_digest(path), "bytes": path.stat().st_size}
            for path in sorted(folder.iterdir())
        },
        "started_at": started.isoformat(timespec="seconds"),
        "finished_at": now.isoformat(timespec="seconds"),
        "took_s": round((now - started).total_seconds(), 3),
        "host": {"name": platform.node(), "platform": platform.platform(), "cores": os.cpu_count()},
    }
    unfinished = folder / f"{MANIFEST}.unfinished"
    unfinished.write_text(json.dumps(manifest, indent=2, ensure_ascii=False) + "\n", "utf-8")
    unfinished.rename(folder / MANIFEST)


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a finished folder whose files are what it says.

    Raises
    ------
    ResultError : no folder, no manifest, or a file that is missing or differs from its digest
    """
    if not folder.is_dir():
        raise ResultError(f"{folder} is no folder")
    try:
        text = (folder / MANIFEST).read_text("utf-8")
    except FileNotFoundError:
        raise ResultError(f"{folder} is no finished result: it has no {MANIFEST}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ResultError(f"{folder / MANIFEST} can't be read: {error}") from error
    try:
        manifest = json.loads(text)
        files = {str(name): str(entry["sha256"]) for name, entry in manifest["files"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ResultError(f"{folder / MANIFEST} is damaged: it is no manifest") from error
    for name, digest in files.items():
        if not (folder / name).is_file():
            raise ResultError(f"{folder} is damaged: {name} is missing")
        if file_digest(folder / name) != digest:
            raise ResultError(f"{folder} is damaged: {name} differs from its digest")
    return dict(manifest)


def damage(folder: Path) -> str | None:
    """What is wrong with a results folder, None where it is sound."""
    try:
        read_manifest(folder)
    except ResultError as error:
        return str(error)
    return None


def git_state() -> dict[str, Any] | None:
    """Commit of the checkout that cprsim runs from and whether it has uncommitted changes.

    None where cprsim is no tracked part of a checkout, or git is not there.
    """
    package = Path(cprsim.__file__).parent
    try:
        _git(package, "ls-files", "--error-unmatch", "__init__.py")
        commit = _git(package, "rev-parse", "HEAD")
        changes = _git(package, "status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.SubprocessError):
        return None
    return {"commit": commit, "dirty": bool(changes)}


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    return done.stdout.strip()


def _installed(library: str) -> str | None:
    try:
        return version(library)
    except PackageNotFoundError:
        return None
