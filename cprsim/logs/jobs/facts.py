"""A job's log as facts for a simulation: what its failures cost, and when they struck."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, isfinite

import numpy as np

from cprsim.errors import ParameterError
from cprsim.failures.sources import stream
from cprsim.job.records import Clock, Estimate, Floats
from cprsim.logs.jobs.ledger import Charged, JobLedger

STALLS = ("detect", "wait", "reschedule", "load", "warm-up", "regroup", "replay", "rebuild")
COSTS = ("detect", "reschedule", "load", "warmup")  # in order; other stages count as rescheduling
P_UNUSUAL = 0.05
LONGER = 1.01  # times what a recovery had taken when the next failure cut it off, at least
LEAST_LAST = 0.25  # of a log's hours, by which failures go on after its end
LASTING = 2.0  # times the log's hours, for which they do
MOST_FAILURES = 100_000
LOOPS_BEYOND = 3  # failures in one recovery
LOOP_H = 0.5  # of work, at most, between two failures of a crash loop
SAME_STEP = 0.5  # of the steps made: two failures less apart are at one step
NO_INTERVAL = "the interval between saves: give it, as in --saves-every '30 min'"
APART_H = 1e-6  # hours between failures, at least: a simulation tells such instants apart


@dataclass(frozen=True, slots=True)
class LoggedJob:
    """Inputs for a simulation of the job, from its log."""

    ledger: JobLedger
    interval_h: float  # of progress, between saves; infinite: none, NaN: unknown
    costs_h: dict[str, float]  # save, and each of `COSTS`: means over failures
    own_h: dict[str, Floats]  # of `COSTS`: (n_failures, n_draws)
    failed_h: Floats  # of each failure, since the job's first step: (n_failures, n_draws)
    clock: Clock
    why_clock: str

    @property
    def useful_h(self) -> float:
        return self.ledger.useful_h.mean

    @property
    def wall_h(self) -> float:
        """Since the first step."""
        return self.ledger.wall_h - self.ledger.parts["start"].mean

    @property
    def observed_h(self) -> Estimate:
        """Of overhead."""
        job = self.ledger
        return Estimate.of_draws(job.wall_h - job.draws["useful"] - job.draws["start"])


def facts_of(job: JobLedger) -> LoggedJob:
    """Read the facts off a ledger. Raises ParameterError where the log says too little."""
    failures = failures_in(job)
    if not failures:
        raise ParameterError(f"{job.job}: no failure in its log: nothing to replay")
    if job.useful_h.mean <= 0 or not isfinite(job.step_s):
        raise ParameterError(f"{job.job}: its log has no steps to tell useful work by")
    rng = stream(0, 0, "backtest/cut")
    own_h = {kind: _own_h(kind, failures, rng) for kind in COSTS}
    means_h = {"save": float(job.save_stalls_h.mean()) if len(job.save_stalls_h) else 0.0}
    means_h |= {kind: float(own_h[kind].mean()) for kind in COSTS}
    failed_h = np.array([failure.at_h for failure in failures]) - job.parts["start"].mean
    return LoggedJob(job, interval_h(job), means_h, own_h, failed_h, *clock_of(job))


def interval_h(job: JobLedger) -> float:
    """Hours of work between saves; infinite where it never saved, NaN where that can't be told."""
    return job.save_every * job.step_s / 3600.0


@dataclass(slots=True)
class LoggedFailure:
    """One failure of an incident: its instant, and the recovery from it until the next one."""

    at_h: Floats  # (n_draws,)
    took_h: dict[str, Floats]  # of `COSTS`
    is_last: bool = False  # of its incident: nothing cut its recovery off

    def whole_h(self, kind: str) -> Floats | None:
        """Hours of a kind of cost; None if the next failure interrupted it."""
        took_h = self.took_h.get(kind, 0.0 * self.at_h)
        if self.is_last:
            return took_h
        reached = max(map(COSTS.index, self.took_h), default=0)
        return np.maximum(took_h - APART_H, 0.0) if reached > COSTS.index(kind) else None


def failures_in(job: JobLedger) -> list[LoggedFailure]:
    """Return all failures, also those during a recovery: each begins with a detection.

    A crash loop counts as one failure.
    """
    all_failures: list[LoggedFailure] = []
    until_h: Floats | float = 0.0
    for incident, repeats in zip(job.incidents, _repeats(job.incidents), strict=False):
        if incident.n_failures == 0:  # nodes came back
            continue
        at_h, loops = incident.failed_h, incident.n_failures > LOOPS_BEYOND
        failures: list[LoggedFailure] = []
        for name, took_h in incident.stages or (("detect", 0.0 * at_h),):
            if not failures or (name == "detect" and failures[-1].took_h and not loops):
                failures.append(LoggedFailure(at_h, {}))
            name, took = name.replace("-", ""), failures[-1].took_h
            kind = name if name in COSTS else "reschedule"
            took[kind] = took.get(kind, 0.0) + took_h
            at_h = at_h + took_h
        failures[-1].is_last = True
        if repeats and all_failures:  # the loop is part of the first one's recovery
            took, later_h = all_failures[-1].took_h, at_h - until_h
            took["reschedule"] = took.get("reschedule", 0.0) + later_h
        else:
            all_failures += failures
        until_h = at_h
    return all_failures


