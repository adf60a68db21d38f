"""The paper's strategies: lives by hand, whose logs fold to what the engines booked."""

from __future__ import annotations

from math import inf

import pytest

from cprsim.records import Clock, Storage, SubSaves, Transfer
from tests.engines import ENGINES, FULL, NONE, PARTIAL, draws_of, failures, job_of, logged
from tests.recovery.lives import life, lived

# --------------------------------------------------------------------------- whole logs

FULL_JOB = job_of(
    FULL, 2, useful_h=6, save_h=0.5, load_h=0.25, detect_h=0.125, reschedule_h=1
)  # fmt: skip
STAGED = {"useful_h": 4, "load_h": 1, "detect_h": 0.5, "reschedule_h": 1}
STRUCK = {"useful_h": 4, "save_h": 1, "reschedule_h": 1}
WHOLE = [
    life("full recovery goes back to the last committed save", FULL_JOB, "3.5 node 0",
         lost=1, save=1.5, detect=0.125, reschedule=1, load=0.25, saves=3,
         log="0 started useful @0; 2 save_started save @2; 2.5 save_committed useful @2; "
             "3.5 failed 0 detect @3; 3.5 rolled_back detect @2; 3.625 stage reschedule @2; "
             "4.625 stage load @2; 4.875 resumed lost @2; 5.875 caught_up useful @3; "
             "6.875 save_started save @4; 7.375 save_committed useful @4; "
             "9.375 save_started save @6; 9.875 save_committed over @6; 9.875 finished over @6"),
    life("partial recovery goes on where it was: two nodes, one failure",
         job_of(PARTIAL, 2, useful_h=6, save_h=0.5, load_h=0.25, reschedule_h=1), "3.5 node 1 2",
         save=1.5, reschedule=1, load=0.25, stale=[(3, 1, 2), (3, 2, 2)],
         log="0 started useful @0; 2 save_started save @2; 2.5 save_committed useful @2; "
             "3.5 failed 1 reschedule @3; 3.5 failed 2 reschedule @3; "
             "3.5 reverted 1 reschedule @3; 3.5 reverted 2 reschedule @3; 4.5 stage load @3; "
             "4.75 resumed useful @3; 5.75 save_started save @4; 6.25 save_committed useful @4; "
             "8.25 save_started save @6; 8.75 save_committed over @6; 8.75 finished over @6"),
    life("without checkpoints a failure starts the job again",
         job_of(NONE, useful_h=4, load_h=9, reschedule_h=1), "3 node 0", lost=3, reschedule=1,
         log="3 failed 0 reschedule @3; 3 rolled_back reschedule @0; 4 resumed lost @0; "
             "7 caught_up useful @3; 8 finished over @4"),
    life("a struck save does not count", job_of(FULL, 2, **STRUCK), "2.5 node 0",
         lost=2, save=2.5, reschedule=1, saves=2,
         log="2 save_started save @2; 2.5 save_abandoned reschedule @2; "
             "2.5 failed 0 reschedule @2; 2.5 rolled_back reschedule @0; 3.5 resumed lost @0"),
    # the half that was lost, and two whole ones
    life("and is tried again", job_of(PARTIAL, 2, **STRUCK), "2.5 node 0",
         save=2.5, reschedule=1, stale=[(2, 0, 0)],
         log="2 save_started save @2; 2.5 save_abandoned reschedule @2; "
             "2.5 failed 0 reschedule @2; 2.5 reverted 0 reschedule @2; 3.5 resumed save @2; "
             "3.5 save_started save @2; 4.5 save_committed useful @2"),
    life("a job ends before a failure of that instant", job_of(PARTIAL, **STRUCK), "4 node 0",
         failed=0, log="4 finished over @4"),
    life("full recovery that is struck starts again", job_of(FULL, **STAGED), "2 node 0, 4 node 3",
         lost=2, detect=1, reschedule=2, load=1.5,
         log="2 failed 0 detect @2; 2 rolled_back detect @0; 2.5 stage reschedule @0; "
             "3.5 stage load @0; 4 failed 3 detect @0; 4 rolled_back detect @0; "
             "4.5 stage reschedule @0; 5.5 stage load @0; 6.5 resumed lost @0; "
             "8.5 caught_up useful @2; 10.5 finished over @4"),
    life("servers recover in parallel and the least advanced holds the job up",
         job_of(PARTIAL, **STAGED), "2 node 0, 4 node 3",
         detect=1, reschedule=2, load=1.5, stale=[(2, 0, 0), (2, 3, 0)],
         log="2 failed 0 detect @2; 2 reverted 0 detect @2; 2.5 stage reschedule @2; "
             "3.5 stage load @2; 4 failed 3 detect @2; 4 reverted 3 detect @2; "
             "4.5 stage reschedule @2; 5.5 stage load @2; 6.5 resumed useful @2"),
    # a trainer has nothing to load
    life("where the least advanced recovery ends the next holds the job up",
         job_of(PARTIAL, useful_h=4, n_trainers=2, load_h=2, reschedule_h=0.5),
         "1 node 0, 1.25 node 4", reschedule=0.75, load=1.75, stale=[(1, 0, 0)],
         log="1 failed 0 reschedule @1; 1 reverted 0 reschedule @1; 1.25 failed 4 reschedule @1; "
             "1.75 stage load @1; 3.5 resumed useful @1; 6.5 finished over @4"),
    life("a second server fails while the first recovers, and again",
         job_of(PARTIAL, 4, n_emb_ps=3, save_h=0.25, load_h=0.5, detect_h=0.25, reschedule_h=0.5),
         "3 node 0, 3.765625 node 1, 9 node 1", detect=0.75, reschedule=1.5, load=1.015625,
         save=0.5, stale=[(3, 0, 0), (3, 1, 0), (6.734375, 1, 4)]),
]  # fmt: skip
test_whole_logs = lived(WHOLE, folds=True)


