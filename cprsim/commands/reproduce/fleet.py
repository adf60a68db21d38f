"""A fleet of 17,000 jobs under full recovery, and the same fleet under CPR.

The paper analysed 17,000 jobs of 30 days, whose properties are unknown. `scenarios/fleet.yaml`
assumes them, and was committed before the first run with the other assumptions below. Nothing was
changed afterwards: disagreements are shown, and so are the results of each other assumption.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from cprsim.commands.reproduce.estimates import StudyEstimate, series, stack
from cprsim.commands.reproduce.study import Summary, Work
from cprsim.commands.reproduce.verdicts import Target
from cprsim.failures.sources import stream
from cprsim.files.units import TIME
from cprsim.job.records import Floats
from cprsim.pages.chart import Panel
from cprsim.pages.figures import OVERHEAD_LABEL
from cprsim.results.metrics import IN_TABLES, replication_rows
from cprsim.results.pipeline import simulate
from cprsim.scenario.assemble import assemble
from cprsim.scenario.population import drawn_kinds, fleet_of, scenario_of
from cprsim.scenario.prices import HOURS_PER_YEAR
from cprsim.scenario.reading import LoadedScenario

SCENARIO = "fleet.yaml"
N_TOGETHER = 34  # kinds of jobs that one part of the work simulates
MOST_OF_A_KIND = 100  # jobs
RESAMPLED_KINDS = 400
AS_FIXED = "as fixed"
WORST, YEARS = 43.0, 1156.0  # of the paper: % for the worst 5 %, machine-years lost
TWO_STRATEGIES = {"full": "full recovery", "cpr": "CPR"}
NONE_HERE = ("detect", "wait")
MADE_PARTS = tuple(part for part in IN_TABLES if part not in NONE_HERE)
# By strategy and quantity, (kinds of jobs, jobs of a kind): `overhead` and its `MADE_PARTS` in % of
# useful time, useful `node_h`, and `machine_years` lost, as if each job were all of them.
Jobs = Mapping[str, Mapping[str, Floats]]
Statistic = Callable[[Floats], Floats]  # (resamples, jobs) -> (resamples,)


def mean(jobs: Floats) -> Floats:
    """Mean over jobs."""
    return np.asarray(jobs.mean(axis=1))


def worst(jobs: Floats) -> Floats:
    """Mean over the 5 % of the jobs with the highest overhead."""
    first = jobs.shape[1] - round(0.05 * jobs.shape[1])
    return np.asarray(np.partition(jobs, first, axis=1)[:, first:].mean(axis=1))


P50, P75, P90, P95 = (partial(np.quantile, q=share, axis=1) for share in (0.5, 0.75, 0.9, 0.95))
STUDY_STATISTICS: dict[str, Statistic] = {
    "mean": mean, "P90": P90, "P95": P95, "mean of the worst 5 %": worst,
}  # fmt: skip
BARS: dict[str, tuple[float, float, Statistic]] = {
    "mean": (0.0, 1.0, mean),
    "P50": (0.45, 0.55, P50),
    "P75": (0.70, 0.80, P75),
    "P90": (0.88, 0.92, P90),
    "P95": (0.94, 0.96, P95),
    "worst 5 %": (0.95, 1.0, worst),
}
"""Ranks of overhead of the jobs of a bar, and what its height estimates, up to their width."""


def number(
    jobs: Jobs, strategy: str = "full", statistic: Statistic = mean,
    of: str = "overhead",
) -> StudyEstimate:  # fmt: skip
    """A statistic of the jobs with its 95 % interval, by drawing kinds of jobs again."""
    values, rng = jobs[strategy][of], stream(1, 0, "fleet/resampling")
    kinds = rng.integers(len(values), size=(RESAMPLED_KINDS, len(values)))
    low, high = np.quantile(statistic(values[kinds].reshape(RESAMPLED_KINDS, -1)), [0.025, 0.975])
    return StudyEstimate(float(statistic(values.reshape(1, -1))[0]), float(low), float(high))


def split(jobs: Jobs, strategy: str, low: float, high: float) -> dict[str, float]:
    """Mean parts of overhead, in percent, of the jobs between two ranks of overhead."""
    mine = pd.DataFrame({name: values.ravel() for name, values in jobs[strategy].items()})
    ranked = mine.sort_values("overhead", kind="stable")
    between = ranked.iloc[int(low * len(mine)) : int(np.ceil(high * len(mine)))]
    return {part: float(between[part].mean()) for part in MADE_PARTS}


def fleet(work: Work) -> Summary:
    """Simulate the fleet as fixed, and under each of the other assumptions."""
    loaded = {title: work.scenario(SCENARIO, sets) for title, sets in work.study.cases.items()}
    n_fixed, n_others = work.pick((340, 34), (1700, 340), (17_000, 1700))
    by_assumption = {
        title: _costs(work, title, scenario, n_fixed if title == AS_FIXED else n_others)
        for title, scenario in loaded.items()
    }
    fixed, section = by_assumption[AS_FIXED], fleet_of(loaded[AS_FIXED])
    others = {title: jobs for title, jobs in by_assumption.items() if title != AS_FIXED}
    n_jobs, claims = section.jobs or 0, work.study.claims
    with_tail = _agreeing(others, claims["full recovery, overhead: P90"], statistic=P90)
    with_mean = _agreeing(others, claims["full recovery, overhead: mean"])
    years = claims["machine-years lost"]
    assumed = years.free
    splits = [
        (strategy, "all" if name == "mean" else name, split(fixed, strategy, low, high))
        for strategy in TWO_STRATEGIES
        for name, (low, high, _) in BARS.items()
    ]
    return work.study.summary(
        {
            **{f"full recovery, overhead: {name}": number(fixed, "full", statistic)
               for name, statistic in STUDY_STATISTICS.items()},
            "machine-years lost": number(fixed, of="machine_years"),
            **{f"CPR, overhead: {name}": number(fixed, "cpr", statistic)
               for name, statistic in STUDY_STATISTICS.items()},
            "CPR, machine-years lost": number(fixed, "cpr", of="machine_years"),
        },
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
                | {f"full: {name}": number(jobs, "full", statistic).text()
                   for name, statistic in STUDY_STATISTICS.items()}
                | {"machine-years": number(jobs, of="machine_years").text(),
                   "CPR: mean": number(jobs, "cpr").text()}
                for title, jobs in by_assumption.items()
            ),
        },
        bars(fixed),
        _exceedances(fixed),
        n_jobs=n_jobs,
        window=TIME.format(section.window_h),
        n_assumed=len(assumed),
        assumed=", ".join(assumed),
        with_tail="; ".join(with_tail.values()) or "none",
        with_mean="; ".join(x for title, x in with_mean.items() if title in with_tail) or "none",
        needed_h=YEARS * HOURS_PER_YEAR / n_jobs / 0.125,
        node_h=float(fixed["full"]["node_h"].mean()),
        with_years="; ".join(_agreeing(others, years, of="machine_years").values()) or "none",
    )  # fmt: skip


def _costs(work: Work, title: str, loaded: LoadedScenario, n_kinds: int) -> Jobs:
    """Simulate a fleet, `N_TOGETHER` kinds of jobs at a time."""
    parts = {
        f"{title}, {n_kinds} kinds, from {first}": partial(_jobs_of_kinds, loaded, n_kinds, first)
        for first in range(0, n_kinds, N_TOGETHER)
    }
    pieces = [*work.compute(parts).values()]
    return {
        strategy: {name: np.concatenate([piece[strategy][name] for piece in pieces]) for name in of}
        for strategy, of in pieces[0].items()
    }


def _jobs_of_kinds(
    fleet: LoadedScenario, n_kinds: int, first: int
) -> dict[str, dict[str, list[Any]]]:
    n_jobs = fleet_of(fleet).jobs or 0
    n_each = min(n_jobs // n_kinds, MOST_OF_A_KIND)
    fleet = fleet.varied({"simulation.replications": n_each}, fleet.place)
    collected: dict[str, dict[str, list[Any]]] = {strategy: {} for strategy in TWO_STRATEGIES}
    kinds = drawn_kinds(fleet, n_kinds)[first : first + N_TOGETHER]
    for number, kind in enumerate(kinds, start=first):
        experiment = assemble(scenario_of(fleet, kind, number))
        rows, n_nodes = replication_rows(simulate(experiment)), experiment.cluster.n_nodes
        for strategy, mine in rows.groupby("strategy"):
            useful_h, overhead_h = mine["useful_h"], mine["wall_h"] - mine["useful_h"]
            columns = {
                "overhead": 100 * overhead_h / useful_h,
                "machine_years": n_jobs / HOURS_PER_YEAR * (n_nodes * overhead_h),
                "node_h": n_nodes * useful_h,
            } | {part: 100 * mine[f"{part}_h"] / useful_h for part in MADE_PARTS}
            for name, values in columns.items():
                collected[str(strategy)].setdefault(name, []).append(values.tolist())
    return collected


def _agreeing(others: Mapping[str, Jobs], target: Target, **of: Any) -> dict[str, str]:
    """The other assumptions under which a number of the paper is met, or may be, with ours."""
    numbers = {title: number(jobs, **of) for title, jobs in others.items()}
    return {
        title: f"{title} ({estimate.text(target.unit)})"
        for title, estimate in numbers.items()
        if target.met_by(estimate) is not False
    }


def bars(jobs: Jobs) -> Panel:
    """Hours of full recovery by part, by percentile of overhead."""
    splits = pd.DataFrame([split(jobs, "full", low, high) for low, high, _ in BARS.values()])
    totals = (number(jobs, "full", statistic) for *_, statistic in BARS.values())
    parts = stack({part: splits[part].tolist() for part in MADE_PARTS}, BARS, totals)
    papers = (
        series("paper (secondary): mean 12 to 13 %, worst 5 % 43 %",
               ("mean", "worst 5 %"), (12.5, WORST), kind="paper"),
        series("paper (published): P90 over 30 %", ("P90",), (30.0,), kind="paper"),
    )  # fmt: skip
    title, y_label = "Full recovery, by percentile of overhead", OVERHEAD_LABEL
    return Panel(title, "jobs", y_label, (*parts, *papers))


def _exceedances(jobs: Jobs) -> Panel:
    """Overheads in percent, and the percentage of jobs that exceed them, at 100 points."""
    shares = np.geomspace(1.0, 1e-3, 100)
    curves = (
        series(name, np.quantile(jobs[strategy]["overhead"], 1 - shares), 100 * shares,
               kind="steps")
        for strategy, name in TWO_STRATEGIES.items()
    )  # fmt: skip
    papers = (
        series("paper (published): over 30 % at P90", (30.0,), (10.0,), kind="paper"),
        series("paper (secondary): 43 % at P95", (WORST,), (5.0,), kind="paper"),
    )
    return Panel(
        "How many jobs lose more than that", OVERHEAD_LABEL,
        "jobs that lose more, % of all", (*curves, *papers), y_log=True,
    )  # fmt: skip
