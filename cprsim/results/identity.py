"""What makes two results the same: scenario, inputs and source; and how their folder is called."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import cprsim
from cprsim.errors import ResultError
from cprsim.recovery.systems import FOLDER

N_DIGITS = 10  # of the digest in a folder's name


@dataclass(frozen=True, slots=True)
class Identity:
    """Everything that decides the bytes of a result.

    `replay` is the number of the one replication that is drawn alone, None for a whole run.
    """

    name: str
    scenario_yaml: str  # resolved: seed, replications and overrides inside
    inputs: Mapping[str, str]  # name of each input file -> digest
    replay: int | None = None

    @property
    def digest(self) -> str:
        """Hexadecimal digest of all that decides the result."""
        parts = {
            "scenario": self.scenario_yaml,
            "inputs": sorted(self.inputs.values()),
            "replay": self.replay,
            "version": cprsim.__version__,
            "source": source_digest(),
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    @property
    def folder_name(self) -> str:
        """Name of the results folder: the scenario's, made safe for paths, and the digest."""
        suffix = "" if self.replay is None else f"-replay-{self.replay}"
        return f"{safe_name(self.name)}-{self.digest[:N_DIGITS]}{suffix}"


def safe_name(name: str) -> str:
    """The name with everything but letters, digits, dot, dash and underscore made a dash."""
    return re.sub(r"[^\w.-]+", "-", name, flags=re.ASCII).strip("-.")[:60] or "scenario"


def file_digest(path: Path) -> str:
    """SHA-256 of a file's bytes. Raises ResultError where it can't be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ResultError(f"{path} can't be read: {error.strerror}") from error


def input_digests(paths: Iterable[Path]) -> dict[str, str]:
    """Digest of every input file, by the file's name."""
    return {path.name: file_digest(path) for path in paths}


@cache
def source_digest() -> str:
    """Digest of the package's own source files, so that changed code is never mistaken for old.

    Files of recovery systems that the environment names belong to it.
    """
    package = Path(cprsim.__file__).parent
    digest = hashlib.sha256()
    for folder, files in ((package, package.rglob("*.py")), *_own_systems()):
        for path in sorted(files, key=lambda path: path.relative_to(folder).parts):
            digest.update(path.relative_to(folder).as_posix().encode() + b"\0")
            digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()


def _own_systems() -> Iterator[tuple[Path, Iterable[Path]]]:
    folder = os.environ.get(FOLDER)
    if folder:
        yield Path(folder), Path(folder).glob("*.py")