@pytest.mark.parametrize("engine", ["simpy", "loop"])
def test_a_server_that_fails_twice_loses_nothing_twice_in_the_net_count(engine: str) -> None:
    job = job_of(PARTIAL, 8)
    struck = failures("2 node 0, 5 node 0, 6 node 1, 9 node 0")
    stale = ENGINES[engine](job, struck, draws_of(job)).stale
    assert [one.progress_h - one.content_h for one in stale] == [2, 5, 6, 1]
    assert [one.progress_h - one.fresh_h for one in stale] == [2, 3, 6, 1]


# --------------------------------------------------------------------------- saves

BACKGROUND = [
    # the struck save is tried again at once, and the grid is kept
    life("the job goes on and the save holds what there was at its start",
         job_of(PARTIAL, 2, useful_h=6, save_h=0.25, background_h=1), "3 node 0, 3.75 node 0",
         save=0.25 * 6 + 1, stale=[(2.75, 0, 0), (3.25, 0, 0)], saves=3,
         log="2 save_started save @2; 2.25 save_resumed useful @2; 3 save_abandoned save @2.75"),
    life("a save waits for the one before", job_of(FULL, 1, useful_h=3, background_h=1.5),
         save=2.5, saves=3,
         log="1 save_started useful @1; 1 save_resumed useful @1; 2 save_due save @2; "
             "2.5 save_committed useful @2; 2.5 save_started useful @2; "
             "2.5 save_resumed useful @2; 3.5 save_due save @3"),
    life("the job waits for no save but its last", job_of(FULL, 2, useful_h=3, background_h=1.5),
         saves=0, log="3 save_abandoned over @3; 3 finished over @3"),
    life("nothing in the background is no background",
         job_of(FULL, 2, useful_h=6, save_h=0.5, background_h=0), "2.2 node 0, 5 node 0",
         lost=2.3, save=1.7, saves=3),
]  # fmt: skip
test_saves_in_the_background = lived(BACKGROUND, folds=True)

HALVES = SubSaves("mfu", fraction=0.5)
TRANSFER = {"save_h": Transfer(), "load_h": Transfer()}


def in_parts(useful_h: float = 4, sub_saves: SubSaves = HALVES, **how):
    return job_of(PARTIAL, 2, sub_saves, useful_h=useful_h, **how)


