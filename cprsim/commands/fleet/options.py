"""Options of a fleet, each simulated in several histories, and which of them is the cheapest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import groupby, product
from math import inf, isnan, nan
from typing import Any, NamedTuple, cast

import numpy as np

from cprsim.commands.fleet.histories import (
    QUANTILES,
    STATISTICS,
    FleetCell,
    cell_of,
    cost_by_kind,
    cost_of,
    node_hours,
    prepare,
    run_histories,
    summed,
)
from cprsim.commands.run.sentences import resource_sentence, storage_share
from cprsim.errors import CprsimError, ParameterError, Place, one_line
from cprsim.failures.sources import stream
from cprsim.files import NOT_STORED, OMITTED, Number, decode, digest_of, encode
from cprsim.job.intervals import WORTH_NO_SAVES
from cprsim.job.records import HIGH, LOW, Estimate, Floats
from cprsim.results import money
from cprsim.results.identity import digest_by_this_source, file_digest, trace_digest
from cprsim.results.limit import PLS, HeldLimit, Limit, held_limits, limits_in
from cprsim.results.metrics import OVERHEAD, Quantities
from cprsim.results.pipeline import simulate
from cprsim.results.store import Body, PointStore, Task
from cprsim.results.unknown import (
    MOST_CONTENDERS,
    N_REPLICATIONS,
    SEEN,
    Assumption,
    BreakEven,
    SpareNeed,
    break_evens,
    decisive_assumption,
    in_spares,
    only_prices,
    shows_waits,
    spares_needed,
    spares_of,
)
from cprsim.scenario.assemble import assemble, memory_of_copies
from cprsim.scenario.failures import ANY
from cprsim.scenario.job import Values
from cprsim.scenario.population import OWN_SPARES, fleet_of, is_alone, table_of
from cprsim.scenario.prices import GB, HOURS_PER_MONTH, Prices, bill_of, energy_kwh
from cprsim.scenario.reading import UNKNOWN, LoadedScenario, unknown_values
from cprsim.scenario.yaml_text import Plain, scalar
from cprsim.workers import Workers

IRRELEVANT_TO_A_HISTORY: dict[str, Any] = {  # keys that do not change one history of one strategy
    **dict.fromkeys(
        ("name", "kernel", "accuracy", "sweep", "prices", "unknown", "marks", "recovery"), True
    ),
    "fleet": {"histories"},
}
SPARES = "fleet.spares"  # the key
N_REDRAWN = 1000
FEWEST_KINDS = 10  # of jobs, for an interval from a single history
MOST_HERE = 2_000  # jobs in total, up to which this process runs them itself


Axes = Mapping[str, Values]  # keys of the scenario whose values are options


class _History(NamedTuple):
    """One history under one strategy, at given values; `digest` is that of its inputs."""

    loaded: LoadedScenario
    strategy: int
    history: int
    digest: str


@dataclass(frozen=True, slots=True)
class FleetOption:
    """A strategy at some values, mean over its histories; costs and node-hours are per month."""

    name: str  # ``full at spares 8``
    strategy: str
    where: Mapping[str, Any]  # values of the axes, by key; empty for the scenario's own
    finished: bool  # whether every job finished
    statistics: Mapping[str, Estimate]  # of `histories.STATISTICS`
    cost: Number  # cents, or node-hours where nothing has a price
    node_h: Mapping[str, float]  # by part
    cents: Mapping[str, int] = field(default_factory=dict)  # by part; empty: nothing has a price
    energy_kwh: Number = nan
    carbon_kg: Number = nan
    risks_all: bool = False
    limits: tuple[HeldLimit, ...] = ()  # of its PLS; a bound that no fleet knows is not a number
    cells: tuple[FleetCell, ...] = field(default=(), metadata=NOT_STORED)  # by history
    prices: Prices | None = field(default=None, metadata=NOT_STORED)

    @property
    def costs(self) -> list[float]:
        """The cost by history."""
        return [cost_of(cell, self.prices) for cell in self.cells]

    @property
    def worth(self) -> float:
        """Its cost, more if it risks all: histories miss rare failures."""
        useful = (self.cents or self.node_h)[money.USEFUL]
        return self.cost + (WORTH_NO_SAVES * useful if self.risks_all else 0.0)

    @property
    def keeps_limits(self) -> bool:
        """Whether its counted accuracy loss is none or within the limits."""
        kept = [held.bound <= held.most for held in self.limits]
        return all(kept) if kept else self.statistics["pls"].mean == 0.0

    def keeps_up(self, n_arrive: float) -> bool:
        """Whether its nodes do all jobs that arrive in a month, `n_arrive`, within one."""
        return self.statistics["jobs_per_month"].mean > (1.0 - SEEN) * n_arrive


def option_of(
    where: Mapping[str, Plain], strategy: str, cells: tuple[FleetCell, ...], prices: Prices | None
) -> FleetOption:
    """Summarise the histories of a strategy at given values."""
    node_h = _mean_by_part([node_hours(cell.used) for cell in cells])
    cents: dict[str, int] = {}
    energy = carbon = nan
    if prices is not None:
        bills = [bill_of(prices, cell.used).cents for cell in cells]
        cents = {part: round(value) for part, value in _mean_by_part(bills).items()}
        kwh = float(np.mean([energy_kwh(prices, cell.used) for cell in cells]))
        energy = kwh if prices.watts else nan
        carbon = nan if prices.carbon_kg_per_kwh is None else prices.carbon_kg_per_kwh * kwh
    n_jobs = np.array(cells[0].n_jobs)
    means = {name: n_jobs * np.array(mean) for name, mean in cells[0].means.items()}
    values = ", ".join(f"{key.rpartition('.')[2]} {value}" for key, value in where.items())
    overheads = [cell.statistics["overhead_fraction"] for cell in cells]
    return FleetOption(
        name=f"{strategy} at {values}" if values else strategy,
        strategy=strategy,
        where=where,
        finished=all(cell.finished == 1.0 for cell in cells),
        statistics={
            name: Estimate(float(np.quantile(overheads, QUANTILES[name])))  # of one job each
            if n_jobs.sum() == 1 and name in QUANTILES
            else _estimate(
                [cell.statistics[name] for cell in cells], means.get(name, np.zeros(0)), n_jobs
            )
            for name in STATISTICS
        },
        cost=float(sum((cents or node_h).values())),
        node_h=node_h,
        cents=cents,
        energy_kwh=energy,
        carbon_kg=carbon,
        risks_all=cells[0].risks_all,
        cells=cells,
        prices=prices,
    )


def _mean_by_part(some: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {part: value / len(some) for part, value in summed(some).items()}


def saving(base: FleetOption, option: FleetOption) -> Estimate:
    """Saving per month of an option compared with `base`, paired: both meet the same failures."""
    savings = np.array(base.costs) - np.array(option.costs)
    of_kinds = [cost_by_kind(o.cells[0], o.prices) for o in (base, option)]
    return _estimate(savings.tolist(), of_kinds[0] - of_kinds[1])


def less_overhead(base: FleetOption, option: FleetOption) -> Estimate:
    """Mean overhead of a job under `base` above that under an option, paired like `saving`."""
    more, n_jobs = zip(base.cells, option.cells, strict=True), np.array(option.cells[0].n_jobs)
    of_kinds = [np.array(o.cells[0].means[OVERHEAD]) for o in (base, option)]
    values = [one.statistics[OVERHEAD] - other.statistics[OVERHEAD] for one, other in more]
    return _estimate(values, n_jobs * (of_kinds[0] - of_kinds[1]), n_jobs)


def _estimate(values: Sequence[float], of_kinds: Floats, n_jobs: Floats | None = None) -> Estimate:
    """The mean over the histories; the interval of a single one resamples the kinds of jobs.

    Parameters
    ----------
    of_kinds : (n_kinds,) part of each kind in the sum or mean over all jobs; empty: unknown
    n_jobs : (n_kinds,) number of jobs, for a mean; None: for a sum
    """
    n = len(of_kinds)
    if len(values) > 1:
        return Estimate.of_mean(values)
    if n < FEWEST_KINDS:
        return Estimate(values[0])
    drawn = stream(1, 0, "fleet/resampling").integers(n, size=(N_REDRAWN, n))
    sums = of_kinds[drawn].sum(axis=1)
    spares = values[0] - of_kinds.sum()
    again = sums + spares if n_jobs is None else sums / n_jobs[drawn].sum(axis=1)
    low, high = np.quantile(again, (LOW, HIGH)).tolist()
    return Estimate(values[0], low, high, n)


# ------------------------------------------------------------------------------ all options


def points_of(axes: Axes) -> list[dict[str, Plain]]:
    """Every combination of the values; without axes, one that is empty."""
    written = [values.written for values in axes.values()]
    return [dict(zip(axes, values, strict=True)) for values in product(*written)]


def varied(
    loaded: LoadedScenario, where: Mapping[str, Plain], option: str = "--over"
) -> LoadedScenario:
    """The scenario at values that an option of the command line gives."""
    if not where:
        return loaded
    return loaded.varied(where, lambda key: Place(one_line(key), option=option))


def prices_of(loaded: LoadedScenario) -> Prices | None:
    """The scenario's prices; None without prices."""
    of_job = money.prices_of(loaded.scenario)
    return None if of_job is None else of_job.prices


