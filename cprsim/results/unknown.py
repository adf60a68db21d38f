"""Sensitivity of a choice to its inputs: values that reverse it, and the most decisive input.

Inputs that the scenario calls unknown have break-evens: the value where another option is the
cheapest. Of the inputs marked as assumed or recalled, the decisive one is named. All values are
simulated on the same failures, on one job. Where waits for spares are much of an overhead, the
number of spares that changes the answer is found, too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from math import inf, isinf, isnan, nan
from typing import Any, cast

import numpy as np
import pandas as pd

from cprsim.errors import CprsimError, Place, Progress, watch
from cprsim.files import Endless, Number
from cprsim.job.policy import Policy
from cprsim.job.records import Estimate, Floats
from cprsim.results.metrics import (
    OVERHEAD,
    Quantities,
    replication_rows,
    share_of,
    summarise,
)
from cprsim.results.money import SPARE, JobPrices, JobUse, prices_of, uses_of
from cprsim.results.pipeline import Outcome, simulate
from cprsim.scenario.assemble import Experiment, assemble
from cprsim.scenario.failures import ANY
from cprsim.scenario.job import Values, values_along
from cprsim.scenario.prices import HOURS_PER_MONTH
from cprsim.scenario.quantities import times
from cprsim.scenario.reading import N_TRIED, PRICES, LoadedScenario, number_at, unknown_values
from cprsim.scenario.schema import Scenario
from cprsim.scenario.yaml_text import Plain, read_yaml

N_REPLICATIONS = 200  # of each value
TRIED_AT_ONCE = 2  # values that are simulated at a time: compiled code runs beside other threads
MOST_CONTENDERS = 6  # options that are tried at other values
# An assumed number is tried at a third and at three times: published failure rates of clusters that
# are alike differ by nearly as much (`failures/presets.py`).
TIMES_ASSUMED = 3.0
SEEN = 0.01  # of an overhead, or of the node-hours of a job: a smaller change is hardly one
WITHOUT = "none"  # what is tried in place of a scope's share
AS_OTHERS = "as the others"  # the same where the rate of such failures alone is not known
MTBF, SPARES = "failures.mtbf", "cluster.spares"  # keys
NODES_PER_SPARE = 50  # assumed (2 % of the nodes); tried where the scenario gives no spares

Changes = Mapping[str, Plain]  # values by key of a scenario
CostsOf = Callable[[Sequence[Changes]], Mapping[str, Floats]]
"""Of each option its costs under each of some changes of the scenario, (n_changes,)."""


@dataclass(frozen=True, slots=True)
class BreakEven:
    """The value of an unknown input where another option becomes the cheapest; None: no value."""

    key: str
    unit: str
    low: float  # low, high: between which it lies, in `unit`
    high: float
    at: float | None
    becomes: str | None  # the option that is cheapest beyond `at`
    simulated: bool  # whether each value was simulated; else prices alone were changed


@dataclass(frozen=True, slots=True)
class Assumption:
    """An input that is assumed or recalled, and the answer at another value of it."""

    key: str
    mark: str
    value: str  # as the scenario says it
    tried: str  # `WITHOUT`: such failures are left out; `AS_OTHERS`: they are of the other scopes
    overhead: Endless  # of the choice, as a share of useful time
    overhead_tried: Endless  # the least, at the other value
    choice: str
    choice_tried: str  # the same unless another surely costs less
    half_width: Number = nan  # half of the 95 % interval of `overhead_tried`


# --------------------------------------------------------------------------- at other values


def overheads_of(outcome: Outcome) -> pd.DataFrame:
    """A row per replication, a column per entry; infinite where it did not finish."""
    rows = replication_rows(outcome)
    overhead = (rows["wall_h"] / rows["useful_h"] - 1.0).where(rows["finished"], inf)
    table = rows.assign(overhead=overhead).pivot(
        index="replication", columns="strategy", values="overhead"
    )  # of a strategy that finished no job there are few rows
    return table[[strategy.policy.name for strategy in outcome.strategies]].fillna(inf)


def month_costs(outcome: Outcome, names: Sequence[str], prices: JobPrices | None) -> list[float]:
    """Of each entry: cents, or node-hours of overhead; infinite where not all jobs finish."""
    policies, n_nodes = [of.policy for of in outcome.strategies], outcome.cluster.n_nodes
    n_spares = outcome.cluster.n_spares or 0
    uses = uses_of(policies, summarise(outcome), outcome.useful_h)

    def cost(policy: Policy, use: JobUse) -> float:
        if prices is not None:
            return float(prices.billed(policy, use).month.total_cents)
        lost_h = n_nodes * (use.wall_h - use.useful_h) + (policy.tax.nodes + n_spares) * use.wall_h
        return lost_h * HOURS_PER_MONTH / use.useful_h

    return [cost(*uses[name]) if name in uses else inf for name in names]


def tried_under(
    loaded: LoadedScenario, entries: Mapping[str, str] | None, section: str
) -> Callable[[Changes], tuple[LoadedScenario, Outcome]]:
    """Function that simulates entries of `recovery` under changes of a scenario, on equal failures.

    The entries keep their intervals; None: the scenario's. Prices change nothing that is simulated.
    The function raises CprsimError for a change that can't be made, at a place in `section`.
    """
    n = min(loaded.scenario.simulation.replications or N_REPLICATIONS, N_REPLICATIONS)
    fixed: dict[str, Plain] = {
        "simulation.replications": n,
        "simulation.precision": None,
        "fleet": None,
    }
    if entries is not None:
        text = "\n".join(["recovery:", *(f"  - {entry}" for entry in entries.values())])
        fixed["recovery"] = cast(dict[str, Plain], read_yaml(text, loaded.path)[0])["recovery"]
    made: dict[str, Outcome] = {}

    def tried(changes: Changes) -> tuple[LoadedScenario, Outcome]:
        varied = loaded.varied({**fixed, **changes}, lambda key: Place(key, option=section))
        simulated = str({key: to for key, to in changes.items() if not key.startswith(PRICES)})
        if simulated not in made:
            made[simulated] = simulate(assemble(varied))
        return varied, made[simulated]

    return tried


def contending(names: Collection[str], costs: Mapping[str, float], best: str) -> list[str]:
    """The entries that could be chosen instead: the best and the cheapest few of many."""
    by_cost = sorted((name for name in names if name != best), key=lambda n: costs.get(n, inf))
    return [best, *by_cost][:MOST_CONTENDERS]


def overheads_under(
    loaded: LoadedScenario, entries: Mapping[str, str], section: str, changes: Changes
) -> pd.DataFrame:
    """`overheads_of` the entries that can run the job under changes."""
    try:
        return overheads_of(tried_under(loaded, entries, section)(changes)[1])
    except CprsimError:
        texts, half = [*entries.items()], len(entries) // 2
        if not half:
            return pd.DataFrame()
        parts = (texts[:half], texts[half:])
        return pd.concat(
            [overheads_under(loaded, dict(part), section, changes) for part in parts], axis=1
        )


# --------------------------------------------------------------------------- break-evens


def break_evens_of(
    loaded: LoadedScenario, entries: Mapping[str, str], costs: Mapping[str, float], best: str
) -> tuple[BreakEven, ...]:
    """Break-evens of each input in the section `unknown`, or with a 95 % interval of a fit.

    Cost is that of a month where there are prices, else node-hours of overhead. Raises
    ScenarioError: an unknown input that can't be varied.
    """
    unknown = {**intervals_95(loaded), **unknown_values(loaded)}
    if not unknown:
        return ()
    names = contending(costs, costs, best)
    if rest := {name: entries[name] for name in costs if name not in names}:
        ends = [{key: of.written[end]} for key, of in unknown.items() for end in (0, -1)]
        for end in (end for end in ends if not only_prices([end])):
            then = overheads_under(loaded, rest, "unknown", end).mean()
            names += [str(then.idxmin())] if len(then) and then.idxmin() not in names else []
    tried = tried_under(loaded, {name: entries[name] for name in names}, "unknown")
    with watch.progress("values of unknown inputs") as on_progress:

        def costs_of(all_changes: Sequence[Changes]) -> Mapping[str, Floats]:
            table = []
            for changes in all_changes:
                varied, outcome = tried(changes)
                table.append(month_costs(outcome, names, prices_of(varied.scenario)))
            return dict(zip(names, np.array(table, dtype=np.float64).T, strict=True))

        return break_evens(unknown, best, costs_of, on_progress)


def intervals_95(loaded: LoadedScenario) -> dict[str, Values]:
    """Values of the failures' parameters along the 95 % intervals that a fit wrote, by key."""
    failures = cast(dict[str, Any], loaded.data["failures"])
    sections = {f"failures.roles.{role}": of for role, of in failures.get("roles", {}).items()}
    values = {}
    for place, section in {"failures": failures, **sections}.items():
        spread = "sigma" if "sigma" in section else "shape"
        for name, interval in (("mtbf", "mtbf_95"), (spread, "spread_95")):
            if section.get(interval) is not None:
                low, high = section[interval]
                values[f"{place}.{name}"] = values_along(f"{low}:{high}:lin{N_TRIED}")
    return values


