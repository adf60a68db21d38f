"""A fleet of 17,000 jobs under full recovery, and the same fleet under CPR.

The paper analysed 17,000 jobs of 30 days; what they were is not known. `scenarios/fleet.yaml`
assumes it, and was committed before the first run with the other assumptions below. Nothing was
changed afterwards: what does not agree is shown, and so is what each other assumption would give.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from cprsim.experiments.assemble import assemble
from cprsim.experiments.pipeline import simulate
from cprsim.failures.streams import stream
from cprsim.fleets.population import drawn_kinds, scenario_of
from cprsim.plots.chart import Chart, Panel, Series, floats
from cprsim.records import Floats
from cprsim.results.metrics import IN_TABLES
from cprsim.results.rows import replication_rows
from cprsim.scenario.job import Fleet
from cprsim.scenario.reading import LoadedScenario, load_scenario
from cprsim.studies.estimates import StudyEstimate
from cprsim.studies.study import Study, Summary, Work
from cprsim.studies.verdicts import (
    PUBLISHED,
    SECONDARY,
    Reported,
    about,
    agreement,
    alone,
    between,
    compare,
    free,
    over,
)
from cprsim.units import TIME

SCENARIO = "fleet.yaml"
N_RESAMPLED = 400
N_TOGETHER = 34  # kinds of jobs that one part of the work simulates
MOST_OF_A_KIND = 100  # jobs
HOURS_PER_YEAR = 8766.0
AS_FIXED, AFTERWARDS = "as fixed", "afterwards: "
ASSUMED = re.compile(r"[\s-]*(?P<key>\w[\w ]*):[^#]*#.*\bassumed\b")
STRATEGIES = {"full": "full recovery", "cpr": "CPR"}
PARTS = tuple(part for part in IN_TABLES if part not in ("detect", "wait"))  # none of both here
# 13 % stands on the poster (published), 12 % in a text that quotes the paper
MEAN = between(12.0, 13.0, "%", SECONDARY)
OVER_P90 = over(30.0, "%", PUBLISHED)
WORST = about(43.0, "%", SECONDARY, text="43 % for the worst 5 %")
MACHINE_YEARS = about(1156.0, "machine-years", SECONDARY)
Statistic = Callable[[Floats], Floats]  # (resamples, jobs) -> (resamples,)
# By strategy and quantity, (kinds of jobs, jobs of a kind): `overhead` and its `PARTS` as shares of
# useful time, useful `node_h`, and `machine_years` lost, as if each job were all of them.
Jobs = Mapping[str, Mapping[str, Floats]]

LONG_TAIL = "costs.reschedule={family: lognormal, mean: 60 min, median: 10 min}"
QUARTER = "fleet.vary.useful.median=12.5 h"
VERY_DIFFERENT = "fleet.vary.useful.sigma=1.5"
SHARDS = ("fleet.vary.shard_size.low=2 GB", "fleet.vary.shard_size.high=500 GB")
OTHERS: dict[str, tuple[str, ...]] = {
    "saves every hour": ("recovery.0={strategy: full, interval: 1 h}",),
    "saves every 4 h": ("recovery.0={strategy: full, interval: 4 h}",),
    "storage four times as fast": ("storage.bandwidth=100 Gbit/s",),
    "rescheduling 5 min on average": (
        "costs.reschedule={family: lognormal, mean: 5 min, median: 2.5 min}",
    ),
    "rescheduling 60 min on average": (
        "costs.reschedule={family: lognormal, mean: 60 min, median: 30 min}",
    ),
    "rescheduling with a long tail": (LONG_TAIL,),
    "exponential failures": (
        "failures={kind: job, family: exponential, role: any, mtbf: 20.49 h}",
    ),
    "jobs half as long": ("fleet.vary.useful.median=25 h",),
    "jobs a quarter as long": (QUARTER,),
    "jobs of very different length": (VERY_DIFFERENT,),
    "twice the nodes at the same MTBF": ("cluster.emb_ps=36", "cluster.trainers=40"),
    # added after the first run, for what it left unexplained: the tail, and the machine-years
    AFTERWARDS + "shards of 2 to 500 GB": SHARDS,
    AFTERWARDS + "likewise, jobs of very different length": (*SHARDS, VERY_DIFFERENT),
    AFTERWARDS + "jobs a quarter as long, rescheduling with a long tail": (LONG_TAIL, QUARTER),
}
"""Other assumptions about the fleet, as changes of the scenario; decided beforehand."""


def fleet_of(path: Path, title: str = AS_FIXED) -> LoadedScenario:
    """The fleet under one of the assumptions."""
    return load_scenario(path, OTHERS.get(title, ()))


def section_of(fleet: LoadedScenario) -> Fleet:
    """What the scenario says of the fleet."""
    assert fleet.scenario.fleet is not None, "the population is a fleet"
    return fleet.scenario.fleet


def assumed_in(path: Path) -> tuple[str, ...]:
    """The keys whose line says that it was assumed: the free inputs."""
    lines = path.read_text("utf-8").splitlines()
    return tuple(f"{path.name}: {found['key']}" for line in lines if (found := ASSUMED.match(line)))


def estimate(values: Floats, statistic: Statistic) -> StudyEstimate:
    """A statistic of the jobs with its 95 % interval, by drawing kinds of jobs again."""
    rng = stream(1, 0, "fleet/resampling")
    kinds = rng.integers(len(values), size=(N_RESAMPLED, len(values)))
    low, high = np.quantile(statistic(values[kinds].reshape(N_RESAMPLED, -1)), [0.025, 0.975])
    return StudyEstimate(float(statistic(values.reshape(1, -1))[0]), float(low), float(high))


def percent(jobs: Jobs, strategy: str, statistic: Statistic) -> StudyEstimate:
    """A statistic of the overheads, in percent."""
    return estimate(100 * jobs[strategy]["overhead"], statistic)


def machine_years(jobs: Jobs, strategy: str = "full") -> StudyEstimate:
    """Machine-years that all jobs of the fleet lose together."""
    return estimate(jobs[strategy]["machine_years"], mean)


def split(jobs: Jobs, strategy: str, low: float, high: float) -> dict[str, float]:
    """Mean parts of overhead, in percent, of the jobs between two ranks of overhead."""
    mine = {name: values.ravel() for name, values in jobs[strategy].items()}
    order = np.argsort(mine["overhead"], kind="stable")
    those = order[int(low * len(order)) : int(np.ceil(high * len(order)))]
    return {part: 100 * float(mine[part][those].mean()) for part in PARTS}


def mean(jobs: Floats) -> Floats:
    """Mean over jobs."""
    return np.asarray(jobs.mean(axis=1))


def worst(jobs: Floats) -> Floats:
    """Mean over the 5 % of the jobs with the highest overhead."""
    first = jobs.shape[1] - round(0.05 * jobs.shape[1])
    return np.asarray(np.partition(jobs, first, axis=1)[:, first:].mean(axis=1))


P50, P75, P90, P95 = (partial(np.quantile, q=share, axis=1) for share in (0.5, 0.75, 0.9, 0.95))
STATISTICS: dict[str, Statistic] = {
    "mean": mean, "P90": P90, "P95": P95, "mean of the worst 5 %": worst,
}  # fmt: skip
REPORTED = dict(zip(STATISTICS, (MEAN, OVER_P90, WORST, WORST), strict=True))
BARS: dict[str, tuple[float, float, Statistic]] = {
    "mean": (0.0, 1.0, mean),
    "P50": (0.45, 0.55, P50),
    "P75": (0.70, 0.80, P75),
    "P90": (0.88, 0.92, P90),
    "P95": (0.94, 0.96, P95),
    "worst 5 %": (0.95, 1.0, worst),
}
"""Ranks of overhead of the jobs of a bar, and what its height estimates, up to their width."""


def fleet(work: Work) -> Summary:
    """Simulate the fleet as fixed, and under each of the other assumptions."""
    path = work.files()[SCENARIO]
    for title in OTHERS:
        fleet_of(path, title)  # each makes sense before the first is simulated
    n_kinds, n_others = work.pick((340, 34), (1700, 340), (17_000, 1700))
    fixed = _costs(work, AS_FIXED, n_kinds)
    others = {title: _costs(work, title, n_others) for title in OTHERS}
    section, assumed = section_of(fleet_of(path)), assumed_in(path)
    splits = [
        (strategy, "all" if name == "mean" else name, split(fixed, strategy, low, high))
        for strategy in STRATEGIES
        for name, (low, high, _) in BARS.items()
    ]
    return Summary.of(
        "A fleet under full recovery, and under CPR",
        f"What do failures cost {section.jobs:,} jobs of different length and size in "
        f"{TIME.format(section.window_h)}?",
        [
            *(
                compare(f"full recovery, overhead: {name}", reported,
                        percent(fixed, "full", STATISTICS[name]), free(*assumed))
                for name, reported in REPORTED.items()
            ),
            compare("machine-years lost", MACHINE_YEARS, machine_years(fixed), free(*assumed)),
            *(alone(f"CPR, overhead: {name}", percent(fixed, "cpr", statistic), "%")
              for name, statistic in STATISTICS.items()),
            alone("CPR, machine-years lost", machine_years(fixed, "cpr"), "machine-years"),
        ],
        {
            "Where the hours of the jobs around a percentile of overhead go, in % of useful time "
            "(P90: the jobs from P88 to P92, and so on):": (
                {"strategy": strategy, "jobs": jobs}
                | {f"{part}, %": f"{abs(share):.2f}" for part, share in shares.items()}
                | {"overhead, %": f"{sum(shares.values()):.1f}"}
                for strategy, jobs, shares in splits
            ),
            "The same fleet under other assumptions, one change at a time, fixed beforehand but "
            "for the last ones; overheads in %:": (
                {"assumption": title}
                | {f"full: {name}": percent(jobs, "full", statistic).shown()
                   for name, statistic in STATISTICS.items()}
                | {"machine-years": machine_years(jobs).shown(),
                   "CPR: mean": percent(jobs, "cpr", mean).shown()}
                for title, jobs in ({AS_FIXED: fixed} | others).items()
            ),
        },
        (
            f"Intervals: 95 %, by drawing the kinds of jobs again. The {len(assumed)} free inputs "
            f"are: {', '.join(assumed)}.",
            _tail_note(others),
            _years_note(fixed, section.jobs, others),
        ),
        Chart(
            "A fleet of 17,000 jobs",
            "Every input that the paper does not give is assumed, and was fixed before the first "
            "run. Error bars: 95 % interval.",
            (bars(fixed), _exceedances(fixed)),
        ),
    )  # fmt: skip


def _costs(work: Work, title: str, n_kinds: int) -> Jobs:
    """Simulate a fleet, `N_TOGETHER` kinds of jobs at a time."""
    parts = {
        f"{title}, {n_kinds} kinds, from {first}": partial(_some, work, title, n_kinds, first)
        for first in range(0, n_kinds, N_TOGETHER)
    }
    pieces = [*work.each(parts).values()]
    return {
        strategy: {name: np.concatenate([piece[strategy][name] for piece in pieces]) for name in of}
        for strategy, of in pieces[0].items()
    }


def _some(work: Work, title: str, n_kinds: int, first: int) -> dict[str, dict[str, list[Any]]]:
    fleet = fleet_of(work.files()[SCENARIO], title)
    n_jobs = section_of(fleet).jobs or 0
    each = min(n_jobs // n_kinds, MOST_OF_A_KIND)
    fleet = fleet.varied({"simulation.replications": each}, fleet.place)
    found: dict[str, dict[str, list[Any]]] = {strategy: {} for strategy in STRATEGIES}
    kinds = drawn_kinds(fleet, n_kinds)[first : first + N_TOGETHER]
    for number, kind in enumerate(kinds, start=first):
        experiment = assemble(scenario_of(fleet, kind, number))
        rows, n_nodes = replication_rows(simulate(experiment)), experiment.cluster.n_nodes
        for strategy in STRATEGIES:
            mine = rows[rows["strategy"] == strategy]
            useful_h, overhead_h = mine["useful_h"], mine["wall_h"] - mine["useful_h"]
            columns = {
                "overhead": overhead_h / useful_h,
                "machine_years": n_jobs / HOURS_PER_YEAR * (n_nodes * overhead_h),
                "node_h": n_nodes * useful_h,
            } | {part: mine[f"{part}_h"] / useful_h for part in PARTS}
            for name, values in columns.items():
                found[strategy].setdefault(name, []).append(values.tolist())
    return found


def _met(
    others: Mapping[str, Jobs], reported: Reported, number: Callable[[Jobs], StudyEstimate]
) -> dict[str, str]:
    """The other assumptions under which a number of the paper is met, or may be, with ours."""
    numbers = {title: number(jobs) for title, jobs in others.items()}
    return {
        title: f"{title} ({one.shown(reported.unit)})"
        for title, one in numbers.items()
        if agreement(reported, one) is not False
    }


def _tail_note(others: Mapping[str, Jobs]) -> str:
    """Which other assumptions have the paper's tail, and which its mean as well."""
    with_tail = _met(others, OVER_P90, lambda jobs: percent(jobs, "full", P90))
    with_mean = _met(others, MEAN, lambda jobs: percent(jobs, "full", mean))
    both = [shown for title, shown in with_mean.items() if title in with_tail]
    return (
        "Why the tail is shorter: as fixed, most jobs are so long that their failures average out, "
        "and all save at the best interval tables of much the same size, so that their overheads "
        "are alike. The tail grows with rarer saves, shorter jobs, a long tail of rescheduling, "
        "and with tables of more different size, which raise the mean least. P90 is over "
        f"30 %, or can't be told from it, with: {'; '.join(with_tail.values()) or 'none'}. "
        "The mean is as published too, or can't be told from it, with: "
        f"{'; '.join(both) or 'none'}."
    )


