"""Which input would have to change, and to what, for the decision to be another.

One input at a time, all else as it is; the decision is whether any strategy within the limit
surely costs less than full recovery at its best. Each value is decided by a selection of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from scipy import optimize

from cprsim.scenario.recovery import RecoverySection
from cprsim.selector.choice import Flip
from cprsim.selector.deciding import Decided, decide, difference, loses, surely_cheaper
from cprsim.selector.inputs import Input, inputs_of
from cprsim.selector.limit import NO_LIMIT, Limit
from cprsim.selector.pricing import FEWEST, FULL, Bench, Priced, affordable, kind_of
from cprsim.selector.search import fewest, has_interval, mean_save_h, most_writes
from cprsim.selector.words import quantity_of

STRIDE = 1.5  # from one value that is tried to the next
STRIDES = (0.25, 1.25, 2.25, 3.25)  # tries, in strides from where the formulas see the flip
UNKNOWN = 1.0  # how far from the flip an input is, where no formula tells
CLOSE = 0.004  # relative: how near the flip is come to


def flips(
    bench: Bench, decided: Decided, limit: Limit | None, step: Callable[[], None] = lambda: None
) -> tuple[Flip, ...]:
    """The value of each input at which the decision flips, and of the limit; None: there is none.

    Nothing flips where full recovery is compared with nothing.
    """
    names = contenders(bench, decided)
    if not names:
        return ()
    few = replace(bench, ways={FULL: None, **{name: bench.ways[name] for name in names}}, _known={})
    lead, held = _lead(bench, decided), limit or NO_LIMIT
    found = []
    for one in inputs_of(bench.experiment):
        found.append(_flip(one, few, held, decided, lead))
        step()
    return (*found, *([] if limit is None else [_limit_flip(bench, decided, limit)]))


def contenders(bench: Bench, decided: Decided) -> list[str]:
    """The strategies that could be the last to pay: the cheapest of each kind of saves."""
    cheapest: dict[object, str] = {}
    there = {name: one for name, one in decided.best.items() if one is not None}
    for name in sorted(there, key=lambda name: there[name].mean_overhead):
        way = bench.ways[name]
        kind = RecoverySection if isinstance(way, RecoverySection) else kind_of(way)
        cheapest.setdefault(kind, name)
    return list(cheapest.values()) or [name for name in bench.ways if name != FULL]


def _lead(bench: Bench, decided: Decided) -> float:
    """What full recovery's saves and rework cost, over the best strategy's saves.

    Below 1 where no strategy keeps the limit: saves or failures would have to be rarer or cheaper.
    1 where a recovery system decides, of which no formula is known.
    """
    there = [one for one in decided.best.values() if one is not None]
    if not there:
        return 1 / STRIDE
    if is_system(bench, min(there, key=lambda one: one.mean_overhead).strategy):
        return UNKNOWN
    least = min(one.n_saves + 1 for one in there)
    saving = least * mean_save_h(bench) / bench.experiment.useful_h
    # at its best interval, full recovery saves for as long as it works again
    full = 2 * decided.full.n_saves * mean_save_h(bench) / bench.experiment.useful_h
    return full / saving if saving > 0 and full > 0 else 1.0


def _flip(varied: Input, bench: Bench, limit: Limit, decided: Decided, lead: float) -> Flip:
    partial_now = decided.chosen is not decided.full
    if lead == UNKNOWN:
        varied = replace(varied, sense=0)
    known = {varied.now: advantage_in(decided)}

    def advantage(value: float) -> float:
        value = float(round(value)) if varied.whole else value
        if value not in known:
            again = varied_bench(bench, varied, value, limit)
            known[value] = advantage_in(decide(again, limit, worth=1.0))
        return known[value]

    inner = varied.now
    for outer in _tries(varied, lead):
        if (advantage(outer) > 0) != partial_now:
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


def varied_bench(bench: Bench, varied: Input, value: float, limit: Limit) -> Bench:
    """A bench for the experiment with one input changed."""
    changed = varied.set_to(value)
    most = affordable(changed, tail=limit.risk is not None)
    if any(is_system(bench, name) for name in bench.ways):
        most = min(most, FEWEST)  # they take longer
    n = min(bench.experiment.simulation.replications or most, most)
    fewer = changed.simulated(replications=n)
    return Bench(fewer, bench.ways, bench.losing, tails=bench.tails)


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


def advantage_in(decided: Decided) -> float:
    """By how much the best strategy surely undercuts full recovery, as a share of useful time."""
    gains = [gain(one, decided.full) for one in decided.best.values() if one is not None]
    return max(gains, default=-1.0)


def gain(one: Priced, full: Priced) -> float:
    """Low end of the paired difference; 1 or -1 where only one of the two finishes."""
    if not (one.finished and full.finished):
        return 1.0 if one.finished else -1.0
    return difference(full, one).low


def _limit_flip(bench: Bench, decided: Decided, limit: Limit) -> Flip:
    """The limit below which no strategy pays."""
    bounds = [
        limit.bound(last.lost)
        for name in bench.ways
        if name != FULL
        and loses(name, bench.ways[name], bench.experiment)
        and has_interval(bench.ways[name])
        and (last := last_that_pays(bench, name, decided.full)) is not None
    ]
    name = f"a limit of the {quantity_of(limit)}"
    without = any(
        one is not None and not one.policy.leaves_stale and surely_cheaper(one, decided.full)
        for one in decided.best.values()
    )
    return Flip(name, "", limit.most, None if without else min(bounds, default=None))


def is_system(bench: Bench, strategy: str) -> bool:
    """Whether a strategy is a recovery system of the scenario."""
    return isinstance(bench.ways[strategy], RecoverySection)


def last_that_pays(bench: Bench, strategy: str, full: Priced) -> Priced | None:
    """The candidate with the most writes that still surely costs less than full recovery."""
    pays = fewest(bench.ways[strategy])
    last = bench.with_writes(strategy, [pays])[0]
    if not surely_cheaper(last, full):
        return None
    too_many = most_writes(bench, strategy, full) + 1
    while too_many - pays > 1:
        middle = (pays + too_many) // 2
        one = bench.with_writes(strategy, [middle])[0]
        if surely_cheaper(one, full):
            pays, last = middle, one
        else:
            too_many = middle
    return last
