"""A fleet of 17,000 jobs under full recovery, and the same fleet under CPR.

The paper analysed 17,000 jobs of 30 days; what they were is not known. `scenarios/fleet.yaml` and
`fleet.toml` assume it, and were committed before the first run. Nothing was changed afterwards:
what does not agree is shown, and so is what each other assumption of that file would give.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from cprsim.assemble import assemble
from cprsim.pipeline import simulate
from cprsim.plots.chart import Chart, Panel, Series, floats
from cprsim.records import Floats
from cprsim.reproduce.paper import (
    FLEET_MACHINE_YEARS,
    FLEET_MEAN,
    FLEET_P90,
    FLEET_WORST,
    Claim,
)
from cprsim.reproduce.population import Population, assumed_in, read_population
from cprsim.reproduce.simulated import STACKED
from cprsim.reproduce.study import Part, Study, Work
from cprsim.reproduce.summary import Listing, Row, Summary, alone, as_shown, compared
from cprsim.reproduce.verdicts import Basis, Ours, agreement
from cprsim.results.rows import replication_rows
from cprsim.streams import stream

SCENARIO, POPULATION = "fleet.yaml", "fleet.toml"
N_RESAMPLED = 400
N_TOGETHER = 34  # kinds of jobs that one part of the work simulates
MOST_OF_A_KIND = 100  # jobs
HOURS_PER_YEAR = 8766.0
AS_FIXED = "as fixed"
STRATEGIES = ("full", "cpr")
PARTS = tuple(part for part in STACKED if part not in ("detect", "wait"))  # none of both here
RANKS = {"P50": (0.45, 0.55), "P75": (0.70, 0.80), "P90": (0.88, 0.92), "P95": (0.94, 0.96),
         "worst 5 %": (0.95, 1.0)}  # fmt: skip
Statistic = Callable[[Floats], Floats]  # (resamples, jobs) -> (resamples,)


@dataclass(frozen=True)
class Fleet:
    """What the jobs of one fleet cost; arrays are (kinds of jobs, jobs of a kind)."""

    overhead: Mapping[str, Floats]  # strategy -> share of useful time
    parts: Mapping[str, Mapping[str, Floats]]  # strategy -> part -> likewise
    lost_node_h: Mapping[str, Floats]  # strategy -> node-hours of overhead
    node_h: Floats  # useful node-hours
    n_jobs: int  # that the fleet stands for

    def interval(self, values: Floats, statistic: Statistic) -> Ours:
        """A statistic of the jobs with its 95 % interval, by drawing kinds of jobs again."""
        rng = stream(1, 0, "fleet/resampling")
        kinds = rng.integers(len(values), size=(N_RESAMPLED, len(values)))
        low, high = np.quantile(statistic(values[kinds].reshape(N_RESAMPLED, -1)), [0.025, 0.975])
        return Ours(float(statistic(values.reshape(1, -1))[0]), float(low), float(high))

    def percent(self, strategy: str, statistic: Statistic) -> Ours:
        """A statistic of the overheads, in percent."""
        return self.interval(100 * self.overhead[strategy], statistic)

    def machine_years(self, strategy: str) -> Ours:
        """Machine-years that all jobs of the fleet lose together."""
        scale = self.n_jobs / HOURS_PER_YEAR
        return self.interval(scale * self.lost_node_h[strategy], mean)

    def split(self, strategy: str, low: float, high: float) -> dict[str, float]:
        """Mean parts of overhead, in percent, of the jobs between two ranks of overhead."""
        overhead = self.overhead[strategy].ravel()
        order = np.argsort(overhead, kind="stable")
        those = order[int(low * len(order)) : int(np.ceil(high * len(order)))]
        parts = self.parts[strategy]
        return {part: 100 * float(parts[part].ravel()[those].mean()) for part in PARTS}


def mean(jobs: Floats) -> Floats:
    """Mean over jobs."""
    return np.asarray(jobs.mean(axis=1))


def percentile(share: float) -> Statistic:
    """The overhead that so many of the jobs stay below."""
    return lambda jobs: np.asarray(np.quantile(jobs, share, axis=1))


def worst(share: float) -> Statistic:
    """Mean over the share of the jobs with the highest overhead."""

    def statistic(jobs: Floats) -> Floats:
        first = jobs.shape[1] - round(share * jobs.shape[1])
        return np.asarray(np.partition(jobs, first, axis=1)[:, first:].mean(axis=1))

    return statistic


STATISTICS: dict[str, Statistic] = {
    "mean": mean,
    "P90": percentile(0.9),
    "P95": percentile(0.95),
    "mean of the worst 5 %": worst(0.05),
}


SHOWN: dict[str, Statistic] = {
    **{name: STATISTICS.get(name, percentile(sum(ranks) / 2)) for name, ranks in RANKS.items()},
    "mean": mean,
    "worst 5 %": worst(0.05),
}
"""What the height of each bar of the figure estimates, up to the width of its ranks."""


# ------------------------------------------------------------------------------ the study


def make(work: Work) -> Summary:
    """Simulate the fleet as fixed, and under each of the other assumptions."""
    population = read_population(work.input(POPULATION))
    n_kinds, n_others = work.pick((340, 34), (1700, 340), (17_000, 1700))
    fleet = _fleet(work, population, AS_FIXED, n_kinds)
    others = {title: _fleet(work, population, title, n_others) for title in population.others}
    basis = Basis(free=assumed_in(work.input(SCENARIO), work.input(POPULATION)))
    return Summary(
        "A fleet under full recovery, and under CPR",
        f"What do failures cost {population.n_jobs:,} jobs of different length and size in "
        f"{population.window_h:g} h?",
        (*_rows(fleet, basis), *_cpr_rows(fleet)),
        (_split_listing(fleet), _others_listing({AS_FIXED: fleet, **others})),
        _notes(fleet, others, basis),
        (_chart(fleet),),
    )


def _fleet(work: Work, population: Population, title: str, n_kinds: int) -> Fleet:
    """Simulate a fleet, so many kinds of jobs at a time."""
    pieces = work.each(
        [
            Part(
                f"{title}, {n_kinds} kinds, from {first}",
                partial(_some, work, population, title, n_kinds, first),
            )
            for first in range(0, n_kinds, N_TOGETHER)
        ]
    )

    def of(strategy: str, name: str) -> Floats:
        return np.concatenate([np.array(piece[strategy][name]) for piece in pieces])

    return Fleet(
        {strategy: of(strategy, "overhead") for strategy in STRATEGIES},
        {strategy: {part: of(strategy, part) for part in PARTS} for strategy in STRATEGIES},
        {strategy: of(strategy, "lost_node_h") for strategy in STRATEGIES},
        of("full", "node_h"),
        population.n_jobs,
    )


def _some(
    work: Work, population: Population, title: str, n_kinds: int, first: int
) -> dict[str, dict[str, list[list[float]]]]:
    overrides_of_all: tuple[str, ...] = ()
    if title != AS_FIXED:
        overrides_of_all = population.others[title].overrides
        population = population.changed(title)
    jobs = population.jobs(n_kinds)[first : first + N_TOGETHER]
    each = min(population.n_jobs // n_kinds, MOST_OF_A_KIND)
    found: dict[str, dict[str, list[list[float]]]] = {strategy: {} for strategy in STRATEGIES}
    for number, job in enumerate(jobs, start=first):
        overrides = [
            *overrides_of_all,
            *job.overrides(),
            f"simulation.replications={each}",
            f"simulation.seed={population.seed + number}",
        ]
        experiment = assemble(work.scenario(SCENARIO, overrides))
        rows = replication_rows(simulate(experiment))
        for strategy in STRATEGIES:
            for name, values in _of_jobs(rows, strategy, experiment.cluster.n_nodes).items():
                found[strategy].setdefault(name, []).append(values)
    return found


def _of_jobs(rows: Any, strategy: str, n_nodes: int) -> dict[str, list[float]]:
    mine = rows[rows["strategy"] == strategy]
    useful_h = mine["useful_h"].to_numpy()
    overhead_h = mine["wall_h"].to_numpy() - useful_h
    return {
        "overhead": list(floats(overhead_h / useful_h)),
        "lost_node_h": list(floats(n_nodes * overhead_h)),
        "node_h": list(floats(n_nodes * useful_h)),
        **{part: list(floats(mine[f"{part}_h"].to_numpy() / useful_h)) for part in PARTS},
    }


# ------------------------------------------------------------------------------ what it says


def _rows(fleet: Fleet, basis: Basis) -> list[Row]:
    claims = {
        "mean": FLEET_MEAN,
        "P90": FLEET_P90,
        "P95": FLEET_WORST,
        "mean of the worst 5 %": FLEET_WORST,
    }
    rows = [
        compared(f"full recovery, overhead: {name}", claim, fleet.percent("full", STATISTICS[name]),
                 basis)
        for name, claim in claims.items()
    ]  # fmt: skip
    years = fleet.machine_years("full")
    return [*rows, compared("machine-years lost", FLEET_MACHINE_YEARS, years, basis)]


def _cpr_rows(fleet: Fleet) -> list[Row]:
    rows = [
        alone(f"CPR, overhead: {name}", fleet.percent("cpr", statistic), "%")
        for name, statistic in STATISTICS.items()
    ]
    return [*rows, alone("CPR, machine-years lost", fleet.machine_years("cpr"), "machine-years")]


def _split_listing(fleet: Fleet) -> Listing:
    def line(strategy: str, name: str, low: float, high: float) -> tuple[str, ...]:
        parts = fleet.split(strategy, low, high)
        return (
            strategy,
            name,
            *(f"{abs(parts[part]):.2f}" for part in PARTS),
            f"{sum(parts.values()):.1f}",
        )

    return Listing(
        "Where the hours of the jobs around a percentile of overhead go, in % of useful time "
        "(P90: the jobs from P88 to P92, and so on):",
        ("strategy", "jobs", *(f"{part}, %" for part in PARTS), "overhead, %"),
        tuple(
            line(strategy, name, *ranks)
            for strategy in STRATEGIES
            for name, ranks in {"all": (0.0, 1.0), **RANKS}.items()
        ),
    )


def _others_listing(fleets: Mapping[str, Fleet]) -> Listing:
    def line(title: str, fleet: Fleet) -> tuple[str, ...]:
        years = fleet.machine_years("full")
        return (
            title,
            *(as_shown(fleet.percent("full", one), "") for one in STATISTICS.values()),
            as_shown(years, ""),
            as_shown(fleet.percent("cpr", mean), ""),
        )

    return Listing(
        "The same fleet under other assumptions, one change at a time, fixed beforehand but for "
        "the last ones; overheads in %:",
        ("assumption", *(f"full: {name}" for name in STATISTICS), "machine-years", "CPR: mean"),
        tuple(line(title, fleet) for title, fleet in fleets.items()),
    )


def _notes(fleet: Fleet, others: Mapping[str, Fleet], basis: Basis) -> tuple[str, ...]:
    node_h = float(fleet.node_h.mean())
    needed = FLEET_MACHINE_YEARS.low * HOURS_PER_YEAR / fleet.n_jobs / 0.125
    return (
        f"Intervals: 95 %, by drawing the kinds of jobs again. The {len(basis.free)} free inputs "
        f"are: {', '.join(basis.free)}.",
        _tail_note(others),
        f"Why fewer machine-years: 1,156 machine-years of 17,000 jobs at an overhead of 12.5 % "
        f"mean {needed:,.0f} useful node-hours per job; the fleet as fixed has {node_h:,.0f}. "
        "Jobs that are larger, or of more different length, have them, at the same overheads. "
        "The published number is met, or can't be told from it, with: "
        f"{_met(others, FLEET_MACHINE_YEARS, _years)}.",
    )


def _tail_note(others: Mapping[str, Fleet]) -> str:
    """Which other assumptions have the paper's tail, and which its mean as well."""
    return (
        "Why the tail is shorter: as fixed, most jobs are so long that their failures average out, "
        "and all save at the best interval tables of much the same size, so that their overheads "
        "are alike. The tail grows with rarer saves, shorter jobs, a long tail of rescheduling, "
        "and with tables of more different size, which raise the mean least. P90 is over "
        f"30 %, or can't be told from it, with: {_met(others, FLEET_P90, _p90)}. The mean is as "
        f"published too, or can't be told from it, with: "
        f"{_met(_with_tail(others), FLEET_MEAN, _mean)}."
    )


