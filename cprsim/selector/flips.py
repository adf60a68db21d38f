"""What would reverse the decision: each input and the limit alone.

The decision is whether any option within the limit surely costs less than full recovery at its
best. Each value is decided by a selection of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from math import inf

from scipy import optimize

from cprsim.experiments.assemble import Experiment
from cprsim.failures.distributions import Constant
from cprsim.failures.injected import Injected
from cprsim.failures.several import Stretched
from cprsim.records import Duration, Transfer
from cprsim.recovery.policy import PartOf
from cprsim.selector.choice import Flip
from cprsim.selector.deciding import Decided, decide, is_priced
from cprsim.selector.limit import Limit
from cprsim.selector.option import FULL
from cprsim.selector.pricing import FEWEST, Bench, Priced, affordable
from cprsim.selector.search import most_writes

CLOSE = 0.004  # relative: how near the flip is come to
SECOND_H = 1 / 3600.0
GBIT_S = 3600e9 / 8  # bytes per hour
MOST_TIMES = 30.0  # an input is varied up to so many times, and down to so many parts
RECOVERY_TIMES = 10.0  # and what a recovery costs: it costs partial and full recovery alike
MOST_FAILURES = 30.0  # per job: more often than that no input is tried


@dataclass(frozen=True, slots=True)
class Input:
    """An input of an experiment."""

    name: str  # name, unit: as shown; `h` is shown in the unit that suits it
    unit: str
    now: float  # its value
    lowest: float  # lowest, highest: how far it may be varied
    highest: float
    set_to: Callable[[float], Experiment]  # the experiment with another value
    # 1 where more of it takes partial recovery's advantage, -1 where less does, 0: not known
    sense: int
    whole: bool = False  # whether it counts something


def flips(
    bench: Bench, decided: Decided, step: Callable[[], None] = lambda: None, *, limited: bool
) -> tuple[Flip, ...]:
    """The value of each input at which the decision flips, and of the limit; None: there is none.

    Nothing flips where full recovery is compared with nothing.
    """
    names, flipped = contenders(bench, decided), []
    if not names:
        return ()
    for varied in inputs_of(bench.experiment):
        flipped.append(_flip(varied, bench, names, decided))
        step()
    return (*flipped, *([_limit_flip(bench, decided)] if limited else []))


def with_experiment(bench: Bench, experiment: Experiment, names: Iterable[str]) -> Bench:
    """Full recovery and some options in another experiment."""
    options = {name: bench.options[name] for name in (FULL, *names)}
    return Bench(experiment, options, bench.limit, bench.tails)


def contenders(bench: Bench, decided: Decided) -> list[str]:
    """The options that could be the last to pay: the cheapest of each kind of saves."""
    cheapest: dict[object, str] = {}
    for name, _ in sorted(decided.within_limit.items(), key=lambda option: option[1].mean_overhead):
        kind = bench.kind(name) if bench.options[name].is_strategy else "system"
        cheapest.setdefault(kind, name)
    return list(cheapest.values()) or [name for name in bench.options if name != FULL]


def _advantage(decided: Decided, limit: Limit) -> float:
    """By how much the best option surely undercuts full recovery, as a share of useful time.

    1 or -1 where only one of the two finishes.
    """
    full, gains = decided.full, [-1.0]
    for priced in decided.within_limit.values():
        if is_priced(priced, limit):
            if priced.finished and full.finished:
                gains.append(full.more_than(priced).low)
            else:
                gains.append(1.0 if priced.finished else -1.0)
    return max(gains)


def _flip(varied: Input, bench: Bench, names: list[str], decided: Decided) -> Flip:
    strategies = all(bench.options[name].is_strategy for name in names)

    @cache
    def advantage(value: float) -> float:
        if value == varied.now:
            return _advantage(decided, bench.limit)
        changed = varied.set_to(value)
        most = affordable(changed, tail=bench.limit.risk is not None)
        n = min(bench.experiment.simulation.replications or most, most)
        if not strategies:
            n = min(n, FEWEST)  # they take longer
        again = decide(
            with_experiment(bench, changed.simulated(replications=n), names), most_times=1.0
        )
        return _advantage(again, bench.limit)

    ends = [varied.highest, varied.lowest]
    if strategies and varied.sense:  # formulas say on which side the decision flips
        ends = [varied.lowest if (varied.sense > 0) == decided.is_full else varied.highest]
    tried_ends = [end for end in ends if end != varied.now]
    for end in tried_ends:
        if (advantage(end) > 0) == decided.is_full:
            at = _closed_in(advantage, varied, end)
            return Flip(varied.name, varied.unit, varied.now, at)
    return Flip(varied.name, varied.unit, varied.now, None, tuple(sorted(tried_ends)))


def _closed_in(advantage: Callable[[float], float], varied: Input, end: float) -> float:
    """The value at which the advantage changes its sign, between the present one and an end.

    With f the factor on costs or failures, the advantage is close to ``a sqrt(f) - b f``, so that
    over sqrt(f) it is a line in sqrt(f): there its root is looked for.
    """
    flipped = advantage(end) > 0
    if varied.whole:
        return first_whole(lambda n: (advantage(n) > 0) == flipped, round(varied.now), round(end))
    inner = max(varied.now, varied.lowest)
    if (advantage(inner) > 0) == flipped:  # what costs nothing flips with the least that it may
        return inner
    power = 0.5 if varied.sense >= 0 else -0.5
    ends = {value**power: value for value in (inner, end)}

    def straightened(x: float) -> float:
        return advantage(ends.get(x, x ** (1 / power))) / x

    low, high = sorted(ends)
    root = optimize.brentq(straightened, low, high, xtol=low * CLOSE / 2, rtol=CLOSE / 2)
    return float(root ** (1 / power))


def first_whole(is_other: Callable[[int], bool], inner: int, outer: int) -> int:
    """The first whole number, on the way from one to another, for which something else holds."""
    while abs(outer - inner) > 1:
        middle = (inner + outer) // 2
        inner, outer = (inner, middle) if is_other(middle) else (middle, outer)
    return outer


def _limit_flip(bench: Bench, decided: Decided) -> Flip:
    """The limit below which no option pays."""
    limit, at = bench.limit, None
    lossless = [
        priced for priced in decided.within_limit.values() if not priced.policy.leaves_stale
    ]
    if not any(priced.surely_cheaper(decided.full) for priced in lossless):
        losing = [name for name in bench.losing if bench.options[name].interval is not None]
        last = [_last_that_pays(bench, name, decided.full) for name in losing]
        at = min((limit.bound(priced.lost) for priced in last if priced is not None), default=None)
    return Flip(f"a limit of the {limit.words}", "", limit.most, at)


def _last_that_pays(bench: Bench, name: str, full: Priced) -> Priced | None:
    """The candidate with the most writes that still surely costs less than full recovery."""

    def too_many(n_writes: int) -> bool:
        return not bench.with_writes(name, [n_writes])[0].surely_cheaper(full)

    fewest = bench.options[name].n_fewest
    if too_many(fewest):
        return None
    n_writes = first_whole(too_many, fewest, most_writes(bench, name, full) + 1) - 1
    return bench.with_writes(name, [n_writes])[0]


# --------------------------------------------------------------------------- the inputs


def inputs_of(experiment: Experiment) -> Iterator[Input]:
    """What can be varied, one at a time, from 1 / `MOST_TIMES` to `MOST_TIMES` of what it is."""
    yield _saving(experiment)
    yield from _recovery(experiment)
    yield from _failures(experiment)


def _times(duration: Duration, factor: float) -> Duration:
    """A duration times a factor, of the same draws; a fixed one stays fixed."""
    if isinstance(duration, Constant):
        return Constant(duration.mean_h * factor)
    return PartOf(duration, factor, 0.0)


def _saving(experiment: Experiment) -> Input:
    """The bandwidth of the storage, where saves go over it; else the cost of a save."""
    costs, stall, storage = experiment.costs, experiment.costs.save_stall, experiment.costs.storage
    if isinstance(stall, Transfer):
        assert storage is not None, "a transfer has a storage"
        rate, server_rate = storage.bandwidth_bytes_per_h, storage.server_bandwidth_bytes_per_h
        now = rate / GBIT_S

        def faster(value: float) -> Experiment:
            by = value / now
            changed = replace(
                storage,
                bandwidth_bytes_per_h=rate * by,
                server_bandwidth_bytes_per_h=server_rate * by,
            )
            return replace(experiment, costs=replace(costs, storage=changed))

        ends = now / MOST_TIMES, now * MOST_TIMES
        return Input("a bandwidth of the storage", "Gbit/s", now, *ends, faster, -1)

    def costlier(value_h: float) -> Experiment:
        saving = _times(stall, value_h / now_h) if now_h > 0 else Constant(value_h)
        return replace(experiment, costs=replace(costs, save_stall=saving))

    now_h = stall.mean_h
    around_h = now_h or SECOND_H  # what costs nothing may cost something
    ends_h = around_h / MOST_TIMES, around_h * MOST_TIMES
    return Input("a cost of a save", "h", now_h, *ends_h, costlier, 1)


def _recovery(experiment: Experiment) -> Iterator[Input]:
    costs, scopes, load = experiment.costs, experiment.scopes, experiment.costs.load
    shared = zip(experiment.expected_shares, scopes, strict=True)
    detect_h = sum(share * scope.detect.mean_h for share, scope in shared)  # whatever its scope
    load_h = costs.mean_h(load, experiment.cluster.n_emb_ps)
    now_h = detect_h + costs.reschedule.mean_h + load_h
    if now_h == 0 or isinstance(load, Transfer):
        return

    def set_to(value_h: float) -> Experiment:
        by = value_h / now_h
        slower = replace(
            costs,
            load=_times(load, by),
            detect=_times(costs.detect, by),
            reschedule=_times(costs.reschedule, by),
        )
        noticed = tuple(replace(scope, detect=_times(scope.detect, by)) for scope in scopes)
        return replace(experiment, costs=slower, scopes=noticed)

    name = "a cost of a recovery (detection, rescheduling, load)"
    yield Input(name, "h", now_h, now_h / RECOVERY_TIMES, now_h * RECOVERY_TIMES, set_to, 0)


def _failures(experiment: Experiment) -> Iterator[Input]:
    """Their number, where so many are injected at random; else how far they lie apart."""
    failures, useful_h = experiment.failures, experiment.useful_h
    if isinstance(failures, Injected):
        now = failures.count
        if failures.at_h is None and now > 0:
            yield Input(
                "a number of failures per job", "", now, 1,
                int(min(now * MOST_TIMES, max(MOST_FAILURES, now))),
                lambda n: replace(experiment, failures=replace(failures, count=round(n))),
                sense=1, whole=True,
            )  # fmt: skip
        return
    now_h = failures.expected(experiment.cluster, useful_h).mtbf_h
    if now_h < inf:
        shortest_h = min(max(now_h / MOST_TIMES, useful_h / MOST_FAILURES), now_h)
        yield Input(
            "an MTBF of the job", "h", now_h, shortest_h, now_h * MOST_TIMES,
            lambda value_h: replace(experiment, failures=Stretched(failures, value_h / now_h)),
            -1,
        )  # fmt: skip
