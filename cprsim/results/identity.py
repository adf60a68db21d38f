"""What makes two results the same: scenario, inputs and source; and how their folder is called."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from cprsim.curves.choosing import curve_path, other_inputs
from cprsim.errors import ResultError
from cprsim.files import digest_of
from cprsim.recovery.systems import FOLDER
from cprsim.scenario.reading import LoadedScenario
from cprsim.scenario.schema import dump_scenario
from cprsim.version import PACKAGE, __version__

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
            "version": __version__,
            "source": source_digest(),
        }
        return digest_of(parts)

    @property
    def folder_name(self) -> str:
        """Name of the results folder: the scenario's, made safe for paths, and the digest."""
        suffix = "" if self.replay is None else f"-replay-{self.replay}"
        return f"{safe_name(self.name)}-{self.digest[:N_DIGITS]}{suffix}"


def identity_of(loaded: LoadedScenario, kind: str = "", replay: int | None = None) -> Identity:
    """What decides the result that a command makes of a scenario."""
    return Identity(
        name=f"{loaded.scenario.name}-{kind}" if kind else loaded.scenario.name,
        scenario_yaml=dump_scenario(loaded.scenario),
        inputs=_inputs(loaded),
        replay=replay,
    )


def _inputs(loaded: LoadedScenario) -> dict[str, str]:
    """Digest of each file beside the scenario that decides its numbers, by name.

    They are trace and curve, and the files that a curve should have been measured on and was not.
    """
    curve = curve_path(loaded)
    of_curve = {} if curve is None else {f"curve {curve.name}": file_digest(curve)}
    return _trace(loaded) | of_curve | other_inputs(loaded)


def _trace(loaded: LoadedScenario) -> dict[str, str]:
    path = loaded.trace_path
    return {} if path is None else {path.name: file_digest(path)}


def failures_digest(loaded: LoadedScenario) -> str:
    """Digest of what decides which failures replication i meets; equal digests, equal failures."""
    scenario, cluster, scopes = loaded.scenario, loaded.scenario.cluster, loaded.scenario.scopes
    parts: dict[str, Any] = {
        "seed": scenario.simulation.seed,
        "useful_h": scenario.job.useful_h,
        "cluster": cluster.model_dump(
            mode="json", include={"trainers", "emb_ps", "others", "repair"}
        ),
        "failures": scenario.failures.model_dump(mode="json", exclude={"file"}),
        "inputs": sorted(_trace(loaded).values()),
    }
    kinds = [[one.name, one.share, one.reach] for one in scopes]
    some: dict[str, Any] = {
        "workers": cluster.workers,
        "roles": cluster.roles and cluster.n_nodes_of_stateful,
        "sync servers": scenario.sync and scenario.sync.servers,
        "scopes": kinds and [kinds, cluster.rack],  # what a failure is, and whom else it strikes
        "failures of scopes": [
            one.failures.model_dump(mode="json") for one in scopes if one.failures
        ],
        "silent": scenario.silent and scenario.silent.mtbf_h,
    }
    return digest_of(parts | {name: one for name, one in some.items() if one})


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


@cache
def source_digest() -> str:
    """Digest of the package's own source files, so that changed code is never mistaken for old."""
    digest = hashlib.sha256()
    for folder, files in ((PACKAGE, PACKAGE.rglob("*.py")), *_own_systems()):
        for path in sorted(files, key=lambda path: path.relative_to(folder).parts):
            digest.update(path.relative_to(folder).as_posix().encode() + b"\0")
            digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()


def _own_systems() -> Iterator[tuple[Path, Iterable[Path]]]:
    folder = os.environ.get(FOLDER)
    if folder:
        yield Path(folder), Path(folder).glob("*.py")
