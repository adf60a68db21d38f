"""What saves and loads cost, from a log of them: fixed, or the best of some distributions.

A log writes times to some resolution. A fixed time explains what it wrote if all durations lie on
two neighbouring marks; its likelihood is that of these marks, and that of a density is the density
times the resolution. So the two can be compared by AIC.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import exp, isfinite, log, nan, sqrt
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import special

from cprsim.errors import ParameterError, one_line
from cprsim.failures.traces.columns import LENGTH
from cprsim.failures.traces.columns import unit_of as unit_in_name
from cprsim.failures.traces.files import head_of
from cprsim.failures.traces.formats.jsonl import json_pieces
from cprsim.failures.traces.reading import csv_pieces, named_columns, no_row_where
from cprsim.failures.traces.times import GROUPED, HOURS, PLAIN, Times, read_lengths, read_times
from cprsim.files.units import SIZE
from cprsim.fitting.families import FAMILIES
from cprsim.fitting.fragments import Fragment, count, duration, interval, unit_of
from cprsim.fitting.goodness import Ranking, Subject, rank
from cprsim.fitting.lifetimes import lifetimes_of
from cprsim.fitting.likelihood import Fit
from cprsim.fitting.trend import p_of_order
from cprsim.records import HIGH, Z_95, Bools, Estimate, Floats

KINDS = ("save", "load", "detect", "reschedule")
FEWEST = 3  # durations, below which nothing can be said of their spread
FEW = 20  # below which it is said how wide the intervals are
SMALLEST_SHAPE = 0.1  # that a scenario takes
COARSE = 0.1  # resolution over mean, above which it is said
ROUNDING = 1e-3  # of the resolution, that floats may add to a difference
LIKE_EXPONENTIAL = 0.5  # standard deviation over mean, which is 1 for exponential times
SIMILAR = 1.3  # ratio of two spreads within which none is called the smaller one
P_DRIFT = 0.01  # below it a trend or a step is told of: the share of false alarms
FEWEST_IN_ORDER = 10  # durations, below which no trend is looked for
DRIFTS = 1.1  # ratio of the last tenth to the first, or the reverse, from which it matters
SLOWEST = 1e6 * 3600  # bytes/h, 1 MB/s: what is slower is no number of bytes


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """Bytes over hours of what names its bytes."""

    n: int
    rate: Estimate  # bytes/h; the interval is symmetric in the logarithm, NaN for one alone
    mean_bytes: float
    duration_cv: float  # standard deviation over mean of the durations
    per_byte_cv: float  # and of the durations per byte

    @property
    def gbit_s(self) -> Estimate:
        """The rate in the unit of a scenario."""
        return self.rate.times(8 / 3600e9)

    def in_words(self, kind: str) -> str:
        """What it is, and of how much."""
        rate, low, high = (f"{number:.4g}" for number in self.gbit_s.triple)
        sure = f"95 %: {low} to {high}" if self.rate.has_interval else "no interval: one alone"
        return (
            f"{count(self.n, kind)} with bytes, {self.mean_bytes / 1e9:.4g} GB on average: "
            f"{rate} Gbit/s ({sure})"
        )

    def compared(self, kind: str) -> str:
        """The same, and whether bytes or a time describe the log better."""
        if self.n < 2:
            return self.in_words(kind)
        judged = "a time describes them as well as bytes (transfer) do"
        if self.per_byte_cv * SIMILAR < self.duration_cv:
            judged = "bytes (transfer) describe them better than a time does"
        elif self.per_byte_cv > self.duration_cv * SIMILAR:
            judged = "a time describes them better than bytes (transfer) do"
        spreads = f"{100 * self.duration_cv:.3g} %, per byte by {100 * self.per_byte_cv:.3g} %"
        return f"{self.in_words(kind)}; {kind}s vary by {spreads}: {judged}"


class Drift(NamedTuple):
    """Durations that rise, fall or step over the log: means of the first and the last tenth."""

    p: float
    first_h: float
    last_h: float


@dataclass(frozen=True, kw_only=True)
class CostFit(Subject):
    """The duration of one kind, fixed or a distribution."""

    resolution_h: float
    fixed: Estimate | None  # where one time explains the log, or nothing else can be said
    fixed_aic: float  # as if it had a density; NaN where no fixed time explains the log
    bandwidth: Bandwidth | None
    n_overlapping: int = 0  # that began before an earlier one had ended
    drift: Drift | None = None  # over the log, where there is one

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
    def fitted(self) -> list[tuple[str, dict[str, Any], dict[str, Estimate]]]:
        families = super().fitted
        if self.fixed is None:
            return families
        numbers = {"log_likelihood": 1 - self.fixed_aic / 2, "aic": self.fixed_aic}
        return [("fixed", numbers, {"time_h": self.fixed}), *families]

    @property
    def row(self) -> dict[str, Any]:
        row, bandwidth = super().row | {"resolution_h": self.resolution_h}, self.bandwidth
        if bandwidth is not None:
            row |= {"n_with_bytes": bandwidth.n, **bandwidth.rate.columns("bytes_per_h")}
            row |= {"mean_bytes": bandwidth.mean_bytes, "duration_cv": bandwidth.duration_cv}
            row["per_byte_cv"] = bandwidth.per_byte_cv
        drift = {} if self.drift is None else self.drift._asdict()
        return row | {f"drift_{name}": number for name, number in drift.items()}

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user should know of this fit."""
        kind, n, n_zero = self.name, self.lifetimes.n, self.lifetimes.n_zero
        mean, step, low, high = (
            f"{3600 * hours:.3g}" for hours in
            (self.mean.mean, self.resolution_h, self.mean.low, self.mean.high)
        )  # fmt: skip
        best = self.ranking.best if self.ranking else None
        passed_over = self.best is not None and self.best is not best
        notes = {
            f"only {count(n, kind)}: taken as fixed, for nothing can be said of how much that "
            f"varies; {FEWEST} are the fewest to fit, {FEW} to trust": n < FEWEST,
            f"only {n} {kind}s: their mean of {mean} s may be anything from {low} to {high} s "
            "(95 %), and the intervals of other parameters are too narrow with so few":
                n < FEW and self.best is not None,
            f"no family could be fitted to the {kind}s, which vary by "
            f"{100 * _cv(self.lifetimes.duration_h):.3g} %: their mean is taken":
                n >= FEWEST and self.best is None and not isfinite(self.fixed_aic),
            f"{best.family if best else ''} describes the {kind}s best, but spreads further "
            f"than can be simulated: {self.family} is taken": passed_over,
            f"{count(n_zero, kind)} of no time at all left out": n_zero > 0,
            f"the log writes the times of its {kind}s in steps of {step} s, which is coarse for a "
            f"mean of {mean} s": self.resolution_h > COARSE * self.mean.mean,
            f"{self.n_overlapping} of the {kind}s began before another had ended: one row should "
            f"be one {kind} of the whole job, from the first server's start to the last one's end":
                self.n_overlapping > 0,
        }  # fmt: skip
        return tuple(note for note, holds in notes.items() if holds)


