"""A scenario from the logs of jobs, with the origin of each number; and how well it predicts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite, isnan, nan
from typing import Any

import numpy as np
import pandas as pd

from cprsim.errors import ParameterError
from cprsim.failures.clocks import JobClock
from cprsim.failures.limits import SHAPE, SIGMA
from cprsim.failures.sources import stream
from cprsim.job.distributions import Distribution
from cprsim.job.records import Estimate, Floats
from cprsim.logs.fit.cost_fit import CostFit, costs_fragment, fit_costs
from cprsim.logs.fit.families import FAMILIES
from cprsim.logs.fit.fragments import Fragment
from cprsim.logs.fit.goodness import Ranking, rank
from cprsim.logs.fit.lifetimes import Lifetimes, lifetimes_of
from cprsim.logs.fit.likelihood import Fit, Parameter
from cprsim.logs.jobs import facts
from cprsim.logs.jobs.ledger import JobLedger, total_hours
from cprsim.results.pipeline import simulate
from cprsim.results.words import count
from cprsim.scenario.logged import EachItsOwn, experiment_of

FEWEST_FAILURES = 3
RESOLUTION_H = 1e-6 / 3600
N_FUTURES = 400  # each with an MTBF that the failures so far leave open
LEAST_SPREAD = 0.05  # of gaps: their variance over the square of their mean
LEVELS_OF_90_PERCENT = (0.05, 0.95)  # of what the observed value should lie in 9 times of 10
ENOUGH_WORK = 1.5  # times the hours to come: more useful work than any future can do
FEW_TO_PREDICT = 100  # failures, below which the prediction is called rough


@dataclass(frozen=True, slots=True)
class Calibration:
    """A scenario, and where its numbers come from."""

    scenario: Fragment
    origins: tuple[tuple[str, str, str], ...]  # what, its value, where from
    costs: tuple[CostFit, ...]
    gaps: Ranking
    notes: tuple[str, ...]


def calibrate(
    jobs: Sequence[JobLedger], *, n_nodes: int, n_bootstrap: int = 0, seed: int = 0
) -> Calibration:
    """Make a scenario of the logs. Raises ParameterError where they hold too little."""
    gaps = _gaps(jobs)
    if gaps.n_observed < FEWEST_FAILURES:
        raise ParameterError(
            f"the logs hold {gaps.n_observed} failures: {FEWEST_FAILURES} at least make a scenario"
        )
    untold = sum(isnan(job.save_every) for job in jobs)
    if untold == len(jobs):
        raise ParameterError(f"the logs do not show {facts.NO_INTERVAL}")
    ranking = rank(gaps, n_bootstrap=n_bootstrap, seed=seed, families=FAMILIES)
    costs, inferred = _costs(jobs, n_bootstrap, seed)
    scenario, origins = _scenario(jobs, ranking.best, costs, n_nodes)
    origins += tuple(
        (cost.name, f"{cost.mean.mean * 3600:.4g} s", f"{cost.family}, {cost.lifetimes.n} "
         + ("inferred: no log times one" if cost.name in inferred else "with start and end"))
        for cost in costs
    )  # fmt: skip
    experiment_of(scenario.sections, ())  # whatever is wrong with it is said now
    spread = ranking.best.spread
    is_off = spread is not None and _within(spread) != spread.mean
    notes = [
        *([f"the gaps between failures have the {spread.name} {spread.mean:.4g}; a scenario takes "
           f"{_within(spread):g}"] if is_off and spread is not None else []),
        *([f"how often {count(untold, 'job')} saved can't be told: --saves-every says it"] if untold
          else []),
        *(f"the logs time no {kind} (0 s here): `cprsim run --set costs.{kind}='30 s'` gives it"
          for kind in ("save", "load") if kind not in {cost.name for cost in costs}),
        *facts.crash_loops(jobs),
        *(note for cost in costs for note in cost.notes),
    ]  # fmt: skip
    return Calibration(scenario, origins, costs, ranking, tuple(notes))


def _gaps(jobs: Sequence[JobLedger]) -> Lifetimes:
    """Hours between the failures of each job; the last gap, up to its end, is censored."""
    durations, observed = [], []
    for job in jobs:
        all_h = [float(failure.at_h.mean()) for failure in facts.failures_in(job)]
        at_h = [failed_h for failed_h in all_h if failed_h < job.wall_h]
        durations += np.maximum(np.diff([0.0, *at_h, job.wall_h]), 0.0).tolist()
        observed += [True] * len(at_h) + [False]
    return lifetimes_of(np.array(durations), np.array(observed))


def _costs(
    jobs: Sequence[JobLedger], n_bootstrap: int, seed: int
) -> tuple[tuple[CostFit, ...], list[str]]:
    """Costs of saves and failures that the logs tell in full; the kinds that none tells so."""
    n_saves = max(sum(job.n_saves for job in jobs), 1)
    costs_h = {"save": [hours for job in jobs for hours in job.save_stalls_h.tolist()]}
    inferred = ["save"] * (not any(costs_h["save"]))
    if inferred:
        costs_h["save"] = [sum(job.parts["save"].mean for job in jobs) / n_saves]
    failures = [  # whose recovery the end of the log did not cut off
        one for job in jobs for one in facts.failures_in(job)
        if (one.at_h + sum(one.took_h.values())).mean() < job.wall_h - facts.APART_H
    ]  # fmt: skip
    for kind in facts.COSTS:
        whole_h = [hours for one in failures if (hours := one.whole_h(kind)) is not None]
        told_h = [float(hours[0]) for hours in whole_h if np.ptp(hours) == 0.0]
        costs_h[kind] = told_h if any(told_h) else [float(hours.mean()) for hours in whole_h]
        inferred += [kind] * (not any(told_h))
    if 0.0 in costs_h["warmup"]:  # no family has such
        costs_h["warmup"] = [float(np.mean(costs_h["warmup"]))] * len(costs_h["warmup"])
    timed = [(kind, one) for kind, hours in costs_h.items() for one in hours if 0 < one < inf]
    apart_h = 1e6 * np.arange(len(timed), dtype=np.float64)  # they do not overlap
    transfers = pd.DataFrame(timed, columns=["kind", "duration_h"]).assign(
        n_bytes=nan, start_h=apart_h, resolution_h=RESOLUTION_H
    )
    return fit_costs(transfers, n_bootstrap=n_bootstrap, seed=seed), inferred


def _median(values: Iterable[float]) -> float:
    """The median of the finite values; infinite without any."""
    known = [*filter(isfinite, values)]
    return float(np.median(known)) if known else inf


def _scenario(
    jobs: Sequence[JobLedger], fit: Fit, costs: tuple[CostFit, ...], n_nodes: int
) -> tuple[Fragment, tuple[tuple[str, str, str], ...]]:
    """The scenario, and where its numbers come from."""
    useful_h, step_s = _median(job.useful_h.mean for job in jobs), _median(j.step_s for j in jobs)
    every_h = _median(map(facts.interval_h, jobs))  # of progress
    by = "steps of the saves" if any(job.n_saves for job in jobs) else "as given"
    fitted = costs_fragment(costs, "the logs")
    sections = {
        "name": "calibrated",
        "job": {
            "useful": f"{useful_h!r} h",
            **({"step": f"{step_s!r} s"} if isfinite(step_s) else {}),
        },
        "cluster": {"workers": n_nodes},
        "failures": {
            "kind": "job", "role": "worker", "family": fit.family, "mtbf": f"{fit.mean.mean!r} h",
            **({} if fit.spread is None else {fit.spread.name: _within(fit.spread)}),
        },
        "costs": {"save": "0 s", "load": "0 s", **fitted.sections["costs"]},
        "recovery": [{
            "strategy": "full", "name": "as it ran",
            "interval": f"{every_h!r} h" if isfinite(every_h) else "never",
        }],
        "simulation": {"seed": 1, "replications": 1000},
    }  # fmt: skip
    origins = [
        ("useful work", f"{useful_h:.5g} h", f"median of {count(len(jobs), 'job')}"),
        ("step", f"{step_s:.5g} s" if isfinite(step_s) else "–",
         "median over jobs of the time of a step between saves"),
        ("MTBF", f"{fit.mean.mean:.4g} h ({fit.mean.low:.4g} to {fit.mean.high:.4g})",
         f"{fit.family}, {fit.n_observed} gaps between failures of a job, best by AIC"),
        ("interval", f"{every_h:.4g} h of progress", f"{by}; full recovery ran"),
    ]  # fmt: skip
    return replace(fitted, sections=sections), tuple(origins)


def _within(spread: Parameter) -> float:
    """The spread of gaps, no narrower or wider than a scenario takes it."""
    return float(np.clip(spread.mean, *(SIGMA if spread.name == "sigma" else SHAPE)))


# --------------------------------------------------------------------------- compared with the log


def predict(jobs: Sequence[JobLedger], *, n_nodes: int, seed: int = 0) -> dict[str, Any]:
    """Predict the ETTR of the later half of all wall hours from the earlier half alone.

    Returns `predicted`, with a 90 % predictive interval; `observed`, with that of values missing
    from the logs; whether the one `is_inside` the other; failures and hours, and what `moved` most.

    The MTBF is drawn from a gamma distribution, as of a Poisson process whose number of failures
    is divided by the squared variation of their gaps. Raises ParameterError for too few failures.
    """
    cut_ns = _cut_ns(jobs)
    cut_h = [min(max((cut_ns - job.begins_ns) / 3600e9, 0.0), job.wall_h) for job in jobs]
    early = [_cut(job, at_h) for job, at_h in zip(jobs, cut_h, strict=True) if at_h > 0]
    gaps = _gaps(early)
    n = gaps.n_observed
    if n < FEWEST_FAILURES:
        raise ParameterError(f"the earlier half has {count(n, 'failure')}: too few to predict from")
    calibration = calibrate(early, n_nodes=n_nodes, seed=seed)
    after_h = sum(job.wall_h for job in jobs) - sum(cut_h)
    gaps_h = gaps.duration_h[gaps.observed]
    n_even = n / max(float(gaps_h.var() / gaps_h.mean() ** 2), LEAST_SPREAD)
    ettr = _futures(calibration, after_h, n_even, seed)
    predicted = Estimate(float(ettr.mean()), *np.quantile(ettr, LEVELS_OF_90_PERCENT).tolist())
    n_after, useful_h = 0, 0.0
    for job, at_h in zip(jobs, cut_h, strict=True):
        n_after += sum(bool(failure.at_h.mean() >= at_h) for failure in facts.failures_in(job))
        useful_h += sum(max(0.0, b - max(a, at_h)) for a, b in job.useful_at_h)
    share, open_ = useful_h / after_h, total_hours(jobs)["useful"].half_width / after_h
    return {
        "predicted": predicted,
        "observed": Estimate(share, share - open_, share + open_),
        "cut_unix_ns": cut_ns,
        "n_failures_before": n,
        "n_failures_after": n_after,
        "mtbf_h": calibration.gaps.best.mean.mean,
        "hours_after": after_h,
        "is_inside": predicted.low <= share <= predicted.high,
        "moved": _moved(jobs, cut_h, (n, n_after), 1 if share < predicted.mean else -1),
    }


def _moved(
    jobs: Sequence[JobLedger], cut_h: Sequence[float], n_failures: tuple[int, int], sign: int
) -> tuple[str, float, float]:
    """The quantity that lowers (1) or raises (-1) the share of useful hours most, and its values.

    Before and after the cut: the rate of `failures` [1/d], a part of what each costs [h], or the
    share of all `other` hours: saves, slow work, whatever no incident explains.
    """
    rows = []
    for job, at_h in zip(jobs, cut_h, strict=True):
        rows += [(part, one.at_h >= at_h, took_h)
                 for one in job.incidents for part, took_h in one.parts_h.items()
                 if part != "planned"]  # fmt: skip
        rows += [("useful", late, max(0.0, min(b, until_h) - max(a, from_h)))
                 for late, from_h, until_h in ((False, 0.0, at_h), (True, at_h, job.wall_h))
                 for a, b in job.useful_at_h]  # fmt: skip
    table = pd.DataFrame(rows, columns=["part", "late", "h"])
    hours = table.groupby(["part", "late"])["h"].sum().unstack(fill_value=0)
    wall_h = np.array([sum(cut_h), sum(job.wall_h for job in jobs) - sum(cut_h)])
    rate, other = n_failures / wall_h, (1.0 - hours.sum() / wall_h).to_numpy()
    each_h = {part: h / np.maximum(n_failures, 1) for part, h in hours.drop("useful").T.items()}
    values = {"failures": 24.0 * rate, **each_h, "other": other}
    per_failure_h = sum(each_h.values(), np.zeros(2)).mean()
    weight: dict[Any, float] = {"failures": per_failure_h / 24.0, "other": 1.0}
    moved = {name: np.diff(of)[0] * weight.get(name, rate.mean()) for name, of in values.items()}
    most = max(moved, key=lambda name: sign * moved[name])
    return str(most), *values[most].tolist()


def _cut_ns(jobs: Sequence[JobLedger]) -> int:
    """The instant before and after which the jobs have as many wall hours."""
    began_ns = min(job.begins_ns for job in jobs)
    begin_h = np.array([(job.begins_ns - began_ns) / 3600e9 for job in jobs])
    wall_h = np.array([job.wall_h for job in jobs])
    at_h = np.unique([begin_h, begin_h + wall_h])
    passed_h = np.clip(at_h[:, None] - begin_h, 0.0, wall_h).sum(axis=1)
    return began_ns + round(float(np.interp(wall_h.sum() / 2, passed_h, at_h)) * 3600e9)


def _cut(job: JobLedger, until_h: float) -> JobLedger:
    """A job as it was known at an instant: the incidents and saves until then."""
    n_saves = round(until_h / job.wall_h * len(job.save_stalls_h))
    incidents = tuple(incident for incident in job.incidents if incident.at_h < until_h)
    stalls_h = job.save_stalls_h[:n_saves]
    return replace(job, wall_h=until_h, incidents=incidents, save_stalls_h=stalls_h)


def _futures(calibration: Calibration, hours: float, n_even: float, seed: int) -> Floats:
    """ETTR of simulated futures of `hours` hours, (`N_FUTURES`,).

    `n_even` failures of a Poisson process would leave as much open. Of the saves the mean counts.
    """
    save_h = sum(cost.mean.mean for cost in calibration.costs if cost.name == "save")
    useful, horizon = f"job.useful={ENOUGH_WORK * hours!r} h", f"job.horizon={hours!r} h"
    sets = (useful, horizon, f"costs.save={save_h!r} h", f"simulation.seed={seed}")
    experiment = experiment_of(calibration.scenario.sections, sets)
    source = experiment.failures
    assert isinstance(source, JobClock)
    rng = stream(seed, 0, "calibrate/futures")
    longer = n_even / rng.gamma(n_even, size=N_FUTURES)
    futures = tuple(_renewals_h(source.lifetime, factor, hours, rng) for factor in longer.tolist())
    experiment = replace(experiment, failures=EachItsOwn(source, futures))
    costs = simulate(experiment.simulated(replications=N_FUTURES)).strategies[0].costs
    return np.asarray(costs.useful_h / costs.wall_h)


def _renewals_h(
    gaps: Distribution, longer: float, until_h: float, rng: np.random.Generator
) -> Floats:
    """Instants [h] of failures, whose gaps are `longer` times those of a distribution."""
    at_h = np.zeros(1)
    while at_h[-1] < until_h:
        more_h = longer * gaps.sample(rng, 1 + int(until_h / (longer * gaps.mean_h)))
        at_h = np.append(at_h, at_h[-1] + np.cumsum(more_h))
    return facts.distinct_instants(at_h[1:])