def _years_note(fixed: Jobs, n_jobs: int | None, others: Mapping[str, Jobs]) -> str:
    assert n_jobs is not None, "the fleet has no table"
    needed = MACHINE_YEARS.low * HOURS_PER_YEAR / n_jobs / 0.125
    return (
        f"Why fewer machine-years: 1,156 machine-years of 17,000 jobs at an overhead of 12.5 % "
        f"mean {needed:,.0f} useful node-hours per job; the fleet as fixed has "
        f"{float(fixed['full']['node_h'].mean()):,.0f}. "
        "Jobs that are larger, or of more different length, have them, at the same overheads. "
        "The published number is met, or can't be told from it, with: "
        f"{'; '.join(_met(others, MACHINE_YEARS, machine_years).values()) or 'none'}."
    )


def bars(jobs: Jobs) -> Panel:
    """Where the hours of full recovery go, by percentile of overhead."""
    splits = [split(jobs, "full", low, high) for low, high, _ in BARS.values()]
    parts = [
        Series(part, tuple(BARS), tuple(shares[part] for shares in splits), kind="stack")
        for part in PARTS
    ]
    totals = [percent(jobs, "full", statistic) for *_, statistic in BARS.values()]
    low, high = (floats(ends) for ends in zip(*(one.ends for one in totals), strict=True))
    parts[-1] = replace(parts[-1], low=low, high=high)
    papers = (
        Series("paper (secondary): mean 12 to 13 %, worst 5 % 43 %",
               ("mean", "worst 5 %"), (12.5, WORST.low), kind="paper"),
        Series("paper (published): P90 over 30 %", ("P90",), (OVER_P90.low,), kind="paper"),
    )  # fmt: skip
    title, y_label = "Full recovery, by percentile of overhead", "overhead, % of useful time"
    return Panel(title, "jobs", y_label, (*parts, *papers))


def _exceedances(jobs: Jobs) -> Panel:
    """Overheads in percent, and the percentage of jobs that exceed them, at 100 points."""
    shares = np.geomspace(1.0, 1e-3, 100)
    curves = (
        Series(name, floats(100 * np.quantile(jobs[strategy]["overhead"], 1 - shares)),
               floats(100 * shares), kind="steps")
        for strategy, name in STRATEGIES.items()
    )  # fmt: skip
    papers = (
        Series("paper (published): over 30 % at P90", (OVER_P90.low,), (10.0,), kind="paper"),
        Series("paper (secondary): 43 % at P95", (WORST.low,), (5.0,), kind="paper"),
    )
    return Panel(
        "How many jobs lose more than that", "overhead, % of useful time",
        "jobs that lose more, % of all", (*curves, *papers), y_log=True,
    )  # fmt: skip


STUDY = Study(
    "fleet",
    "overhead of a fleet of 17,000 jobs by percentile, machine-years lost",
    fleet,
    (SCENARIO,),
)
