"""How often intervals hold the truth on simulated fleets, and how often warnings come.

python -m benchmarks.fit_coverage [fleets of each kind, default 400] [journal] [kinds, default all]

for example ``400 results/fit-coverage.json ages families``.

Of 400 fleets, 95 % intervals that are right hold the truth in 91.0 to 98.2 % (99.9 % of the time).
A run that was stopped goes on where its journal ends.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from math import gamma
from pathlib import Path
from time import process_time

import numpy as np

from benchmarks.coverage_of_intervals import Row, band, keep, kept
from cprsim.errors import ParameterError
from cprsim.failures.outages import Outages, with_lives
from cprsim.fitting.by_group import hazard_ratios
from cprsim.fitting.coalescing import coalesced
from cprsim.fitting.families import WEIBULL, Fit, fit
from cprsim.fitting.goodness import rank
from cprsim.fitting.lifetimes import gaps, uptimes
from cprsim.fitting.random_rate import RandomRate, random_rate
from cprsim.fitting.rate_change import change, power
from cprsim.fitting.rates import LOG_LINEAR, rates, rates_and_factor
from cprsim.fitting.trace_fit import TraceFit, fit_trace
from cprsim.fitting.trend import silences, trend
from cprsim.records import Floats
from tests.fitting.logs import gaps_on_random_nodes, lemons, log_of
from tests.fitting.test_coalescing import bursts
from tests.fitting.test_competing_causes import competing
from tests.fitting.test_groups import batches
from tests.fitting.test_lives import fleet
from tests.fitting.test_random_rate import LASTS_H, VARIANCE, wandering
from tests.fitting.test_rates import SLOPE, now_per_h, ramp, step
from tests.fitting.test_rates import WINDOW_H as RATE_WINDOW_H
from tests.fitting.test_rates import changing as changing_rate

Held = tuple[str, float, float, float]  # what, truth, low, high
Seen = Held | tuple[str, bool]  # or a warning, and whether it came


def _of(fitted: Fit, shape: float, name: str) -> Held:
    return f"{name}: shape", shape, fitted.parameters[0].low, fitted.parameters[0].high


def changing(seed: int) -> Iterator[Held]:
    """Fleets whose nodes join and leave, told so and not."""
    log, lives = fleet(seed, n_nodes=100)
    told = fit(WEIBULL, uptimes(with_lives(log, lives)))
    yield _of(told, 2.9, "nodes join and leave, told")
    yield "nodes join and leave, told: mean", 1500.0, told.mean.low, told.mean.high
    yield _of(fit(WEIBULL, uptimes(log)), 2.9, "nodes join and leave, not told")


def causes(seed: int) -> Iterator[Held]:
    """Disks and networks that compete."""
    log = competing(seed, n_nodes=3)
    yield _of(fit(WEIBULL, uptimes(log.choosing("disk"))), 3.0, "causes compete, disk")
    yield _of(fit(WEIBULL, uptimes(log.choosing("network"))), 1.0, "causes compete, network")
    yield _of(fit(WEIBULL, uptimes(log)), 3.0, "causes compete, disk, all causes as one")


def repeats(seed: int) -> Iterator[Held]:
    """Failures that repeat within minutes."""
    log = bursts(seed, n=100)
    yield _of(fit(WEIBULL, uptimes(coalesced(log, 0.15))), 1.5, "repeats, coalesced in 9 min")
    yield _of(fit(WEIBULL, uptimes(log)), 1.5, "repeats, as they are")


def grouped(seed: int) -> Iterator[Held]:
    """Batches whose hazards differ, whatever their course over age."""
    log, groups = batches(seed)
    times = uptimes(log)
    (ratio,) = hazard_ratios(times, groups.code[times.unit], 2)
    if ratio is not None:
        yield "batches: ratio of hazards", 2.0, ratio.low, ratio.high


COURSES: dict[str, tuple[Callable[[Floats], Floats], str]] = {  # and the model that is true
    "steady": (np.ones_like, ""),
    "falling to 30 %": (ramp, LOG_LINEAR),
    "2.5 times from 0.6 on": (step, "2 pieces"),
    "falling to 55 %": (lambda at: np.exp(-0.6 * at), ""),
    "a bathtub, three times at the ends": (lambda at: 1 + 8 * (at - 0.5) ** 2, ""),
}


def courses(seed: int) -> Iterator[Seen]:
    """Rates that change: slope, rate at the end by the true model and by all, and warnings."""
    for name, (rate, model) in COURSES.items():
        log, truth = changing_rate(seed, 300, rate), now_per_h(300, rate)
        found = rates(log)
        yield f"rate at the end, {name}", truth, found.now_per_h.low, found.now_per_h.high
        yield f"the rate changes (held out): {name}", found.changes
        yield f"a trend: {name}", trend(log).differs
        if not model:
            continue
        known = rates(log, model)
        yield (
            f"the same by the true model, {name}",
            truth,
            known.now_per_h.low,
            known.now_per_h.high,
        )
        if (slope := known.slope_per_h) is not None:
            yield f"its slope per hour, {name}", SLOPE / RATE_WINDOW_H, slope.low, slope.high


def factors(seed: int) -> Iterator[Seen]:
    """Rates with a random factor, 600 failures; and such without one."""
    for variance, lasts_h in ((VARIANCE, LASTS_H), (1.5, 20.0), (0.3, 300.0)):
        name = f"a random factor of variance {variance:g} that lasts {lasts_h:g} h"
        log = wandering(seed, 600, variance, lasts_h)
        course, found = rates_and_factor(log)
        assert found is not None, "the log is long enough"
        yield f"{name}: claimed", found.is_claimed
        yield f"the rate changes: {name}", course.changes
        yield from _random(name, found, variance, lasts_h)
        known = random_rate(log, rates(log, "constant").course)
        yield from _random(f"{name}, by the true course", known, variance, lasts_h)
    without = {name: changing_rate(seed, 300, rate) for name, (rate, _) in COURSES.items()}
    without["60 nodes of shape 0.8"] = lemons(seed, mean_h=400.0, others_h=400.0, shape=0.8)
    for name, log in without.items():
        _, found = rates_and_factor(log)
        yield f"a random factor: {name}", found is not None and found.is_claimed


def _random(name: str, found: RandomRate, variance: float, lasts_h: float) -> Iterator[Held]:
    """The intervals of what is claimed."""
    if found.is_claimed:
        yield f"{name}: variance", variance, found.variance.low, found.variance.high
        if found.lasts_h.has_interval:
            yield f"{name}: length", lasts_h, found.lasts_h.low, found.lasts_h.high


def unwatched(seed: int) -> Iterator[Seen]:
    """120 failures, watched for the whole window, or for four fifths of it."""
    rng = np.random.default_rng(seed)
    for name, gaps_h in (
        ("Poisson", rng.exponential(1.0, 400)),
        ("gaps of shape 0.5", rng.weibull(0.5, 400) / 2),
    ):
        at_h = np.cumsum(gaps_h)
        for watched, window_h in ((1.0, 120.0), (0.8, 150.0)):
            log = log_of(at_h[at_h < window_h * watched], window_h, given=True)
            yield f"a silent end: {name}, watched {watched:.0%}", bool(silences(log))


def ages(seed: int) -> Iterator[Seen]:
    """60 nodes of shape 2 and mean 500 h, watched for 2,000 h: new at the beginning, or not."""
    rng = np.random.default_rng(seed)
    at_h = np.cumsum(500 / gamma(1.5) * rng.weibull(2.0, (60, 40)), axis=1)
    node = np.repeat(np.arange(60), 40)
    for name, from_h in (("new", 0.0), ("of any age", 5000.0)):
        log = log_of(at_h.ravel() - from_h, 2000.0, node, 60, 1e-4, given=True)
        warned = fit_trace(log, n_bootstrap=0).warnings
        yield f"ages matter: nodes {name}", any("ages" in one for one in warned)


def unequal(seed: int) -> Iterator[Seen]:
    """60 nodes of shape 0.8: alike, or three with a third or a tenth of the others' mean."""
    for factor in (1.0, 3.0, 10.0):
        log = lemons(seed, mean_h=400 / factor, others_h=400.0, shape=0.8)
        yield f"nodes differ: three worse by {factor:g}", _fit(log).asks_for_correlation


