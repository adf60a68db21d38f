"""Options of a fleet: strategies at some values, each simulated in several histories."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

import cprsim
from cprsim.codec import digest_of
from cprsim.errors import Place, ScenarioError
from cprsim.estimate import HIGH, LOW, Estimate, How
from cprsim.fleets.cells import (
    FleetCell,
    PricedCell,
    cell_as_plain,
    cell_from,
    cell_of,
    priced,
)
from cprsim.fleets.course import prepare, run_history
from cprsim.fleets.population import table_of
from cprsim.foreign import one_line
from cprsim.prices import Prices
from cprsim.records import Floats
from cprsim.results.identity import input_digests, source_digest
from cprsim.results.store import Body, PointsTask, PointStore, finish_points
from cprsim.scenario import LoadedScenario
from cprsim.scenario.sweep import Values
from cprsim.scenario.yaml_text import Plain
from cprsim.streams import stream
from cprsim.workers import Workers

BESIDE_THE_NUMBERS: dict[str, Any] = {  # of one history of one strategy
    **dict.fromkeys(("name", "kernel", "accuracy", "sweep", "prices", "unknown", "recovery"), True),
    "fleet": {"histories"},
}
N_RESAMPLED = 1000
FEWEST_KINDS = 10  # from which the kinds of jobs tell how sure a number is
MOST_HERE = 20_000  # jobs in all that are run in this very process
SHORT = {"spares": "fleet.spares", "nodes": "fleet.nodes", "storage": "fleet.storage",
         "savers": "fleet.savers", "crews": "fleet.crews"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class OptionAxis:
    """A key whose values are options, or are tried: what a user may choose."""

    key: str
    values: Values

    @property
    def name(self) -> str:
        """The last part of the key."""
        return self.key.rpartition(".")[2]


@dataclass(frozen=True, slots=True)
class Task:
    """One history under one strategy, at some values; `digest`: of all that decides its numbers."""

    loaded: LoadedScenario
    strategy: int
    history: int
    digest: str


@dataclass(frozen=True, slots=True)
class Option:
    """A strategy at some values, as it turned out."""

    where: Mapping[str, Plain]  # key -> value
    strategy: str
    cells: tuple[FleetCell, ...]  # by history
    priced: tuple[PricedCell, ...]

    @property
    def finished(self) -> bool:
        """Whether every job finished."""
        return all(cell.finished == 1.0 for cell in self.cells)

    @property
    def cost(self) -> float:
        """Mean per month over the histories: cents, or node-hours."""
        return float(np.mean([one.cost for one in self.priced]))

    def statistic(self, name: str) -> Estimate:
        """A statistic of the jobs, mean over the histories."""
        values = np.array([cell.statistics[name] for cell in self.cells])
        if len(values) > 1:
            return Estimate.of_mean(values)
        if name not in OF_KINDS:
            return Estimate(float(values[0]))
        return _over_kinds(self.cells[0], OF_KINDS[name])

    @property
    def name(self) -> str:
        """``full at spares 8``."""
        where = ", ".join(f"{key.rpartition('.')[2]} {value}" for key, value in self.where.items())
        return f"{self.strategy} at {where}" if where else self.strategy


OF_KINDS: dict[str, Callable[[Floats], Floats]] = {
    "overhead": lambda sums: sums[..., 1] / sums[..., 0],
    "queued_h": lambda sums: sums[..., 3] / sums[..., 0],
    "wait_h": lambda sums: sums[..., 4] / sums[..., 0],
}
"""Statistics that are means over jobs, of the sums `cells.BY_KIND`."""


def saving(base: Option, other: Option) -> Estimate:
    """What the other option costs less per month, paired: both meet the same failures."""
    of_histories = np.array(
        [a.cost - b.cost for a, b in zip(base.priced, other.priced, strict=True)]
    )
    if len(of_histories) > 1:
        return Estimate.of_mean(of_histories)
    by_kind = base.priced[0].cost_by_kind - other.priced[0].cost_by_kind
    mean = float(of_histories[0])
    if len(by_kind) < FEWEST_KINDS:
        return Estimate(mean)
    drawn = by_kind[_kinds_again(len(by_kind))].sum(axis=1)
    low, high = np.quantile(drawn, (LOW, HIGH)) + (mean - by_kind.sum())  # what spares cost
    return Estimate(mean, float(low), float(high), len(by_kind), How.QUANTILES)


def _over_kinds(cell: FleetCell, statistic: Callable[[Floats], Floats]) -> Estimate:
    mean = float(statistic(cell.by_kind.sum(axis=0)))
    n = len(cell.by_kind)
    if n < FEWEST_KINDS:
        return Estimate(mean)
    drawn = statistic(cell.by_kind[_kinds_again(n)].sum(axis=1))
    low, high = np.quantile(drawn, (LOW, HIGH))
    return Estimate(mean, float(low), float(high), n, How.QUANTILES)


def _kinds_again(n: int) -> np.ndarray:
    return stream(1, 0, "fleet/resampling").integers(n, size=(N_RESAMPLED, n))


# ------------------------------------------------------------------------------ all of them


def points_of(axes: Sequence[OptionAxis]) -> list[dict[str, Plain]]:
    """Every combination of the values; one without any where there are no axes."""
    keys = [axis.key for axis in axes]
    return [
        dict(zip(keys, values, strict=True))
        for values in product(*(axis.values.written for axis in axes))
    ]


def varied(loaded: LoadedScenario, where: Mapping[str, Plain], option: str) -> LoadedScenario:
    """The scenario at some values, which an option of the command line asked for."""
    if not where:
        return loaded
    return loaded.varied(where, lambda key: Place(f"{option} {one_line(key)}"))


def prices_of(loaded: LoadedScenario) -> Prices | None:
    """The scenario's prices."""
    section = loaded.scenario.prices
    return None if section is None else section.record()


