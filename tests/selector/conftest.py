"""A job whose answers are known in closed form, and a curve made by hand."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from cprsim.accuracy.curve import Response, StalenessCurve
from cprsim.commands.select.answer import document_of_select
from cprsim.commands.select.evaluation import CandidateEvaluator, evaluator_of
from cprsim.commands.select.record import Selection, write_selection
from cprsim.commands.select.selection import selection_of
from cprsim.failures.clocks import JobClock
from cprsim.job.distributions import Constant, Exponential
from cprsim.job.losses import Metric
from cprsim.job.policy import Policy, Reach, Scope
from cprsim.job.records import Clock, Cluster, Costs, Holds, Role
from cprsim.pages.terminal import text_of
from cprsim.results.folder import ResultTarget
from cprsim.results.identity import Identity
from cprsim.scenario.assemble import Experiment
from cprsim.scenario.job import Simulation
from cprsim.scenario.reading import load_scenario
from cprsim.simulation.strikes import ScopeShares
from tests.making import SCENARIOS

# lists no recovery system; the records of a `Job` say all else
SCENARIO = load_scenario(SCENARIOS / "production.yaml").scenario
SLOPES = {"partial": 0.010, "mfu": 0.006, "round-robin": 0.0098}


@dataclass(frozen=True)
class Job:
    """Poisson failures on the progress clock, each of one of `n_emb_ps` servers; fixed costs.

    There are so many servers that none is lost twice in an interval: net PLS is PLS.
    """

    useful_h: float = 100.0
    mtbf_h: float = 25.0
    save_h: float = 0.05
    recovery_h: float = 0.2
    n_emb_ps: int = 256
    n_replications: int = 2000

    def experiment(self, **changed: object) -> Experiment:
        cluster = Cluster((Role("emb_ps", self.n_emb_ps, Holds.SHARD),))
        nothing = Constant(0.0)
        work = SCENARIO.job.model_copy(update={"useful_time_h": self.useful_h})
        made = Experiment(
            cluster=cluster,
            costs=Costs(Constant(self.save_h), Constant(self.recovery_h), nothing, nothing),
            failures=JobClock(Exponential(self.mtbf_h), range(self.n_emb_ps), clock=Clock.PROGRESS),
            policies=(),
            scopes=(Scope("node", Reach.NODE, nothing),),
            shares=ScopeShares((1.0,), (Reach.NODE,), self.n_emb_ps),
            scenario=SCENARIO.model_copy(update={"job": work}),
            simulation=Simulation(seed=7, replications=self.n_replications),
        )
        return replace(made, **changed)  # type: ignore[arg-type]

    def pls(self, n_saves: int) -> float:
        """Expected PLS where n saves cut the job into equal pieces: w / (2 M N), exact."""
        return self.useful_h / (n_saves + 1) / (2 * self.mtbf_h * self.n_emb_ps)

    def partial_overhead(self, n_saves: int) -> float:
        """Expected overhead of partial recovery, exact on the progress clock."""
        return n_saves * self.save_h / self.useful_h + self.recovery_h / self.mtbf_h


@pytest.fixture
def job() -> Job:
    return Job()


def curve_of(error: float = 0.0, degrees: float = 9.0, **slopes: float) -> StalenessCurve:
    """Losses in proportion to PLS, each slope with a standard error."""
    named = {name.replace("_", "-"): slope for name, slope in slopes.items()} or SLOPES
    return StalenessCurve(
        "hand",
        tuple(
            Response.linear(name, Metric.AUC, (slope, error), 1.0, degrees=degrees)
            for name, slope in named.items()
        ),
    )


def choose(
    experiment: Experiment, curve: StalenessCurve | None, *args: Any, **how: Any
) -> Selection:
    """The selection by a curve, without the candidates of the figure."""
    return selection_of(bench_by(experiment, curve, *args), **{"with_figure": False, **how})


def bench_by(
    experiment: Experiment, curve: StalenessCurve | None, *args: Any
) -> CandidateEvaluator:
    """Where candidates are priced by a curve."""
    return evaluator_of(replace(experiment, curve=curve), *args)


def said_of(selection: Selection) -> str:
    """All that is said of a selection."""
    identity = Identity("small-select", "name: small\n", {})
    with TemporaryDirectory() as parent:
        target = ResultTarget(Path(parent), identity, datetime.now(UTC), {"seed": 1})
        stored = write_selection(target, selection, lambda *_: None)
        return text_of(document_of_select(stored), verbose=True)


def same(one: Policy, other: Policy) -> bool:
    """Whether two do the same, however their intervals came about; what is typed has ten digits."""
    bare, typed = [], []
    for policy in (one, other):
        cut = policy.sub_saves and replace(policy.sub_saves, extra_h=0.0)
        captures = tuple(replace(capture, every_h=None) for capture in policy.captures)
        bare.append(
            replace(policy, captures=captures, sub_saves=cut, interval_h=inf, interval_rule="")
        )
        own_h = [policy.interval_h] * policy.from_cpr_paper  # of a system, its shortest
        extra_h = policy.sub_saves.extra_h if policy.sub_saves else 0.0
        typed.append([*own_h, extra_h, *(one.every_h for one in policy.captures)])
    return bare[0] == bare[1] and typed[0] == pytest.approx(typed[1], rel=1e-9)
