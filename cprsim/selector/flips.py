"""What would reverse the decision: each input and the limit alone, and draws of the failures.

The decision is whether any option within the limit surely costs less than full recovery at its
best. Each value is decided by a selection of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np
from scipy import optimize

from cprsim.experiments.assemble import Experiment
from cprsim.selector.choice import DrawnDecisions, Flip
from cprsim.selector.deciding import Decided, decide
from cprsim.selector.inputs import Input, inputs_of
from cprsim.selector.option import FULL
from cprsim.selector.pricing import FEWEST, Bench, affordable
from cprsim.selector.search import last_that_pays

STRIDE = 1.5  # from one value that is tried to the next
STRIDES = (0.25, 1.25, 2.25, 3.25)  # tries, in strides from where the formulas see the flip
UNKNOWN = 1.0  # how far from the flip an input is, where no formula tells
CLOSE = 0.004  # relative: how near the flip is come to
TAIL = 0.05  # of the draws, on either side of what is shown


def flips(
    bench: Bench, decided: Decided, step: Callable[[], None] = lambda: None, *, limited: bool
) -> tuple[Flip, ...]:
    """The value of each input at which the decision flips, and of the limit; None: there is none.

    Nothing flips where full recovery is compared with nothing.
    """
    names, found = _contenders(bench, decided), []
    if not names:
        return ()
    lead = _lead(bench, decided)
    for one in inputs_of(bench.experiment):
        found.append(_flip(one, bench, names, decided, lead))
        step()
    return (*found, *([_limit_flip(bench, decided)] if limited else []))


def decide_again(
    bench: Bench, decided: Decided, draws: Sequence[Experiment], step: Callable[[], None]
) -> DrawnDecisions | None:
    """In which share of the draws the decision holds, and how the interval spreads."""
    if not draws:
        return None
    chosen, names = decided.chosen, list(bench.options)
    if not all(one.is_strategy for one in bench.options.values()):  # systems take longer
        names = [chosen.strategy, *_contenders(bench, decided)]
        n = min(FEWEST, *(one.simulation.replications or FEWEST for one in draws))
        draws = [one.simulated(replications=n) for one in draws]
    same, kept, intervals_h = [], [], []
    for experiment in draws:
        drawn = _varied(bench, experiment, names)
        again = decide(drawn)
        same.append(again.is_full == decided.is_full)
        one = again.full if decided.is_full else again.best.get(chosen.strategy)
        intervals_h.append(0.0 if one is None else one.policy.interval_h)
        (as_chosen,) = drawn.price(chosen.strategy, [chosen.policy.interval_h])
        kept.append(as_chosen.keeps(bench.limit))
        step()
    ends = np.quantile(intervals_h, [TAIL, 1 - TAIL], method="nearest")
    return DrawnDecisions(
        n=len(draws),
        same_fraction=float(np.mean(same)),
        kept_fraction=float(np.mean(kept)),
        low_h=float(ends[0]),
        high_h=float(ends[1]),
    )


def _varied(bench: Bench, experiment: Experiment, names: Iterable[str]) -> Bench:
    """Full recovery and some options in another experiment."""
    options = {name: bench.options[name] for name in (FULL, *names)}
    return Bench(experiment, options, bench.limit, bench.tails)


def _contenders(bench: Bench, decided: Decided) -> list[str]:
    """The options that could be the last to pay: the cheapest of each kind of saves."""
    cheapest: dict[object, str] = {}
    for name, _ in sorted(decided.there.items(), key=lambda one: one[1].mean_overhead):
        kind = bench.kind(name) if bench.options[name].is_strategy else "system"
        cheapest.setdefault(kind, name)
    return list(cheapest.values()) or [name for name in bench.options if name != FULL]


def _lead(bench: Bench, decided: Decided) -> float:
    """What full recovery's saves and rework cost, over the best option's saves.

    Below 1 where no option keeps the limit: saves or failures would have to be rarer or cheaper.
    1 where a recovery system decides, of which no formula is known.
    """
    there = decided.there.values()
    if not there:
        return 1 / STRIDE
    if not min(there, key=lambda one: one.mean_overhead).policy.is_strategy:
        return UNKNOWN
    save_h, useful_h = bench.saves(FULL)[1], bench.experiment.useful_h
    saving = min(one.n_saves + 1 for one in there) * save_h / useful_h
    # at its best interval, full recovery saves for as long as it works again
    full = 2 * decided.full.n_saves * save_h / useful_h
    return full / saving if saving > 0 and full > 0 else 1.0


def _advantage(decided: Decided) -> float:
    """By how much the best option surely undercuts full recovery, as a share of useful time.

    1 or -1 where only one of the two finishes.
    """
    full, gains = decided.full, [-1.0]
    for one in decided.there.values():
        both = one.finished and full.finished
        gains.append(full.more_than(one).low if both else 1.0 if one.finished else -1.0)
    return max(gains)


# --------------------------------------------------------------------------- one input


def _flip(varied: Input, bench: Bench, names: list[str], decided: Decided, lead: float) -> Flip:
    if lead == UNKNOWN:
        varied = replace(varied, sense=0)
    known = {varied.now: _advantage(decided)}

    def advantage(value: float) -> float:
        value = float(round(value)) if varied.whole else value
        if value not in known:
            changed = varied.set_to(value)
            most = affordable(changed, tail=bench.limit.risk is not None)
            if not all(bench.options[name].is_strategy for name in names):
                most = min(most, FEWEST)  # they take longer
            n = min(bench.experiment.simulation.replications or most, most)
            again = _varied(bench, changed.simulated(replications=n), names)
            known[value] = _advantage(decide(again, worth=1.0))
        return known[value]

    inner = varied.now
    for outer in _tries(varied, lead):
        if (advantage(outer) > 0) == decided.is_full:
            at = _closed_in(advantage, inner, outer, varied)
            return Flip(varied.name, varied.unit, varied.now, at)
        if varied.sense != 0:
            inner = outer  # further out on the same side
    furthest = {min(known), max(known)} - {varied.now}
    return Flip(varied.name, varied.unit, varied.now, None, tuple(sorted(furthest)))


def _tries(varied: Input, lead: float) -> list[float]:
    """Values to try, outwards from the present one, from where first-order formulas flip."""
    factor = lead ** (2 * varied.sense)
    if varied.sense == 0 or varied.now == 0 or factor == 1:
        return [value for value in (varied.highest, varied.lowest) if value != varied.now]
    outwards = STRIDE if factor > 1 else 1 / STRIDE
    tries = [varied.now * factor * outwards**k for k in STRIDES]
    within = [min(max(value, varied.lowest), varied.highest) for value in tries]
    if varied.whole:
        within = [float(round(value)) for value in within]
    return [value for value in dict.fromkeys(within) if (value > varied.now) == (factor > 1)]


def _closed_in(
    advantage: Callable[[float], float], inner: float, outer: float, varied: Input
) -> float:
    """The value between two at which the advantage changes its sign.

    With f the factor on costs or failures, the advantage is close to ``a sqrt(f) - b f``, so that
    over sqrt(f) it is a line in sqrt(f): there its root is looked for.
    """
    if varied.whole:
        return _first_whole(advantage, round(inner), round(outer))
    power = 0.5 if varied.sense >= 0 else -0.5
    scale = varied.now or outer

    def straightened(x: float) -> float:
        return advantage(scale * x ** (1 / power)) / x

    ends = [max(value, varied.lowest) / scale for value in (inner, outer)]
    low, high = sorted(end**power for end in ends)
    if (straightened(low) > 0) == (straightened(high) > 0):
        return inner  # it flips on the spot
    near = CLOSE / 2
    root = optimize.brentq(straightened, low, high, xtol=low * near, rtol=near, maxiter=50)
    return float(scale * root ** (1 / power))


def _first_whole(advantage: Callable[[float], float], same: int, other: int) -> float:
    """The first whole number, on the way from one to another, at which the decision is another."""
    decision = advantage(other) > 0
    while abs(other - same) > 1:
        middle = (same + other) // 2
        if (advantage(middle) > 0) == decision:
            other = middle
        else:
            same = middle
    return float(other)


def _limit_flip(bench: Bench, decided: Decided) -> Flip:
    """The limit below which no option pays."""
    limit, at = bench.limit, None
    there = [one for one in decided.there.values() if not one.policy.leaves_stale]
    if not any(one.surely_cheaper(decided.full) for one in there):
        losing = [name for name in bench.losing if bench.options[name].interval is not None]
        last = [last_that_pays(bench, name, decided.full) for name in losing]
        at = min((limit.bound(one.lost) for one in last if one is not None), default=None)
    return Flip(f"a limit of the {limit.words}", "", limit.most, at)
