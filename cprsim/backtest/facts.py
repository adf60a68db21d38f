"""A job's log as a scenario: what it did, what its failures cost, and when they struck."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import isclose, isfinite
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import numpy as np

from cprsim.errors import ParameterError, ScenarioError
from cprsim.experiments.assemble import Experiment, assemble
from cprsim.failures.injected import Injected
from cprsim.history.ledger import JobLedger
from cprsim.records import STOPPED_BEYOND, Clock, Floats, Transfer
from cprsim.recovery import STRATEGIES
from cprsim.results.money import JobPrices, prices_of
from cprsim.scenario import LoadedScenario, load_scenario

AS_IT_RAN = "as it ran"
STALLS = ("detect", "wait", "reschedule", "load", "regroup", "replay", "rebuild")
LEAST_H = 1e-9
P_REJECTED = 0.05
N_SAVES = 500  # drawn at random; then again
AT_ONCE_H = 1e-9  # failures closer together are one


@dataclass(frozen=True, slots=True)
class LoggedJob:
    """What a simulation of the job needs, as the log says it. Means over failures, hours."""

    job: str
    useful_h: float
    wall_h: float
    step_s: float
    interval_h: float  # of progress, between saves; infinite: none
    save_h: float
    detect_h: float
    reschedule_h: float  # the wait for a node and whatever else is no detection and no load, too
    load_h: float
    reloads: bool
    n_failures: int
    own_h: dict[str, Floats]  # detection, rescheduling, load of incidents: (n_incidents, n_draws)
    saves_h: Floats  # that the log says all of
    failed_h: tuple[Floats, ...]  # of each incident, since the job's first step, (n_draws,)
    clock: Clock
    why_clock: str


def facts_of(job: JobLedger) -> LoggedJob:
    """Read the facts off a ledger.

    Raises
    ------
    ParameterError : the log says too little: no failure, no step, or no hour of work
    """
    if not job.incidents:
        raise ParameterError(f"{job.job}: no failure in its log: nothing to replay")
    if job.useful_h.mean <= 0 or not isfinite(job.step_s):
        raise ParameterError(f"{job.job}: its log has no steps to tell useful work by")
    n, start_h = job.n_failures, job.parts["start"].mean
    stood_h = {name: job.parts[name].mean / n for name in STALLS}
    clock, why = clock_of(job)
    save_h = float(job.save_stalls_h.mean()) if len(job.save_stalls_h) else 0.0
    return LoggedJob(
        job=job.job,
        useful_h=job.useful_h.mean,
        wall_h=job.wall_h - start_h,
        step_s=job.step_s,
        interval_h=job.save_every_steps * job.step_s / 3600.0,
        save_h=save_h,
        detect_h=stood_h["detect"],
        reschedule_h=sum(stood_h[name] for name in STALLS if name not in ("detect", "load")),
        load_h=stood_h["load"],
        reloads=job.reloads,
        n_failures=n,
        own_h=_own_h(job),
        saves_h=job.save_stalls_h,
        failed_h=tuple(one.failed_h - start_h for one in job.incidents),
        clock=clock,
        why_clock=why,
    )


def _own_h(job: JobLedger) -> dict[str, Floats]:
    none = np.zeros(len(job.draws["useful"]))
    stages: dict[str, tuple[str, ...]] = {"detect": ("detect",), "load": ("load",)}
    stages["reschedule"] = tuple(name for name in STALLS if name not in stages)
    return {
        kind: np.array(
            [sum((one.stood_h.get(name, none) for name in names), none) for one in job.incidents]
        )
        for kind, names in stages.items()
    }


@dataclass(frozen=True)
class Listed:
    """Times in a given order: the nth draw of a replication is the nth of them, then again."""

    hours: tuple[float, ...]
    _drawn: list[list[Any]] = field(default_factory=list, compare=False, repr=False)

    @property
    def mean_h(self) -> float:
        """Of all."""
        return float(np.mean(self.hours))

    def sample(self, rng: np.random.Generator, size: int) -> Floats:
        """The next one for each of so many replications; whoever draws has a stream of its own."""
        mine = next((one for one in self._drawn if one[0] is rng), None)
        if mine is None:
            mine = [rng, 0]
            self._drawn.append(mine)
        place = mine[1] % len(self.hours)
        mine[1] += 1
        return np.full(size, self.hours[place])


def with_own_costs(
    experiment: Experiment, facts: LoggedJob, draw: int, rng: np.random.Generator
) -> Experiment:
    """Each failure takes as long to notice, to reschedule and to load as it did, in one draw.

    Another system saves at other times: its saves take what some of the log's took, at random,
    unless the scenario says otherwise.
    Holds for strategies of the scenario's costs; recovery systems have what follows from the means.
    """
    own = {name: Listed(tuple(hours[:, draw].tolist())) for name, hours in facts.own_h.items()}
    scopes = tuple(replace(scope, detect=own["detect"]) for scope in experiment.scopes)
    costs = replace(
        experiment.costs, detect=own["detect"], reschedule=own["reschedule"], load=own["load"]
    )
    save = costs.save_stall
    is_own = not isinstance(save, Transfer) and isclose(save.mean_h, facts.save_h)
    if is_own and len(facts.saves_h):
        costs = replace(
            costs, save_stall=Listed(tuple(rng.choice(facts.saves_h, N_SAVES).tolist()))
        )
    return replace(experiment, costs=costs, scopes=scopes)


def clock_of(job: JobLedger) -> tuple[Clock, str]:
    """On which clock the failures lie, and why.

    Failures of the wall clock strike recoveries like anything else; those of the progress clock
    only work done for the first time. The latter fits where none struck a recovery, although that
    would have been unlikely (below 5 %) on the wall clock.
    """
    n, n_within = len(job.incidents), job.n_failures - len(job.incidents)
    share = sum(job.parts[name].mean for name in STALLS) / job.wall_h
    p_none = (1.0 - share) ** (n + n_within)
    if n_within == 0 and p_none < P_REJECTED:
        return Clock.PROGRESS, (
            f"none of {n} failures struck a recovery, of {100 * share:.1f} % of the hours; on the "
            f"wall clock that happens in {100 * p_none:.2g} % of jobs"
        )
    return Clock.WALL, (
        f"{n_within} of {n + n_within} failures struck a recovery, of {100 * share:.1f} % of the "
        "hours: nothing speaks against failures that do not wait for the job"
    )


def scenario_text(facts: LoggedJob, recovery: Sequence[str], n_nodes: int, factors: Factors) -> str:
    """The job as a scenario, with the system that ran it as the first of its recoveries."""
    needs_servers = facts.reloads or any(
        name in STRATEGIES and name not in ("none", "full") for name in map(_strategy, recovery)
    )
    role = "emb_ps" if needs_servers else "workers"
    ran = "partial" if facts.reloads else "full"
    interval = "never" if not isfinite(facts.interval_h) else f"{facts.interval_h!r} h"
    entries = "".join(f"\n  - {one}" for one in recovery)
    return f"""\
