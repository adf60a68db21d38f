"""Identity of a result: a digest of scenario, inputs and source; and the inputs, by key."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from cprsim.accuracy.curve_file import read_curve
from cprsim.errors import ResultError
from cprsim.files import digest_of, sha256_of
from cprsim.recovery.systems import SYSTEMS_PATH
from cprsim.scenario.curves import curve_path, other_files
from cprsim.scenario.reading import LoadedScenario
from cprsim.scenario.schema import dump_scenario
from cprsim.version import PACKAGE, __version__

N_DIGITS = 10  # of the digest in a folder's name


@dataclass(frozen=True, slots=True)
class Identity:
    """All inputs that decide the bytes of a result."""

    name: str
    scenario_yaml: str  # resolved: seed, replications and overrides inside
    inputs: Mapping[str, str]  # name of each input file -> digest
    replay: int | None = None  # the replication that is drawn alone; None: a whole run

    @property
    def digest(self) -> str:
        """Hexadecimal digest of scenario, inputs, source and replayed replication."""
        return digest_by_this_source(
            scenario=self.scenario_yaml, inputs=sorted(self.inputs.values()), replay=self.replay
        )

    @property
    def folder_name(self) -> str:
        """Name of the results folder: the scenario's, made safe for paths, and the digest."""
        suffix = "" if self.replay is None else f"-replay-{self.replay}"
        return f"{safe_name(self.name)}-{self.digest[:N_DIGITS]}{suffix}"


def identity_of(loaded: LoadedScenario, kind: str = "", replay: int | None = None) -> Identity:
    """Identity of the result that a command makes of a scenario."""
    name, of_curve = loaded.scenario.name, {}
    if (curve := curve_path(loaded)) is not None:
        others = other_files(read_curve(curve), loaded)
        of_curve = {f"curve {curve.name}": file_digest(curve), **others}
    return Identity(
        f"{name}-{kind}" if kind else name,
        dump_scenario(loaded.scenario),
        trace_digest(loaded) | of_curve,
        replay,
    )


def safe_name(name: str) -> str:
    """The name with everything but letters, digits, dot, dash and underscore made a dash."""
    return re.sub(r"[^\w.-]+", "-", name, flags=re.ASCII).strip("-.")[:60] or "scenario"


# --------------------------------------------------------------------------- digests


def digest_by_this_source(**parts: Any) -> str:
    """Digest of the inputs of some numbers, and of the program that computes them."""
    return digest_of({**parts, "version": __version__, "source": source_digest()})


def trace_digest(loaded: LoadedScenario) -> dict[str, str]:
    """Digest of the log that is replayed and of its table of nodes, by their names."""
    nodes = {} if (path := loaded.nodes_path) is None else {f"nodes {path.name}": file_digest(path)}
    return nodes if (path := loaded.trace_path) is None else {path.name: file_digest(path)} | nodes


def failures_digest(loaded: LoadedScenario) -> str:
    """Digest of the inputs of the failures; equal digests mean equal failures per replication."""
    scenario, of_scope = loaded.scenario, {"name", "share", "reach", "failures"}
    return digest_of(
        {
            "seed": scenario.simulation.seed,
            "useful_h": scenario.job.useful_h,
            "nodes": list(scenario.n_nodes_of.items()),
            "repair": scenario.cluster.model_dump(mode="json", include={"repair"}),
            "failures": scenario.failures.model_dump(mode="json", exclude={"file"}),
            "inputs": sorted(trace_digest(loaded).values()),
            # what a failure is, and whom else it strikes
            "scopes": [
                scope.model_dump(mode="json", include=of_scope) for scope in scenario.scopes
            ],
            "rack": scenario.scopes and scenario.cluster.rack,
            "silent": scenario.silent and scenario.silent.mtbf_h,
        }
    )


def file_digest(path: Path) -> str:
    """SHA-256 of a file's bytes. Raises ResultError where it can't be read."""
    try:
        return sha256_of(path)
    except OSError as error:
        raise ResultError(f"{path} can't be read: {error.strerror}") from error


@cache
def source_digest() -> str:
    """Digest of the package's own source files, so that changed code is never mistaken for old."""
    digest, own_systems = hashlib.sha256(), os.environ.get(SYSTEMS_PATH)
    folders = {PACKAGE: "**/*.py"} | ({Path(own_systems): "*.py"} if own_systems else {})
    for folder, names in folders.items():
        files = folder.glob(names)
        for path in sorted(files, key=lambda path: path.relative_to(folder).parts):
            digest.update(path.relative_to(folder).as_posix().encode() + b"\0")
            digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()


# --------------------------------------------------------------------------- what went into one


def inputs_of(scenario: Mapping[str, Any], manifest: Mapping[str, Any]) -> dict[str, str]:
    """Every input of a result: the scenario's keys, seed, replications, files, versions."""
    program = manifest.get("cprsim") or {}
    git = program.get("git") or {}
    more = {
        "seed": manifest.get("seed"),
        "replication shown alone": manifest.get("replay"),
        "replications": manifest.get("replications"),
        "effort": manifest.get("effort"),
        "clicks": manifest.get("clicks"),
        "input": {name: of[:N_DIGITS] for name, of in (manifest.get("inputs") or {}).items()},
        "cprsim": program.get("version"),
        "source of cprsim": (program.get("source") or "")[:N_DIGITS] or None,
        "commit": (git.get("commit") or "")[:N_DIGITS] or None,
        "uncommitted changes": git.get("dirty"),
        "Python": manifest.get("python"),
        "library": manifest.get("libraries"),
    }
    return dict([*flat(scenario), *flat(more)])


def flat(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Dotted keys and values as texts; entries of a list by their name where they have one."""
    if isinstance(value, list) and value and all(_name(entry) for entry in value):
        value = {
            _name(entry): {name: inner for name, inner in entry.items() if name != "name"}
            for entry in value
        }
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from flat(inner, f"{key}.{name}" if key else str(name))
    elif value is not None:
        yield key, _text(value)


def _name(entry: Any) -> Any:
    return entry.get("name") if isinstance(entry, Mapping) else None


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(_text, value)) if isinstance(value, list) else str(value)
