"""Times to failure of jobs: survival and hazard, a gamma fit, and MTBF over nodes.

The paper's jobs are not public. Ours run on nodes that fail as those of a public trace do (fitted,
in `scenarios/failure-analysis.yaml`), with its differences between nodes and its groups; the
jobs' times to failure are no input. The gaps of the traces are shown too if their files are found.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from math import log

import numpy as np

from cprsim.commands.reproduce.estimates import StudyEstimate, series
from cprsim.commands.reproduce.study import Summary, Work
from cprsim.commands.reproduce.verdicts import TOLERANCE, Ours, Tested
from cprsim.failures.block import block_of, replications_of
from cprsim.failures.replay import Replay
from cprsim.job.distributions import Distribution, Gamma
from cprsim.job.records import ROUNDED_Z_95, Floats
from cprsim.logs.fit.families import FAMILIES, fit
from cprsim.logs.fit.goodness import distances, survival_curve
from cprsim.logs.fit.lifetimes import Lifetimes, gaps, lifetimes_of
from cprsim.pages.chart import Band, Kind, Panel, Series
from cprsim.scenario.assemble import Experiment, assemble

SCENARIO = "failure-analysis.yaml"
LOG_TITLES = {"gpu-cluster": "InfiniteHBD", "lanl": "LANL"}
NODES_OF_JOBS = (25, 50, 100, 200, 300, 400)
JOBS_OF = (200, 300, 400)  # nodes of the jobs whose times to failure are looked at together
N_EMB_PS_OF_CLUSTER = 18
MTBF_H, SHAPE = (14, 30), 0.67  # of the paper
N_POINTS_OF_HAZARD = 60  # points of a curve
DIGITS = {"n": ",.0f", "shape": ".3f"}  # of a fit's numbers, where they are not .2f
GammaFit = Mapping[str, float]  # by the heading under which it is shown


def failure_analysis(work: Work) -> Summary:
    """Draw jobs, take their times to failure, and fit."""
    n_jobs, n_draws = work.pick(1000, 4000, 17_000), work.pick(3, 6, 12)
    draws = work.per_seed(partial(_times, work, n_jobs), n_draws)
    jobs = {n_nodes: _job_of(work, n_nodes) for n_nodes in NODES_OF_JOBS}
    mtbf_h = {n: job.failures.expected(job.cluster, job.useful_h).mtbf_h for n, job in jobs.items()}
    useful_h = assemble(work.scenario(SCENARIO)).useful_h

    def joined(hours: Iterable[Sequence[float]]) -> Lifetimes:
        times_h = np.concatenate(list(hours))
        return lifetimes_of(times_h, times_h < useful_h)

    lifetimes = [joined(draw.values()) for draw in draws]
    fits = [gamma_fit(times) for times in lifetimes]
    of_logs = {LOG_TITLES[name]: gamma_fit(_gaps(work, name)) for name in work.study.data_files()}
    fitted = {
        **{f"jobs, draw {number}": numbers for number, numbers in enumerate(fits, start=1)},
        **{f"jobs of {n} nodes": gamma_fit(joined(draw[n] for draw in draws)) for n in draws[0]},
        **{f"{name}: gaps": numbers for name, numbers in of_logs.items()},
    }
    return work.study.summary(
        _quantities(fits, lifetimes, mtbf_h, of_logs),
        {
            "Gamma fits:": (
                {"times": name}
                | {heading: f"{x:{DIGITS.get(heading, '.2f')}}" for heading, x in numbers.items()}
                for name, numbers in fitted.items()
            )
        },
        *_panels(lifetimes[0], fits[0], mtbf_h),
    )


def gamma_fit(lifetimes: Lifetimes) -> GammaFit:
    """A gamma fit to times to failure, and the RMSE of it and of an exponential fit."""
    gamma, exponential = (fit(FAMILIES[name], lifetimes) for name in ("gamma", "exponential"))
    return {
        "n": lifetimes.n,
        "shape": gamma.by_name["shape"].mean,
        "mean, h": gamma.mean.mean,
        "median, h": _median_h(gamma.distribution),
        "RMSE, %": 100 * distances(gamma.distribution, lifetimes)[1],
        "RMSE of exponential, %": 100 * distances(exponential.distribution, lifetimes)[1],
    }


def _median_h(distribution: Distribution) -> float:
    return float(distribution.quantile(np.array([0.5]))[0])


def _quantities(
    fits: Sequence[GammaFit],
    lifetimes: Sequence[Lifetimes],
    mtbf_h: Mapping[int, float],
    of_logs: Mapping[str, GammaFit],
) -> dict[str, Ours]:
    def mean(heading: str) -> StudyEstimate:
        return StudyEstimate.of_mean([numbers[heading] for numbers in fits])

    # the hazard in the first two hours over that from ten hours on, draw by draw
    rates = [hazards(times, np.array([0.0, 2.0, 10.0, 100.0]))[0] for times in lifetimes]
    ratio = StudyEstimate.of_mean([early / late for early, _, late in rates])
    slope = np.polyfit([log(n) for n in mtbf_h], np.log(list(mtbf_h.values())), 1)[0]
    return {
        "gamma fit: RMSE of the survival curve": mean("RMSE, %"),
        "exponential fit: RMSE, likewise": mean("RMSE of exponential, %"),
        "gamma fit: shape": mean("shape"),
        "median time to failure": mean("median, h"),
        "MTBF of jobs of 25 to 400 nodes": [*map(StudyEstimate, mtbf_h.values())],
        "hazard": Tested(
            ratio.above(1), f"{ratio.text('times')} as high from 0 to 2 h as from 10 h on"
        ),
        "slope of log MTBF over log nodes": Tested(
            bool(abs(slope + 1) < TOLERANCE), f"{slope:.2f}"
        ),
        **{
            f"{name}: gamma fit to the gaps, RMSE": StudyEstimate(gamma["RMSE, %"])
            for name, gamma in of_logs.items()
        },
        **{
            f"median at MTBF {end_h} h and shape {SHAPE}": StudyEstimate(
                _median_h(Gamma.from_mean(end_h, SHAPE))
            )
            for end_h in MTBF_H
        },
    }


def _job_of(work: Work, n_nodes: int, *overrides: str) -> Experiment:
    sets = [f"cluster.trainers={n_nodes - N_EMB_PS_OF_CLUSTER}", *overrides]
    return assemble(work.scenario(SCENARIO, sets))


def _times(work: Work, n_jobs: int, seed: int) -> dict[str, list[float]]:
    """Hours to the first failure of jobs, or to their end, by their number of nodes."""
    hours = {}
    for n_nodes in JOBS_OF:
        experiment = _job_of(work, n_nodes, f"simulation.seed={seed}")
        first_h = np.full(n_jobs // len(JOBS_OF), experiment.useful_h)
        source, cluster, useful_h = experiment.failures, experiment.cluster, experiment.useful_h
        most = source.block_replications(cluster, useful_h)
        for block in range(block_of(most, len(first_h) - 1) + 1):
            jobs = replications_of(most, block)
            n = min(len(jobs), len(first_h) - jobs.start)
            trace = next(source.draw(cluster, seed, block, n, iter([useful_h])))
            np.minimum.at(first_h, jobs.start + trace.replication, trace.at_h)
        hours[str(n_nodes)] = first_h.tolist()
    return hours


def _gaps(work: Work, name: str) -> Lifetimes:
    """Between the failures of a public log."""
    replay = assemble(work.scenario(f"{name}.yaml")).failures
    assert isinstance(replay, Replay), "these scenarios replay a log"
    return gaps(replay.outages)


def hazards(lifetimes: Lifetimes, borders_h: Floats) -> tuple[Floats, Floats]:
    """Ends over hours at risk between borders, and their standard errors."""
    ends = np.histogram(lifetimes.duration_h[lifetimes.observed], borders_h)[0]
    at_risk_h = lifetimes.at_risk_h(borders_h)
    return ends / at_risk_h, np.sqrt(np.maximum(ends, 1)) / at_risk_h


def _panels(
    lifetimes: Lifetimes, fitted: GammaFit, mtbf_h: Mapping[int, float]
) -> tuple[Panel, ...]:
    gamma = Gamma.from_mean(fitted["mean, h"], fitted["shape"])
    label = f"gamma, shape {fitted['shape']:.2f}"
    curve = survival_curve(lifetimes)
    shown = np.unique(np.linspace(0, len(curve.age_h) - 1, N_POINTS_OF_HAZARD).astype(int))
    ages = curve.age_h[shown]
    borders = np.array([0.0, 0.5, 1, 2, 4, 7, 11, 16, 24, 40, 70, 100])
    middle = (borders[:-1] + borders[1:]) / 2

    def jobs(x: Floats, y: Floats, error: Floats, kind: Kind) -> Series:
        ends = (y + sign * ROUNDED_Z_95 * error for sign in (-1, 1))
        return series("simulated jobs", x, y, *ends, kind=kind)

    return (
        Panel("Survival", "hours", "share of jobs that last longer", (
            jobs(ages, curve.survival[shown], curve.standard_error[shown], "steps"),
            series(label, ages, gamma.survival(ages)),
        )),
        Panel("Hazard", "hours", "failures per hour", (
            jobs(middle, *hazards(lifetimes, borders), "points"),
            series(label, middle, gamma.hazard_per_h(middle)),
        ), x_log=True),
        Panel("MTBF over the nodes of the job", "nodes", "MTBF, h", (
            series("simulated jobs", mtbf_h, mtbf_h.values()),
            series("falling as 1/n", mtbf_h, [mtbf_h[100] * 100 / n for n in mtbf_h]),
        ), (Band("paper: 14 to 30 h (secondary)", *MTBF_H),), x_log=True, y_log=True),
    )  # fmt: skip