def _repeats(incidents: Sequence[Charged]) -> list[bool]:
    """Which are of a crash loop: soon after the one before, again and again at the same step."""
    again = [
        max(one.since_h, other.since_h) < LOOP_H
        and min(one.n_failures, other.n_failures) > 0
        and abs(other.step - one.step) <= max(1.0, SAME_STEP * other.n_made)
        for one, other in pairwise(incidents)
    ]
    return [one or other for one, other in zip([*again, False], [False, *again], strict=True)]


def crash_loops(jobs: Sequence[JobLedger]) -> list[str]:
    """A sentence for each job of whose failures some came again and again."""
    return [
        f"{job.job}: a crash loop is one failure: {n} of {job.n_failures} failures came again "
        "within minutes, at the same step"
        for job in jobs
        if (n := sum(one.n_failures for one in job.incidents) - len(failures_in(job))) > 0
    ]


def _own_h(kind: str, failures: Sequence[LoggedFailure], rng: np.random.Generator) -> Floats:
    """Return the cost of each failure [h], (n_failures, n_draws), imputed if the next one cut it.

    It is imputed by a random whole cost among those that are longer.
    """
    whole_h = [failure.whole_h(kind) for failure in failures]
    known_h = np.array([took_h for took_h in whole_h if took_h is not None])
    hours = []
    for failure, own_h in zip(failures, whole_h, strict=True):
        if own_h is None:
            cut_h = failure.took_h.get(kind, 0.0)
            likely = rng.random(known_h.shape) * (known_h > cut_h)
            drawn_h = np.take_along_axis(known_h, likely.argmax(axis=0)[None, :], axis=0)[0]
            own_h = np.where(likely.any(axis=0), drawn_h, np.multiply(LONGER, cut_h))
        hours.append(own_h)
    return np.array(hours)


def clock_of(job: JobLedger) -> tuple[Clock, str]:
    """On which clock the failures lie, and why: that of progress where none struck a recovery.

    Unless that is likely (5 %) on the wall clock, whose failures strike recoveries, too.
    """
    failures = failures_in(job)
    n = sum(failure.is_last for failure in failures)
    n_within = len(failures) - n
    share = sum(float(job.draws[name].mean()) for name in STALLS) / job.wall_h
    p_none = (1.0 - share) ** (n + n_within)
    if n_within == 0 and p_none < P_UNUSUAL:
        return Clock.PROGRESS, (
            f"none of {n} failures struck a recovery, of {100 * share:.1f} % of the hours; on the "
            f"wall clock that happens in {100 * p_none:.2g} % of jobs"
        )
    return Clock.WALL, (
        f"{n_within} of {n + n_within} failures struck a recovery, of {100 * share:.1f} % of the "
        "hours: nothing speaks against failures that do not wait for the job"
    )


# ------------------------------------------------------------------------------ their instants


def failures_at_h(facts: LoggedJob, draw: int, rng: np.random.Generator) -> Floats:
    """The job's failures in one draw [h]; on the wall clock, extended beyond the log's end."""
    failed_h = facts.failed_h[:, draw]
    if facts.clock is Clock.WALL:
        at_h = distinct_instants(failed_h)
        return distinct_instants(np.append(at_h, going_on(at_h, facts.wall_h, rng)))
    useful_at_h, start_h = facts.ledger.useful_at_h, facts.ledger.parts["start"].mean
    useful_h = [
        sum(min(b, at_h) - a for a, b in useful_at_h if a < at_h)
        for at_h in (failed_h + start_h).tolist()
    ]
    return np.minimum(distinct_instants(np.array(useful_h)), facts.useful_h * (1 - 1e-12))


def distinct_instants(at_h: Floats) -> Floats:
    """Instants from 0 on in order, moved so that no two are the same."""
    later_h = APART_H * np.arange(len(at_h))
    return np.asarray(np.maximum.accumulate(np.maximum(np.sort(at_h), 0.0) - later_h) + later_h)


def going_on(at_h: Floats, wall_h: float, rng: np.random.Generator) -> Floats:
    """Failures after a log's end: those of its last hours, repeated from a random instant on.

    So bursts stay together. The number of hours, a quarter of the log to all of it, is drawn, as a
    rate may have changed. So is the rate, given their number (gamma, as for a Poisson process).
    """
    last_h = wall_h * rng.uniform(LEAST_LAST, 1.0)
    mine_h = at_h[at_h >= wall_h - last_h]
    if len(mine_h) == 0:
        last_h, mine_h = wall_h, at_h
    since_h = np.sort((mine_h - rng.random() * last_h) % last_h)
    slower = len(mine_h) / float(rng.gamma(len(mine_h)))
    n_rounds = min(ceil(LASTING * wall_h / (last_h * slower)), MOST_FAILURES // len(mine_h) + 1)
    rounds_h = last_h * np.arange(n_rounds)[:, None]
    return np.asarray(wall_h + slower * (rounds_h + since_h).ravel())
