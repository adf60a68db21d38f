"""A logged job as an experiment: its own failures and costs in place of drawn ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import cycle
from math import inf, isclose, isfinite
from pathlib import Path

import numpy as np

from cprsim.errors import ParameterError, ScenarioError
from cprsim.failures.clocks import JobClock
from cprsim.failures.injected import Injected
from cprsim.failures.sources import random_slots, stream, trace_of
from cprsim.job.records import (
    STOPPED_BEYOND,
    Clock,
    Cluster,
    ExpectedFailures,
    FailureTrace,
    Floats,
    Ints,
    Storage,
)
from cprsim.logs.jobs.facts import LoggedJob, distinct_instants, failures_at_h
from cprsim.recovery.paper import STRATEGIES, at_costs
from cprsim.scenario.assemble import Experiment, assemble
from cprsim.scenario.reading import checked_data
from cprsim.scenario.yaml_text import Plain

AS_IT_RAN = "as it ran"
PATH = Path("backtest.yaml")  # what errors call a scenario that is no file
LEAST_H = 1e-9
N_DRAWN_SAVES = 500  # drawn at random; then again


def scenario_of(facts: LoggedJob, recovery: Sequence[Plain], n_nodes: int) -> dict[str, Plain]:
    """The job of a log as a scenario; its first recovery is the system that ran it."""
    names = [entry.get("strategy") if isinstance(entry, dict) else entry for entry in recovery]
    needs_servers = any(name in STRATEGIES and name not in ("none", "full") for name in names)
    at_h = distinct_instants(facts.failed_h.mean(axis=1)).tolist()
    most_h = facts.useful_h * (1.0 if facts.clock is Clock.PROGRESS else STOPPED_BEYOND)
    ran: dict[str, Plain] = {
        "strategy": "full",
        "name": AS_IT_RAN,
        "interval": f"{facts.interval_h!r} h" if isfinite(facts.interval_h) else "never",
    }
    return {
        "name": "backtest",
        "job": {"useful": f"{facts.useful_h!r} h", "step": f"{facts.ledger.step_s!r} s"},
        "cluster": {"emb_ps" if needs_servers else "workers": n_nodes},
        "failures": {
            "kind": "injected",
            "clock": facts.clock.value,
            "role": "emb_ps" if needs_servers else "worker",
            "at": [f"{failed_h!r} h" for failed_h in at_h if failed_h < most_h],
        },
        "costs": {
            cost: f"{hours!r} h" if hours > LEAST_H else "0 s"
            for cost, hours in facts.costs_h.items()
            if hours > LEAST_H or cost != "warmup"
        },
        "recovery": [ran, *recovery],
        "simulation": {"seed": 1, "replications": 1},
    }


def experiment_of(data: Mapping[str, Plain], overrides: Sequence[str]) -> Experiment:
    """A scenario as records; files are named relative to where the user is.

    Raises ParameterError where it makes no sense, with its message.
    """
    try:
        return assemble(checked_data(data, PATH, overrides))
    except ScenarioError as error:
        problems = "\n".join(  # only the user's entries of `recovery` have no key
            f"{problem.key or (problem.place if problem.place.option else 'recovery')}"
            f": {problem.message}"
            for problem in error.problems
        )
        raise ParameterError(f"as a scenario, the job can't be simulated: {problems}") from error


@dataclass(frozen=True, eq=False)
class Listed:
    """Times in a given order: each generator draws the rows one after the other, repeatedly."""

    hours: Floats  # (n, n_replications)
    _next: list[tuple[np.random.Generator, Iterator[Floats]]] = field(
        default_factory=list, repr=False
    )

    @property
    def mean_h(self) -> float:
        return float(self.hours.mean())

    def sample(self, rng: np.random.Generator, size: int) -> Floats:
        """The next row of times, one for each replication; every generator has its own position."""
        upcoming = next((hours for drawing, hours in self._next if drawing is rng), None)
        if upcoming is None:
            upcoming = cycle(self.hours)
            self._next.append((rng, upcoming))
        return next(upcoming)[:size]


def with_own_failures(
    experiment: Experiment, facts: LoggedJob, draws: Ints, rng: np.random.Generator
) -> Experiment:
    """Replace the failures by those of the log, a replication for each draw."""
    assert isinstance(experiment.failures, Injected)
    at_h = tuple(failures_at_h(facts, draw, rng) for draw in draws.tolist())
    failures = EachItsOwn(experiment.failures, at_h)
    return replace(experiment.simulated(replications=len(draws)), failures=failures)


def with_own_costs(
    experiment: Experiment, facts: LoggedJob, draws: Ints, rng: np.random.Generator
) -> Experiment:
    """Give each failure its own times of detection, rescheduling, load and warm-up, in each draw.

    Saves of another system draw their times from those of the log, unless the scenario gives them.
    Recovery systems, and strategies with their own costs, use the means.
    """
    listed = {name: Listed(hours[:, draws]) for name, hours in facts.own_h.items()}
    scopes = tuple(replace(scope, detect=listed["detect"]) for scope in experiment.scopes)
    costs = replace(
        experiment.costs, detect=listed["detect"], reschedule=listed["reschedule"],
        load=listed["load"], warmup=experiment.costs.warmup and listed["warmup"],
    )  # fmt: skip
    save, stalls_h = costs.save_stall, facts.ledger.save_stalls_h
    is_own = not isinstance(save, Storage) and isclose(save.mean_h, facts.costs_h["save"])
    if is_own and len(stalls_h):
        n_saves, n_draws = len(stalls_h), len(draws)
        again_h = rng.choice(stalls_h, (n_saves, n_draws))
        saves_h = again_h[rng.integers(n_saves, size=(N_DRAWN_SAVES, n_draws)), np.arange(n_draws)]
        costs = replace(costs, save_stall=Listed(saves_h))
    policies = tuple(
        at_costs(policy, costs, experiment.cluster)
        if policy.from_cpr_paper and entry.costs is None
        else policy
        for policy, entry in zip(experiment.policies, experiment.scenario.recovery, strict=True)
    )
    return replace(experiment, costs=costs, scopes=scopes, policies=policies)


@dataclass(frozen=True, eq=False)
class EachItsOwn:
    """Known failures that differ by replication: one draw of the values missing in a log each."""

    expected_as: Injected | JobClock  # what is expected of them, and whom they strike
    at_h: tuple[Floats, ...]  # of each replication

    @property
    def clock(self) -> Clock:
        return self.expected_as.clock

    def expected(
        self, cluster: Cluster, useful_h: float, of: range | None = None
    ) -> ExpectedFailures:
        return self.expected_as.expected(cluster, useful_h, of)

    def block_replications(self, cluster: Cluster, useful_h: float) -> int:
        return len(self.at_h)

    def draw(
        self, cluster: Cluster, seed: int, block: int, n_replications: int,
        borders_h: Iterable[float],
    ) -> Iterator[FailureTrace]:  # fmt: skip
        """One chunk with all failures; see `FailureSource`."""
        mine = self.at_h[:n_replications]
        at_h = np.concatenate(mine)
        rng = stream(seed, block, "backtest/slots")
        slot = random_slots(self.expected_as.slots, len(at_h), 1, rng).ravel()
        number = np.repeat(np.arange(len(mine)), [len(failures_h) for failures_h in mine])
        yield trace_of(inf, len(mine), number, at_h, slot, np.zeros(len(at_h)))
