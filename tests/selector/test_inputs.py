"""What can be varied of a job, and what a job is with another value of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cprsim.failures.distributions import Constant
from cprsim.records import Storage, Transfer
from cprsim.selector.deciding import bench_of
from cprsim.selector.flips import varied_bench
from cprsim.selector.inputs import Input, inputs_of
from cprsim.selector.limit import NO_LIMIT
from tests.selector.conftest import Job

RECOVERY = "a cost of a recovery (detection, rescheduling, load)"
BANDWIDTH = "a bandwidth of the storage"


def known(job: Job, **costs: object) -> dict[str, Input]:
    made = job.experiment()
    changed = replace(made, costs=replace(made.costs, **costs))
    return {one.name: one for one in inputs_of(changed)}


def test_a_recovery_that_costs_nothing_is_not_made_dearer(job: Job) -> None:
    assert RECOVERY in known(job)
    assert RECOVERY not in known(job, load=Constant(0.0))


def test_a_load_over_the_storage_is_varied_by_its_bandwidth_alone(job: Job) -> None:
    shared = {"save_stall": Transfer(), "load": Transfer(), "storage": Storage(1e9)}
    assert list(known(job, **shared)) == [BANDWIDTH, "an MTBF of the job"]


def test_the_mtbf_is_varied_up_to_thirty_times_and_down_to_thirty_failures(job: Job) -> None:
    mtbf = known(job)["an MTBF of the job"]
    assert (mtbf.now, mtbf.highest) == pytest.approx((job.mtbf_h, 30 * job.mtbf_h))
    assert mtbf.lowest == pytest.approx(job.useful_h / 30)
    often = known(replace(job, mtbf_h=2.0))["an MTBF of the job"]  # 50 failures
    assert often.lowest == often.now


@pytest.mark.parametrize("n_servers", [1, 256])
def test_over_twice_the_bandwidth_a_save_takes_half_the_time(job: Job, n_servers: int) -> None:
    """Of one server, whose own link is the slower one, and of all, which share the storage."""
    storage = Storage(64e9, server_bandwidth_bytes_per_h=1e9, shard_bytes=1e9)
    bandwidth = known(job, save_stall=Transfer(), storage=storage)[BANDWIDTH]
    assert bandwidth.now == pytest.approx(64 * 8 / 3600)  # Gbit/s
    faster = bandwidth.set_to(2 * bandwidth.now).costs.storage
    assert faster is not None
    assert storage.transfer_h(n_servers) == (1.0 if n_servers == 1 else 4.0)
    assert faster.transfer_h(n_servers) == pytest.approx(storage.transfer_h(n_servers) / 2)


@pytest.mark.parametrize(("asked", "taken"), [(300, 300), (9000, 4000)])
def test_other_values_take_the_replications_that_are_asked_for_up_to_what_they_are_worth(
    job: Job, asked: int, taken: int
) -> None:
    """4 failures in each replication: 4000 of them, the most, are still worth it."""
    bench = bench_of(job.experiment(n_replications=asked), None, NO_LIMIT, {"partial": None})
    save = next(inputs_of(bench.experiment))
    varied = varied_bench(bench, save, 2 * save.now, NO_LIMIT)
    assert varied.experiment.n_replications == taken
    assert varied.experiment.costs.save_stall == Constant(2 * job.save_h)
