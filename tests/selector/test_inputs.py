"""What can be varied of a job, and what a job is with another value of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cprsim.records import Storage, Transfer
from cprsim.selector.inputs import Input, inputs_of
from tests.selector.conftest import Job

RECOVERY = "a cost of a recovery (detection, rescheduling, load)"
BANDWIDTH = "a bandwidth of the storage"


def known(job: Job, **costs: object) -> dict[str, Input]:
    made = job.experiment()
    changed = replace(made, costs=replace(made.costs, **costs))
    return {one.name: one for one in inputs_of(changed)}


def test_a_load_over_the_storage_is_varied_by_its_bandwidth_alone(job: Job) -> None:
    shared = {"save_stall": Transfer(), "load": Transfer(), "storage": Storage(1e9)}
    assert list(known(job, **shared)) == [BANDWIDTH, "an MTBF of the job"]


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