def break_evens(
    unknown: Mapping[str, Values], best: str, costs_of: CostsOf,
    on_progress: Progress = lambda done, total: None,
) -> tuple[BreakEven, ...]:  # fmt: skip
    """Values nearest to the present ones where the best option ceases to be the cheapest."""
    found = []
    for done, (key, values) in enumerate(unknown.items(), start=1):
        assert values.numbers is not None
        changes = [{key: value} for value in values.written]
        at, becomes = crossing(np.array(values.numbers), costs_of(changes), best)
        low, high = values.numbers[0], values.numbers[-1]
        found.append(BreakEven(key, values.unit, low, high, at, becomes, not only_prices(changes)))
        on_progress(done, len(unknown))
    return tuple(found)


def only_prices(all_changes: Sequence[Changes]) -> bool:
    """Whether the changes need no new simulation."""
    return all(key.startswith(PRICES) for changes in all_changes for key in changes)


def crossing(x: Floats, costs: Mapping[str, Floats], best: str) -> tuple[float | None, str | None]:
    """Where another option becomes cheaper than the best, and which; None where none does.

    The costs lie on lines between the values. Where the best is cheapest in the middle of its
    values, the crossing that takes the least change from there counts.
    """
    lead = {name: costs[name] - costs[best] for name in costs if name != best}  # above 0: best is
    holds = np.all([gap >= 0 for gap in lead.values()], axis=0) if lead else np.ones(len(x), bool)
    if not holds.any():
        return float(x[0]), min(lead, key=lambda name: float(lead[name].min()))
    crossings: list[tuple[float, float, str]] = []
    for name, gap in lead.items():
        for left in np.nonzero((gap[:-1] >= 0) != (gap[1:] >= 0))[0].tolist():
            a, b = float(gap[left]), float(gap[left + 1])
            share = a / (a - b) if np.isfinite(a - b) else 0.5
            at = float(x[left] + share * (x[left + 1] - x[left]))
            crossings.append((abs(at - float(x[holds].mean())), at, name))
    return min(crossings)[1:] if crossings else (None, None)


