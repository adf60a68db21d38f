"""A job's log as a scenario: what it did, what its failures cost, and when they struck."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import cycle
from math import ceil, inf, isclose, isfinite, isnan
from pathlib import Path

import numpy as np

from cprsim.errors import ParameterError, ScenarioError
from cprsim.experiments.assemble import Experiment, assemble
from cprsim.failures.clocks import JobClock
from cprsim.failures.injected import Injected
from cprsim.failures.sources import no_hours, random_slots, slots_array, trace_of
from cprsim.failures.streams import stream
from cprsim.history.ledger import JobLedger
from cprsim.history.save_interval import SaveInterval
from cprsim.records import (
    STOPPED_BEYOND,
    Clock,
    Cluster,
    ExpectedFailures,
    FailureTrace,
    Floats,
    Ints,
    Transfer,
)
from cprsim.recovery.paper import STRATEGIES, at_costs
from cprsim.scenario.reading import LoadedScenario, load_scenario
from cprsim.units import TIME

AS_IT_RAN = "as it ran"
PATH = Path("backtest.yaml")  # what errors call a scenario that is no file
STALLS = ("detect", "wait", "reschedule", "load", "regroup", "replay", "rebuild")
KINDS = ("detect", "reschedule", "load")  # of costs, in order; other stages count as rescheduling
LEAST_H = 1e-9
P_REJECTED = 0.05
N_SAVES = 500  # drawn at random; then again
LONGER = 1.01  # times what a recovery had taken when the next failure cut it off, at least
LEAST_LAST = 0.25  # of a log's hours, by which failures go on after its end
BEYOND = 2.0  # times the log's hours, for which they do
MOST_FAILURES = 100_000
APART_H = 1e-6  # hours between failures, at least: engines tell such instants apart


@dataclass(frozen=True, slots=True)
class LoggedJob:
    """What a simulation of the job needs, as the log says it. Hours."""

    job: str
    useful_h: float
    wall_h: float
    step_s: float
    interval_h: float  # of progress, between saves; infinite: none
    fits_h: tuple[float, ...]  # where it is inferred: the ends of what fits the log
    costs_h: dict[str, float]  # save, load, detect, reschedule: means over failures
    reloads: bool
    n_failures: int
    own_h: dict[str, Floats]  # of `KINDS`: (n_failures, n_draws)
    saves_h: Floats  # that the log says all of
    failed_h: Floats  # of each failure, since the job's first step: (n_failures, n_draws)
    clock: Clock
    why_clock: str


def facts_of(job: JobLedger) -> LoggedJob:
    """Read the facts off a ledger. Raises ParameterError where the log says too little."""
    failures = failures_in(job)
    if not failures:
        raise ParameterError(f"{job.job}: no failure in its log: nothing to replay")
    if job.useful_h.mean <= 0 or not isfinite(job.step_s):
        raise ParameterError(f"{job.job}: its log has no steps to tell useful work by")
    every_h = interval_h(job)
    if isnan(every_h):
        raise ParameterError(
            f"{job.job}: how often it saved can't be told from its log: --saves-every says it, as "
            "in --saves-every '30 min'"
        )
    ends = job.save_every.low, job.save_every.high
    start_h = job.parts["start"].mean
    rng = stream(0, 0, "backtest/cut")
    own_h = {kind: _own_h(kind, failures, rng) for kind in KINDS}
    clock, why = clock_of(job)
    save_h = float(job.save_stalls_h.mean()) if len(job.save_stalls_h) else 0.0
    return LoggedJob(
        job=job.job,
        useful_h=job.useful_h.mean,
        wall_h=job.wall_h - start_h,
        step_s=job.step_s,
        interval_h=every_h,
        fits_h=tuple(job.step_s / 3600.0 * end for end in ends) if ends[0] > 0 else (),
        costs_h={"save": save_h}
        | {kind: float(own_h[kind].mean()) for kind in ("load", "detect", "reschedule")},
        reloads=job.reloads,
        n_failures=job.n_failures,
        own_h=own_h,
        saves_h=job.save_stalls_h,
        failed_h=np.array([one.at_h - start_h for one in failures]),
        clock=clock,
        why_clock=why,
    )


def interval_h(job: JobLedger) -> float:
    """Hours of work between saves; infinite where it never saved, NaN where that can't be told."""
    return job.save_every.steps * job.step_s / 3600.0


