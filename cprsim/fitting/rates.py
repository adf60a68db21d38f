"""Rates that change over a log: constant, log-linear, or in pieces, chosen by what is held out.

Failures are counted in bins of as much watching each. A model is fitted to the bins outside a fold
and judged by the Poisson likelihood of those within, neighbouring bins in one fold so that a burst
is held out whole. Intervals allow for counts that vary more than Poisson ones do about the model;
that of the rate at the end also for a course that is not the one chosen (`rate_at_end`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import exp, expm1, sqrt

import numpy as np

from cprsim.errors import ParameterError
from cprsim.estimate import ROUNDED_Z_95, Estimate, How
from cprsim.failures import limits
from cprsim.failures.course import RateCourse
from cprsim.failures.outages import Outages
from cprsim.fitting.correlation import togetherness
from cprsim.fitting.fragments import fragment, opening, repair_lines
from cprsim.fitting.observation import Fact, Observation, Source, instant
from cprsim.fitting.random_rate import CLAIMED, RandomRate, random_rate
from cprsim.fitting.rate_at_end import FittedRate, rate_at_end
from cprsim.fitting.trace_fit import TraceFit, fit_trace
from cprsim.records import Bools, Floats, Ints

N_BINS = 120
FOLD_BINS, N_FOLDS = 3, 10  # neighbouring bins of a fold; folds
MOST_PIECES = 5
SMALLEST_BINS = 6  # of a piece
FEWEST_FAILURES = 30
ERRORS_BETTER = 1.0  # standard errors by which a changing rate has to be better when held out
STEPS, FLAT = 50, 1e-10  # of Newton's search
LEAST = 0.5  # failures that a piece without any is reckoned with, where it is held out

Predicted = Callable[[Floats, Floats], Floats]  # counts and hours of bins to rates [1/h], (n_bins,)


@dataclass(frozen=True, slots=True)
class Rates:
    """How often instants with failures came over a log."""

    name: str  # constant, log-linear, or 2 pieces, ...
    gains: tuple[tuple[str, float, float], ...]  # held out, over the constant: model, gain, error
    borders_h: tuple[float, ...]  # (n_pieces + 1,) on the log's clock [h]
    pieces_per_h: tuple[Estimate, ...]  # rate of each piece; of a log-linear one its mean
    now_per_h: Estimate  # at the end of the log, whichever model is true; of a given one by it
    slope_per_h: Estimate | None  # of the logarithm of a log-linear rate
    dispersion: float  # variance over mean of the counts about the model; at least 1

    @property
    def changes(self) -> bool:
        """Whether a rate that changes was better where it was held out."""
        return self.name != CONSTANT

    def in_words(self) -> str:
        """The rates and what speaks for them."""
        days = " then ".join(_a_day(one) for one in self.pieces_per_h)
        if self.slope_per_h is not None:
            ends = (f"{exp(24 * 30 * one):.3g}" for one in self.slope_per_h.triple)
            days += ", times {} [{}, {}] every 30 days".format(*ends)
        where = " and ".join(f"day {at_h / 24:.4g}" for at_h in self.borders_h[1:-1])
        held = ", ".join(f"{name} {gain:+.1f} +- {error:.1f}" for name, gain, error in self.gains)
        return (
            f"{self.name}: {days} events a day{f', with borders at {where}' if where else ''}; "
            f"log-likelihood held out, over a constant rate: {held}"
        )

    @property
    def course(self) -> RateCourse:
        """The rate along the log's window, as the model that was chosen has it."""
        begins = ends = tuple(one.mean for one in self.pieces_per_h)
        window_h = self.borders_h[-1]
        if self.slope_per_h is not None and self.slope_per_h.mean != 0:
            rise = self.slope_per_h.mean * window_h
            first = self.pieces_per_h[0].mean * rise / expm1(rise)  # as many failures in all
            begins, ends = (first,), (first * exp(rise),)
        return RateCourse((0.0, *self.borders_h[1:]), begins, ends)

    @property
    def last_from_h(self) -> float:
        """Where the last piece begins [h]."""
        return self.borders_h[-2]


def _a_day(rate_per_h: Estimate) -> str:
    mean, low, high = (24 * one for one in rate_per_h.triple)
    return f"{mean:.3g} [{low:.3g}, {high:.3g}]"


CONSTANT, LOG_LINEAR = "constant", "log-linear"