def _p90(fleet: Fleet) -> Ours:
    return fleet.percent("full", STATISTICS["P90"])


def _mean(fleet: Fleet) -> Ours:
    return fleet.percent("full", mean)


def _years(fleet: Fleet) -> Ours:
    return fleet.machine_years("full")


def _with_tail(others: Mapping[str, Fleet]) -> dict[str, Fleet]:
    return {t: one for t, one in others.items() if agreement(FLEET_P90, _p90(one)) is not False}


def _met(others: Mapping[str, Fleet], claim: Claim, number: Callable[[Fleet], Ours]) -> str:
    """The other assumptions under which a number of the paper is met, or may be."""
    found = [
        f"{title} ({as_shown(number(one), claim.unit)})"
        for title, one in others.items()
        if agreement(claim, number(one)) is not False
    ]
    return "; ".join(found) or "none"


def _chart(fleet: Fleet) -> Chart:
    bars = _bars(fleet)
    curves = tuple(
        Series(name, *_exceedance(fleet.overhead[strategy]), kind="steps")
        for strategy, name in (("full", "full recovery"), ("cpr", "CPR"))
    )
    stars = Series("paper (published): over 30 % at P90", (FLEET_P90.low,), (10.0,), kind="paper")
    worst_ones = Series("paper (secondary): 43 % at P95", (FLEET_WORST.low,), (5.0,), kind="paper")
    share = Panel(
        "How many jobs lose more than that",
        "overhead, % of useful time",
        "jobs that lose more, % of all",
        (*curves, stars, worst_ones),
        y_log=True,
    )
    return Chart(
        "A fleet of 17,000 jobs",
        "Every input that the paper does not give is assumed, and was fixed before the first run. "
        "Error bars: 95 % interval.",
        (bars, share),
    )


