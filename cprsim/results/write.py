"""Write a results folder: tables, figures, manifest; find it again when it is there already."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from cprsim.foreign import spreadsheet_cell
from cprsim.records import EventLog
from cprsim.results.accuracy_rows import why_unpriced
from cprsim.results.identity import Identity, file_digest
from cprsim.results.manifest import damage, write_manifest
from cprsim.results.metrics import summarise_rows
from cprsim.results.price import Price
from cprsim.results.publish import publishing
from cprsim.results.read import CurveUsed, Result, load_result, read_folder, strategy_entry
from cprsim.results.rows import loss_rows, replication_rows, timeline_rows

if TYPE_CHECKING:
    from cprsim.pipeline import Outcome


@dataclass(frozen=True, slots=True)
class Logbook:
    """The event logs of one replication, one per strategy."""

    replication: int
    logs: Mapping[str, EventLog]


def write_result(
    root: Path,
    identity: Identity,
    outcome: Outcome,
    logbook: Logbook,
    *,
    about: Mapping[str, Any],
    started: datetime,
    draw: Callable[[Result], object] | None = None,
    curve_path: Path | None = None,
    log_notes: Sequence[str] = (),
    warnings: Sequence[str] = (),
    price: Price | None = None,
) -> Result:
    """Write everything about a run into its folder under `root`, whole or not at all.

    Parameters
    ----------
    root : folder of the results folders; made where it is missing
    identity : what decides the result, and with it the folder's name
    outcome : what was simulated
    logbook : the replication that the timeline shows
    about : what the manifest says of the run: command, seed, replications, failures_digest
    started : when the run began, for the manifest
    log_notes : what is replayed of a log of failures, and what its reader left out or assumed
    curve_path : the file of the outcome's staleness curve, of which the folder keeps a copy
    warnings : of `results.warnings`
    price : of a node-hour
    draw : puts the figures into ``result.path``; called before the folder is in place

    Returns
    -------
    The result as read back from its folder.

    Raises
    ------
    ResultError : it can't be written; nothing is left behind
    """
    final = root / identity.folder_name
    with publishing(final, damage) as folder:
        (folder / "scenario.yaml").write_text(identity.scenario_yaml, "utf-8")
        curve = _keep_curve(folder, outcome, curve_path)
        _write_tables(folder, identity, outcome, logbook, curve, log_notes, warnings, price)
        if draw is not None:
            draw(read_folder(folder, {}))
        write_manifest(folder, identity, about, started)
    return load_result(final)


def _keep_curve(folder: Path, outcome: Outcome, path: Path | None) -> CurveUsed | None:
    """Copy the file of the curve into the folder, and say which it is."""
    curve = outcome.curve
    if curve is None or path is None:
        return None
    copy = folder / f"curve{path.suffix.lower()}"
    shutil.copyfile(path, copy)
    unpriced = {
        one.policy.name: why
        for one in outcome.strategies
        if (why := why_unpriced(curve, one.policy))
    }
    digest = file_digest(copy)
    return CurveUsed(curve.name, curve.origin, curve.notes, copy.name, digest, unpriced)


def _write_tables(
    folder: Path,
    identity: Identity,
    outcome: Outcome,
    logbook: Logbook,
    curve: CurveUsed | None,
    log_notes: Sequence[str],
    warnings: Sequence[str],
    price: Price | None,
) -> None:
    job = {
        "name": identity.name,
        "useful_h": outcome.useful_h,
        "precision_fraction": outcome.precision_fraction,
        "n_nodes": outcome.cluster.n_nodes,
        "timeline_replication": logbook.replication,
        "replay": identity.replay,
        "curve": curve and asdict(curve),
        "log_notes": list(log_notes),
        "warnings": list(warnings),
        **({} if price is None else {"price": asdict(price)}),
        "strategies": [strategy_entry(one.policy, one.gave_up) for one in outcome.strategies],
    }
    text = json.dumps(job, indent=2, ensure_ascii=False, allow_nan=False)
    (folder / "job.json").write_text(text + "\n", "utf-8")
    rows = replication_rows(outcome)
    events = timeline_rows(logbook.logs, outcome.cluster)
    write_parquet(rows, folder / "replications.parquet")
    write_parquet(loss_rows(outcome), folder / "losses.parquet")
    write_parquet(events, folder / "timeline.parquet")
    summary = summarise_rows(rows, outcome.cluster.n_nodes)
    write_csv(summary, folder / "summary.csv")
    if identity.replay is not None:
        write_csv(events, folder / "events.csv")


def write_parquet(frame: pd.DataFrame, path: Path) -> None:
    """Without pandas' own metadata: the bytes depend on the columns and the library alone."""
    table = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
    pq.write_table(table, path, compression="zstd")


def write_csv(frame: pd.DataFrame, path: Path) -> None:
    """As text that no spreadsheet takes for formulas: see `cprsim.foreign.spreadsheet_cell`."""
    words = frame.select_dtypes(exclude=["number", "bool"])
    safe = frame.assign(**{str(name): words[name].map(spreadsheet_cell) for name in words})
    safe.columns = [spreadsheet_cell(name) for name in safe.columns]
    safe.to_csv(path, index=False, lineterminator="\n")
