"""What would flip the decision: a selection on either side of the value says so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from cprsim.experiments.assemble import Experiment
from cprsim.failures.distributions import Constant
from cprsim.failures.injected import Injected
from cprsim.failures.several import Stretched
from cprsim.records import Storage, Transfer
from cprsim.recovery.losses import Metric
from cprsim.selector.choice import Flip
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


def with_save(save_h: float) -> tuple[Experiment, Limit]:
    made = JOB.experiment()
    return replace(made, costs=replace(made.costs, save_stall=Constant(save_h))), LIMIT


def with_mtbf(mtbf_h: float) -> tuple[Experiment, Limit]:
    made = JOB.experiment()
    return replace(made, failures=Stretched(made.failures, mtbf_h / JOB.mtbf_h)), LIMIT


def with_limit(most: float) -> tuple[Experiment, Limit]:
    return JOB.experiment(), replace(LIMIT, most=most)


@pytest.mark.parametrize(
    ("name", "changed", "full_beyond"),
    [
        ("a limit of the AUC loss", with_limit, 0.99),
        ("a cost of a save", with_save, 1.01),
        ("an MTBF of the job", with_mtbf, 0.99),
    ],
)
def test_beyond_the_value_it_is_full_recovery(
    flips: dict[str, Flip],
    name: str,
    changed: Callable[[float], tuple[Experiment, Limit]],
    full_beyond: float,
) -> None:
    at = flips[name].at
    assert at is not None
    assert (at > flips[name].now) == (full_beyond > 1)
    assert falls_back(*changed(at * full_beyond))
    assert not falls_back(*changed(at * (2 - full_beyond)))


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
    assert at == round(at)
    assert at > 3
    assert falls_back(with_failures(int(at)), limit)
    assert not falls_back(with_failures(int(at) - 1), limit)


@pytest.mark.parametrize("n_servers", [1, 256])
def test_over_twice_the_bandwidth_a_save_takes_half_the_time(job: Job, n_servers: int) -> None:
    """Of one server, whose own link is the slower one, and of all, which share the storage."""
    storage = Storage(64e9, server_bandwidth_bytes_per_h=1e9, shard_bytes=1e9)
    made = job.experiment()
    over = replace(made.costs, save_stall=Transfer(), load=Transfer(), storage=storage)
    known = {one.name: one for one in inputs_of(replace(made, costs=over))}
    assert list(known) == [BANDWIDTH, "an MTBF of the job"]  # a load goes over it, too
    bandwidth = known[BANDWIDTH]
    assert bandwidth.now == pytest.approx(64 * 8 / 3600)  # Gbit/s
    faster = bandwidth.set_to(2 * bandwidth.now).costs.storage
    assert faster is not None
    assert storage.transfer_h(n_servers) == (1.0 if n_servers == 1 else 4.0)
    assert faster.transfer_h(n_servers) == pytest.approx(storage.transfer_h(n_servers) / 2)
