"""Runs made elsewhere: a plan of them, and a table of their results as a measurement.

One CSV is both: `write_plan` leaves the columns of results empty, the user's runs fill them,
and `read_runs` takes the rows that are filled. A row is one run beside its twin of the same seed;
a run with several failures has them in order, separated by semicolons.

    seed  strategy  interval  failed_at  shards  staleness  n_shards  auc  twin_auc  log_loss ...
    1     partial   0.25      0.1;0.6    3;0 3   0.1;0.1    8         0.77 0.78
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from cprsim.errors import CurveError, ParameterError, Place, Problem, TraceError, one_line
from cprsim.failures.traces.reading import FIRST_ROW, named_columns, read_csv
from cprsim.files import write_whole
from cprsim.kernel.metrics import Quality
from cprsim.kernel.shared_run import Baseline
from cprsim.kernel.trials import Saving, ShardFailure, Trial
from cprsim.measuring.design import Design
from cprsim.measuring.observed import Observed, StaleShards
from cprsim.measuring.runs import SeedResult
from cprsim.staleness.names import STRATEGIES, WHOLE, Metric

PLANNED = ("seed", "strategy", "interval", "failed_at", "shards", "staleness", "n_shards")
RESULTS = ("auc", "twin_auc", "log_loss", "twin_log_loss")
OPTIONAL = {"strategy", "interval", "log_loss", "twin_log_loss"}
MAX_PROBLEMS = 20
LARGEST = 1e9  # value of a further metric
NONE: Mapping[Metric, tuple[str, str]] = {}
TINY = 1e-6  # of the run: an interval is never 0


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """One run: how it is saved and what fails when; its results, where it has any."""

    seed: int
    strategy: str
    interval: float  # between saves, as a share of the run
    at: tuple[float, ...]  # shares of the run at which shards fail, in order
    shards: tuple[tuple[int, ...], ...]  # that fail then
    staleness: tuple[float, ...]  # shares of the run since the last save, likewise
    n_shards: int
    auc: tuple[float, float] | None = None  # of the run and of its twin
    log_loss: tuple[float, float] | None = None
    others: Mapping[Metric, tuple[float, float]] = field(default_factory=dict, hash=False)

    @property
    def trial(self) -> Trial:
        """As one of our own."""
        failures = (ShardFailure(*one) for one in zip(self.at, self.shards, strict=True))
        return Trial(Saving(self.strategy, max(self.interval, TINY)), tuple(failures))

    def lost(self) -> Iterator[tuple[float, float, float, float]]:
        """(failed at, net staleness, interval, share) of each shard that went back."""
        reloaded: dict[int, float] = {}
        for at, shards, stale in zip(self.at, self.shards, self.staleness, strict=True):
            for shard in shards:
                net = min(stale, at - reloaded.get(shard, 0.0))
                yield at, net, min(self.interval, at), 1.0 / self.n_shards
                reloaded[shard] = at

    def cells(self) -> dict[str, Any]:
        """The row of a plan."""
        return {
            "seed": self.seed,
            "strategy": self.strategy,
            "interval": f"{self.interval:.6g}",
            "failed_at": ";".join(f"{one:.6g}" for one in self.at),
            "shards": ";".join(" ".join(map(str, some)) for some in self.shards),
            "staleness": ";".join(f"{one:.6g}" for one in self.staleness),
            "n_shards": self.n_shards,
        }


def plan(design: Design, seeds: Sequence[int], n_shards: int) -> list[PlannedRun]:
    """The runs of some seeds, as our own measurements have them."""
    return [
        PlannedRun(
            seed,
            trial.saving.strategy,
            trial.saving.interval_fraction,
            tuple(one.at_fraction for one in trial.failures),
            tuple(one.servers for one in trial.failures),
            tuple(
                one.at_fraction - trial.saving.last_before(one.at_fraction)
                for one in trial.failures
            ),
            n_shards,
        )
        for seed in seeds
        for trial in design.trials(seed, n_shards)
    ]


def write_plan(path: Path, runs: Sequence[PlannedRun]) -> None:
    """Write a CSV whose results are empty, whole or not at all."""
    text = io.StringIO()
    writer = csv.DictWriter(text, [*PLANNED, *RESULTS], lineterminator="\n")
    writer.writeheader()
    writer.writerows(run.cells() for run in runs)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text.getvalue())
    except OSError as error:
        message = f"can't be written: {error.strerror or error}"
        raise CurveError.at(Place(path), message) from error


@dataclass(frozen=True, slots=True)
class ReadRuns:
    """What a table of runs holds."""

    runs: tuple[PlannedRun, ...]  # those that have a result
    n_unfinished: int  # rows without

    def results(self) -> tuple[SeedResult, ...]:
        """By seed, as our own runs leave them."""
        seeds: dict[int, list[PlannedRun]] = {}
        for run in self.runs:
            seeds.setdefault(run.seed, []).append(run)
        return tuple(
            SeedResult(
                seed,
                Baseline(_quality(runs[0], twin=True), {}),
                {run.trial: _quality(run, twin=False) for run in runs},
                0.0,
            )
            for seed, runs in seeds.items()
        )

    def observed(self) -> Observed:
        """What each run lost of samples, and of accuracy against its twin."""
        runs = self.runs
        seeds = tuple(dict.fromkeys(run.seed for run in runs))
        rows = [(number, *lost) for number, run in enumerate(runs) for lost in run.lost()]
        trial, *rest = np.array(rows, float).reshape(-1, 5).T
        loss = {Metric.AUC: np.array([r.auc[1] - r.auc[0] for r in runs if r.auc is not None])}
        pairs = [run.log_loss for run in runs if run.log_loss is not None]
        if len(pairs) == len(runs):
            loss[Metric.LOG_LOSS] = np.array([own - twin for own, twin in pairs])
        for metric in runs[0].others:
            pairs = [run.others[metric] for run in runs if metric in run.others]
            if len(pairs) == len(runs):
                loss[metric] = np.array([metric.worse_by(twin, own) for own, twin in pairs])
        return Observed.of(
            seeds,
            [run.trial for run in runs],
            [seeds.index(run.seed) for run in runs],
            loss,
            StaleShards(trial.astype(np.int64), *rest),
        )


def _quality(run: PlannedRun, *, twin: bool) -> Quality:
    auc, log_loss = run.auc, run.log_loss
    assert auc is not None, "runs without a result are left out"
    return Quality(auc[twin], np.nan if log_loss is None else log_loss[twin])


def read_runs(path: Path) -> ReadRuns:
    """Read a table of runs; rows whose results are all empty are counted and left out."""
    try:
        found = read_csv(path)
        further = _further(found.columns, path)
        known = (*PLANNED, *RESULTS, *(cell for pair in further.values() for cell in pair))
        table = named_columns(found, {}, path, known, OPTIONAL)
    except TraceError as error:
        raise CurveError(error.problems) from None
    problems: list[Problem] = []
    runs, n_unfinished = [], 0
    for index, row in table.fillna("").iterrows():
        cells = {str(column): str(cell).strip() for column, cell in row.items()}
        if not any(cells.get(name) for name in RESULTS):
            n_unfinished += 1
            continue
        try:
            runs.append(_run(cells, further))
        except _Wrong as wrong:
            place = Place(path, int(str(index)) + FIRST_ROW)
            value = one_line(cells.get(wrong.column, ""))
            problems.append(Problem(place, wrong.column, f"`{value}` {wrong}"))
    problems = problems or list(_too_little(runs, path))
    if problems:
        raise CurveError(problems[:MAX_PROBLEMS])
    return ReadRuns(tuple(runs), n_unfinished)


def planned_run(row: Mapping[str, str]) -> PlannedRun:
    """A row of a plan, with results or without. Raises ParameterError for what can't be."""
    cells = {name: str(row.get(name) or "").strip() for name in PLANNED}
    try:
        return _run(cells)
    except _Wrong as wrong:
        value = one_line(cells.get(wrong.column, ""))
        raise ParameterError(f"{wrong.column}: `{value}` {wrong}") from None


