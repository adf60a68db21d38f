"""Options of a fleet: strategies at some values, each simulated in several histories."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import nan
from typing import Any

import numpy as np

from cprsim.codec import NOT_STORED, Number, decode, digest_of, encode
from cprsim.errors import Place, one_line
from cprsim.estimate import HIGH, LOW, Estimate
from cprsim.failures.streams import stream
from cprsim.fleets.cells import (
    STATISTICS,
    FleetCell,
    cell_of,
    cost_by_kind,
    cost_of,
    node_hours,
    with_spares,
)
from cprsim.fleets.course import prepare, run_history
from cprsim.fleets.population import fleet_of, table_of
from cprsim.prices import Prices, bill_of, energy_kwh
from cprsim.records import Floats
from cprsim.results.identity import input_digests, source_digest
from cprsim.results.store import Body, PointsTask, PointStore, finish_points
from cprsim.scenario import LoadedScenario, Plain
from cprsim.scenario.sweep import Values
from cprsim.version import __version__
from cprsim.workers import Workers

BESIDE_THE_NUMBERS: dict[str, Any] = {  # of one history of one strategy
    **dict.fromkeys(("name", "kernel", "accuracy", "sweep", "prices", "unknown", "recovery"), True),
    "fleet": {"histories"},
}
N_RESAMPLED = 1000
FEWEST_KINDS = 10  # from which the kinds of jobs tell how sure a number is
MOST_HERE = 2_000  # jobs in all that are run in this very process
SHORT = {key: f"fleet.{key}" for key in ("spares", "nodes", "storage")}


Axes = Mapping[str, Values]  # keys of the scenario whose values are options


@dataclass(frozen=True, slots=True)
class Task:
    """One history under one strategy, at some values; `digest`: of all that decides its numbers."""

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
    statistics: Mapping[str, Estimate]  # of `cells.STATISTICS`
    cost: Number  # cents, or node-hours where nothing has a price
    node_h: Mapping[str, float]  # by part
    cents: Mapping[str, int] = field(default_factory=dict)  # by part; empty: nothing has a price
    energy_kwh: Number = nan
    carbon_kg: Number = nan
    cells: tuple[FleetCell, ...] = field(default=(), metadata=NOT_STORED)  # by history
    prices: Prices | None = field(default=None, metadata=NOT_STORED)

    @property
    def costs(self) -> list[float]:
        """The cost by history."""
        return [cost_of(cell, self.prices) for cell in self.cells]


def option_of(
    where: Mapping[str, Plain], strategy: str, cells: tuple[FleetCell, ...], prices: Prices | None
) -> FleetOption:
    """What the histories of a strategy at some values come to."""
    cents: dict[str, int] = {}
    energy = carbon = nan
    if prices is not None:
        both = [(with_spares(prices, cell.used), cell.used) for cell in cells]
        bills = [bill_of(at, used).cents for at, used in both]
        cents = {part: round(value) for part, value in _mean_by_part(bills).items()}
        kwh = float(np.mean([energy_kwh(at, used) for at, used in both]))
        energy = kwh if prices.watts else nan
        carbon = nan if prices.carbon_kg_per_kwh is None else prices.carbon_kg_per_kwh * kwh
    node_h = [
        {part: sum(by_role.values()) for part, by_role in cell.used.node_h.items()}
        for cell in cells
    ]
    values = ", ".join(f"{key.rpartition('.')[2]} {value}" for key, value in where.items())
    return FleetOption(
        name=f"{strategy} at {values}" if values else strategy,
        strategy=strategy,
        where=where,
        finished=all(cell.finished == 1.0 for cell in cells),
        statistics={name: _statistic(cells, name) for name in STATISTICS},
        cost=float(sum(cents.values()) if cents else np.mean([node_hours(c.used) for c in cells])),
        node_h=_mean_by_part(node_h),
        cents=cents,
        energy_kwh=energy,
        carbon_kg=carbon,
        cells=cells,
        prices=prices,
    )


def _mean_by_part(some: Sequence[Mapping[str, float]]) -> dict[str, float]:
    parts = dict.fromkeys(part for one in some for part in one)
    return {part: sum(one.get(part, 0.0) for one in some) / len(some) for part in parts}


def _statistic(cells: Sequence[FleetCell], name: str) -> Estimate:
    """By the histories, or where there is one alone by the kinds of jobs, if it is of them."""
    values, cell = [one.statistics[name] for one in cells], cells[0]
    if len(cells) > 1:
        return Estimate.of_mean(values)
    n_jobs = np.array(cell.n_jobs)
    if name not in cell.means or len(n_jobs) < FEWEST_KINDS:
        return Estimate(values[0])
    drawn = _drawn_again(n_jobs * np.array(cell.means[name])) / _drawn_again(n_jobs)
    low, high = np.quantile(drawn, (LOW, HIGH))
    return Estimate(values[0], float(low), float(high), len(n_jobs))


def saving(base: FleetOption, other: FleetOption) -> Estimate:
    """What the other option costs less per month, paired: both meet the same failures."""
    each = np.array(base.costs) - np.array(other.costs)
    if len(each) > 1:
        return Estimate.of_mean(each)
    mean, of_kinds = float(each[0]), [cost_by_kind(o.cells[0], o.prices) for o in (base, other)]
    by_kind = of_kinds[0] - of_kinds[1]
    if len(by_kind) < FEWEST_KINDS:
        return Estimate(mean)
    spares = mean - by_kind.sum()
    low, high = np.quantile(_drawn_again(by_kind), (LOW, HIGH)) + spares
    return Estimate(mean, float(low), float(high), len(by_kind))


def _drawn_again(of_kinds: Floats) -> Floats:
    """Sums over kinds of jobs that are drawn again, (N_RESAMPLED,)."""
    n = len(of_kinds)
    drawn = stream(1, 0, "fleet/resampling").integers(n, size=(N_RESAMPLED, n))
    return np.asarray(of_kinds[drawn].sum(axis=1))


# ------------------------------------------------------------------------------ all of them


def points_of(axes: Axes) -> list[dict[str, Plain]]:
    """Every combination of the values; one without any where there are no axes."""
    written = [values.written for values in axes.values()]
    return [dict(zip(axes, values, strict=True)) for values in product(*written)]


def varied(loaded: LoadedScenario, where: Mapping[str, Plain], option: str) -> LoadedScenario:
    """The scenario at some values, which an option of the command line asked for."""
    if not where:
        return loaded
    return loaded.varied(where, lambda key: Place(f"{option} {one_line(key)}"))


def prices_of(loaded: LoadedScenario) -> Prices | None:
    """The scenario's prices; None where nothing has one."""
    section = loaded.scenario.prices
    prices = None if section is None else section.record()
    return prices if prices is not None and prices.has_money else None