def _fit(log: Outages) -> TraceFit:
    return fit_trace(log, n_bootstrap=0)


def families(seed: int) -> Iterator[Seen]:
    """200 gaps of a family, or a third of them of 24 h, as something comes by every night."""
    rng = np.random.default_rng(seed)
    nightly = np.where(rng.random(200) < 1 / 3, rng.normal(24, 0.1, 200), rng.exponential(24, 200))
    for name, gaps_h in (
        ("Weibull gaps", 10 * rng.weibull(0.7, 200)),
        ("a third are of 24 h", nightly),
    ):
        ranking = rank(gaps(gaps_on_random_nodes(gaps_h, 60, seed)), seed=seed)
        yield f"no family fits: {name}", ranking.none_fits


def since(seed: int) -> Iterator[Seen]:
    """50 failures before, and as many, or more, in as long a time after."""
    rng = np.random.default_rng(seed)
    for ratio in (1.0, 1.5, 2.0, 3.0):
        n, m = rng.poisson(50), rng.poisson(50 * ratio)
        told = power(50, 50.0, 0.5, ratio)
        warned = change(int(n), 1.0, int(m), 1.0).is_change
        yield f"--since-last: {ratio:g} times the rate (power told {told:.1%})", warned


KINDS: tuple[Callable[[int], Iterator[Seen]], ...] = (  # those that take longest last
    changing, causes, repeats, grouped, courses, factors, unwatched, since, ages, unequal,
    families,
)  # fmt: skip
AT_ONCE = 20  # seeds between two writings of the journal