def fit_costs(
    transfers: pd.DataFrame, *, n_bootstrap: int = 199, seed: int = 0
) -> tuple[CostFit, ...]:
    """Fit the durations of each kind; raises ParameterError where there is nothing to fit.

    Parameters
    ----------
    transfers : columns kind (of `KINDS`), duration_h, n_bytes (NaN for none), start_h (on the log's
        clock) and resolution_h (the step in which the row writes its times)
    """
    if transfers.empty:
        raise ParameterError("no row of the log has an end: there is nothing to fit")
    of_kind = dict(iter(transfers.groupby("kind")))
    return tuple(_fit(k, of_kind[k], n_bootstrap, seed) for k in KINDS if k in of_kind)


def _fit(kind: str, mine: pd.DataFrame, n_bootstrap: int, seed: int) -> CostFit:
    start_h, all_h = mine["start_h"].to_numpy(), mine["duration_h"].to_numpy()
    durations = lifetimes_of(all_h)
    if durations.n == 0:
        raise ParameterError(f"every {kind} of the log takes no time at all")
    resolution_h = float(mine["resolution_h"].min())
    fixed, fixed_aic = _fixed(durations.duration_h, resolution_h)
    ranking = None
    if durations.n >= FEWEST and np.ptp(durations.duration_h) > ROUNDING * resolution_h:
        ranking = rank(durations, n_bootstrap=n_bootstrap, seed=seed, families=FAMILIES)
    simulable = _simulable(ranking)
    # the exponential alone is left, for times that hardly vary: then their mean says more
    left = ranking is not None and len(ranking.failed) and ranking.best.family == "exponential"
    if not simulable or (left and _cv(durations.duration_h) < LIKE_EXPONENTIAL):
        fixed = fixed or _undecided(durations.duration_h)
    elif fixed is not None and simulable[0].aic < fixed_aic:
        fixed = None
    order = np.argsort(start_h, kind="stable")
    end_h = np.maximum.accumulate((start_h + all_h)[order])
    return CostFit(
        name=kind, lifetimes=durations, ranking=ranking, resolution_h=resolution_h, fixed=fixed,
        fixed_aic=fixed_aic, bandwidth=bandwidth_of(mine["n_bytes"].to_numpy(), all_h),
        n_overlapping=int((start_h[order][1:] < end_h[:-1] - 1e-9).sum()),
        drift=_drift(all_h[order][all_h[order] > 0], resolution_h),
    )  # fmt: skip