def run_options(
    loaded: LoadedScenario,
    runs: Sequence[tuple[Mapping[str, Plain], int]],
    workers: Workers,
    store: PointStore,
    option: str = "--over",
    on_progress: Callable[[int, int], None] | None = None,
) -> list[FleetOption]:
    """Simulate each run: values of keys, and the number of a strategy.

    Raises ScenarioError: values that make an invalid scenario.
    """
    by_run = [list(_histories(varied(loaded, where, option), number)) for where, number in runs]
    flat = [history for histories in by_run for history in histories]
    n_jobs = sum(fleet_of(history.loaded).jobs or 10**6 for history in flat)
    by = workers if workers.backend == "dask" or n_jobs > MOST_HERE else Workers(1)
    bodies = store.compute_missing(flat, _bodies, _for_workers, by, on_progress)
    in_order, options = iter(bodies), []
    for (where, number), histories in zip(runs, by_run, strict=True):
        scenario = histories[0].loaded
        cells = tuple(decode(FleetCell, next(in_order)) for _ in histories)
        name = scenario.scenario.recovery[number].name
        made = option_of(where, name, cells, prices_of(scenario))
        options.append(replace(made, limits=tuple(_held(made, scenario, number))))
    return options


def _held(option: FleetOption, loaded: LoadedScenario, number: int) -> Iterator[HeldLimit]:
    """Limits of an accuracy loss; jobs that share know their mean PLS, no other loss."""
    section, entry = loaded.scenario.accuracy, loaded.scenario.recovery[number]
    limits, fleet = limits_in(section) if section is not None else [], fleet_of(loaded)
    mean, low, high = option.statistics["pls"].triple
    if mean == 0.0 and not entry.system.not_counted:
        return
    if is_alone(fleet) and limits and option.finished:
        job = one_job(loaded, {})
        one = assemble(job).simulated(replications=fleet.histories)
        outcome = simulate(replace(one, policies=(one.policies[number],)))
        yield from held_limits(job, outcome).get(entry.name, ())
        return
    for limit in limits:
        is_known = limit.metric is None and limit.risk is None
        yield limit.held(mean, (mean if isnan(high) else high) if is_known else nan)
    if mean > 0.0 and entry.target_pls is not None and not entry.assumed:
        yield Limit(PLS, entry.target_pls).target(mean, mean if isnan(low) else low)