def _row(kind: str, seed: int, seen: Seen) -> Row:
    what, value, *interval = seen
    row = {"kind": kind, "seed": seed, "what": what}
    if not interval:
        return {**row, "said": bool(value)}
    low, high = interval
    return {**row, "holds": bool(low <= value <= high), "width": high - low}


def _print(rows: list[Row]) -> None:
    """How often each interval held the truth, and each warning came."""
    of_what: dict[str, list[Row]] = {}
    for row in rows:
        of_what.setdefault(row["what"], []).append(row)
    for what, found in of_what.items():
        if "said" in found[0]:
            print(f"  {what}: said {np.mean([row['said'] for row in found]):.1%} of {len(found)}")
            continue
        inside, width = (np.array([row[name] for row in found]) for name in ("holds", "width"))
        print(f"  {what}: {inside.mean():.1%} of {len(found)}, median width {np.median(width):.3g}")


def _chosen(names: list[str]) -> list[Callable[[int], Iterator[Seen]]]:
    """The kinds of these names, or all. Raises ParameterError for another name."""
    kinds = {kind.__name__: kind for kind in KINDS}
    if unknown := sorted(set(names) - set(kinds)):
        raise ParameterError(f"{', '.join(unknown)}: no such kind; there are {', '.join(kinds)}")
    return [kinds[name] for name in kinds if not names or name in names]


def main(n_fleets: int, journal: Path | None, kinds: list[str]) -> None:
    """Print the coverage and the median width of every interval, and the rates of warnings."""
    low, high = band(n_fleets)
    print(f"{n_fleets} fleets each; right intervals: {low:.1%} to {high:.1%}")
    rows = kept(journal)
    for kind in _chosen(kinds):
        done = {row["seed"] for row in rows if row["kind"] == kind.__name__}
        begin = process_time()
        for seed in range(n_fleets):
            if seed not in done:
                rows += [_row(kind.__name__, seed, one) for one in kind(seed)]
            if seed % AT_ONCE == AT_ONCE - 1:
                keep(journal, rows)
        keep(journal, rows)
        n_now = sum(seed not in done for seed in range(n_fleets))
        print(f"{kind.__name__}: {n_now} fleets now, {process_time() - begin:.0f} s of CPU time")
        _print([row for row in rows if row["kind"] == kind.__name__ and row["seed"] < n_fleets])
        sys.stdout.flush()


if __name__ == "__main__":
    main(
        int(sys.argv[1]) if len(sys.argv) > 1 else 400,
        Path(sys.argv[2]) if len(sys.argv) > 2 else None,
        sys.argv[3:],
    )