# --------------------------------------------------------------------------- assumptions


def decisive_assumption(
    loaded: LoadedScenario, choices: Mapping[str, Collection[str]], shown: Mapping[str, float],
    entries: Mapping[str, str] | None = None, *, own_spares: bool = True,
) -> Assumption | None:  # fmt: skip
    """The marked input that moves a choice or its overhead most; None where none moves it.

    The effect of an input is the greater of two shares of useful time: the change of the least
    overhead, and the overhead of the choice above that of the best option. Both overheads lie as
    far from that `shown` in the answer, of more replications, as they do on the same failures.
    `choices`: of each choice of an answer, what may be chosen instead; the first that moves counts.
    Of many, given as `entries`, the cheapest few find the input; then all are tried.
    `own_spares`: whether the job's spares are its own; then that one is always free is an input.
    """
    scenario, found = loaded.scenario, list[tuple[float, Assumption, Changes]]()
    marks = dict(scenario.marks or {})
    others = [(key, *other) for key in marks for other in _other_values(loaded, key)]
    if own_spares and scenario.cluster.spares is None and scenario.cluster.repair is not None:
        n_spares = max(1, scenario.n_nodes_of[ANY] // NODES_PER_SPARE)
        marks[SPARES] = "assumed"
        others.append((SPARES, "always available", str(n_spares), {SPARES: n_spares}))
    if not others:
        return None
    few, first = choices, entries
    if entries is not None:
        few = {choice: contending(able, shown, choice) for choice, able in choices.items()}
        first = {name: entries[name] for able in few.values() for name in able}
    tried = tried_under(loaded, first, "marks")
    now = overheads_of(tried({})[1])
    before = {**shown, **now.mean()}

    def at(
        choice: str, able: Collection[str], then: pd.DataFrame, about: Sequence[str]
    ) -> tuple[float, Assumption]:
        """The effect of an input (key, value, other value) on a choice among some."""
        overhead = float(now[choice].mean())
        # what costs less already, and is not the choice, is none for another reason
        dearer = [n for n in able if n in then and n != choice and before[n] >= overhead]
        means = then[[choice, *dearer]].mean()
        best = str(means.idxmin())
        least, regret = float(means[best]), float(means[choice] - means[best])
        more = Estimate.of_mean(then[best] - now[choice])
        if about[0].startswith(("failures", "scopes")) and more.low <= 0 <= more.high:
            least = overhead  # other failures: not distinguished
        beyond = 0.0 if isinf(overhead) else shown.get(choice, overhead) - overhead
        key, value, written = about
        return max(abs(least - overhead), regret), Assumption(
            key, marks[key], value, written, overhead + beyond, least + beyond, choice,
            best if _surely_less(then[best], then[choice]) else choice,
            nan if isinf(least) else Estimate.of_mean(then[best]).half_width,
        )  # fmt: skip

    def under(changes: Changes) -> pd.DataFrame:
        try:
            return overheads_of(tried(changes)[1])
        except CprsimError:
            return pd.DataFrame()  # no such job can be

    pool = ThreadPoolExecutor(TRIED_AT_ONCE)
    try:
        with watch.progress("assumed inputs") as on_progress:
            outcomes = pool.map(under, [changes for *_, changes in others])
            each = zip(others, outcomes, strict=True)
            for done, ((*about, changes), then) in enumerate(each, start=1):
                on_progress(done, len(others))
                for choice, able in few.items() if len(then) else ():
                    found.append((*at(choice, able, then, about), changes))
    finally:
        pool.shutdown(cancel_futures=True)
    in_order = sorted((one for one in found if one[0] >= 0), key=lambda one: one[0])
    most = {one.choice: (one, changes) for _, one, changes in in_order}
    of_each = [most[choice] for choice in choices if choice in most]
    seen = (
        of
        for of in of_each
        if of[0].choice_tried != of[0].choice
        or abs(of[0].overhead_tried - of[0].overhead) > SEEN * of[0].overhead
    )
    one, changes = next(seen, of_each[0] if of_each else (None, {}))
    if one is None or entries is None:
        return one
    rest = {name: entries[name] for name in choices[one.choice] if name not in now}
    then = overheads_of(tried(changes)[1])
    then = then.join(overheads_under(loaded, rest, "marks", changes)) if rest else then
    return at(one.choice, choices[one.choice], then, (one.key, one.value, one.tried))[1]


def _surely_less(overheads: pd.Series[float], than: pd.Series[float]) -> bool:
    """Whether all jobs finish, and it costs less: the paired 95 % interval lies above 0."""
    if not np.isfinite(overheads).all():
        return False
    return not np.isfinite(than).all() or Estimate.of_mean(than - overheads).low > 0


def _other_values(loaded: LoadedScenario, key: str) -> Iterator[tuple[str, str, Changes]]:
    """A value as written, another that is tried, and what changes with it."""
    value = number_at(loaded.data, key)
    section, *names = key.split(".")
    if value is None:
        return
    if section == "scopes" and names[-1:] == ["share"]:
        rest = [
            dict(cast(dict[str, Any], scope)) for scope in cast(list[Plain], loaded.data[section])
        ]
        shares = {scope.name: scope.share or 0.0 for scope in loaded.scenario.scopes}
        share = shares.pop(".".join(names[:-1]))
        if sum(shares.values()) > 0:
            kept = [scope for scope in rest if scope["name"] in shares]
            for scope in kept:
                if shares[scope["name"]]:
                    scope["share"] = shares[scope["name"]] / (1.0 - share)
            changes: dict[str, Plain] = {section: cast(Plain, kept)}
            mtbf = number_at(loaded.data, MTBF)  # without them failures are fewer
            if mtbf is None or share >= 1.0:
                yield str(value), AS_OTHERS, changes
            else:
                yield str(value), WITHOUT, changes | {MTBF: times(mtbf, 1.0 / (1.0 - share))}
        return
    unknown = (loaded.scenario.unknown or {}).get(key)
    ends = [times(value, 1 / TIMES_ASSUMED), times(value, TIMES_ASSUMED)]
    for tried in ends if unknown is None else [unknown.low, unknown.high]:
        if tried != value:
            yield str(value), str(tried), {key: tried}


# --------------------------------------------------------------------------- spares

WAITS_FROM = 0.1  # of an overhead, or of a job that never ends: from there on waits are shown
WAITING = "waiting, %"  # their column
WAIT = share_of("wait")
REPLICATIONS_PER_SPARES = 1000  # of each number of spares
MORE_SPARES = (*range(1, 5), *(n * 2**power for power in range(1, 12) for n in (3, 4)))


@dataclass(frozen=True, slots=True)
class SpareNeed:
    """How many spares change the answer: jobs wait for them, or fewer are enough."""

    system: str  # or strategy
    n_spares: int
    n_now: int
    overhead: Estimate  # with so many spares
    is_best: bool  # with them, but for their nodes; else they take half of the overhead of `system`
    pays: bool = True  # with them and their nodes it costs less than what is best now
    waits: bool = True  # without them its jobs wait; else they go on with fewer nodes


WithSpares = Callable[[Sequence[str], int | None], Mapping[str, Quantities]]
"""Function from strategies and a number of spares, None: one is always free, to their costs."""


def waiting(summary: Quantities) -> float:
    """Waits for spares of one strategy, as a share of useful time."""
    mean = summary[WAIT].mean if WAIT in summary else 0.0
    return 0.0 if isnan(mean) else mean


def shows_waits(summary: Quantities) -> bool:
    """Whether waits exceed the share of an overhead from which they are shown."""
    return waiting(summary) > WAITS_FROM * max(summary[OVERHEAD].mean, 0.0)  # not below it


def spares_of(
    experiment: Experiment, able: Mapping[str, Quantities], picks: Sequence[str]
) -> tuple[SpareNeed, ...]:
    """`spares_needed` by an experiment whose policies are those that may be chosen."""
    n = min(experiment.simulation.replications or REPLICATIONS_PER_SPARES, REPLICATIONS_PER_SPARES)
    few, cluster = experiment.simulated(replications=n), experiment.cluster
    policies = {policy.name: policy for policy in experiment.policies}

    def at(names: Sequence[str], n_spares: int | None) -> Mapping[str, Quantities]:
        of_names = tuple(policies[name] for name in names)
        at_number = replace(few, cluster=replace(cluster, n_spares=n_spares), policies=of_names)
        return summarise(simulate(at_number))

    n_paid = in_spares(cluster.n_nodes, experiment.scenario)
    elastic = [name for name in able if policies[name].elastic is not None]
    return spares_needed(able, picks, cluster.n_spares, n_paid, at, elastic)


def in_spares(n_nodes: int, scenario: Scenario) -> float:
    """How many spares cost what some nodes of the job do."""
    priced = prices_of(scenario)
    if priced is None or not priced.node_hour:
        return n_nodes
    spare = float(priced.prices.node_hour[SPARE])
    return n_nodes * priced.node_hour / spare if spare else inf


def spares_needed(
    able: Mapping[str, Quantities],
    picks: Sequence[str],
    n_now: int | None,
    n_nodes: float,
    at: WithSpares,
    elastic: Sequence[str] = (),
) -> tuple[SpareNeed, ...]:
    """Spares needed by each pick, and by the cheapest strategy if no job waited.

    The number that makes another strategy cost less than the first pick, or halves a pick's
    overhead, at the fewest node-hours, spares included; also where these cost more than it saves.
    Unless more spares pay, also the number of fewer ones that does.
    `able`: all strategies that may be chosen; those that do not finish, if none does. Without
    `picks` it is the one that costs least if no job waits. `n_nodes`: by `in_spares`. `elastic`:
    those that go on with fewer nodes, which are tried without spares.
    """

    def overhead(costs: Mapping[str, Quantities], name: str) -> float:
        mean = costs[name][OVERHEAD].mean
        return inf if isnan(mean) else mean  # not all jobs finish

    if n_now is None or not able:
        return ()
    free = at(picks or [*able], None)
    if not picks:
        picks = [min(able, key=lambda name: overhead(free, name))]
        able = {name: able[name] for name in picks}
        if isinf(overhead(free, picks[0])):
            return ()  # spares are not what is missing
    now = at(picks, n_now)  # of as many replications as `free`

    def held_up(name: str, costs: Mapping[str, Quantities]) -> float:
        """What too few spares cost, as a share of useful time; of other than picks, waits alone."""
        more = overhead(costs, name) - overhead(free, name) if name in picks else 0.0
        return max(waiting(costs[name]), more)

    # with spares that never run out; the winner then is simulated to be sure
    saved = {name: waiting(of) for name, of in able.items()}
    saved |= {name: max(saved[name], held_up(name, now)) for name in picks}
    best_now = overhead(able, picks[0])  # what costs less is not the best for other reasons
    dearer = [name for name in able if overhead(able, name) >= best_now]
    winner = min(dearer, key=lambda name: overhead(able, name) - saved[name])
    asked = [*dict.fromkeys([winner, *picks])]
    halved = [name for name in picks if 0 < overhead(now, name) / 2 <= held_up(name, now)]
    if winner == picks[0] and not halved:
        return tuple(_fewer_spares(now, n_now, n_nodes, at, elastic))
    of_number: dict[int, Mapping[str, Quantities]] = {}

    def numbers_for(name: str) -> dict[int, Estimate]:
        """Numbers of spares that change the answer for a strategy, and its overhead with them."""
        is_winner = name == winner != picks[0]
        return {
            n: costs[name][OVERHEAD]
            for n, costs in of_number.items()
            if overhead(costs, name)
            < (overhead(costs, picks[0]) if is_winner else overhead(now, name) / 2)
        }

    for more in (n for n in MORE_SPARES if n <= n_nodes):
        of_number[n_now + more] = costs = at(asked, n_now + more)
        are_worth_it = any(2 * held_up(name, costs) > more / n_nodes for name in asked)
        if not are_worth_it and all(map(numbers_for, halved)):
            break
    needs = []
    for name in asked:
        if name in (winner, *halved) and (good := numbers_for(name)):
            n = min(good, key=lambda n: good[n].mean + (n - n_now) / n_nodes)
            pays = good[n].mean + (n - n_now) / n_nodes < overhead(now, picks[0])
            is_best, waits = name == winner != picks[0], shows_waits(able[name])
            needs.append(SpareNeed(name, n, n_now, good[n], is_best, pays, waits))
    if not any(need.pays for need in needs):
        needs += _fewer_spares(now, n_now, n_nodes, at, elastic)
    return tuple(needs)


def _fewer_spares(
    now: Mapping[str, Quantities], n_now: int, n_nodes: float, at: WithSpares,
    elastic: Sequence[str],
) -> Iterator[SpareNeed]:  # fmt: skip
    """Of each pick the halved number of spares that takes the fewest node-hours, if much fewer.

    Also the `elastic` strategy that takes fewer than any of them, without spares.
    """
    least = inf
    for name, of_name in now.items():
        n, overhead = n_now, of_name[OVERHEAD]
        while n / n_nodes > SEEN:
            half = at([name], n // 2)[name][OVERHEAD]
            if not half.mean + n // 2 / n_nodes < overhead.mean + n / n_nodes:
                break  # or not all jobs finish
            n, overhead = n // 2, half
        least = min(least, overhead.mean + n / n_nodes)
        if of_name[OVERHEAD].mean + (n_now - n) / n_nodes > overhead.high + SEEN:
            yield SpareNeed(name, n, n_now, overhead, is_best=False)
    without = at(elastic, 0) if elastic and n_now / n_nodes > SEEN else {}
    costs = {name: of[OVERHEAD] for name, of in without.items() if not isnan(of[OVERHEAD].mean)}
    name = min(costs, key=lambda one: costs[one].mean, default="")
    if name and costs[name].high + SEEN < least:
        yield SpareNeed(name, 0, n_now, costs[name], is_best=False)