def run_options(
    loaded: LoadedScenario,
    points: Sequence[Mapping[str, Plain]],
    workers: Workers,
    store: PointStore,
    option: str = "--over",
    on_progress: Callable[[int, int], None] | None = None,
    strategies: Sequence[Sequence[int]] | None = None,
) -> list[FleetOption]:
    """Simulate every strategy at every point; point after point, in the scenario's order.

    Raises ScenarioError: values that make no scenario.
    """
    scenarios = [varied(loaded, where, option) for where in points]
    tasks = []
    for number, scenario in enumerate(scenarios):
        n_strategies = len(scenario.scenario.recovery)
        wanted = range(n_strategies) if strategies is None else strategies[number]
        tasks += [(number, strategy, list(_tasks(scenario, strategy))) for strategy in wanted]
    flat = [task for _, _, some in tasks for task in some]
    n_jobs = sum(fleet_of(task.loaded).jobs or 10**6 for task in flat)
    by = workers if workers.backend == "dask" or n_jobs > MOST_HERE else Workers(1)
    bodies, _ = finish_points(flat, store, by, _for_workers, on_progress)
    rest, found = iter(bodies), []
    for number, strategy, some in tasks:
        scenario, cells = scenarios[number], tuple(decode(FleetCell, next(rest)) for _ in some)
        name = scenario.scenario.recovery[strategy].name
        found.append(option_of(points[number], name, cells, prices_of(scenario)))
    return found


def _for_workers(tasks: Sequence[Task]) -> list[PointsTask]:
    name = "history {} of strategy {}"
    return [
        PointsTask(name.format(one.history, one.strategy), (one.digest,), _bodies, one)
        for one in tasks
    ]


def _bodies(task: Task) -> list[Body]:
    fleet = prepare(task.loaded)
    history = run_history(fleet, task.strategy, task.history)
    return [encode(cell_of(fleet, task.strategy, history))]


def _tasks(loaded: LoadedScenario, strategy: int) -> Iterator[Task]:
    """The histories of one strategy, each with the digest of what decides its numbers."""
    scenario, fleet = loaded.scenario, fleet_of(loaded)
    files = [] if fleet.table is None else [table_of(loaded, fleet.table)]
    files += [] if loaded.trace_path is None else [loaded.trace_path]
    common = {
        "scenario": scenario.model_dump(mode="json", exclude=BESIDE_THE_NUMBERS),
        "strategy": scenario.recovery[strategy].model_dump(mode="json"),
        "inputs": input_digests(files),
        "version": __version__,
        "source": source_digest(),
    }
    for history in range(fleet.histories):
        yield Task(loaded, strategy, history, digest_of({**common, "history": history}))