class _Wrong(Exception):
    """A cell that can't be; the message goes on where its value ends."""

    def __init__(self, column: str, message: str) -> None:
        super().__init__(message)
        self.column = column


def _further(columns: Iterable[Any], path: Path) -> dict[Metric, tuple[str, str]]:
    """Further metrics: the column of the run, and of its twin. Raises CurveError for a bad name."""
    names = [str(column).strip() for column in columns]
    try:
        return {
            Metric(name): (name, f"twin_{name}")
            for name in names
            if f"twin_{name}" in names and name not in RESULTS
        }
    except ParameterError as error:
        raise CurveError.at(Place(path), str(error)) from None


def _run(cells: dict[str, str], further: Mapping[Metric, tuple[str, str]] = NONE) -> PlannedRun:
    strategy = cells.get("strategy") or WHOLE
    if strategy not in STRATEGIES:
        raise _Wrong("strategy", f"is not known; one of {', '.join(STRATEGIES)}")
    at = tuple(_number(one, "failed_at", 0, 1) for one in cells["failed_at"].split(";"))
    stale = tuple(_number(one, "staleness", 0, 1) for one in cells["staleness"].split(";"))
    n_shards = _whole(cells["n_shards"], "n_shards", 1, 100_000)
    shards = tuple(
        tuple(_whole(one, "shards", 0, n_shards - 1) for one in some.split())
        for some in cells["shards"].split(";")
    )
    if list(at) != sorted(at):
        raise _Wrong("failed_at", "is not in order")
    for column, found in (("shards", shards), ("staleness", stale)):
        if len(found) != len(at):
            raise _Wrong(column, f"has {len(found)} failures, `failed_at` has {len(at)}")
    if not all(map(len, shards)) or any(len(set(some)) < len(some) for some in shards):
        raise _Wrong("shards", "names no shard, or one twice, at a failure: write for example 0 3")
    if any(s > a for s, a in zip(stale, at, strict=True)):
        raise _Wrong("staleness", "is more than was trained: it counts from the last save")
    interval = cells.get("interval")
    if not interval and strategy != WHOLE:
        raise _Wrong("interval", f"is missing: {strategy} needs the time between saves")
    return PlannedRun(
        _whole(cells["seed"], "seed", 0, 2**63 - 1),
        strategy,
        _number(interval, "interval", TINY, 10) if interval else max(*stale, TINY, TINY),
        at,
        shards,
        stale,
        n_shards,
        _pair(cells, "auc", 1.0) if "auc" in cells else None,
        _pair(cells, "log_loss", 100.0) if cells.get("log_loss") else None,
        {
            metric: _pair(cells, name, LARGEST, -LARGEST)
            for metric, (name, _) in further.items()
            if cells.get(name)
        },
    )