def _for_workers(missing: Sequence[_History]) -> list[Task]:
    """A task per history; one for all of a job that shares nothing."""

    def together(one: _History) -> object:
        return (id(one.loaded), one.strategy, is_alone(fleet_of(one.loaded)) or one.history)

    tasks = ([*some] for _, some in groupby(missing, together))
    name = "history {} of strategy {}".format
    return [Task(name(of[0].history, of[0].strategy), [h.digest for h in of], of) for of in tasks]


def _bodies(work: Sequence[_History]) -> list[Body]:
    fleet, strategy = prepare(work[0].loaded), work[0].strategy
    histories = run_histories(fleet, strategy, [one.history for one in work])
    return [encode(cell_of(fleet, strategy, history)) for history in histories]


def _histories(loaded: LoadedScenario, strategy: int) -> Iterator[_History]:
    """The histories of one strategy, each with the digest of its inputs."""
    scenario, fleet = loaded.scenario, fleet_of(loaded)
    table = None if fleet.table is None else table_of(loaded, fleet.table)
    common = digest_by_this_source(
        scenario=scenario.model_dump(mode="json", exclude=IRRELEVANT_TO_A_HISTORY),
        strategy=scenario.recovery[strategy].model_dump(mode="json"),
        inputs=[*trace_digest(loaded).values(), table and file_digest(table)],
    )
    for history in range(fleet.histories):
        yield _History(loaded, strategy, history, digest_of([common, history]))


