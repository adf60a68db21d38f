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

from cprsim.curves import curve_path, other_inputs
from cprsim.errors import ResultError
from cprsim.files import digest_of
from cprsim.recovery.systems import FOLDER
from cprsim.scenario import LoadedScenario, dump_scenario
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
        inputs=input_file_digests(loaded),
        replay=replay,
    )


def input_file_digests(loaded: LoadedScenario) -> dict[str, str]:
    """Digest of each file beside the scenario that decides its numbers: trace and curve, by name.

    With them the files that the curve should have been measured on and was not: a note says so.

    The two may have one name, so that the curve's says what it is.
    """
    curve = curve_path(loaded)
    of_curve = input_digests([] if curve is None else [curve])
    named = {f"curve {name}": of_curve[name] for name in of_curve}
    return _trace_digests(loaded) | named | other_inputs(loaded)


def _trace_digests(loaded: LoadedScenario) -> dict[str, str]:
    """Digest of the failure trace that is replayed, by its name; empty where there is none."""
    return input_digests([] if loaded.trace_path is None else [loaded.trace_path])


def failures_digest(loaded: LoadedScenario) -> str:
    """Digest of what decides which failures replication i meets; equal digests, equal failures."""
    scenario = loaded.scenario
    parts: dict[str, Any] = {
        "seed": scenario.simulation.seed,
        "useful_h": scenario.job.useful_h,
        "cluster": scenario.cluster.model_dump(
            mode="json", include={"trainers", "emb_ps", "others", "repair"}
        ),
        "failures": scenario.failures.model_dump(mode="json", exclude={"file"}),
        "inputs": sorted(_trace_digests(loaded).values()),
    }
    if scenario.cluster.workers:
        parts["workers"] = scenario.cluster.workers
    if scenario.cluster.roles:
        parts["roles"] = scenario.cluster.n_nodes_of_stateful
    if scenario.sync is not None and scenario.sync.servers:
        parts["sync servers"] = scenario.sync.servers
    if scenario.scopes:  # what else a failure is, and whom it strikes besides
        kinds = [[one.name, one.share, one.reach] for one in scenario.scopes]
        parts["scopes"] = [kinds, scenario.cluster.rack]
        own = [one.failures.model_dump(mode="json") for one in scenario.scopes if one.failures]
        if own:
            parts["failures of scopes"] = own
    if scenario.silent is not None:
        parts["silent"] = scenario.silent.mtbf_h
    return digest_of(parts)


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