def run_options(
    loaded: LoadedScenario,
    points: Sequence[Mapping[str, Plain]],
    workers: Workers,
    store: PointStore,
    option: str = "--over",
    on_progress: Callable[[int, int], None] | None = None,
    strategies: Sequence[Sequence[int]] | None = None,
) -> list[Option]:
    """Simulate every strategy at every point; point after point, in the scenario's order.

    Parameters
    ----------
    store : keeps each history as soon as it is finished, and has those of before
    strategies : the numbers of those wanted at each point; default all

    Raises
    ------
    ScenarioError : values that make no scenario
    """
    scenarios = [varied(loaded, where, option) for where in points]
    tasks, labels = [], []
    for number, (where, scenario) in enumerate(zip(points, scenarios, strict=True)):
        fleet = scenario.scenario.fleet
        if fleet is None:
            message = "is missing: it says how many jobs there are, for example fleet: {jobs: 1000}"
            raise ScenarioError.at(scenario.place(""), message, key="fleet")
        names = [entry.name for entry in scenario.scenario.recovery]
        wanted = range(len(names)) if strategies is None else strategies[number]
        for strategy in wanted:
            labels.append((number, where, names[strategy]))
            digests = _digests(scenario, strategy, fleet.histories)
            tasks.append([Task(scenario, strategy, *one) for one in enumerate(digests)])
    flat = [task for some in tasks for task in some]
    by = workers if workers.backend == "dask" or _is_much(flat) else Workers(1)
    bodies, _ = finish_points(flat, store, by, _to_compute, on_progress)
    found, rest = [], map(cell_from, bodies)
    for (number, where, name), some in zip(labels, tasks, strict=True):
        mine = tuple(next(rest) for _ in some)
        prices = prices_of(scenarios[number])
        found.append(Option(where, name, mine, tuple(priced(cell, prices) for cell in mine)))
    return found


def _to_compute(tasks: Sequence[Task]) -> list[PointsTask]:
    return [
        PointsTask(
            f"history {task.history} of strategy {task.strategy}", (task.digest,), _bodies, task
        )
        for task in tasks
    ]


def _bodies(task: Task) -> list[Body]:
    fleet = prepare(task.loaded)
    rows = run_history(fleet, task.strategy, task.history)
    return [cell_as_plain(cell_of(fleet, task.strategy, rows))]


def _digests(loaded: LoadedScenario, strategy: int, n: int) -> Iterator[str]:
    """Of each history of one strategy: of what decides its numbers, wherever it is asked for."""
    scenario = loaded.scenario
    assert scenario.fleet is not None, "who asks has a fleet"
    files = [] if scenario.fleet.table is None else [table_of(loaded, scenario.fleet.table)]
    files += [] if loaded.trace_path is None else [loaded.trace_path]
    common = {
        "scenario": scenario.model_dump(mode="json", exclude=BESIDE_THE_NUMBERS),
        "strategy": scenario.recovery[strategy].model_dump(mode="json"),
        "inputs": input_digests(files),
        "version": cprsim.__version__,
        "source": source_digest(),
    }
    for history in range(n):
        yield digest_of({**common, "history": history})


def _is_much(tasks: Sequence[Task]) -> bool:
    """Whether it is worth to start processes."""
    fleets = [task.loaded.scenario.fleet for task in tasks]
    return sum(10**6 if one is None or one.jobs is None else one.jobs for one in fleets) > MOST_HERE
