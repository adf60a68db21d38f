"""Copies in memory and on disks of the job's nodes: where each loads from, by hand."""

from __future__ import annotations

from dataclasses import replace
from math import exp, inf

import pytest

from cprsim.recovery.systems.node_copies import standbys
from tests.recovery.systems.by_hand import (
    ALL,
    BACK,
    COPY_H,
    LOAD_H,
    NODE,
    PROCESS,
    RACK,
    RESCHEDULE_H,
    RESTART,
    SNAPSHOT_H,
    STEP_H,
    approx,
    facts,
    planned,
    spent,
)

DISK = {"disk": 2.0}  # state of 1 byte: half an hour
DISK_H = 0.5
AT_H = 10.5  # content 8 of a job that saves each 4 h is everywhere by then
FETCHED = approx(COPY_H)
REMOTE = approx(LOAD_H)

LOADS = {  # stall of a save; load after failures of a process, a node, two neighbours, and all
    "dlrover-flash": ({}, SNAPSHOT_H, (0.0, REMOTE, REMOTE, REMOTE)),
    "ml-flashpoint": ({}, SNAPSHOT_H, (0.0, FETCHED, REMOTE, REMOTE)),
    "transom": ({}, SNAPSHOT_H, (0.0, FETCHED, REMOTE, REMOTE)),
    "byterobust": ({}, SNAPSHOT_H - STEP_H, (0.0, FETCHED, FETCHED, REMOTE)),
    "reft": ({"group": 4}, SNAPSHOT_H - STEP_H, (0.0, approx(3 * COPY_H), REMOTE, REMOTE)),
    "nvrx-local": (DISK, SNAPSHOT_H, (approx(DISK_H), FETCHED, FETCHED, REMOTE)),
    "fastpersist": (DISK, DISK_H - STEP_H, (approx(DISK_H), REMOTE, REMOTE, REMOTE)),
    "pmem": (DISK, DISK_H, (approx(DISK_H), REMOTE, REMOTE, REMOTE)),
}
STRUCK = (((0,), PROCESS), ((0,), NODE), ((0, 1), RACK), (range(8), ALL))


@pytest.mark.parametrize("name", LOADS)
def test_where_the_state_is_loaded_from(name: str) -> None:
    options, stall_h, loads = LOADS[name]
    policy = planned(name, every=4.0, **options)
    for (slots, scope), load in zip(STRUCK, loads, strict=True):
        hours = spent(policy, (AT_H, slots, scope))
        assert hours.get("load", 0.0) == load, scope
        assert hours["lost"] == approx(AT_H - 2 * stall_h - 8.0)


def test_a_ring_of_two_loses_pairs_that_groups_of_two_do_not() -> None:
    ring, pairs = planned("transom", every=4.0), planned("ml-flashpoint", every=4.0)
    between = (AT_H, (1, 2), RACK)
    assert spent(ring, between)["load"] == REMOTE
    assert spent(pairs, between)["load"] == FETCHED


@pytest.mark.parametrize(("name", "survives"), [("dlrover-flash", False), ("pmem", True)])
def test_persistent_memory_outlives_the_restart_of_a_node(name: str, survives: bool) -> None:
    options = DISK if name == "pmem" else {}
    hours = spent(planned(name, every=4.0, **options), (AT_H, (0,), RESTART))
    assert hours["load"] == (approx(DISK_H) if survives else REMOTE)


def test_dlrover_copies_on_to_the_remote_storage_behind_the_job() -> None:
    policy = planned("dlrover-flash", every=4.0)
    # content 8 is in memory at 8.25 wall hours, and outside half an hour later
    assert spent(policy, (8.5, (0,), PROCESS))["lost"] == approx(0.25)
    assert spent(policy, (8.5, (0,), NODE))["lost"] == approx(4.25)
    assert spent(policy, (8.875, (0,), NODE))["lost"] == approx(8.875 - 0.25 - 8.0)


def test_only_as_many_saves_are_copied_on_as_there_is_time_for() -> None:
    often = planned("dlrover-flash", every=0.25)
    assert often.captures[1].every_nth == 2  # half an hour each
    seldom = planned("dlrover-flash", every=0.25, remote_every=1.0)
    assert seldom.captures[1].every_nth == 4


def test_fastpersist_writes_from_the_device_while_nvrx_stalls_for_a_snapshot() -> None:
    # the last save is waited for until it is on the disks, but not for its copy outside
    direct = spent(planned("fastpersist", every=4.0, **DISK))["save"]
    assert direct == approx(4 * (DISK_H - STEP_H) + STEP_H)
    by_host = spent(planned("nvrx-local", every=4.0, **DISK))["save"]
    assert by_host == approx(4 * SNAPSHOT_H + DISK_H + COPY_H)


def test_byterobust_saves_in_as_few_steps_as_a_copy_takes() -> None:
    job = facts(save_background=facts().save_stall)
    first, _ = planned("byterobust", job).captures
    # of .125 h of snapshot a step hides half; the rest and the copy of .25 h take 5 steps
    assert first.every_h == approx(5 * STEP_H)


def test_warm_standbys_take_the_place_of_rescheduling() -> None:
    hours = spent(planned("byterobust", every=4.0, wake=0.125), (AT_H, (0,), NODE))
    assert hours["reschedule"] == approx(0.125)
    plain = spent(planned("nvrx-local", every=4.0, **DISK), (AT_H, (0,), NODE))
    assert plain["reschedule"] == approx(RESCHEDULE_H) == approx(BACK["reschedule"])


STANDBYS = [
    (0.0, 0.99, 0), (0.01, 0.99, 0), (0.02, 0.99, 1), (1.0, 0.99, 4), (1.0, 0.5, 1),
    (1.0, exp(-1.0), 0),  # enough with this very probability
]  # fmt: skip


@pytest.mark.parametrize(("n_lost", "p_enough", "n"), STANDBYS)
def test_so_many_standbys_are_enough(n_lost: float, p_enough: float, n: int) -> None:
    # by the table of the Poisson distribution: P(X <= 3) is .981 and P(X <= 4) .996 for a mean of 1
    assert standbys(n_lost, p_enough) == n


def test_standbys_are_paid_unless_the_job_has_spares() -> None:
    job = facts(mtbf_h=0.25)  # three of five scopes take nodes: 2.4 per hour, 1.2 meanwhile
    assert planned("byterobust", job, every=4.0).tax.nodes == 4.0
    spares = replace(job.cluster, n_spares=2)
    assert planned("byterobust", replace(job, cluster=spares), every=4.0).tax.nodes == 0.0
    assert planned("byterobust", facts(mtbf_h=inf), every=4.0).tax.nodes == 0.0