def saving_every(jobs: Sequence[JobLedger], every: str | None) -> tuple[JobLedger, ...]:
    """Jobs whose saves are so far apart in work, as the user says; None: as the logs say."""
    if every is None:
        return tuple(jobs)
    try:
        every_s = 3600.0 * TIME.parse(every)
    except ParameterError as error:
        raise ParameterError(f"--saves-every {every!r} {error}") from None
    if not every_s > 0:
        raise ParameterError(f"--saves-every {every!r}: must be longer than no time")
    return tuple(replace(job, save_every=SaveInterval(every_s / job.step_s)) for job in jobs)


@dataclass(slots=True)
class LoggedFailure:
    """One failure of an incident: when, and what was done about it until the next one."""

    at_h: Floats  # (n_draws,)
    took_h: dict[str, Floats]  # of `KINDS`
    is_last: bool = False  # of its incident: nothing cut its recovery off

    def whole_h(self, kind: str) -> Floats | None:
        """What a kind of cost took; None where the next failure came before it was over."""
        took_h = self.took_h.get(kind, 0.0 * self.at_h)
        if self.is_last:
            return took_h
        reached = max(map(KINDS.index, self.took_h), default=0)
        return np.maximum(took_h - APART_H, 0.0) if reached > KINDS.index(kind) else None


def failures_in(job: JobLedger) -> list[LoggedFailure]:
    """All failures, those that struck a recovery too: each begins with a detection of its own."""
    found = []
    for one in job.incidents:
        if one.n_failures == 0:  # nodes came back
            continue
        at_h = one.failed_h
        failures: list[LoggedFailure] = []
        for name, took_h in one.stages or (("detect", 0.0 * at_h),):
            if not failures or (name == "detect" and failures[-1].took_h):
                failures.append(LoggedFailure(at_h, {}))
            kind, took = name if name in KINDS else "reschedule", failures[-1].took_h
            took[kind] = took.get(kind, 0.0) + took_h
            at_h = at_h + took_h
        failures[-1].is_last = True
        found += failures
    return found


def _own_h(kind: str, failures: Sequence[LoggedFailure], rng: np.random.Generator) -> Floats:
    """What each failure costs, (n_failures, n_draws); what the next one cut off would have taken.

    That is what a whole one takes, at random of those that take longer.
    """
    whole_h = [one.whole_h(kind) for one in failures]
    known_h = np.array([one for one in whole_h if one is not None])
    hours = []
    for one, own_h in zip(failures, whole_h, strict=True):
        if own_h is None:
            cut_h = one.took_h.get(kind, 0.0)
            likely = rng.random(known_h.shape) * (known_h > cut_h)
            drawn_h = np.take_along_axis(known_h, likely.argmax(axis=0)[None, :], axis=0)[0]
            own_h = np.where(likely.any(axis=0), drawn_h, np.multiply(LONGER, cut_h))
        hours.append(own_h)
    return np.array(hours)


@dataclass(frozen=True, eq=False)
class Listed:
    """Times in a given order: the nth draw of a replication is the nth of its own, then again."""

    hours: Floats  # (n, n_replications)
    _next: list[tuple[np.random.Generator, Iterator[Floats]]] = field(
        default_factory=list, repr=False
    )

    @property
    def mean_h(self) -> float:
        """Of all."""
        return float(self.hours.mean())

    def sample(self, rng: np.random.Generator, size: int) -> Floats:
        """The next one for each replication; whoever draws has a stream of its own."""
        upcoming = next((one for known, one in self._next if known is rng), None)
        if upcoming is None:
            upcoming = cycle(self.hours)
            self._next.append((rng, upcoming))
        return next(upcoming)[:size]


