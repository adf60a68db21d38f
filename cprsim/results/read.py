"""Read a finished results folder back as tables."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from cprsim.errors import ResultError
from cprsim.records import Decision, OnFailure, RecoveryPolicy
from cprsim.results.accuracy_rows import with_accuracy_columns
from cprsim.results.manifest import read_manifest
from cprsim.results.metrics import Spread, spreads, summarise_rows


@dataclass(frozen=True, slots=True)
class Recovered:
    """How one strategy of a result recovered, and whether it was given up."""

    policy: RecoveryPolicy
    gave_up: bool  # stopped early because no replication finished


@dataclass(frozen=True, slots=True)
class CurveUsed:
    """The staleness curve that priced the losses of a result."""

    name: str
    origin: str  # where it is from, in one line
    notes: tuple[str, ...]  # sentences: what to be careful with
    file: str  # its copy in the results folder
    sha256: str  # of that file


@dataclass(frozen=True, slots=True)
class Result:
    """A results folder in memory.

    Columns: docs/metrics.md. `replications`: cprsim.results.rows.replication_rows; `losses`:
    loss_rows; `timeline`: timeline_rows, of the one replication `timeline_replication`;
    `summary`: cprsim.results.metrics.summarise.
    """

    path: Path
    manifest: Mapping[str, Any]
    name: str
    useful_h: float
    n_nodes: int
    timeline_replication: int
    replay: int | None  # the number of the replication that is here alone; None: a whole run
    strategies: tuple[Recovered, ...]
    replications: pd.DataFrame
    losses: pd.DataFrame
    timeline: pd.DataFrame
    summary: pd.DataFrame
    precision_fraction: float | None = None  # of the mean overhead, that was asked for
    curve: CurveUsed | None = None
    log_notes: tuple[str, ...] = ()  # what is replayed of a log, and what was left out of it

    def spreads(self) -> dict[str, dict[str, Spread]]:
        """The summary by strategy and quantity."""
        return spreads(self.summary)

    @property
    def policies(self) -> tuple[RecoveryPolicy, ...]:
        """The recovery policies in the scenario's order."""
        return tuple(strategy.policy for strategy in self.strategies)


def load_result(path: Path | str) -> Result:
    """Read a finished results folder.

    Raises
    ------
    ResultError : no manifest (unfinished, or no result at all), a file that is missing, damaged
        or of another layout
    """
    folder = Path(path)
    return read_folder(folder, read_manifest(folder))


def read_folder(folder: Path, manifest: Mapping[str, Any]) -> Result:
    """`load_result` without the check of the manifest. Raises ResultError."""
    try:
        job = json.loads((folder / "job.json").read_text("utf-8"))
        replications = with_accuracy_columns(_table(folder / "replications.parquet"))
        return Result(
            path=folder,
            manifest=manifest,
            name=str(job["name"]),
            useful_h=float(job["useful_h"]),
            precision_fraction=job["precision_fraction"],
            n_nodes=int(job["n_nodes"]),
            timeline_replication=int(job["timeline_replication"]),
            replay=None if job["replay"] is None else int(job["replay"]),
            strategies=tuple(_strategy_from(entry) for entry in job["strategies"]),
            replications=replications,
            losses=_table(folder / "losses.parquet"),
            timeline=_table(folder / "timeline.parquet"),
            curve=_curve_from(job.get("curve")),
            log_notes=tuple(str(note) for note in job.get("log_notes", ())),
            # as in summary.csv, but exact to the last digit whatever reads numbers from text
            summary=summarise_rows(replications, int(job["n_nodes"])),
        )
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
        raise ResultError(f"{folder} can't be read as a result: {error}") from error


def _curve_from(entry: Mapping[str, Any] | None) -> CurveUsed | None:
    return None if entry is None else CurveUsed(**{**entry, "notes": tuple(entry["notes"])})


def _table(path: Path) -> pd.DataFrame:
    frame: pd.DataFrame = pq.read_table(path).to_pandas()
    return frame


def strategy_entry(policy: RecoveryPolicy, gave_up: bool) -> dict[str, Any]:
    """A strategy as JSON; infinite numbers become null (an interval: nothing is ever saved)."""
    decision = policy.decision
    return {
        "name": policy.name,
        "on_failure": policy.on_failure.value,
        "interval_h": _finite(policy.save_interval_h),
        "interval_rule": policy.interval_rule,
        "gave_up": gave_up,
        "decision": decision
        and {
            name: value if isinstance(value := getattr(decision, name), str) else _finite(value)
            for name in Decision.__dataclass_fields__
        },
    }


def _strategy_from(entry: Mapping[str, Any]) -> Recovered:
    decision = entry["decision"]
    policy = RecoveryPolicy(
        name=entry["name"],
        on_failure=OnFailure(entry["on_failure"]),
        save_interval_h=_number(entry["interval_h"]),
        interval_rule=entry["interval_rule"],
        decision=decision and _decision_from(decision),
    )
    return Recovered(policy, bool(entry["gave_up"]))


def _decision_from(entry: Mapping[str, Any]) -> Decision:
    values = {k: v if isinstance(v, str) else _number(v) for k, v in entry.items()}
    return Decision(**values)  # type: ignore[arg-type] # JSON holds what strategy_entry wrote


def _finite(number: float) -> float | None:
    return None if number == inf else number


def _number(number: float | None) -> float:
    return inf if number is None else float(number)
