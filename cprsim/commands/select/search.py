"""The best interval of each option, with or without a limit.

A candidate is an option at one interval. The search counts its writes n (sub-saves, or whole
saves). All intervals with n writes stall the job equally; the shortest loses the least work: it
divides the job into n + 1 equal parts. With partial recovery fewer writes cost less and lose more,
so the best candidate has the fewest writes whose loss is within the limit. Without accuracy loss,
the best candidate is the cheapest.
"""

from __future__ import annotations

from itertools import count
from math import ceil, copysign, exp, inf, isfinite, log

from cprsim.commands.select.evaluation import RELOADING, CandidateEvaluator, Evaluated
from cprsim.job.intervals import WORTH_NO_SAVES, n_saves_due, young_h
from cprsim.job.records import DAY_H
from cprsim.recovery.paper import STRATEGIES
from cprsim.results.limit import Limit
from cprsim.scenario.assemble import policy_of

FREE_WRITES = 1000  # first number tried if writes stall nothing
WRITES_CAP = 100_000  # largest number tried
WIDE = (0.35, 0.5, 0.7, 1.0, 1.4)  # factors on the number of writes, coarse search
NARROW = (0.77, 0.84, 0.92, 1.0, 1.09, 1.19, 1.3)  # factors on it, fine search
FREE_STEP = 0.3  # factor from one number of saves without stall to the next lower one
NO_GAIN = 1.005  # times the cheaper start's cost: up to that, the start of fewer writes is taken
EQUALLY_CHEAP = 1.02  # times the least cost; candidates below it count as equally cheap
FREE_RESOLUTION = 1.15  # factor between the bounds at which the search for the fewest ends
PARTS_RESOLVED = 100  # the search resolves the number of writes to 1 part in 100
STEPS_BACK = 2  # steps below the number found that are also tried, at least
WORTH_TRYING = 4.0  # largest cost of all writes, over that of full recovery


def best_candidate(evaluator: CandidateEvaluator, name: str, full: Evaluated) -> Evaluated | None:
    """An option at its cheapest interval within the limit; None if no interval is.

    A job without saves must be cheaper by `WORTH_NO_SAVES`, because simulations miss rare failures.
    The same holds for saves without stall that are rarer than daily.
    """
    option, found = evaluator.options[name], _best(evaluator, name, full)
    n_days = max(1, int(evaluator.experiment.useful_h / DAY_H))
    is_free = evaluator.save_times(name)[1] == 0 and option.strategy not in RELOADING
    n_enough = n_days if is_free else 1
    if found is None or found.n_writes >= n_enough or option.system.interval is None:
        return found
    tried = [*_at_own_interval(evaluator, name), *evaluator.with_writes(name, [1, n_days])]
    max_cost = found.cost_fraction + WORTH_NO_SAVES
    good = [
        candidate
        for candidate in tried
        if candidate.n_writes > 0
        and candidate.cost_fraction < max_cost
        and (not candidate.loses or candidate.within_limit(evaluator.limit))
    ]
    good = [candidate for candidate in good if candidate.n_writes >= n_enough] or good
    as_good = [one for one in good if one.cost_fraction <= EQUALLY_CHEAP * found.cost_fraction]
    if as_good:
        return max(as_good, key=lambda candidate: candidate.n_writes)
    return _cheapest(good) if good else found


def _best(evaluator: CandidateEvaluator, name: str, full: Evaluated) -> Evaluated | None:
    option = evaluator.options[name]
    if option.strategy not in RELOADING:
        cheapest = at_cheapest_interval(evaluator, name)
        if not cheapest.loses or cheapest.within_limit(evaluator.limit):
            return cheapest
        if option.system.interval is None:
            return None
    n_most = affordable_writes(evaluator, name, full, WORTH_TRYING)
    found, planned = best_within(evaluator, name, n_most), evaluator.experiment.scenario.planned
    if found is None or planned is None:
        return found
    # stops during recoveries lose work since the last save: fewest writes need not be cheapest
    n_stops = int(evaluator.experiment.useful_h / planned.every_h)
    least = _least(evaluator, name, max(found.n_writes, min(n_stops, n_most)), n_most)
    return least if least.within_limit(evaluator.limit) else found