SUB_SAVES = [
    life("each costs its share and the one that ends the interval counts", in_parts(save_h=0.5),
         save=1, saves=2,
         log="1 sub_save_started save @1; 1.25 sub_save_committed useful @1; "
             "2.25 save_started save @2; 2.5 save_committed useful @2; "
             "3.5 sub_save_started save @3; 3.75 sub_save_committed useful @3; "
             "4.75 save_started save @4; 5 save_committed over @4"),
    life("choosing rows costs extra each time",
         in_parts(8, SubSaves("mfu", 0.25, 0.125), save_h=0.5), save=16 * (0.125 + 0.125)),
    life("staleness counts from whole saves", in_parts(), "1.5 node 0, 3.75 node 0",
         stale=[(1.5, 0, 0), (3.75, 0, 2)]),
    life("a transfer moves a share of the bytes",
         in_parts(storage=Storage(8.0, shard_bytes=1.0), **TRANSFER), save=1),
    life("one that is struck is tried again as what it was", in_parts(save_h=1),
         "1.25 node 0, 3 node 1", save=2.5, saves=2, stale=[(1, 0, 0), (2, 1, 0)],
         log="1 sub_save_started save @1; 1.25 save_abandoned save @1; 1.25 failed 0 save @1; "
             "1.25 reverted 0 save @1; 1.25 sub_save_started save @1; "
             "1.75 sub_save_committed useful @1; 2.75 save_started save @2; "
             "3 save_abandoned save @2; 3 failed 1 save @2; 3 reverted 1 save @2; "
             "3 save_started save @2"),
]  # fmt: skip
test_sub_saves = lived(SUB_SAVES, folds=True)

# --------------------------------------------------------------------------- clocks, nodes, ends

SLOW = {"useful_h": 6, "save_h": 1, "reschedule_h": 1}
TRAINED = {"useful_h": 6, "n_trainers": 2, "load_h": 5}


def spared(how: str, n_spares: int, reschedule_h: float = 0.5):
    return job_of(how, 9, useful_h=4, n_spares=n_spares, reschedule_h=reschedule_h)


ALL_BACK = {"failed": 2, "stale": [(3, slot, 2) for slot in range(4)]}
OTHERS = [
    # at the hours 2.5, in the save, and 5, at 1.5 h of progress
    life("on the uptime clock saves and rework age but recovery does not",
         job_of(FULL, 2, clock=Clock.UPTIME, **SLOW), "2.5 node 0, 4 node 0",
         lost=3.5, save=3.5, reschedule=2),
    life("a lost trainer costs its replacement and loses nothing",
         job_of(PARTIAL, 2, detect_h=0.5, reschedule_h=1, **TRAINED), "3 node 4",
         detect=0.5, reschedule=1),
    life("under full recovery it rolls everybody back", job_of(FULL, 2, **TRAINED), "3 node 4",
         lost=1, load=5),
    life("with the last trainer all shards go back", job_of(PARTIAL, 2, reschedule_h=1, **TRAINED),
         "3 node 4, 3.5 node 5", reschedule=1.5, load=5, **ALL_BACK),
    life("so they do with both", job_of(PARTIAL, 2, reschedule_h=1, **TRAINED), "3 node 4 5",
         reschedule=1, load=5, stale=ALL_BACK["stale"]),
    life("all who save or load together share the bandwidth",
         job_of(FULL, 2, useful_h=4, storage=Storage(8.0, shard_bytes=1.0), **TRANSFER), "3 node 0",
         lost=0.5, save=1, load=0.5),
    life("without a free spare the slot waits for a repair", spared(PARTIAL, 1),
         "1 node 0 repair 3, 2 node 1 repair 3", wait=2, reschedule=1,
         stale=[(1, 0, 0), (1.5, 1, 0)],
         log="2 failed 1 wait @1.5; 2 reverted 1 wait @1.5; 4 stage reschedule @1.5; "
             "4.5 resumed useful @1.5; 7 finished over @4"),
    life("a slot that waits has no node to strike", spared(PARTIAL, 0),
         "1 node 0 repair 3, 2 node 0 repair 3", failed=1, wait=3, reschedule=0.5,
         stale=[(1, 0, 0)], log="2 missed 0 wait @1"),
    life("under full recovery a spare once given stays", spared(FULL, 2, 1),
         "1 node 0 repair 50, 1.5 node 1 repair 50", lost=1, reschedule=1.5),
    life("beyond a hundred times its useful time a job is stopped",
         job_of(FULL, useful_h=1, reschedule_h=1000), "0.5 node 0", finished=False,
         useful_h=0.5, reschedule=99.5, log="100 stopped over @0"),
]  # fmt: skip
test_clocks_nodes_and_ends = lived(OTHERS, folds=True)


