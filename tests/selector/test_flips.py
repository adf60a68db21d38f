"""What would flip the decision, and in how many draws of the failures' parameters it holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from cprsim.errors import ScenarioError
from cprsim.experiments.assemble import Experiment
from cprsim.failures.clocks import JobClock
from cprsim.failures.distributions import Weibull
from cprsim.failures.injected import Injected
from cprsim.failures.several import Stretched
from cprsim.records import Storage, Transfer
from cprsim.recovery.losses import Metric
from cprsim.scenario.reading import load_scenario
from cprsim.selector.choice import Flip
from cprsim.selector.draws import N_DRAWS, variants
from cprsim.selector.flips import inputs_of
from cprsim.selector.limit import Limit
from tests.selector.conftest import Job, choose, curve_of

JOB = Job(useful_h=50.0, mtbf_h=10.0, save_h=0.2, n_replications=1000)
LIMIT = Limit(Metric.AUC, 0.04 * 0.01 * JOB.pls(0))
CURVE = curve_of(partial=0.01)
BANDWIDTH = "a bandwidth of the storage"


@pytest.fixture(scope="module")
def flips() -> dict[str, Flip]:
    found = choose(JOB.experiment(), CURVE, LIMIT, explain=True)
    assert found.chosen.strategy == "partial"
    return {flip.name: flip for flip in found.flips}


def falls_back(experiment: Experiment, limit: Limit = LIMIT) -> bool:
    return choose(experiment, CURVE, limit).fell_back


MADE = JOB.experiment()
CHANGED: dict[str, tuple[Callable[[float], bool], float]] = {  # full recovery is beyond a share
    "a limit of the AUC loss": (lambda most: falls_back(MADE, replace(LIMIT, most=most)), 0.99),
    "a cost of a save": (
        lambda save_h: falls_back(replace(JOB, save_h=save_h).experiment()), 1.01,
    ),
    "an MTBF of the job": (
        lambda mtbf_h: falls_back(
            replace(MADE, failures=Stretched(MADE.failures, mtbf_h / JOB.mtbf_h))
        ),
        0.99,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGED)
def test_beyond_the_value_it_is_full_recovery(flips: dict[str, Flip], name: str) -> None:
    changed, full_beyond = CHANGED[name]
    at = flips[name].at
    assert at is not None
    assert (at > flips[name].now) == (full_beyond > 1)
    assert changed(at * full_beyond)
    assert not changed(at * (2 - full_beyond))


def test_a_recovery_costs_both_alike_and_flips_nothing(flips: dict[str, Flip]) -> None:
    flip = flips["a cost of a recovery (detection, rescheduling, load)"]
    assert flip.at is None
    assert flip.furthest == pytest.approx((JOB.recovery_h / 10, JOB.recovery_h * 10))


def test_the_number_of_injected_failures_at_which_it_flips() -> None:
    def with_failures(count: int) -> Experiment:
        slots = range(JOB.n_emb_ps)
        return JOB.experiment(failures=Injected(JOB.useful_h, slots, count=count))

    limit = replace(LIMIT, most=LIMIT.most / 2)
    selection = choose(with_failures(3), CURVE, limit, explain=True)
    at = {flip.name: flip for flip in selection.flips}["a number of failures per job"].at
    assert at is not None
    assert falls_back(with_failures(int(at)), limit)
    assert not falls_back(with_failures(int(at) - 1), limit)


@pytest.mark.parametrize("n_servers", [1, 256])
def test_over_twice_the_bandwidth_a_save_takes_half_the_time(job: Job, n_servers: int) -> None:
    """Of one server, whose own link is the slower one, and of all, which share the storage."""
    storage = Storage(64e9, server_bandwidth_bytes_per_h=1e9, shard_bytes=1e9)
    made = job.experiment()
    over = replace(made.costs, save_stall=Transfer(), load=Transfer(), storage=storage)
    known = {varied.name: varied for varied in inputs_of(replace(made, costs=over))}
    assert list(known) == [BANDWIDTH, "an MTBF of the job"]  # a load goes over it, too
    bandwidth = known[BANDWIDTH]
    assert bandwidth.now == pytest.approx(64 * 8 / 3600)  # Gbit/s
    faster = bandwidth.set_to(2 * bandwidth.now).costs.storage
    assert faster is not None
    assert storage.transfer_h(n_servers) == (1.0 if n_servers == 1 else 4.0)
    assert faster.transfer_h(n_servers) == pytest.approx(storage.transfer_h(n_servers) / 2)


# --------------------------------------------------------------------------- draws of the failures

TEXT = """\
job: {useful: 100 h}
cluster: {emb_ps: 64}
failures: {kind: job, family: weibull, mtbf: 20 h, mtbf_95: [10 h, 40 h], shape: 0.8,
  spread_95: [0.6, 1.1], clock: progress}
costs: {save: 3 min, load: 12 min, reschedule: 0 s}
recovery: [full]
"""


def drawn(text: str = TEXT) -> tuple[Experiment, ...]:
    return variants(load_scenario("unsure.yaml", text=text), 200)


def test_the_draws_fill_the_intervals() -> None:
    made = drawn()
    assert len(made) == N_DRAWS
    assert {experiment.simulation.replications for experiment in made} == {200}
    sources = [experiment.failures for experiment in made]
    lifetimes = [source.lifetime for source in sources if isinstance(source, JobClock)]
    mean_h = np.array([lifetime.mean_h for lifetime in lifetimes])
    assert np.exp(np.log(mean_h).mean()) == pytest.approx(20.0, rel=0.03)
    assert np.log(mean_h).std() == pytest.approx(np.log(4) / (2 * 1.96), rel=0.1)
    shapes = np.array([family.shape for family in lifetimes if isinstance(family, Weibull)])
    assert 0.5 < shapes.min() < 0.65
    assert 1.0 < shapes.max() < 1.2
    known = TEXT.replace(", mtbf_95: [10 h, 40 h]", "").replace("spread_95: [0.6, 1.1], ", "")
    assert drawn(known) == ()


def test_a_decision_says_in_which_share_of_the_draws_it_holds() -> None:
    job, curve = Job(n_replications=200), curve_of(partial=0.01)
    limit = Limit(Metric.AUC, 0.06 * 0.01 * job.pls(0), confidence=0.5)
    draws = [replace(job, mtbf_h=m).experiment(curve=curve) for m in (5.0, 20.0, 60.0, 200.0)]
    selection = choose(job.experiment(), curve, limit, draws=draws)
    found, best = selection.drawn, selection.at_best["partial"]
    assert found is not None
    assert found.n == 4
    assert found.kept_fraction == 0.5  # where failures are rarer than was thought
    assert found.low_h < best.policy.interval_h < found.high_h


def test_an_interval_that_is_none_is_refused() -> None:
    with pytest.raises(ScenarioError, match="comes first"):
        drawn(TEXT.replace("mtbf_95: [10 h, 40 h]", "mtbf_95: [40 h, 10 h]"))
