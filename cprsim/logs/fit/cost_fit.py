"""Costs of saves and loads, from a log of them: fixed, or the best of some distributions.

A log has a resolution of time. A fixed cost explains the log, and is used, if all durations lie on
two neighbouring multiples of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, inf, nan, sqrt
from os import PathLike
from shlex import quote
from typing import Any

import numpy as np
import pandas as pd
from scipy import special, stats

from cprsim.errors import ParameterError
from cprsim.failures.outages import Counted, notes_of
from cprsim.files.units import SIZE
from cprsim.job.distributions import MOST_SQUARED_CV
from cprsim.job.records import HIGH, Z_95, Estimate, Floats
from cprsim.logs.columns import FLAGS, LENGTH_COLUMN, is_free, plain, with_words, words_in
from cprsim.logs.columns import unit_of as unit_in_name
from cprsim.logs.files import head_of, trace_error
from cprsim.logs.fit.families import FAMILIES
from cprsim.logs.fit.fragments import Fragment, count, duration, interval, unit_of
from cprsim.logs.fit.goodness import FEWEST_TO_TRUST, FittedQuantity, Ranking, rank
from cprsim.logs.fit.lifetimes import lifetimes_of
from cprsim.logs.fit.likelihood import Fit
from cprsim.logs.formats.jsonl import json_pieces
from cprsim.logs.reading import csv_pieces, header_line, named_columns, no_row_where
from cprsim.logs.spec import LogSpec
from cprsim.logs.tables import without_ignored
from cprsim.logs.times import HOURS, read_lengths, read_times, require_decimals

COST_KINDS = ("save", "load", "detect", "reschedule", "warmup")
FEWEST_TO_FIT = 3  # durations, below which nothing can be said of their spread
SMALLEST_SHAPE = 0.1  # that a scenario takes
COARSE = 0.1  # resolution over mean, above which it is said
RESOLUTION_ROUNDING = 1e-3  # of the resolution, that floats may add to a difference
LIKE_EXPONENTIAL = 0.5  # standard deviation over mean, which is 1 for exponential times
P_DRIFT = 0.01  # below it a change over time is told of: the share of false alarms
FEWEST_IN_ORDER = 10  # durations, below which no change is looked for
DRIFTS = 1.1  # ratio of two tenths of the log, from which a change matters
SLOWEST = 1e6 * 3600  # bytes/h, 1 MB/s: what is slower is no number of bytes
ALIKE = 0.01  # of a time: a length that differs more from start to end is another


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """Bandwidth of the transfers that log their bytes."""

    n: int
    rate: Estimate  # bytes/h; the interval is symmetric in the logarithm, NaN for one alone
    mean_bytes: float

    @property
    def gbit_s(self) -> Estimate:
        """The rate in the unit of a scenario."""
        return self.rate.times(8 / 3600e9)

    def in_words(self, kind: str) -> str:
        """Return the bandwidth and the mean size, in words."""
        rate, low, high = (f"{number:.4g}" for number in self.gbit_s.triple)
        sure = f"95 %: {low} to {high}" if self.rate.has_interval else "no interval: one alone"
        return (
            f"{count(self.n, kind)} with bytes, {self.mean_bytes / 1e9:.4g} GB on average: "
            f"{rate} Gbit/s ({sure})"
        )


@dataclass(frozen=True, kw_only=True)
class CostFit(FittedQuantity):
    """The duration of one kind, fixed or a distribution."""

    resolution_h: float
    fixed: Estimate | None  # where one time explains the log, or nothing else can be said
    bandwidth: Bandwidth | None
    n_overlapping: int = 0  # that began before an earlier one had ended, or as it did
    drift_h: tuple[float, ...] = ()  # means: first, last, fastest, slowest tenth, if they moved

    @property
    def best(self) -> Fit | None:
        """The best family that a scenario takes; None where a fixed time is better."""
        return None if self.fixed is not None else next(iter(_simulable(self.ranking)), None)

    @property
    def family(self) -> str:
        return "fixed" if self.best is None else self.best.family

    @property
    def mean(self) -> Estimate:
        mean = self.fixed if self.best is None else self.mean_of(self.best)
        assert mean is not None
        return mean

    def mean_of(self, fit: Fit) -> Estimate:
        """The mean of a fit; as for a normal mean, Student's t widens the interval of a few."""
        mean, n = fit.mean, fit.n_observed
        wider = float(special.stdtrit(n - 1, HIGH)) / Z_95 * sqrt(n / (n - 1))
        low, high = (mean.mean * (end / mean.mean) ** wider for end in (mean.low, mean.high))
        return Estimate(mean.mean, low, high, n)

    @property
    def row(self) -> dict[str, Any]:
        row, bandwidth = super().row | {"resolution_h": self.resolution_h}, self.bandwidth
        if bandwidth is not None:
            row |= {"n_with_bytes": bandwidth.n, **bandwidth.rate.columns("bytes_per_h")}
            row["mean_bytes"] = bandwidth.mean_bytes
        drift = ("drift_first_h", "drift_last_h", "drift_fastest_h", "drift_slowest_h")
        return row | dict(zip(drift, self.drift_h, strict=False))

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings and notes on this fit."""
        kind, n, n_zero = self.name, self.lifetimes.n, self.lifetimes.n_zero
        mean, step, low, high = (
            f"{3600 * hours:.3g}" for hours in
            (self.mean.mean, self.resolution_h, self.mean.low, self.mean.high)
        )  # fmt: skip
        best = self.ranking.best if self.ranking else None
        passed_over = self.best is not None and self.best is not best
        first, last, fastest, slowest = (3600 * hours for hours in self.drift_h or 4 * (nan,))
        moved = abs(last - first) > max((DRIFTS - 1) * min(first, last), (slowest - fastest) / 2)
        notes = {
            f"{self.n_overlapping} of the {kind}s began before or as another ended: one "
            f"row should be one {kind} of the whole job, from its first start to its last end":
                self.n_overlapping > 0,
            f"the {kind}s {'grew' if last > first else 'fell'} from {first:.4g} s (first tenth of "
            f"them) to {last:.4g} s (last tenth): for the next job use {last:.4g} s, not "
            f"the mean of {mean} s": moved,
            f"the {kind}s changed with time: {fastest:.4g} s in the fastest tenth of the log, "
            f"{slowest:.4g} s in the slowest, {last:.4g} s in the last: for the next job use its "
            f"own time, not the mean of {mean} s": slowest > 0 and not moved,
            f"only {count(n, kind)}: taken as fixed, as its variation can't be estimated; "
            f"{FEWEST_TO_FIT} are the fewest to fit, {FEWEST_TO_TRUST} to trust": n < FEWEST_TO_FIT,
            f"only {n} {kind}s: their mean of {mean} s may be anything from {low} to {high} s "
            "(95 %), and the intervals of other parameters are too narrow":
                n < FEWEST_TO_TRUST and self.best is not None,
            f"no family could be fitted to the {kind}s, which vary by "
            f"{100 * _cv(self.lifetimes.duration_h):.3g} %: their mean is taken":
                n >= FEWEST_TO_FIT and self.best is None and self.ranking is not None,
            f"{best.family if best else ''} describes the {kind}s best, but spreads further "
            f"than can be simulated: {self.family} is taken": passed_over,
            f"{count(n_zero, kind)} of no time at all left out": n_zero > 0,
            f"the log writes the times of its {kind}s in steps of {step} s, which is coarse for a "
            f"mean of {mean} s": self.resolution_h > COARSE * self.mean.mean,
        }  # fmt: skip
        return tuple(note for note, holds in notes.items() if holds)


def fit_costs(
    transfers: pd.DataFrame, *, n_bootstrap: int = 199, seed: int = 0
) -> tuple[CostFit, ...]:
    """Fit the durations of each kind; raises ParameterError where there is nothing to fit.

    The columns are kind (of `COST_KINDS`), duration_h, n_bytes (NaN for none), start_h (on the
    log's clock) and resolution_h (the step in which the row writes its times).
    """
    if transfers.empty:
        raise ParameterError("no row of the log has an end: there is nothing to fit")
    of_kind = dict(iter(transfers.groupby("kind")))
    return tuple(_fit(k, of_kind[k], n_bootstrap, seed) for k in COST_KINDS if k in of_kind)


def _fit(kind: str, mine: pd.DataFrame, n_bootstrap: int, seed: int) -> CostFit:
    start_h, all_h = mine["start_h"].to_numpy(), mine["duration_h"].to_numpy()
    durations = lifetimes_of(all_h)
    if durations.n == 0:
        raise ParameterError(f"every {kind} of the log takes no time at all")
    resolution_h = float(mine["resolution_h"].min())
    fixed, ranking = _one_time(durations.duration_h, resolution_h), None
    if durations.n >= FEWEST_TO_FIT and fixed is None:
        ranking = rank(durations, n_bootstrap=n_bootstrap, seed=seed, families=FAMILIES)
    simulable = _simulable(ranking)
    # the exponential alone is left, for times that hardly vary: then their mean says more
    left = ranking is not None and len(ranking.failed) and ranking.best.family == "exponential"
    if not simulable or (left and _cv(durations.duration_h) < LIKE_EXPONENTIAL):
        fixed = fixed or _undecided(durations.duration_h)
    order = np.argsort(start_h, kind="stable")
    end_h = np.maximum.accumulate((start_h + all_h)[order])
    return CostFit(
        name=kind, lifetimes=durations, ranking=ranking, resolution_h=resolution_h, fixed=fixed,
        bandwidth=bandwidth_of(mine["n_bytes"].to_numpy(), all_h),
        n_overlapping=int((start_h[order][1:] <= end_h[:-1] + resolution_h).sum()),
        drift_h=_drift_h(all_h[order][all_h[order] > 0], resolution_h),
    )  # fmt: skip


def _drift_h(duration_h: Floats, resolution_h: float) -> tuple[float, ...]:
    """Means of tenths in order of time: first, last, least, most; empty without a change.

    Three tests, each with a third of `P_DRIFT`: Mann and Kendall's for a trend; the ranks of
    neighbours for changes back and forth (the ratio of von Neumann, as Bartels has it); Mann and
    Whitney's with Bonferroni's correction for one change: a tenth, or the last fifth or third,
    against all others.
    """
    if (n := len(duration_h)) < FEWEST_IN_ORDER:
        return ()
    tenths_h = [float(tenth_h.mean()) for tenth_h in np.array_split(duration_h, 10)]
    low_h, high_h = min(tenths_h), max(tenths_h)
    if high_h < low_h * DRIFTS or high_h - low_h <= resolution_h:
        return ()
    tenth = max(2, n // 10)
    at = range(n - tenth, -1, -max(1, n // 80))
    in_h, off_h = np.split(np.array([np.roll(duration_h, -a) for a in at]), [tenth], axis=1)
    how: Any = "exact" if tenth <= 8 else "asymptotic"
    p_tenth = stats.mannwhitneyu(in_h, off_h, method=how, axis=1).pvalue
    p_part = float(p_tenth.min())
    for last in (n // 5, n // 3):
        test = stats.mannwhitneyu(duration_h[-last:], duration_h[:-last], method=how)
        p_part = min(p_part, float(test.pvalue))
    ranks = stats.rankdata(duration_h)
    apart = np.square(np.diff(ranks)).sum() / max(np.square(ranks - ranks.mean()).sum(), 1.0)
    p_alike = stats.norm.cdf((apart - 2.0) * sqrt(5 * n + 7) / sqrt(20))  # variance 20 / (5 n + 7)
    p_trend = stats.kendalltau(np.arange(n), duration_h).pvalue
    is_seen = min(p_alike, p_trend, p_part * (len(at) + 2)) < P_DRIFT / 3
    return (tenths_h[0], tenths_h[-1], low_h, high_h) if is_seen else ()


def _simulable(ranking: Ranking | None) -> list[Fit]:
    """The families that a scenario takes, the best first."""
    return [
        fit
        for fit in (ranking.judged if ranking else ())
        if getattr(fit.distribution, "shape", inf) >= SMALLEST_SHAPE
        and fit.distribution.squared_cv <= MOST_SQUARED_CV
    ]


def _one_time(duration_h: Floats, resolution_h: float) -> Estimate | None:
    """The one time that explains all durations, if there is one.

    A time that begins anywhere between two marks of the log spans one of two neighbouring marks.
    """
    low_h, high_h = float(duration_h.min()), float(duration_h.max())
    if high_h - low_h > (1 + RESOLUTION_ROUNDING) * resolution_h:
        return None
    if len(duration_h) < FEWEST_TO_FIT:
        return _undecided(duration_h)
    bounds = max(high_h - resolution_h, 0.0), low_h + resolution_h
    return Estimate(float(duration_h.mean()), *bounds, len(duration_h))


def _undecided(duration_h: Floats) -> Estimate:
    """The mean as a fixed time, for want of anything better."""
    mean_h, n = float(duration_h.mean()), len(duration_h)
    if n < FEWEST_TO_FIT:
        return Estimate(mean_h, n=n)
    half_h = Z_95 * float(duration_h.std(ddof=1)) / sqrt(n)
    return Estimate(mean_h, max(mean_h - half_h, 0.0), mean_h + half_h, n)


def bandwidth_of(n_bytes: Floats, duration_h: Floats) -> Bandwidth | None:
    """Bytes per hour over all rows that name their bytes and take some time (ratio estimator)."""
    usable = ~np.isnan(n_bytes) & (duration_h > 0)
    n_bytes, duration_h = n_bytes[usable], duration_h[usable]
    n = len(n_bytes)
    if n == 0:
        return None
    rate = float(n_bytes.sum() / duration_h.sum())
    factor = nan
    if n > 1:
        residual = n_bytes - rate * duration_h
        error = sqrt(float((residual**2).sum()) / (n - 1) / n) / float(duration_h.mean())
        factor = exp(Z_95 * error / rate)
    return Bandwidth(n, Estimate(rate, rate / factor, rate * factor, n), float(n_bytes.mean()))


def _cv(values: Floats) -> float:
    return float(values.std(ddof=1) / values.mean()) if len(values) > 1 else nan


# --------------------------------------------------------------------- the section of a scenario


def costs_fragment(fits: Sequence[CostFit], origin: str) -> Fragment:
    """The section `costs`, with `storage` as an alternative where the log names bytes."""
    section: dict[str, Any] = {}
    remarks, bandwidths = {}, []
    for fit in fits:
        mean, (per_hour, unit) = fit.mean, unit_of(fit.mean.mean)
        cost: Any = f"{mean.mean * per_hour:.6g} {unit}"
        cost = cost if fit.best is None else duration(fit.best, cost)
        section[fit.name] = {"stall": cost} if fit.name == "save" else cost
        remark = [f"{count(fit.lifetimes.n, fit.name)}, {fit.family}", "no interval: too few"]
        if mean.has_interval:
            in_unit = mean.times(per_hour)
            bounds = f"between {in_unit.low:.4g} and {in_unit.high:.4g}"
            remark[1] = f"{bounds if fit.best is None else f'mean {interval(in_unit)}'} {unit}"
        if fit.best is not None and (spread := fit.best.spread) is not None:
            remark.append(f"{spread.name} {interval(spread)}")
        remark += [
            f"of the last tenth {last_h * per_hour:.4g} {unit}" for last_h in fit.drift_h[1:2]
        ]
        remarks[fit.name] = "; ".join(remark)
        if fit.bandwidth is not None and fit.name in ("save", "load"):
            bandwidths.append((fit.name, fit.bandwidth))
    below = [f"{kind}: not in the log, say it" for kind in ("save", "load") if kind not in section]
    for kind in ("detect", "reschedule"):
        if kind not in section:
            section[kind], remarks[kind] = "0 s", "not in the log: put yours here"
    if bandwidths:
        kind, first = bandwidths[0]
        below += [
            f"or from the bytes: `{kind}: transfer`, {first.mean_bytes / 1e9:.6g} GB over `emb_ps` "
            "as `shard_size`, and",
            f"storage: {{bandwidth: {first.gbit_s.mean:.6g} Gbit/s}}",
            *(bandwidth.in_words(name) for name, bandwidth in bandwidths),
        ]
    return Fragment({"costs": section}, [f"fitted to {origin}"], remarks, below)


# ---------------------------------------------------------------------------- the reader of the log

COST_COLUMNS = ("kind", "start", "end", "duration", "bytes")
FINEST_H = 1e-6 / 3600  # hours since 1970 are no finer as floats
_TIME_OF_DAY = r"[T ](?P<h>\d\d)(?P<min>:?\d\d)?(?P<s>:?\d\d)?(?:[.,](?P<fraction>\d+))?"
_NUMBER = r"\.(?P<fraction>\d+)(?![\deE])"


def read_transfers(path: PathLike[str], spec: LogSpec) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Saves and loads (also detections and reschedulings) from a table or JSON with each of them.

    Returns the input of `fit_costs`, and notes on rows left out.

    Raises TraceError with file and line, for anything that can't be read.
    """
    columns, counted = dict(spec.names), Counted()
    time_unit, form = spec.time_unit, spec.date_format
    pieces = json_pieces if head_of(path)[:1] in ("{", "[") else csv_pieces
    table = without_ignored(pd.concat(pieces(path)), spec.ignored, path, counted)
    lengths = [name for name in map(str, table) if LENGTH_COLUMN.fullmatch(name.lower())]
    if len(lengths) > 1 and "duration" not in columns:
        message = "each tells how long it took: --column duration=NAME says which counts"
        raise trace_error(path, header_line(table), message, ", ".join(lengths))
    if lengths:
        columns = {"duration": lengths[0]} | columns
    optional = {"bytes", "end" if "duration" in columns else "duration"}
    rows = named_columns(table.drop_duplicates(), columns, path, COST_COLUMNS, optional)
    kind = rows["kind"].fillna("").str.strip().str.lower()
    right = ", ".join(COST_KINDS)
    no_row_where(~kind.isin(COST_KINDS), rows, path, "kind", "{value} is none of " + right)
    start = read_times(rows["start"], time_unit, path, form=form)
    no_row_where(np.isnan(start.hours), rows, path, "start", "the row has no start")
    took_h, resolution_h = np.full(len(rows), nan), np.full(len(rows), inf)
    if "end" in rows:
        took_h = read_times(rows["end"], time_unit, path, start, form).hours - start.hours
        resolution_h = np.minimum(*(_resolution_h(rows[c], start.unit) for c in ("start", "end")))
        zone = "" if start.zoned or not start.dated else " (is it local time that was put back?)"
        no_row_where(took_h < 0, rows, path, "end", "{value} lies before the start" + zone)
    if "duration" in rows:
        cells = rows["duration"].rename(columns["duration"])
        unit = unit_in_name(columns["duration"])
        lasted_h = read_lengths(cells, unit or time_unit, path)
        no_row_where(lasted_h < 0, cells, path, str(cells.name), "{value} is below 0")
        written_h = _resolution_h(cells, unit or time_unit or "s")
        apart = np.abs(lasted_h - took_h) > ALIKE * took_h + 2 * resolution_h + written_h
        both = "{value} is not the time from start to end: --ignore NAME leaves one of both out"
        no_row_where(
            apart, cells, path, str(cells.name), both.replace("NAME", quote(columns["duration"]))
        )
        is_finer = np.isnan(took_h) | (written_h < resolution_h)
        took_h = np.where(is_finer & ~np.isnan(lasted_h), lasted_h, took_h)
        resolution_h = np.minimum(resolution_h, written_h)
    ended = ~np.isnan(took_h)
    read = pd.DataFrame({
        "kind": kind, "duration_h": took_h, "n_bytes": _bytes(rows, took_h, path),
        "start_h": start.hours, "resolution_h": resolution_h,
    })  # fmt: skip
    unread = [str(name) for name in table if name not in {columns.get(n, n) for n in COST_COLUMNS}]
    _require_no_words(table[unread], kind, path)
    twice = f"{count(n_twice := len(table) - len(rows), 'row')} said twice, counted once"
    notes = [
        *([twice] if n_twice else []),
        *([f"column(s) not read: {', '.join(with_words(table[unread[:6]]))}"] if unread else []),
        *(f"{count(n, str(name))} without an end left out: if failures struck them, long ones are "
          "missing more often and the cost comes out too low"
          for name, n in kind[~ended].value_counts(sort=False).items()),
    ]  # fmt: skip
    return read[ended], (*map(str, notes_of(counted)), *notes)


def _require_no_words(unread: pd.DataFrame, kind: pd.Series[str], path: PathLike[str]) -> None:
    """Raise TraceError for a column of a few words, or of yes and no, that tells rows of a kind."""
    for name in map(str, unread):
        cells = unread[name].loc[kind.index].fillna("").str.strip()
        is_number = pd.to_numeric(cells.where(cells != ""), errors="coerce").notna().all()
        is_flag = {*map(plain, cells.unique())} <= FLAGS.keys()
        few = is_flag or not (is_number or is_free(cells))
        if few and cells.groupby(kind).nunique().max() > 1:
            message = (
                f"not read, but could tell which rows count ({words_in(cells)}): --ignore "
                f"{quote(f'{name}=WORDS')} leaves out the rows with these words, --ignore "
                f"{quote(name)} takes all rows"
            )
            raise trace_error(path, header_line(unread), message, name)


def _bytes(rows: pd.DataFrame, took_h: Floats, path: PathLike[str]) -> Floats:
    """Bytes of each row, NaN where it names none."""
    if "bytes" not in rows:
        return np.full(len(rows), np.nan)
    text = rows["bytes"].fillna("").str.strip()
    bare = text.str.fullmatch(r"[\d.eE+-]+").to_numpy(dtype=bool)
    numbers = text.mask(bare, text + " B").map(_size).to_numpy(np.float64)
    bad = (text != "").to_numpy() & ~(np.isfinite(numbers) & (numbers > 0))
    right = "is no number of bytes above 0, such as 50 GB (no sign between thousands)"
    no_row_where(bad, rows, path, "bytes", "{value} " + right)
    require_decimals(text.str.replace(r"\s*[A-Za-z]+$", "", regex=True), path)
    right = "bytes, at less than 1 MB/s? Write the unit: 42 GB, 9 kB, or 42 B"
    no_row_where(bare & (numbers < SLOWEST * took_h), rows, path, "bytes", "{value} " + right)
    return numbers


def _size(cell: str) -> float:
    try:
        return SIZE.parse(cell)
    except ParameterError:
        return nan


def _resolution_h(cells: pd.Series[str], unit: str | None) -> Floats:
    """The step in which each cell is written [h]; cells without a unit are time stamps."""
    found = cells.str.extract(_TIME_OF_DAY if unit is None else _NUMBER)
    step_h = np.full(len(cells), HOURS[unit or "d"])
    for part in ("h", "min", "s"):
        if part in found:
            step_h[found[part].notna()] = HOURS[part]
    n_decimals = found["fraction"].str.len().fillna(0).to_numpy(np.float64)
    return np.asarray(np.maximum(step_h * 10**-n_decimals, FINEST_H), dtype=np.float64)