def at_cheapest_interval(evaluator: CandidateEvaluator, name: str) -> Evaluated:
    """An option at its cheapest interval, whatever its loss; without intervals, as in its entry."""
    option = evaluator.options[name]
    if option.system.interval is None:
        return evaluator.evaluate(name, [policy_of(option, evaluator.experiment).interval_h])[0]
    experiment, most = evaluator.experiment, max_writes(evaluator, name)
    if write_h := evaluator.save_times(name)[1]:
        expected = experiment.failures.expected(experiment.cluster, experiment.useful_h)
        by_young = round(experiment.useful_h / young_h(write_h, expected.mtbf_h))
        least = _least(evaluator, name, min(by_young, most), most)
        return least if least.finished else evaluator.with_writes(name, [min(by_young, most)])[0]
    if option.strategy in STRATEGIES:
        return evaluator.with_writes(name, [FREE_WRITES])[0]
    numbers = {min(FREE_WRITES, most)}
    if experiment.scenario.silent is None:  # with silent errors, kept saves must span time
        numbers.add(most)
    tried = evaluator.with_writes(name, sorted(numbers))
    max_cost = NO_GAIN * _cheapest(tried).cost_fraction  # the densest take the longest to simulate
    start = next(one for one in tried if one.cost_fraction <= max_cost)
    return _fewest_that_help(evaluator, name, _least(evaluator, name, start.n_writes, most))


def _least(evaluator: CandidateEvaluator, name: str, n_writes: int, most: int) -> Evaluated:
    """The candidate of the least cost, with at most `most` writes, searched from `n_writes`.

    The search multiplies n by factors, because saves cost in proportion to n and rework to 1 / n:
    wide factors until the best n lies between two others, then narrow ones.
    """

    def around(n: int, factors: tuple[float, ...]) -> list[Evaluated]:
        numbers = {min(round((n + 1) * factor) - 1, most) for factor in factors}
        return evaluator.with_writes(name, sorted({max(number, 0) for number in numbers}))

    while True:
        candidates = around(n_writes, WIDE)
        best = _cheapest(candidates)
        best = best if best.finished else candidates[-1]
        if best.n_writes == n_writes or best not in (candidates[0], candidates[-1]):
            is_free = evaluator.save_times(name)[1] == 0  # neighbours cost the same: skip them
            return best if is_free else _cheapest(around(best.n_writes, NARROW))
        n_writes = best.n_writes


def _fewest_that_help(evaluator: CandidateEvaluator, name: str, enough: Evaluated) -> Evaluated:
    """Of an option whose saves stall nothing, the equally cheap candidate of the fewest writes."""
    max_cost = EQUALLY_CHEAP * enough.cost_fraction
    too_few = -1  # unknown
    while enough.finished and enough.n_writes > FREE_RESOLUTION * (too_few + 1):
        fewer = int(FREE_STEP * enough.n_writes)
        between = round(exp((log(too_few + 2) + log(enough.n_writes + 1)) / 2)) - 1
        middle = fewer if too_few < 0 else between
        candidate = evaluator.with_writes(name, [middle])[0]
        if candidate.cost_fraction <= max_cost:
            enough = candidate
        else:
            too_few = middle
    return enough


def _at_own_interval(evaluator: CandidateEvaluator, name: str) -> list[Evaluated]:
    """An option at its entry's interval, also rounded to equal parts; empty without one."""
    of_paper = evaluator.options[name].strategy in STRATEGIES
    own_h = None if of_paper else evaluator.own_interval_h(name)
    if own_h is None:
        return []
    n_pieces = ceil(evaluator.experiment.useful_h / own_h)
    return [*evaluator.evaluate(name, [own_h]), *evaluator.with_writes(name, [n_pieces - 1])]