name: backtest
job: {{useful: {facts.useful_h!r} h, step: {facts.step_s!r} s}}
cluster: {{{role}: {n_nodes}}}
failures:
  kind: injected
  clock: {facts.clock.value}
  role: {"emb_ps" if needs_servers else "worker"}
  at: {_instants(facts)}
costs:
  save: {_time(facts.save_h * factors.save)}
  load: {_time(facts.load_h * factors.load)}
  detect: {_time(facts.detect_h * factors.detect)}
  reschedule: {_time(facts.reschedule_h * factors.reschedule)}
recovery:
  - {{strategy: {ran}, name: {AS_IT_RAN}, interval: {interval}}}{entries}
simulation: {{seed: 1, replications: 1}}
"""


@dataclass(frozen=True, slots=True)
class Factors:
    """By what costs are multiplied, to see which would change the advice."""

    save: float = 1.0
    load: float = 1.0
    detect: float = 1.0
    reschedule: float = 1.0


def _strategy(entry: str) -> str:
    return entry.strip().strip("{}").removeprefix("strategy:").split(",")[0].strip()


def _time(hours: float) -> str:
    return f"{hours!r} h" if hours > LEAST_H else "0 s"


def _instants(facts: LoggedJob) -> str:
    mean_h = [float(one.mean()) for one in facts.failed_h]
    most_h = facts.useful_h * (1.0 if facts.clock is Clock.PROGRESS else STOPPED_BEYOND)
    kept = [at_h for at_h in distinct(mean_h) if at_h < most_h]
    return "[" + ", ".join(f"{at_h!r} h" for at_h in kept) + "]"


def distinct(at_h: Sequence[float]) -> list[float]:
    """Instants in order, no two the same."""
    kept: list[float] = []
    for one in sorted(at_h):
        if one >= 0 and (not kept or one > kept[-1] + AT_ONCE_H):
            kept.append(one)
    return kept


def experiment_of(text: str, overrides: Sequence[str]) -> Experiment:
    """The scenario as records. Raises ParameterError where it makes no sense, with its message."""
    return _made_of(text, overrides, assemble)


def prices_of_job(text: str, overrides: Sequence[str]) -> JobPrices | None:
    """The prices that the overrides give a job; None: none. Raises ParameterError as above."""
    return _made_of(text, overrides, lambda loaded: prices_of(loaded.scenario))


Made = TypeVar("Made")


def _made_of(text: str, overrides: Sequence[str], make: Callable[[LoadedScenario], Made]) -> Made:
    with TemporaryDirectory(prefix="cprsim-") as folder:
        path = Path(folder) / "backtest.yaml"
        path.write_text(text, "utf-8")
        try:
            return make(load_scenario(path, list(overrides)))
        except ScenarioError as error:
            said = "\n".join(f"{one.key}: {one.message}" for one in error.problems)
            raise ParameterError(f"as a scenario, the job can't be simulated: {said}") from error


def on_progress(facts: LoggedJob, job: JobLedger, draw: int) -> list[float]:
    """Useful hours that the job had done at each failure, in one draw."""
    edges = [(a, b) for a, b, part in job.pieces if part == "useful"]
    found = []
    for one in facts.failed_h:
        at_h = float(one[draw]) + job.parts["start"].mean
        found.append(sum(min(b, at_h) - a for a, b in edges if a < at_h))
    return distinct([min(at_h, facts.useful_h * (1 - 1e-12)) for at_h in found])


def failures_of(
    facts: LoggedJob, job: JobLedger, experiment: Experiment, draw: int, rng: np.random.Generator
) -> Injected:
    """The job's failures in one draw of what its log does not say.

    Beyond the log's end no failures are known; on the wall clock they go on with gaps of the log,
    drawn at random, for systems that would have taken longer.
    """
    given = experiment.failures
    assert isinstance(given, Injected)
    if facts.clock is Clock.PROGRESS:
        at_h = on_progress(facts, job, draw)
    else:
        at_h = distinct([float(one[draw]) for one in facts.failed_h])
        gaps_h = np.diff([0.0, *at_h])
        last_h = facts.wall_h
        while last_h < 3.0 * facts.wall_h and len(at_h) < 100_000:
            last_h += float(rng.choice(gaps_h))
            at_h.append(last_h)
        at_h = distinct(at_h)
    return Injected(
        useful_h=facts.useful_h, slots=given.slots, together=1, at_h=tuple(at_h),
        repair=given.repair, clock=facts.clock,
    )  # fmt: skip