def _pair(cells: dict[str, str], name: str, most: float, least: float = 0.0) -> tuple[float, float]:
    own, twin = (_number(cells.get(one, ""), one, least, most) for one in (name, f"twin_{name}"))
    return own, twin


def _number(text: str, column: str, low: float, high: float) -> float:
    try:
        value = float(text)
    except ValueError:
        raise _Wrong(column, "is not a number") from None
    if not low <= value <= high:
        raise _Wrong(column, f"is out of range: it must lie between {low:g} and {high:g}")
    return value


def _whole(text: str, column: str, low: int, high: int) -> int:
    if not (text.isascii() and text.isdecimal() and low <= int(text[:20]) <= high):
        raise _Wrong(column, f"is no whole number from {low} to {high}")
    return int(text)


def _too_little(runs: Sequence[PlannedRun], path: Path) -> Iterator[Problem]:
    """What can't be fitted: a seed has to tell of every strategy."""
    strategies = {run.strategy for run in runs}
    if WHOLE not in strategies:
        yield Problem(Place(path), "strategy", f"no finished run is `{WHOLE}`")
    if len({run.n_shards for run in runs}) > 1:
        yield Problem(Place(path), "n_shards", "differs between runs")
    for seed in dict.fromkeys(run.seed for run in runs):
        ours = [run for run in runs if run.seed == seed]
        if len(ours) < len(strategies) + 2 or {run.strategy for run in ours} != strategies:
            message = (
                f"seed {seed} has {len(ours)} finished runs; it takes one of each strategy, and "
                f"{len(strategies) + 2} at least"
            )
            yield Problem(Place(path), "seed", message)
