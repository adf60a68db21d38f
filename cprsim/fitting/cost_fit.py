"""What saves and loads cost, from a log of them: fixed, or the best of some distributions.

A log writes times to some resolution. A fixed time explains what it wrote if all durations lie on
two neighbouring marks; its likelihood is that of these marks, and that of a density is the density
times the resolution. So the two can be compared by AIC.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from math import exp, isfinite, log, nan, sqrt
from os import PathLike

import numpy as np
import pandas as pd
from scipy import special

from cprsim.errors import ParameterError
from cprsim.failures.traces.reading import named_columns, no_row_where, read_csv
from cprsim.failures.traces.times import HOURS, Times, read_times
from cprsim.fitting.goodness import Judged, Ranking, rank
from cprsim.fitting.lifetimes import Lifetimes, lifetimes_of
from cprsim.records import HIGH, Z_95, Bools, Estimate, Floats
from cprsim.units import SIZE

KINDS = ("save", "load", "detect", "reschedule")
FAMILIES = ("exponential", "weibull", "gamma", "lognormal")  # those that a cost can have
FEWEST = 3  # durations, below which nothing can be said of their spread
FEW = 20  # below which it is said how wide the intervals are
SMALLEST_SHAPE = 0.1  # that a scenario takes
COARSE = 0.1  # resolution over mean, above which it is said
ROUNDING = 1e-3  # of the resolution, that floats may add to a difference
LIKE_EXPONENTIAL = 0.5  # standard deviation over mean, which is 1 for exponential times
SIMILAR = 1.3  # ratio of two spreads within which none is called the smaller one


@dataclass(frozen=True, slots=True)
class Transfers:
    """Saves and loads as logged."""

    kind: tuple[str, ...]  # (n,) each of `KINDS`
    duration_h: Floats  # (n,)
    n_bytes: Floats  # (n,) NaN where the log names none
    start_h: Floats  # (n,) on the log's clock
    resolution_h: Floats  # (n,) step in which the row writes its times
    notes: tuple[str, ...] = ()  # what was left out, for the user


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """Bytes over hours of what names its bytes."""

    n: int
    rate: Estimate  # bytes/h; the interval is symmetric in the logarithm, NaN for one alone
    standard_error: float  # of the rate; NaN for one alone
    mean_bytes: float
    duration_cv: float  # standard deviation over mean of the durations
    per_byte_cv: float  # and of the durations per byte

    @property
    def verdict(self) -> str:
        """Whether bytes explain the durations: `better`, `worse`, or `alike`."""
        if self.per_byte_cv * SIMILAR < self.duration_cv:
            return "better"
        return "worse" if self.per_byte_cv > self.duration_cv * SIMILAR else "alike"


@dataclass(frozen=True, slots=True)
class CostFit:
    """The duration of one kind, fixed or a distribution."""

    name: str  # of its kind
    lifetimes: Lifetimes
    resolution_h: float
    fixed: Estimate | None  # where one time explains the log, or nothing else can be said
    fixed_aic: float  # as if it had a density; NaN where no fixed time explains the log
    ranking: Ranking | None  # of the families; None where there was nothing to fit
    bandwidth: Bandwidth | None
    notes: tuple[str, ...]

    @property
    def best(self) -> Judged | None:
        """The best family that a scenario takes; None where a fixed time is better."""
        if self.fixed is not None or self.ranking is None:
            return None
        return next(one for one in self.ranking.judged if _can_be_named(one))

    @property
    def family(self) -> str:
        return "fixed" if self.best is None else self.best.fit.family

    @property
    def mean(self) -> Estimate:
        if self.best is None:
            assert self.fixed is not None
            return self.fixed
        return mean_of(self.best)

    @property
    def not_fitted(self) -> str:
        """Why some families were not fitted."""
        return self.ranking.why_not if self.ranking else ""


def mean_of(judged: Judged) -> Estimate:
    """The mean of a fit, with an interval that holds for few durations too.

    That of the likelihood holds for many. As for a normal mean, Student's quantile with n - 1
    degrees of freedom takes the normal one's place, and n - 1 that of n under the root.
    """
    mean, n = judged.fit.mean, judged.fit.n_observed
    wider = float(special.stdtrit(n - 1, HIGH)) / Z_95 * sqrt(n / (n - 1))
    low, high = (mean.mean * (end / mean.mean) ** wider for end in (mean.low, mean.high))
    return Estimate(mean.mean, low, high, n)


def fit_costs(
    transfers: Transfers, *, n_bootstrap: int = 199, seed: int = 0
) -> tuple[CostFit, ...]:
    """Fit the durations of each kind that the log has.

    Raises ParameterError where a kind has only durations of zero, or the log no row with an end.
    """
    kinds = np.array(transfers.kind)
    if len(kinds) == 0:
        raise ParameterError("no row of the log has an end: there is nothing to fit")
    return tuple(
        _fit(kind, transfers, kinds == kind, n_bootstrap, seed)
        for kind in KINDS
        if (kinds == kind).any()
    )


def _fit(kind: str, transfers: Transfers, of_kind: Bools, n_bootstrap: int, seed: int) -> CostFit:
    durations = lifetimes_of(transfers.duration_h[of_kind])
    if durations.n == 0:
        raise ParameterError(f"every {kind} of the log takes no time at all")
    resolution_h = float(transfers.resolution_h[of_kind].min())
    fixed, fixed_aic = _fixed(durations.duration_h, resolution_h)
    ranking = None
    if durations.n >= FEWEST and np.ptp(durations.duration_h) > ROUNDING * resolution_h:
        ranking = rank(durations, n_bootstrap=n_bootstrap, seed=seed, families=FAMILIES)
    named = [one for one in (ranking.judged if ranking else ()) if _can_be_named(one)]
    if not named or _is_for_want_of_others(ranking, durations.duration_h):
        fixed = fixed or _undecided(durations.duration_h)
    elif fixed is not None and named[0].fit.aic < fixed_aic:
        fixed = None
    found = CostFit(
        kind, durations, resolution_h, fixed, fixed_aic, ranking,
        bandwidth_of(transfers.n_bytes[of_kind], transfers.duration_h[of_kind]), (),
    )  # fmt: skip
    overlapping = n_overlapping(transfers.start_h[of_kind], transfers.duration_h[of_kind])
    return replace(found, notes=tuple(_notes(found, overlapping)))


def _can_be_named(judged: Judged) -> bool:
    """Whether a scenario takes this member of the family."""
    shapes = [p.mean for p in judged.fit.parameters if p.name == "shape"]
    try:
        judged.fit.distribution.simulable()
    except ParameterError:
        return False
    return all(shape >= SMALLEST_SHAPE for shape in shapes)


def _is_for_want_of_others(ranking: Ranking | None, duration_h: Floats) -> bool:
    """Exponential alone is left, for times that hardly vary: then their mean says more."""
    if ranking is None or ranking.best.fit.family != "exponential":
        return False
    return len(ranking.failed) > 0 and _cv(duration_h) < LIKE_EXPONENTIAL


def _fixed(duration_h: Floats, resolution_h: float) -> tuple[Estimate | None, float]:
    """The one time that explains all durations, and its AIC; (None, NaN) where none does.

    A time d that begins anywhere between two marks of the log spans ``floor(d)`` marks or one more,
    the latter with probability ``d - floor(d)``: what was written lies on two neighbouring marks,
    and d within one mark of each.
    """
    low_h, high_h = float(duration_h.min()), float(duration_h.max())
    if high_h - low_h > (1 + ROUNDING) * resolution_h:
        return None, nan
    if len(duration_h) < FEWEST:
        return _undecided(duration_h), nan
    n, n_longer = len(duration_h), int((duration_h > (low_h + high_h) / 2).sum())
    shares = np.array([n - n_longer, n_longer]) / n
    log_likelihood = n * float(np.sum(shares[shares > 0] * np.log(shares[shares > 0])))
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
    """Bytes per hour over all rows that name their bytes and take some time (ratio estimator).

    Returns None where no row is left.
    """
    known = ~np.isnan(n_bytes) & (duration_h > 0)
    n_bytes, duration_h = n_bytes[known], duration_h[known]
    n = len(n_bytes)
    if n == 0:
        return None
    rate = float(n_bytes.sum() / duration_h.sum())
    error, factor = nan, nan
    if n > 1:
        residual = n_bytes - rate * duration_h
        error = sqrt(float((residual**2).sum()) / (n - 1) / n) / float(duration_h.mean())
        factor = exp(Z_95 * error / rate)
    per_byte = duration_h / n_bytes
    interval = Estimate(rate, rate / factor, rate * factor, n)
    return Bandwidth(n, interval, error, float(n_bytes.mean()), _cv(duration_h), _cv(per_byte))


def _cv(values: Floats) -> float:
    return float(values.std(ddof=1) / values.mean()) if len(values) > 1 else nan


def count(n: int, kind: str) -> str:
    """``1 save``, ``60 saves``."""
    return f"{n} {kind}{'' if n == 1 else 's'}"


def n_overlapping(start_h: Floats, duration_h: Floats) -> int:
    """How many begin before an earlier one has ended."""
    order = np.argsort(start_h, kind="stable")
    end_h = np.maximum.accumulate((start_h + duration_h)[order])
    return int((start_h[order][1:] < end_h[:-1] - 1e-9).sum())


def _notes(found: CostFit, overlapping: int) -> list[str]:
    """What a user should know of this fit."""
    kind, n, mean = found.name, found.lifetimes.n, found.mean
    notes = []
    if n < FEWEST:
        notes.append(
            f"only {count(n, kind)}: taken as fixed, for nothing can be said of how much that "
            f"varies; {FEWEST} are the fewest to fit, {FEW} to trust"
        )
    elif n < FEW and mean.has_interval and found.best is not None:
        notes.append(
            f"only {n} {kind}s: their mean of {mean.mean * 3600:.3g} s may be anything from "
            f"{mean.low * 3600:.3g} to {mean.high * 3600:.3g} s (95 %), and the intervals of other "
            "parameters are too narrow with so few"
        )
    elif found.best is None and not isfinite(found.fixed_aic):
        notes.append(
            f"no family could be fitted to the {kind}s, which vary by "
            f"{100 * _cv(found.lifetimes.duration_h):.3g} %: their mean is taken"
        )
    if found.best is not None and found.ranking and found.best is not found.ranking.best:
        notes.append(
            f"{found.ranking.best.fit.family} describes the {kind}s best, but spreads further than "
            f"can be simulated: {found.family} is taken"
        )
    if found.lifetimes.n_zero:
        notes.append(f"{count(found.lifetimes.n_zero, kind)} of no time at all left out")
    if found.resolution_h > COARSE * mean.mean:
        notes.append(
            f"the log writes the times of its {kind}s in steps of "
            f"{found.resolution_h * 3600:.3g} s, which is coarse for a mean of "
            f"{mean.mean * 3600:.3g} s"
        )
    if overlapping:
        notes.append(
            f"{overlapping} of the {kind}s began before another had ended: one row should be one "
            f"{kind} of the whole job, from the first server's start to the last one's end"
        )
    return notes


# ---------------------------------------------------------------------------- the reader of the log

COLUMNS = ("kind", "start", "end", "bytes")
FINEST_H = 1e-6 / 3600  # hours since 1970 are no finer as floats
_TIME_OF_DAY = re.compile(r"\d\d(?P<minute>:?\d\d(?P<second>:?\d\d(?P<fraction>[.,]\d+)?)?)?")


def read_transfers(
    path: PathLike[str],
    *,
    columns: Mapping[str, str] | None = None,
    time_unit: str | None = None,
) -> Transfers:
    """Saves and loads (also detections and reschedulings) from a CSV with a row for each.

    Returns Rows that are the same from end to end count once; those without an end are left out.

    Raises TraceError with file and line, for anything that can't be read.
    """
    table = read_csv(path)
    rows = named_columns(table.drop_duplicates(), columns or {}, path, COLUMNS, {"bytes"})
    kind = rows["kind"].fillna("").str.strip().str.lower()
    unknown = ~kind.isin(KINDS).to_numpy(dtype=bool)
    no_row_where(unknown, rows, path, "kind", "{value} is none of " + ", ".join(KINDS))
    start = read_times(rows["start"], time_unit, path)
    end = read_times(rows["end"], time_unit, path, start)
    no_row_where(np.isnan(start.hours), rows, path, "start", "the row has no start")
    zone = "" if start.zoned or not start.dated else " (is it local time that was put back?)"
    no_row_where(end.hours < start.hours, rows, path, "end", "{value} lies before the start" + zone)
    ended = ~np.isnan(end.hours)
    return Transfers(
        tuple(kind[ended]),
        (end.hours - start.hours)[ended],
        _bytes(rows, path)[ended],
        start.hours[ended],
        _resolution_h(rows, start, time_unit)[ended],
        _notes_on_rows(len(table) - len(rows), ended, kind),
    )


def _bytes(rows: pd.DataFrame, path: PathLike[str]) -> Floats:
    """Bytes of each row, NaN where it names none."""
    if "bytes" not in rows:
        return np.full(len(rows), np.nan)
    text = rows["bytes"].fillna("").str.strip()
    empty = (text == "").to_numpy(dtype=bool)
    numbers = np.array([_size(cell) for cell in text])
    bad = ~empty & ~(np.isfinite(numbers) & (numbers > 0))
    no_row_where(bad, rows, path, "bytes", "{value} is no number of bytes above 0")
    return numbers


def _size(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        pass
    try:
        return SIZE.parse(cell)
    except ParameterError:
        return float("nan")


def _resolution_h(rows: pd.DataFrame, times: Times, time_unit: str | None) -> Floats:
    """How finely each row writes its times [h]: the finer of start and end."""
    step = _step_of_stamp_h if times.dated else _step_of_number_h
    unit_h = 1.0 if time_unit is None else HOURS[time_unit]
    both = [
        np.array([step(cell.strip(), unit_h) for cell in rows[key].fillna("")])
        for key in ("start", "end")
    ]
    return np.asarray(np.maximum(np.minimum(*both), FINEST_H), dtype=np.float64)


def _step_of_number_h(cell: str, unit_h: float) -> float:
    try:
        exponent = Decimal(cell).as_tuple().exponent
    except InvalidOperation:
        return unit_h
    return unit_h * 10.0 ** min(int(exponent), 0) if isinstance(exponent, int) else unit_h


def _step_of_stamp_h(cell: str, unit_h: float) -> float:
    time_of_day = _TIME_OF_DAY.match(re.split(r"[T ]", cell, maxsplit=1)[-1])
    if len(re.split(r"[T ]", cell)) == 1 or time_of_day is None:
        return 24.0 * unit_h  # a day alone
    if time_of_day["fraction"]:
        return unit_h / 3600 * 10.0 ** (1 - len(time_of_day["fraction"]))
    return unit_h / (3600 if time_of_day["second"] else 60 if time_of_day["minute"] else 1)


def _notes_on_rows(n_twice: int, ended: Bools, kind: pd.Series[str]) -> tuple[str, ...]:
    notes = [f"{count(n_twice, 'row')} said twice, counted once"] if n_twice else []
    for name in KINDS:
        n_endless = int((~ended & (kind == name).to_numpy()).sum())
        if n_endless:
            notes.append(
                f"{count(n_endless, name)} without an end left out: if failures struck them, long "
                "ones are missing more often and the cost comes out too low"
            )
    return tuple(notes)
