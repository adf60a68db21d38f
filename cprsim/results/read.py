"""Read a finished results folder back as tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from cprsim.errors import ResultError
from cprsim.foreign import UNUSABLE, one_line, read_json
from cprsim.records import RecoveryPolicy
from cprsim.results.accuracy_rows import with_accuracy_columns
from cprsim.results.manifest import read_manifest
from cprsim.results.metrics import Spread, parts_among, spreads, summarise_rows
from cprsim.results.plain import plain_policy, policy_from
from cprsim.results.price import Price


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
    unpriced: Mapping[str, str] = field(default_factory=dict)  # why not, by strategy


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
    warnings: tuple[str, ...] = ()  # of `results.warnings`
    price: Price | None = None  # of a node-hour, where the scenario says it

    def spreads(self) -> dict[str, dict[str, Spread]]:
        """The summary by strategy and quantity."""
        return spreads(self.summary)

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of overhead that were told apart, in the order of tables."""
        return parts_among(self.summary["quantity"])

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
        job = read_json(folder / "job.json")
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
            strategies=tuple(strategy_from(entry) for entry in job["strategies"]),
            replications=replications,
            losses=_table(folder / "losses.parquet"),
            timeline=_table(folder / "timeline.parquet"),
            curve=_curve_from(job.get("curve")),
            log_notes=tuple(str(note) for note in job.get("log_notes", ())),
            warnings=tuple(job.get("warnings", ())),
            price=Price(**job["price"]) if job.get("price") else None,
            # as in summary.csv, but exact to the last digit whatever reads numbers from text
            summary=summarise_rows(replications, int(job["n_nodes"])),
        )
    except (OSError, pa.ArrowException, *UNUSABLE) as error:
        told = one_line(str(error), 200)
        raise ResultError(f"{folder} can't be read as a result: {told}") from error


def _curve_from(entry: Mapping[str, Any] | None) -> CurveUsed | None:
    return None if entry is None else CurveUsed(**{**entry, "notes": tuple(entry["notes"])})


def _table(path: Path) -> pd.DataFrame:
    frame: pd.DataFrame = pq.read_table(path).to_pandas()
    return frame


def strategy_entry(policy: RecoveryPolicy, gave_up: bool) -> dict[str, Any]:
    """A strategy as JSON."""
    return {**plain_policy(policy), "gave_up": gave_up}


def strategy_from(entry: Mapping[str, Any]) -> Recovered:
    """The strategy that `strategy_entry` wrote. Raises as `policy_from` does."""
    return Recovered(policy_from(entry), bool(entry["gave_up"]))