def _drift(duration_h: Floats, resolution_h: float) -> Drift | None:
    """A trend or a step of durations in order of time (n,); None where none is seen, or matters."""
    if len(duration_h) < FEWEST_IN_ORDER:
        return None
    tenths_h = np.array_split(duration_h, 10)
    ends_h = float(tenths_h[0].mean()), float(tenths_h[-1].mean())
    is_small = max(ends_h) < min(ends_h) * DRIFTS or abs(ends_h[1] - ends_h[0]) <= resolution_h
    p = nan if is_small else p_of_order(duration_h)
    return Drift(p, *ends_h) if p < P_DRIFT else None


def _simulable(ranking: Ranking | None) -> list[Fit]:
    """The families that a scenario takes, the best first."""
    simulable = []
    for fit in ranking.judged if ranking else ():
        spread = fit.spread
        try:
            fit.distribution.simulable()
        except ParameterError:
            continue
        if spread is None or spread.name != "shape" or spread.mean >= SMALLEST_SHAPE:
            simulable.append(fit)
    return simulable


def _fixed(duration_h: Floats, resolution_h: float) -> tuple[Estimate | None, float]:
    """The one time that explains all durations, and its AIC; (None, NaN) where none does.

    A time that begins anywhere between two marks of the log spans one of two neighbouring marks.
    """
    low_h, high_h = float(duration_h.min()), float(duration_h.max())
    if high_h - low_h > (1 + ROUNDING) * resolution_h:
        return None, nan
    if len(duration_h) < FEWEST:
        return _undecided(duration_h), nan
    n, n_longer = len(duration_h), int((duration_h > (low_h + high_h) / 2).sum())
    log_likelihood = -n * float(special.entr(np.array([n - n_longer, n_longer]) / n).sum())
    bounds = max(high_h - resolution_h, 0.0), low_h + resolution_h
    mean = Estimate(float(duration_h.mean()), *bounds, n)
    return mean, 2 - 2 * (log_likelihood - n * log(resolution_h))


def _undecided(duration_h: Floats) -> Estimate:
    """The mean as a fixed time, for want of anything better."""
    mean_h, n = float(duration_h.mean()), len(duration_h)
    if n < FEWEST:
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
    interval, per_byte = Estimate(rate, rate / factor, rate * factor, n), duration_h / n_bytes
    return Bandwidth(n, interval, float(n_bytes.mean()), _cv(duration_h), _cv(per_byte))


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
        if fit.drift is not None:
            remark.append(f"of the last tenth {fit.drift.last_h * per_hour:.4g} {unit}")
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

COLUMNS = ("kind", "start", "end", "duration", "bytes")
FINEST_H = 1e-6 / 3600  # hours since 1970 are no finer as floats
_TIME_OF_DAY = re.compile(r"[T ]\d\d(?P<minute>:?\d\d(?P<second>:?\d\d(?P<fraction>[.,]\d+)?)?)?")