def with_own_costs(
    experiment: Experiment, facts: LoggedJob, draws: Ints, rng: np.random.Generator
) -> Experiment:
    """Each failure takes as long to notice, to reschedule and to load as it did, in each draw.

    Saves of another system take what some of the log's took, unless the scenario says otherwise.
    Recovery systems, and strategies with costs of their own, have what follows from the means.
    """
    own = {name: Listed(hours[:, draws]) for name, hours in facts.own_h.items()}
    scopes = tuple(replace(scope, detect=own["detect"]) for scope in experiment.scopes)
    costs = replace(
        experiment.costs, detect=own["detect"], reschedule=own["reschedule"], load=own["load"]
    )
    save = costs.save_stall
    is_own = not isinstance(save, Transfer) and isclose(save.mean_h, facts.costs_h["save"])
    if is_own and len(facts.saves_h):
        n_saves, n_draws = len(facts.saves_h), len(draws)
        again_h = rng.choice(facts.saves_h, (n_saves, n_draws))
        saves_h = again_h[rng.integers(n_saves, size=(N_SAVES, n_draws)), np.arange(n_draws)]
        costs = replace(costs, save_stall=Listed(saves_h))
    policies = tuple(
        at_costs(policy, costs, experiment.cluster)
        if policy.is_strategy and entry.costs is None
        else policy
        for policy, entry in zip(experiment.policies, experiment.scenario.recovery, strict=True)
    )
    return replace(experiment, costs=costs, scopes=scopes, policies=policies)


def clock_of(job: JobLedger) -> tuple[Clock, str]:
    """On which clock the failures lie, and why: that of progress where none struck a recovery.

    Unless that is likely (5 %) on the wall clock, whose failures strike recoveries, too.
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


def scenario_text(facts: LoggedJob, recovery: Sequence[str], n_nodes: int) -> str:
    """The job as a scenario, with the system that ran it as the first of its recoveries."""
    needs_servers = facts.reloads or any(
        name in STRATEGIES and name not in ("none", "full") for name in map(_strategy, recovery)
    )
    role = "emb_ps" if needs_servers else "workers"
    ran = "partial" if facts.reloads else "full"
    entries = "".join(f"\n  - {one}" for one in recovery)
    costs = "".join(f"\n  {cost}: {time_text(hours)}" for cost, hours in facts.costs_h.items())
    return f"""\
name: backtest
job: {{useful: {facts.useful_h!r} h, step: {facts.step_s!r} s}}
cluster: {{{role}: {n_nodes}}}
failures:
  kind: injected
  clock: {facts.clock.value}
  role: {"emb_ps" if needs_servers else "worker"}
  at: {_instants(facts)}
costs:{costs}
recovery:
  - {{strategy: {ran}, name: {AS_IT_RAN}, interval: {interval_text(facts.interval_h)}}}{entries}