def rates(outages: Outages, model: str | None = None) -> Rates:
    """Fit and choose.

    Parameters
    ----------
    outages : the log
    model : this one, whatever is held out says

    Raises
    ------
    ParameterError
        for fewer than `FEWEST_FAILURES` instants.
    """
    at_h = np.unique(outages.failed_at_h)
    if len(at_h) < FEWEST_FAILURES:
        raise ParameterError(
            f"{len(at_h)} instants with failures: {FEWEST_FAILURES} are needed to tell how their "
            "rate changes"
        )
    borders_h = _borders(outages)
    counts = np.histogram(at_h, borders_h)[0].astype(np.float64)
    hours = np.diff(borders_h)
    models: dict[str, Predicted] = {CONSTANT: _constant, LOG_LINEAR: _log_linear} | {
        f"{k} pieces": _pieces_of(k) for k in range(2, MOST_PIECES + 1)
    }
    held = {name: _held_out(model, counts, hours) for name, model in models.items()}
    gains = {name: _gain(each - held[CONSTANT]) for name, each in held.items() if name != CONSTANT}
    better = {
        name: gain for name, (gain, error) in gains.items() if gain > ERRORS_BETTER * error
    }  # fmt: skip
    best = max(better, key=lambda one: better[one]) if better else CONSTANT
    name = model or best
    described = tuple((each, *gain) for each, gain in gains.items())
    found = _described(name, models[name], counts, borders_h, described)
    if model is not None:
        return found
    line = FittedRate(*_line(counts, hours), _log_linear(counts, hours) * hours)
    return replace(found, now_per_h=rate_at_end(
        counts, hours, line, found.dispersion, most=MOST_PIECES, smallest=SMALLEST_BINS
    ))  # fmt: skip


def rates_and_factor(outages: Outages) -> tuple[Rates, RandomRate | None]:
    """How the rate changes, and what is random about it; None where the log is too short for that.

    A random factor makes pieces of a log differ. Where there is one, a course that changes has to
    be likelier than a constant one, each with its factor, by `CLAIMED` for every further parameter.

    Raises
    ------
    ParameterError
        as `rates` does.
    """
    found = rates(outages)
    try:
        random = random_rate(outages, found.course)
    except ParameterError:
        return found, None
    if not (found.changes and random.is_claimed):
        return found, random
    steady = rates(outages, CONSTANT)
    beside = random_rate(outages, steady.course)
    likelier = random.log_likelihood - beside.log_likelihood
    if likelier > CLAIMED * (_n_parameters(found.name) - 1):
        return found, random
    return replace(steady, now_per_h=found.now_per_h), beside


def _borders(outages: Outages) -> Floats:
    """Borders of bins in which nodes were watched for as long, (N_BINS + 1,) [h]."""
    if outages.lives is None:
        return np.linspace(0.0, outages.window_h, N_BINS + 1)
    _, enters_h, leaves_h = outages.lives
    at_h = np.unique(np.concatenate([enters_h, leaves_h, [0.0, outages.window_h]]))
    watched = np.array([(np.minimum(leaves_h, at) - np.minimum(enters_h, at)).sum() for at in at_h])
    borders = np.interp(np.linspace(0, watched[-1], N_BINS + 1), watched, at_h)
    return np.asarray(np.unique(borders), dtype=np.float64)


# ------------------------------------------------------------------------------------- the models


def _constant(counts: Floats, hours: Floats) -> Floats:
    return np.full(len(counts), counts.sum() / hours.sum())


def _log_linear(counts: Floats, hours: Floats) -> Floats:
    at, _ = _line(counts, hours)
    return np.asarray(np.exp(_design(len(counts)) @ at), dtype=np.float64)


def _design(n: int) -> Floats:
    """A one and the place from -1/2 to 1/2 of each bin, (n, 2)."""
    return np.stack([np.ones(n), (np.arange(n) + 0.5) / n - 0.5], axis=1)


def _line(counts: Floats, hours: Floats) -> tuple[Floats, Floats]:
    """Logarithm of the rate in the middle and its rise over the log, and their information."""
    design = _design(len(counts))
    at = np.array([np.log(counts.sum() / hours.sum()), 0.0])
    information = np.eye(2)
    for _ in range(STEPS):
        expected = hours * np.exp(design @ at)
        information = design.T @ (design * expected[:, None])
        step = np.clip(np.linalg.solve(information, design.T @ (counts - expected)), -2.0, 2.0)
        at = at + step
        if np.abs(step).max() < FLAT:
            break
    return at, information


def _pieces_of(n_pieces: int) -> Predicted:
    def predicted(counts: Floats, hours: Floats) -> Floats:
        firsts = best_pieces(counts, hours, n_pieces)
        n, h = np.add.reduceat(counts, firsts), np.add.reduceat(hours, firsts)
        each = np.maximum(n, LEAST) / h
        return np.repeat(each, np.diff(firsts, append=len(counts)))

    return predicted