def max_writes(evaluator: CandidateEvaluator, name: str) -> int:
    """The largest number of writes of an option, by its shortest interval."""
    shortest_h = evaluator.save_times(name)[0]
    if shortest_h == 0:
        return WRITES_CAP
    return min(max(n_saves_due(shortest_h, evaluator.experiment.useful_h) - 1, 0), WRITES_CAP)


def _cheapest(candidates: list[Evaluated]) -> Evaluated:
    return min(candidates, key=lambda candidate: candidate.cost_fraction)


# --------------------------------------------------------------------------- within a limit


def affordable_writes(
    evaluator: CandidateEvaluator, name: str, full: Evaluated, most_times: float
) -> int:
    """Number of writes with stalls of `most_times` the overhead of full recovery, within bounds."""
    write_h, n_most = evaluator.save_times(name)[1], max_writes(evaluator, name)
    if write_h == 0:
        return min(FREE_WRITES, n_most)
    budget_h = most_times * min(full.cost_fraction, 10.0) * evaluator.experiment.useful_h
    least = ceil(10 / evaluator.options[name].part)
    return min(max(ceil(budget_h / write_h), least), n_most)


def best_within(evaluator: CandidateEvaluator, name: str, n_most: int) -> Evaluated | None:
    """The candidate of the fewest writes within the limit (the most, if they stall nothing).

    None: no candidate that was tried is within the limit.
    """
    limit, n_fewest = evaluator.limit, evaluator.options[name].n_fewest
    if evaluator.save_times(name)[1] == 0:
        last = evaluator.with_writes(name, [n_most])[0]
        return last if last.within_limit(limit) else None
    first = evaluator.with_writes(name, [n_fewest])[0]
    if first.within_limit(limit):
        return first
    if limit.most == 0:
        return None
    too_few, enough = first, None
    for number in count(1):
        if enough is not None and enough.n_writes - too_few.n_writes <= write_step(enough):
            break
        n = _next(too_few, enough, limit, n_most, halve=number % 5 == 0)
        tried = evaluator.with_writes(name, [n])[0]
        if tried.within_limit(limit):
            enough = tried
        elif n >= n_most:
            return None
        else:
            too_few = tried
    assert enough is not None
    # slightly fewer writes may also be within the limit
    around = max(STEPS_BACK, round(1 / evaluator.options[name].part)) * write_step(enough)
    lowest = max(enough.n_writes - around, n_fewest)
    fewer = evaluator.with_writes(name, range(lowest, enough.n_writes, write_step(enough)))
    return next((candidate for candidate in fewer if candidate.within_limit(limit)), enough)


def write_step(candidate: Evaluated) -> int:
    """Smallest difference in the number of writes that is simulated."""
    return max(1, candidate.n_writes // PARTS_RESOLVED)


def _next(
    too_few: Evaluated, enough: Evaluated | None, limit: Limit, n_most: int, *, halve: bool
) -> int:
    """The next n to try: where a power law in n + 1 meets the limit."""
    x, y = log(too_few.n_writes + 1), _log_ratio(too_few, limit)
    if enough is None:
        guess = exp(min(x + y, log(n_most + 1))) if isfinite(y) else 2.0 * (too_few.n_writes + 1)
        return int(min(max(ceil(guess) - 1, too_few.n_writes + 1), n_most))
    x_enough, y_enough = log(enough.n_writes + 1), _log_ratio(enough, limit)
    straight = isfinite(y) and isfinite(y_enough) and y > y_enough and not halve
    share = y / (y - y_enough) if straight else 0.5
    guess = ceil(exp(x + share * (x_enough - x)) - 1e-9) - 1
    return min(max(guess, too_few.n_writes + 1), enough.n_writes - 1)


def _log_ratio(candidate: Evaluated, limit: Limit) -> float:
    """log(upper bound / limit); infinite if the bound is 0 or infinite."""
    bound = limit.bound(candidate.lost) if candidate.finished else inf
    return log(bound / limit.most) if 0 < bound < inf else copysign(inf, bound)