simulation: {{seed: 1, replications: 1}}
"""


def _strategy(entry: str) -> str:
    return entry.strip().strip("{}").removeprefix("strategy:").split(",")[0].strip()


def time_text(hours: float) -> str:
    """A cost as a scenario has it."""
    return f"{hours!r} h" if hours > LEAST_H else "0 s"


def interval_text(hours: float) -> str:
    """An interval of saves as a scenario has it."""
    return f"{hours!r} h" if isfinite(hours) else "never"


def _instants(facts: LoggedJob) -> str:
    mean_h = apart(facts.failed_h.mean(axis=1)).tolist()
    most_h = facts.useful_h * (1.0 if facts.clock is Clock.PROGRESS else STOPPED_BEYOND)
    kept = [at_h for at_h in mean_h if at_h < most_h]
    return "[" + ", ".join(f"{at_h!r} h" for at_h in kept) + "]"


def apart(at_h: Floats) -> Floats:
    """Instants from 0 on in order, moved so that no two are the same."""
    later_h = APART_H * np.arange(len(at_h))
    return np.asarray(np.maximum.accumulate(np.maximum(np.sort(at_h), 0.0) - later_h) + later_h)


def experiment_of(text: str, overrides: Sequence[str]) -> Experiment:
    """The scenario as records. Raises ParameterError where it makes no sense, with its message."""
    return assembled(scenario_of(text, overrides))


def scenario_of(text: str, overrides: Sequence[str]) -> LoadedScenario:
    """The scenario; files are named relative to where the user is. Raises as `experiment_of`."""
    with _as_scenario():
        return load_scenario(PATH, overrides, text=text)


def changed(loaded: LoadedScenario, key: str, to: str) -> LoadedScenario:
    """The scenario with another value of a key, unless an override says that one."""
    place = loaded.place(key)
    return loaded.varied({key: to}, loaded.place) if place.file == PATH else loaded


def assembled(loaded: LoadedScenario) -> Experiment:
    """As `assemble`, but raises as `experiment_of`."""
    with _as_scenario():
        return assemble(loaded)


@contextmanager
def _as_scenario() -> Iterator[None]:
    entry = "--recovery"  # whatever else is in the text is ours
    try:
        yield
    except ScenarioError as error:
        problems = "\n".join(
            f"{one.key or (entry if one.place.file == PATH else one.place.file)}: {one.message}"
            for one in error.problems
        )
        raise ParameterError(f"as a scenario, the job can't be simulated: {problems}") from error


@dataclass(frozen=True, eq=False)
class EachItsOwn:
    """Failures that are known, others in each replication: one draw of what a log does not say."""

    given: Injected | JobClock  # what is expected of them, and whom they strike
    at_h: tuple[Floats, ...]  # of each replication

    @property
    def clock(self) -> Clock:
        """On which all of them lie."""
        return self.given.clock

    def expected(self, cluster: Cluster, useful_h: float) -> ExpectedFailures:
        """Of the mean over the draws."""
        return self.given.expected(cluster, useful_h)

    def block_replications(self, cluster: Cluster, useful_h: float) -> int:
        """All at once."""
        return len(self.at_h)

    def draw(
        self, cluster: Cluster, seed: int, block: int, n_replications: int,
        borders_h: Iterable[float], kept: range | None = None,
    ) -> Iterator[FailureTrace]:  # fmt: skip
        """One chunk with all failures; see `FailureSource`."""
        within = range(n_replications) if kept is None else kept
        mine = self.at_h[within.start : within.stop]
        at_h = np.concatenate(mine)
        rng = stream(seed, block, "backtest/slots")
        slot = random_slots(slots_array(self.given.slots), len(at_h), 1, rng).ravel()
        number = np.repeat(np.arange(len(mine)), [len(one) for one in mine])
        yield trace_of(inf, len(mine), number, at_h, slot, no_hours(len(at_h)))


def on_progress(facts: LoggedJob, job: JobLedger, draw: int) -> Floats:
    """Useful hours that the job had done at each failure, in one draw."""
    found = []
    for one_h in facts.failed_h[:, draw]:
        at_h = float(one_h) + job.parts["start"].mean
        found.append(sum(min(b, at_h) - a for a, b in job.useful_at_h if a < at_h))
    return np.minimum(apart(np.array(found)), facts.useful_h * (1 - 1e-12))


def failures_of(
    facts: LoggedJob, job: JobLedger, experiment: Experiment, draws: Ints,
    rng: np.random.Generator,
) -> EachItsOwn:  # fmt: skip
    """The job's failures in each draw; on the wall clock they go on after the log's end."""
    assert isinstance(experiment.failures, Injected)
    if facts.clock is Clock.PROGRESS:
        at_h = [on_progress(facts, job, draw) for draw in draws.tolist()]
    else:
        known = [apart(one) for one in facts.failed_h[:, draws].T]
        at_h = [apart(np.append(one, going_on(one, facts.wall_h, rng))) for one in known]
    return EachItsOwn(experiment.failures, tuple(at_h))


def going_on(at_h: Floats, wall_h: float, rng: np.random.Generator) -> Floats:
    """Failures after a log's end: those of its last hours again, from a random instant of them on.

    So bursts stay together. How many hours, a quarter of the log to all of it, is drawn: a rate may
    have changed. So is the rate that so many failures leave open (gamma, as of a Poisson process).
    """
    last_h = wall_h * rng.uniform(LEAST_LAST, 1.0)
    mine_h = at_h[at_h >= wall_h - last_h]
    if len(mine_h) == 0:
        last_h, mine_h = wall_h, at_h
    since_h = np.sort((mine_h - rng.random() * last_h) % last_h)
    slower = len(mine_h) / float(rng.gamma(len(mine_h)))
    n_rounds = min(ceil(BEYOND * wall_h / (last_h * slower)), MOST_FAILURES // len(mine_h) + 1)
    rounds_h = last_h * np.arange(n_rounds)[:, None]
    return np.asarray(wall_h + slower * (rounds_h + since_h).ravel())