# ------------------------------------------------------------------------------ the decision


@dataclass(frozen=True, slots=True)
class FleetDecision:
    """The cheapest option, and the present one."""

    best: str
    present: str
    saves: Estimate  # saving of the best per month, in cents or node-hours
    less: Estimate  # overhead of the present above that of the best
    break_evens: tuple[BreakEven, ...]  # of each unknown input
    n_left_out: int  # number of options in which some jobs did not finish
    n_nodes: int = 0  # of the jobs that use the spares
    spares: tuple[SpareNeed, ...] = ()  # where waits for a spare decide
    # memory and storage bandwidth of the best, in a sentence
    resources: str = field(default="", metadata={"alias": "takes"})
    # of one job alone: the assumed input that moves the choice most
    assumption: Assumption | None = field(default=None, metadata=OMITTED)


def decide(
    loaded: LoadedScenario,
    options: Sequence[FleetOption],
    axes: Axes,
    workers: Workers,
    store: PointStore,
    on_progress: Callable[[int, int], None] | None = None,
) -> FleetDecision:
    """Recommend the cheapest option without stale shards, or with a PLS within the limits.

    Raises ScenarioError: an unknown input can't be varied; ParameterError: there is no option in
    which all jobs finish.
    """
    able = [option for option in options if option.finished]
    if not able:
        waits = any(shows_waits(option.statistics) for option in options)
        hint = waits * ": they wait for spares; compare more (`cprsim run` says how many one needs)"
        raise ParameterError(f"there is no option under which all jobs of the fleet finish{hint}")
    not_counted = {e.name for e in loaded.scenario.recovery if e.system.not_counted}
    known = (o for o in able if o.limits or o.strategy not in not_counted)
    counted = [option for option in known if option.keeps_limits] or able
    n_arrive = sum(able[0].cells[0].n_jobs) * HOURS_PER_MONTH / fleet_of(loaded).window_h
    counted = [option for option in counted if option.keeps_up(n_arrive)] or counted
    best = min(counted, key=lambda option: option.worth)
    own = (o for o in options if varied(loaded, o.where).scenario == loaded.scenario)
    present = next(own, options[0])
    if is_unpriced(loaded, axes):  # the scenario's own spares can't be compared
        same = [option for option in able if option.strategy == present.strategy]
        present = min(same, key=lambda option: option.cost, default=present)
    cheapest = sorted(counted, key=lambda option: option.cost)
    firsts = {option.strategy: option for option in reversed(cheapest)}  # of each strategy
    named = {option.name: option for option in (best, *firsts.values(), *cheapest)}
    few = list(named.values())[:MOST_CONTENDERS]
    names = [entry.name for entry in loaded.scenario.recovery]
    section, job = fleet_of(loaded), one_job(loaded, best.where)
    n_few = min(section.histories, N_REPLICATIONS)
    fewer = {"fleet.histories": n_few} if is_alone(section) else {}

    def costs(all_changes: Sequence[Mapping[str, Plain]]) -> dict[str, Floats]:
        """Cost of the contenders under each change; of all options if only prices change."""
        if only_prices(all_changes):
            scenarios = [varied(loaded, changes, UNKNOWN) for changes in all_changes]
            prices = [prices_of(scenario) for scenario in scenarios]
            return {
                option.name: np.array([np.mean(replace(option, prices=p).costs) for p in prices])
                for option in counted
            }
        runs = [
            ({**option.where, **changes, **fewer}, names.index(option.strategy))
            for changes in all_changes
            for option in few
        ]
        ran = run_options(loaded, runs, workers, store, UNKNOWN, on_progress)
        amounts = [option.cost if option.finished else np.inf for option in ran]
        table = np.array(amounts).reshape(len(all_changes), len(few))
        return {option.name: table[:, place] for place, option in enumerate(few)}

    def of_fleet(strategies: Sequence[str], n: int | None) -> Mapping[str, Quantities]:
        runs = [({**best.where, SPARES: n}, names.index(strategy)) for strategy in strategies]
        ran = run_options(loaded, runs, workers, store, SPARES, on_progress)
        return {option.strategy: option.statistics for option in ran}

    here = {option.strategy: option.statistics for option in counted if option.where == best.where}
    n_nodes, spares = loaded.scenario.n_nodes_of[ANY], tuple[SpareNeed, ...]()
    shown = {best.strategy: best.statistics["overhead_fraction"].mean} if fewer else {}
    if not is_alone(section):
        n_nodes = section.nodes or max(1, round(best.statistics["busy_nodes"].mean))
    one, picks = assemble(job), [best.strategy]
    policy = one.policies[names.index(best.strategy)]
    share = storage_share(policy, one)
    if section.storage_bytes_per_h is not None:
        gb_per_month = float(np.mean([cell.used.written_gb for cell in best.cells]))
        share = gb_per_month * GB / HOURS_PER_MONTH / section.storage_bytes_per_h
    n_spares = cast("int | None", best.where.get(SPARES, section.spares))
    compared = axes[SPARES].numbers if SPARES in axes else None
    if compared is None or (n_spares or 0) >= max(compared):  # more may be better
        spares = spares_of(one, here, picks) if is_alone(section) else spares_needed(
            here, picks, n_spares, in_spares(n_nodes, loaded.scenario), of_fleet
        )  # fmt: skip
    assumed = decisive_assumption(job, {best.strategy: here}, shown, own_spares=is_alone(section))
    if assumed is not None and axes and fewer and not assumed.key.startswith("scopes."):
        key = SPARES if assumed.key == OWN_SPARES else assumed.key
        change = {key: scalar(assumed.tried), **fewer}
        runs = [({**change, **o.where}, names.index(o.strategy)) for o in counted]
        with suppress(CprsimError):  # an option can't be under the change
            ran = run_options(loaded, runs, workers, store, "marks", on_progress)
            then = ran[counted.index(best)]
            least = min((o for o in ran if o.finished), key=lambda o: o.cost, default=then)
            if not then.finished or saving(then, least).low > 0:
                then = least
            tried = then.statistics[OVERHEAD]
            assumed = replace(
                assumed, overhead_tried=tried.mean if then.finished else inf, choice=best.name,
                choice_tried=counted[ran.index(then)].name, half_width=tried.half_width,
            )  # fmt: skip
    return FleetDecision(
        best=best.name,
        n_nodes=n_nodes,
        spares=spares,
        resources=resource_sentence([(best.strategy, memory_of_copies(policy, one), share)]),
        present=present.name,
        saves=saving(present, best) if present.finished else Estimate(nan),
        less=less_overhead(present, best) if present.finished else Estimate(nan),
        break_evens=break_evens(unknown_of(loaded, axes), best.name, costs),
        n_left_out=len(options) - len(able),
        assumption=assumed,
    )


