"""The results folder of a run: its tables and figures, and the notes needed to read them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil, isnan
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from cprsim.errors import BudgetError
from cprsim.files import NOT_STORED, OMITTED
from cprsim.files.units import SIZE
from cprsim.job.intervals import ROUNDING, WORTH_NO_SAVES, n_saves_due
from cprsim.job.losses import strategy_key
from cprsim.job.policy import Policy, WhenBusy
from cprsim.job.records import EventLog
from cprsim.recovery.systems import SYSTEMS
from cprsim.results.folder import (
    ResultTarget,
    new_folder,
    read_manifest,
    read_record,
    write_csv,
    write_parquet,
    write_record,
)
from cprsim.results.identity import failures_digest, file_digest
from cprsim.results.limit import HeldLimit
from cprsim.results.metrics import (
    FINISHED,
    OVERHEAD,
    Estimates,
    frame_of,
    loss_rows,
    replication_rows,
    summarise_rows,
    timeline_rows,
    why_unpriced,
)
from cprsim.results.money import Bills, JobPrices, bills_of, prices_in, uses_of
from cprsim.results.pipeline import Outcome, replay
from cprsim.results.unknown import Assumption, SpareNeed
from cprsim.results.words import hours
from cprsim.scenario.assemble import Experiment
from cprsim.scenario.cluster import ClusterSection
from cprsim.scenario.curves import curve_path
from cprsim.scenario.reading import LoadedScenario

JOB_FILE = "job.json"
UNLIMITED = "it leaves shards stale, and no confirmed limit allows it (`target_pls`, or `accuracy`)"
PRICED_ALONE = "it loses accuracy, and no limit of `accuracy` allows it"
TABLES = {name: f"{name}.parquet" for name in ("replications", "losses", "timeline")}


@dataclass(frozen=True, slots=True)
class CurveUsed:
    """The staleness curve that priced the losses of a result."""

    name: str
    origin: str  # where it is from, in one line
    notes: tuple[str, ...]  # sentences: what to be careful with
    file: str  # its copy in the results folder
    sha256: str  # of that file
    unpriced: Mapping[str, str] = field(default_factory=dict)  # why not, by strategy


@dataclass(frozen=True, kw_only=True)
class Result:
    """A results folder in memory; `job.json` holds the fields that are no tables.

    Columns: docs/concepts.md. `replications`: cprsim.results.metrics.replication_rows; `losses`:
    loss_rows; `timeline`: timeline_rows, of the one replication `timeline_replication`.
    """

    name: str
    useful_h: float
    precision_fraction: float | None = None  # of the mean overhead, that was asked for
    n_nodes: int
    timeline_replication: int
    replay: int | None  # the number of the replication that is here alone; None: a whole run
    curve: CurveUsed | None = None
    log_notes: tuple[str, ...] = ()  # what is replayed of a log, and what was left out of it
    warnings: tuple[str, ...] = ()  # of `warnings_of`
    # the assumed input that moves the choice most
    assumption: Assumption | None = field(default=None, metadata=OMITTED)
    spares: tuple[SpareNeed, ...] = ()  # where waits for a spare decide
    # sentences: memory, bandwidth and retained saves of the cheapest; if none, the saves of each
    resources: str = field(default="", metadata={"alias": "takes"})
    limits: Mapping[str, tuple[HeldLimit, ...]] = field(default_factory=dict)  # by strategy
    policies: tuple[Policy, ...]  # in the scenario's order
    path: Path = field(metadata=NOT_STORED)
    manifest: Mapping[str, Any] = field(metadata=NOT_STORED)
    replications: pd.DataFrame = field(metadata=NOT_STORED)
    losses: pd.DataFrame = field(metadata=NOT_STORED)
    timeline: pd.DataFrame = field(metadata=NOT_STORED)
    __pydantic_config__: ClassVar = {"arbitrary_types_allowed": True}

    @cached_property
    def summary(self) -> Estimates:
        """As in summary.csv, but exact to the last digit."""
        return summarise_rows(self.replications, self.n_nodes)

    @cached_property
    def prices(self) -> JobPrices | None:
        """The prices of the scenario in its folder."""
        return prices_in(self.path)

    @cached_property
    def bills(self) -> Bills:
        """Bills of the strategies under which all jobs finish, at the prices of the scenario."""
        return bills_of(self.prices, uses_of(self.policies, self.summary, self.useful_h))

    @property
    def cheapest(self) -> Policy | None:
        """See `cheapest_of`."""
        return cheapest_of(self.policies, self.summary, self.useful_h, self.limits)


Limits = Mapping[str, Sequence[HeldLimit]]  # by strategy


def cheapest_of(
    policies: Sequence[Policy], summary: Estimates, useful_h: float, limits: Limits
) -> Policy | None:
    """The policy of least overhead among those under which all jobs finish; None without one.

    A policy without saves has to be better by `WORTH_NO_SAVES`: few replications contain the rare
    failures that make it expensive. One that is not eligible is taken only where none is.
    """

    def cost(policy: Policy) -> float:
        overhead = summary[policy.name][OVERHEAD].mean
        return overhead + (WORTH_NO_SAVES if policy.risks_all(useful_h) else 0.0)

    finishing = [policy for policy in policies if summary[policy.name][FINISHED].mean == 1]
    eligible = [policy for policy in finishing if not why_not(policy, summary, limits)]
    return min(eligible or finishing, key=cost, default=None)


def why_not(policy: Policy, summary: Estimates, limits: Limits) -> str:
    """Why a loss of accuracy forbids a policy, in words; empty if it has none, or keeps a limit."""
    of_policy = limits.get(policy.name, ())
    if over := ", ".join(held.cell for held in of_policy if held.is_over):
        return f"it exceeds its limit: {over}"
    if policy.accuracy_model is not None and isnan(summary[policy.name]["auc_loss"].mean):
        return SYSTEMS[policy.accuracy_model].not_counted
    if of_policy or strategy_key(policy) is None:
        return ""
    return UNLIMITED if policy.leaves_stale else PRICED_ALONE


def write_result(
    target: ResultTarget,
    outcome: Outcome,
    logs: Mapping[str, EventLog],
    replication: int,
    draw: Callable[[Result], object] = lambda result: None,
    *,
    failures_digest: str,
    curve_path: Path | None = None,
    **more: Any,
) -> Result:
    """Write everything about a run into its folder, whole or not at all.

    `logs` are of one replication, by strategy; runs with the same `failures_digest` met the same
    failures; `more` is what else a `Result` holds.
    """
    of_each = {s.policy.name: s.costs.n_replications for s in outcome.strategies}
    with new_folder(target, replications=of_each, failures_digest=failures_digest) as folder:
        result = Result(
            name=target.identity.name,
            useful_h=outcome.useful_h,
            precision_fraction=outcome.precision_fraction,
            n_nodes=outcome.cluster.n_nodes,
            timeline_replication=replication,
            replay=target.identity.replay,
            curve=_keep_curve(folder, outcome, curve_path),
            policies=tuple(strategy.policy for strategy in outcome.strategies),
            path=folder,
            manifest={},
            replications=replication_rows(outcome),
            losses=loss_rows(outcome),
            timeline=timeline_rows(logs, outcome.cluster),
            **more,
        )
        write_record(folder / JOB_FILE, result)
        for name, file in TABLES.items():
            write_parquet(getattr(result, name), folder / file)
        write_csv(frame_of(result.summary), folder / "summary.csv")
        if result.replay is not None:
            write_csv(result.timeline, folder / "events.csv")
        draw(read_folder(folder, {}))
    return load_result(target.folder)


def write_run(
    target: ResultTarget,
    loaded: LoadedScenario,
    experiment: Experiment,
    outcome: Outcome,
    draw: Callable[[Result], object],
    *,
    replication: int | None = 0,
    **more: Any,
) -> Result:
    """Write a simulation of a scenario, with the event logs of one replication; None: of none.

    Logs that memory can't hold are left out, but for those of `--replay`.
    """
    logs = dict[str, EventLog]()
    try:
        if replication is not None:
            logs = replay(experiment, replication, whole=False)
    except BudgetError:
        if target.identity.replay is not None:
            raise
    return write_result(
        target,
        outcome,
        logs,
        replication or 0,
        draw,
        failures_digest=failures_digest(loaded),
        curve_path=curve_path(loaded),
        log_notes=experiment.log_notes,
        warnings=tuple(warnings_of(experiment, loaded.scenario.cluster).values()),
        **more,
    )


def _keep_curve(folder: Path, outcome: Outcome, path: Path | None) -> CurveUsed | None:
    """Copy the file of the curve into the folder, and say which it is."""
    curve = outcome.curve
    if curve is None or path is None:
        return None
    copy = folder / f"curve{path.suffix.lower()}"
    shutil.copyfile(path, copy)
    whys = {s.policy.name: why_unpriced(curve, s.policy) for s in outcome.strategies}
    unpriced = {name: why for name, why in whys.items() if why}
    return CurveUsed(curve.name, curve.origin, curve.notes, copy.name, file_digest(copy), unpriced)


def load_result(path: Path | str) -> Result:
    """Read a finished results folder."""
    folder = Path(path)
    return read_folder(folder, read_manifest(folder))


def read_folder(folder: Path, manifest: Mapping[str, Any]) -> Result:
    """`load_result` without the check of the manifest. Raises ResultError."""
    about = {"path": folder, "manifest": manifest}
    return read_record(Result, folder / JOB_FILE, "a result", TABLES.items(), **about)


# --------------------------------------------------------------------------- what to look at


SHARES = {"median": 0.5, "p95": 0.95, "worst": 1.0}


def judged_by(result: Result) -> str | None:
    """The strategy whose overhead orders replications: plain full recovery, else the first."""
    summary = result.summary
    finished = [policy for policy in result.policies if summary[policy.name][FINISHED].mean > 0]
    finished.sort(key=lambda policy: not policy.is_plain_full)
    return finished[0].name if finished else None


def worth_seeing(result: Result) -> dict[str, int]:
    """Numbers of replications by `SHARES`; empty where none finished."""
    rows = result.replications
    mine = rows[(rows["strategy"] == judged_by(result)) & rows["finished"].astype(bool)]
    in_order = mine.sort_values(["wall_h", "replication"])
    walls, numbers = in_order["wall_h"].to_numpy(np.float64), in_order["replication"]
    ranks = {label: ceil(share * len(walls)) - 1 for label, share in SHARES.items() if len(walls)}
    return {
        label: int(numbers.iloc[np.searchsorted(walls, walls[rank])])
        for label, rank in ranks.items()
    }


# ------------------------------------------------------------------- warnings of unexpected costs


TOO_SHORT = 0.01  # relative: by so much a save may be shorter than its writing, for rounding
MOST_ON_A_NODE = 2.5e12  # bytes: more than the GPUs of a node hold


def warnings_of(experiment: Experiment, section: ClusterSection | None = None) -> dict[str, str]:
    """Warnings of a horizon, large states, saves faster than storage, and overlapping saves.

    By what they are about: a key of the scenario, or a strategy and a tier.
    """
    warnings, job, write_h = dict[str, str](), experiment.facts, experiment.facts.write_h or 0.0
    state_bytes = 0.0 if section is None else section.state_bytes or 0.0
    if section is not None and section.workers > 1 and state_bytes > MOST_ON_A_NODE:
        share = SIZE.format(float(f"{state_bytes / section.workers:.4g}"))
        warnings["cluster.state"] = (
            f"{section.state_said}: is {SIZE.format(state_bytes)} the state of all nodes? "
            f"`cluster.state` is that of one; then write {share}, or times `replicas` where "
            "replicas hold it."
        )
    if (horizon_h := experiment.scenario.job.horizon_h) is not None:
        warnings["job.horizon"] = (
            f"jobs end after {hours(horizon_h)}, done or not: their overheads are shares of the "
            "work that is done by then."
        )
    if job.save_background is None and job.stall_h < (1 - TOO_SHORT) * write_h:
        warnings["costs.save"] = (
            f"`costs.save`: it is {hours(job.stall_h)}, and the storage takes {hours(write_h)} to "
            "write the state. Write {stall: ..., background: transfer} for a save that is "
            "written behind the job, or the bandwidth that it has."
        )
    for policy in experiment.policies:
        warnings |= _longer_than_intervals(policy, experiment.useful_h)
    return warnings


def _longer_than_intervals(policy: Policy, useful_h: float) -> Iterator[tuple[str, str]]:
    """Warn of saves that last longer than their interval in the background, by mean times."""
    for capture in policy.captures:
        if capture.every_h is None or capture.background is None:
            continue
        behind_h, most_h = capture.background.mean_h, capture.in_flight * capture.every_h
        waits = capture.when_busy is WhenBusy.WAIT and n_saves_due(capture.every_h, useful_h) > 1
        if not waits or behind_h <= most_h * (1.0 + ROUNDING):
            continue
        times = capture.parts if policy.from_cpr_paper else 1  # all sub-saves of an interval
        enough = hours(times * behind_h / capture.in_flight)
        words = (
            f"{policy.name}: a save to `{capture.tier}` runs in the background for "
            f"{hours(times * behind_h)}, longer than the {hours(times * most_h)} in which the next "
            f"is due with {capture.in_flight} in flight: saves, and the job, wait for one another. "
            f"Take at least {enough}."
        )
        yield f"{policy.name}, {capture.tier}", words