def read_transfers(
    path: PathLike[str],
    *,
    columns: Mapping[str, str] | None = None,
    time_unit: str | None = None,
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Saves and loads (also detections and reschedulings) from a table or JSON with each of them.

    Returns what `fit_costs` takes, and what was left out.

    Raises TraceError with file and line, for anything that can't be read.
    """
    columns = columns or {}
    pieces = json_pieces if head_of(path)[:1] in ("{", "[") else csv_pieces
    table = pd.concat(pieces(path))
    lengths = [str(name) for name in table if LENGTH.fullmatch(str(name).lower())]
    end = columns.get("end", "end")
    if lengths and (end not in table or table[end].isna().any()):
        columns = {"duration": lengths[0], **columns}
    optional = {"bytes", "end" if "duration" in columns else "duration"}
    rows = named_columns(table.drop_duplicates(), columns, path, COLUMNS, optional)
    kind = rows["kind"].fillna("").str.strip().str.lower()
    unknown = ~kind.isin(KINDS).to_numpy(dtype=bool)
    no_row_where(unknown, rows, path, "kind", "{value} is none of " + ", ".join(KINDS))
    start = read_times(rows["start"], time_unit, path)
    took_h, resolution_h = np.full((2, len(rows)), nan)
    if "end" in rows:
        took_h = read_times(rows["end"], time_unit, path, start).hours - start.hours
        resolution_h = _resolution_h(rows, start)
    if "duration" in columns:  # where there is no end
        unit = unit_in_name(columns["duration"]) or time_unit
        lasted_h = read_lengths(rows["duration"].rename(columns["duration"]), unit, path)
        decimals = rows["duration"].str.extract(r"[.](\d+)")[0].str.len().fillna(0).to_numpy()
        step_h = HOURS[unit or "s"] * 10.0**-decimals
        resolution_h = np.where(np.isnan(took_h), step_h, resolution_h)
        took_h = np.where(np.isnan(took_h), lasted_h, took_h)
    no_row_where(np.isnan(start.hours), rows, path, "start", "the row has no start")
    zone = "" if start.zoned or not start.dated else " (is it local time that was put back?)"
    key = "end" if "end" in rows else "duration"
    no_row_where(took_h < 0, rows, path, key, "{value} lies before the start" + zone)
    ended = ~np.isnan(took_h)
    read = pd.DataFrame({
        "kind": kind, "duration_h": took_h, "n_bytes": _bytes(rows, took_h, path),
        "start_h": start.hours, "resolution_h": resolution_h,
    })  # fmt: skip
    unread = [str(name) for name in table if name not in {columns.get(n, n) for n in COLUMNS}]
    return read[ended], _notes_on_rows(len(table) - len(rows), ended, kind, unread)


def _bytes(rows: pd.DataFrame, took_h: Floats, path: PathLike[str]) -> Floats:
    """Bytes of each row, NaN where it names none."""
    if "bytes" not in rows:
        return np.full(len(rows), np.nan)
    text = rows["bytes"].fillna("").str.strip()
    numbers = np.array([_size(cell) for cell in text])
    bad = (text != "").to_numpy() & ~(np.isfinite(numbers) & (numbers > 0))
    right = "is no number of bytes above 0, such as 53687091200 or 50 GB (no points in thousands)"
    no_row_where(bad, rows, path, "bytes", "{value} " + right)
    digits = text.str.replace(r"\s*[A-Za-z]+$", "", regex=True)
    grouped, plain = (digits.str.fullmatch(form).to_numpy(dtype=bool) for form in (GROUPED, PLAIN))
    if plain.any() and (grouped | plain | (text == "").to_numpy(dtype=bool)).all():  # 950, 1.050
        right = "{value}: a decimal point, or one between thousands? Write 1050 MB, or 1.05 GB"
        no_row_where(grouped, rows, path, "bytes", right)
    bare = text.str.fullmatch(r"[\d.eE+-]+").to_numpy(dtype=bool) & (took_h > 0)
    if numbers[bare].sum() < SLOWEST * took_h[bare].sum():
        took_s = 3600 * float(took_h[bare].mean())
        right = f"bytes, of rows that take {took_s:.3g} s? Write the unit: 42 GB, 9 kB, or 42 B"
        no_row_where(bare, rows, path, "bytes", "{value} " + right)
    return numbers


def _size(cell: str) -> float:
    for read in (float, SIZE.parse):
        try:
            return read(cell)
        except (ValueError, ParameterError):
            pass
    return nan


def _resolution_h(rows: pd.DataFrame, times: Times) -> Floats:
    """How finely each row writes its times [h]: the finer of start and end."""
    unit_h = HOURS.get(times.unit or "", 1.0)
    step = _step_of_stamp_h if times.dated else lambda cell: unit_h * 10.0 ** -_decimals(cell)
    steps_h = (
        np.array([step(cell.strip()) for cell in rows[key].fillna("")]) for key in ("start", "end")
    )
    return np.asarray(np.maximum(np.minimum(*steps_h), FINEST_H), dtype=np.float64)


def _decimals(cell: str) -> int:
    """Digits behind the point of a number."""
    exponent = Decimal(cell).as_tuple().exponent if cell else 0
    return max(-exponent, 0) if isinstance(exponent, int) else 0


def _step_of_stamp_h(cell: str) -> float:
    time_of_day = _TIME_OF_DAY.search(cell)
    if time_of_day is None:
        return 24.0  # a day alone
    if time_of_day["fraction"]:
        return 10.0 ** (1 - len(time_of_day["fraction"])) / 3600
    return 1 / (3600 if time_of_day["second"] else 60 if time_of_day["minute"] else 1)


def _notes_on_rows(
    n_twice: int, ended: Bools, kind: pd.Series[str], unread: Sequence[str]
) -> tuple[str, ...]:
    notes = [f"{count(n_twice, 'row')} said twice, counted once"] if n_twice else []
    if unread:
        names = ", ".join(map(one_line, unread[:6]))
        notes.append(f"column(s) not read: {names}; does one say which rows count?")
    for name in KINDS:
        n_endless = int((~ended & (kind == name).to_numpy()).sum())
        if n_endless:
            notes.append(
                f"{count(n_endless, name)} without an end left out: if failures struck them, long "
                "ones are missing more often and the cost comes out too low"
            )
    return tuple(notes)