def _bars(fleet: Fleet) -> Panel:
    groups = {"mean": (0.0, 1.0), **RANKS}
    splits = {name: fleet.split("full", *ranks) for name, ranks in groups.items()}
    names = tuple(groups)
    parts = [
        Series(part, names, tuple(splits[name][part] for name in names), kind="stack")
        for part in PARTS
    ]
    totals = [fleet.percent("full", SHOWN[name]) for name in names]
    low, high = (floats(ends) for ends in zip(*(one.ends for one in totals), strict=True))
    parts[-1] = replace(parts[-1], low=low, high=high)
    ends = Series("paper (secondary): mean 12 to 13 %, worst 5 % 43 %",
                  ("mean", "worst 5 %"), (12.5, FLEET_WORST.low), kind="paper")  # fmt: skip
    p90 = Series("paper (published): P90 over 30 %", ("P90",), (FLEET_P90.low,), kind="paper")
    return Panel("Full recovery, by percentile of overhead", "jobs", "overhead, % of useful time",
                 (*parts, ends, p90))  # fmt: skip


def _exceedance(overhead: Floats) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Overheads in percent, and the percentage of jobs that exceed them, at 100 points."""
    shares = np.geomspace(1.0, 1e-3, 100)
    x = 100 * np.quantile(overhead, 1 - shares)
    return floats(x.tolist()), floats((100 * shares).tolist())


STUDY = Study(
    "fleet",
    "overhead of a fleet of 17,000 jobs by percentile, machine-years lost",
    make,
    (SCENARIO, POPULATION),
)