def in_step(useful_h: float = 10, n_trainers: int = 4, n_sync_ps: int = 2, how=PARTIAL,
            interval_h: float = inf, **costs):  # fmt: skip
    """Slots 0 to 3 are embedding servers, then come trainers (4 to 7) and sync servers (8, 9).

    Trainers stay in step in the background; a replacement takes 2 h.
    """
    costs = {"reschedule_h": 1.5, "detect_h": 0.5, **costs}
    return job_of(how, interval_h, useful_h=useful_h, n_trainers=n_trainers, n_sync_ps=n_sync_ps,
                  in_step=True, **costs)  # fmt: skip


def waited(*slots: int, at_h: float = 3, **more: float):
    """All wait for a replacement."""
    return {"detect": 0.5, "reschedule": 1.5, "stale": [(at_h, slot, 0) for slot in slots], **more}


IN_STEP = [
    # a quarter of 2 h
    life("a lost trainer costs its share of the time that it is away", in_step(), "3 node 4",
         degraded=0.5,
         log="0 started useful @0; 3 failed 4 useful @3; 5 replaced 4 useful @4.5; "
             "10.5 finished over @10"),
    life("a sync server costs nothing", in_step(), "3 node 8"),
    life("two trainers away cost both shares", in_step(), "3 node 4, 4 node 5", degraded=1),
    life("a job that ends before the trainer is back is slow to its end", in_step(), "9 node 4",
         degraded=1 / 3),
    # half an hour of the two was the save
    life("a save goes on while a trainer is replaced and is no slower",
         in_step(interval_h=6, save_h=1), "6.5 node 4", save=1, degraded=1.5 / 4, saves=1),
    # a trainer is away, but for 1 h all stand
    life("an embedding server stalls all, and nothing is slow meanwhile", in_step(),
         "3 node 4, 4 node 0", degraded=0.25, **waited(0, at_h=3.75)),
    life("a failure that also strikes an embedding server holds all up", in_step(), "3 node 0 4",
         **waited(0)),
    *(life(f"full recovery rolls all back whoever fails: {slot}", in_step(how=FULL, interval_h=2),
           f"3 node {slot}", lost=1, detect=0.5, reschedule=1.5) for slot in (4, 8)),
    life("a failure later than the job would have taken strikes it still", in_step(),
         "3 node 4, 10.25 node 0", degraded=0.5, **waited(0, at_h=9.75)),
    life("the last trainer is waited for and begins with the central copy", in_step(n_trainers=1),
         "3 node 4", **waited()),
    life("without sync servers its loss reverts everything", in_step(n_sync_ps=0, n_trainers=1),
         "3 node 4", **waited(0, 1, 2, 3)),
    life("and with the only one", in_step(n_sync_ps=1, n_trainers=1), "3 node 5 4",
         **waited(0, 1, 2, 3)),
    life("a trainer that fails again while it is replaced begins again", in_step(),
         "3 node 4, 4 node 4", degraded=0.75),
    life("waiting for a spare is away too", in_step(n_spares=0), "3 node 4 repair 4",
         degraded=5.5 / 4),
]  # fmt: skip
test_trainers_in_step = lived(IN_STEP, folds=True)


@pytest.mark.parametrize("n", [2, 5, 20])
def test_it_is_what_the_trainers_in_step_do_themselves(n: int) -> None:
    """One trainer of n away for R: both models add R/n to the wall time."""
    from cprsim.in_step.simulation import run_log
    from cprsim.in_step.trainers import Outage
    from tests.in_step.settings import MS
    from tests.in_step.settings import setting as trainers

    one = trainers("shadow-easgd", n, n_threads=2)
    outage = Outage(at_h=100 * MS, down_h=600 * MS, number=0)
    n_batches = 300 * n
    longer = run_log(one, n_batches, outages=[outage]).at_h[-1] - run_log(one, n_batches).at_h[-1]
    job = in_step(n_trainers=n, reschedule_h=2.0, detect_h=0.0)
    wall_h = logged(job, failures("3 node 4")).at_h[-1]
    assert wall_h - 10.0 == pytest.approx(2.0 / n)
    assert longer / (600 * MS) == pytest.approx(1 / n, abs=0.02)