def is_unpriced(loaded: LoadedScenario, axes: Axes) -> bool:
    """Whether spares are compared, and the scenario itself has unlimited free spares."""
    return SPARES in axes and fleet_of(loaded).spares is None


def one_job(loaded: LoadedScenario, where: Mapping[str, Plain]) -> LoadedScenario:
    """The typical job of a fleet at some values; a single job has the spares of the fleet."""
    at = varied(loaded, where)
    fleet = fleet_of(at)
    spares = {"cluster.spares": fleet.spares} if is_alone(fleet) else {}
    return at.varied({"fleet": None, **spares}, at.place)


def unknown_of(loaded: LoadedScenario, axes: Axes) -> dict[str, Values]:
    """The values to try of each unknown input.

    Raises ScenarioError if an option varies one, or its ends make an invalid scenario.
    """
    unknown = unknown_values(loaded)
    if OWN_SPARES in {*axes, *unknown}:
        message = f"`{OWN_SPARES}` changes nothing: jobs of a fleet share `{SPARES}`, name that"
        raise ParameterError(message)
    for key in axes:
        if key in unknown:  # of one job, `cluster.spares` in the file
            message = f"is in `{UNKNOWN}`, too: a key is either an option or an unknown input"
            raise ParameterError(f"{key.removeprefix('fleet.')} {message}", option="--over")
    return unknown