def best_pieces(counts: Floats, hours: Floats, n_pieces: int) -> Ints:
    """The first bin of each of the most likely pieces, (n_pieces,); exact, piece after piece."""
    n = len(counts)
    before, passed = np.append(0.0, np.cumsum(counts)), np.append(0.0, np.cumsum(hours))
    number, time = before[None, :] - before[:, None], passed[None, :] - passed[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        likely = np.where(number > 0, number * np.log(number / time), 0.0)
    place = np.arange(n + 1)
    short = place[None, :] - place[:, None] < SMALLEST_BINS
    likely[short | ~(time > 0)] = -np.inf
    best, came_from = likely[0].copy(), []
    for _ in range(n_pieces - 1):
        through = best[:, None] + likely
        came_from.append(through.argmax(axis=0))
        best = through.max(axis=0)
    firsts, at = [], n
    for origin in reversed(came_from):
        at = int(origin[at])
        firsts.append(at)
    return np.array([0, *reversed(firsts)], dtype=np.int64)


# --------------------------------------------------------------------------------- what is held out


def _held_out(model: Predicted, counts: Floats, hours: Floats) -> Floats:
    """Log-likelihood of each block of bins under the model of the other folds, (n_blocks,)."""
    block = np.arange(len(counts)) // FOLD_BINS
    likely = np.zeros(len(counts))
    for fold in range(N_FOLDS):
        held_out: Bools = block % N_FOLDS == fold
        seen = np.where(held_out, 0.0, counts), np.where(held_out, 1e-9, hours)
        expected = model(*seen) * hours
        likely[held_out] = counts[held_out] * np.log(expected[held_out]) - expected[held_out]
    return np.asarray(np.bincount(block, weights=likely), dtype=np.float64)


def _gain(better: Floats) -> tuple[float, float]:
    """Sum over the blocks, and its standard error."""
    return float(better.sum()), float(sqrt(len(better)) * better.std(ddof=1))


# ------------------------------------------------------------------------------------ what is said


def _described(
    name: str, model: Predicted, counts: Floats, borders_h: Floats,
    gains: tuple[tuple[str, float, float], ...],
) -> Rates:  # fmt: skip
    hours = np.diff(borders_h)
    n_pieces = _n_pieces(name)
    firsts = best_pieces(counts, hours, n_pieces)
    expected = model(counts, hours) * hours
    pearson = ((counts - expected) ** 2 / expected).sum() / (len(counts) - _n_parameters(name))
    wider = max(float(pearson), 1.0)
    n, h = np.add.reduceat(counts, firsts), np.add.reduceat(hours, firsts)
    pieces = tuple(_rate(float(one), float(time), wider) for one, time in zip(n, h, strict=True))
    now, slope = pieces[-1], None
    if name == LOG_LINEAR:
        now, slope = _now_and_slope(counts, hours, float(borders_h[-1]), wider)
    ends_h = (*borders_h[firsts].tolist(), float(borders_h[-1]))
    return Rates(name, gains, ends_h, pieces, now, slope, wider)


def _n_pieces(name: str) -> int:
    return int(name.split()[0]) if name.endswith("pieces") else 1


def _n_parameters(name: str) -> int:
    """Rates and borders of a model."""
    return 2 if name == LOG_LINEAR else 2 * _n_pieces(name) - 1


def _rate(n: float, hours: float, wider: float) -> Estimate:
    rate, error = max(n, LEAST) / hours, sqrt(wider / max(n, LEAST))
    return _positive(rate, error, int(n))


def _positive(value: float, error: float, n: int) -> Estimate:
    by = exp(ROUNDED_Z_95 * error)
    return Estimate(value, value / by, value * by, n, How.LIKELIHOOD)


def _now_and_slope(
    counts: Floats, hours: Floats, until_h: float, wider: float
) -> tuple[Estimate, Estimate]:
    at, information = _line(counts, hours)
    covariance = wider * np.linalg.inv(information)
    end, n = np.array([1.0, 0.5]), int(counts.sum())
    now = _positive(exp(float(end @ at)), sqrt(float(end @ covariance @ end)), n)
    slope, error = float(at[1]) / until_h, ROUNDED_Z_95 * sqrt(float(covariance[1, 1])) / until_h
    return now, Estimate(slope, slope - error, slope + error, n, How.LIKELIHOOD)


# ------------------------------------------------------------------------------------ from now on


def since(outages: Outages, from_h: float) -> Outages:
    """The log from an instant on, which becomes its time 0; outages under way then are known."""
    start_h, end_h = outages.start_h - from_h, outages.end_h - from_h
    lives = None
    if outages.lives is not None:
        born_h, enters_h, leaves_h = (at_h - from_h for at_h in outages.lives)
        lives = born_h, np.maximum(enters_h, 0.0), leaves_h
    moved = replace(
        outages, start_h=start_h, end_h=end_h, window_h=outages.window_h - from_h,
        origin=instant(outages, from_h), window_given=(True, outages.window_given[1]),
        lives=lives,
    )  # fmt: skip
    kept = moved.where((start_h >= 0) | (end_h > 0))
    return kept if lives is None else kept.of_nodes(lives[2] > 0)


def fragment_from_now(
    outages: Outages, found: Rates, origin: str, n_job: int, observed: Observation
) -> str:
    """The section `failures` of a job that starts where the log ends: of the last piece alone.

    A log-linear rate is taken as that at the end of the log.

    Raises
    ------
    ParameterError
        where the last piece has too few failures to be fitted.
    """
    lines = [f"# simulates from now on, the rate of the log's end ({found.name}):"]
    if found.name == LOG_LINEAR:
        return "\n".join([*lines, *_exponential(outages, found, n_job)])
    last = since(outages, found.last_from_h) if found.changes else outages
    if found.changes:
        begins = Fact(last.origin, Source.INFERRED, "the last piece of a rate that changes")
        observed = replace(observed, begins=begins, window_h=last.window_h)
    written = fragment(fit_trace(last, n_bootstrap=0, observed=observed), origin, n_job)
    return "\n".join([*lines, written])


def _exponential(outages: Outages, found: Rates, n_job: int) -> list[str]:
    share = togetherness(outages).share_of_job(n_job, outages.n_nodes)
    mean, low, high = (1 / (rate * share) for rate in found.now_per_h.triple)
    return [
        f"# a Poisson process; for a job on {n_job} of {outages.n_nodes} nodes",
        "failures:",
        "  kind: job",
        f"  nodes: {n_job}  # of the job with this rate",
        "  family: exponential",
        f"  mtbf: {mean:.6g} h",
        f"  mtbf_95: [{high:.4g} h, {low:.4g} h]",
        "  role: any",
        "  clock: wall",
        "",
    ]


# ------------------------------------------------------------------------------ through the window


def fragment_through_window(
    fitted: TraceFit, found: Rates, origin: str, n_job: int, random: RandomRate | None = None
) -> str:
    """The section `failures` of a job somewhere in the log's window, with its rate as it changes.

    A random factor is on the rate where the log has one: a job on some of the nodes meets some of
    the failures, at a rate with the same factor.

    Raises
    ------
    ParameterError
        where a scenario does not take the window or a rate.
    """
    outages, course = fitted.outages, found.course
    share = fitted.together.share_of_job(n_job, outages.n_nodes)
    limits.within("the length of the log", course.window_h, (0.0, limits.MOST_WATCHED_H), "h")
    rates = [*course.begins_per_h, *([] if found.slope_per_h is None else course.ends_per_h)]
    mtbf_h = [1 / (rate * share) for rate in rates]
    for one in mtbf_h:
        limits.within("the mean", one, limits.MTBF_H, "h")
    known = [f"{1 / (one.high * share):.4g} to {1 / (one.low * share):.4g} h"
             for one in found.pieces_per_h]  # fmt: skip
    is_random = random is not None and random.is_claimed
    wanders = " with a random factor on its rate" if is_random else ""
    pieces = "of the whole" if found.slope_per_h is not None else "piece by piece"
    lines = [
        *opening(fitted, origin),
        f"# simulates the log's window with its rate as it changes ({found.name}): a Poisson "
        f"process{wanders};",
        "# each job begins at a random instant of the window",
        f"# for a job on {n_job} of {outages.n_nodes} nodes; "
        f"{fitted.together.share_of_zero_gaps:.1%} of all gaps are zero (nodes that failed "
        "together), one failure each here",
        "failures:",
        "  kind: changing",
        f"  nodes: {n_job}  # of the job with this rate",
        f"  borders: [{', '.join(f'{at_h:.6g} h' for at_h in course.borders_h)}]",
        f"  mtbf: [{', '.join(f'{one:.6g} h' for one in mtbf_h)}]",
        f"  # 95 % {pieces}: {', '.join(known)}",
        *([] if random is None else _factor_lines(random)),
        "  role: any",
        "  clock: wall",
    ]
    return "\n".join([*lines, *repair_lines(fitted)]) + "\n"


def _factor_lines(random: RandomRate) -> list[str]:
    factor = random.factor
    if factor is None:
        return [f"  # {random.in_words()}"]
    limits.within("the variance of the factor", factor.variance, limits.FACTOR_VARIANCE)
    limits.within("the length of a stretch", factor.lasts_h, limits.MTBF_H, "h")
    return [
        f"  factor: {{variance: {factor.variance:.6g}, lasts: {factor.lasts_h:.6g} h}}",
        f"  # {random.in_words()}",
    ]
