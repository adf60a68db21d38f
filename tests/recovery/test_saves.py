"""When jobs save, what a failure does to a save, and which copies survive: lives by hand."""

from __future__ import annotations

from dataclasses import replace

from cprsim.records import Clock, Holds, Role, Storage
from cprsim.recovery.policy import OWN, Groups, Medium, Ring, Tier, To, WhenBusy
from cprsim.simulate.job import SimulatedJob
from tests.recovery.lives import (
    STATE,
    TRAINERS,
    from_start,
    job,
    life,
    lived,
    memory,
    remote,
    rule,
    saves,
)  # fmt: skip

AGAIN = from_start("reschedule 2")  # the last rule of most jobs
SKIP = WhenBusy.SKIP
BACK = rule("all", "", "remote")
STRUCK = rule("struck", "reschedule .5", "remote")
STEPS_BACK = rule("all", "reschedule .5", to=To.STEP_BEFORE)


def saving(*captures, rules=(AGAIN,), **how) -> SimulatedJob:
    return job(*rules, captures=captures, **how)


def busy(in_flight: int, **how) -> SimulatedJob:
    return saving(saves("remote", 2, None, 3, in_flight=in_flight, **how))


TWO_TIERS = saving(
    saves("memory", 2), saves("remote", 2, None, 1), tiers=(memory(OWN), remote()),
    rules=(rule("all", "reschedule 1", "memory", "remote"),),
)  # fmt: skip
FLUSHED = saving(  # to memory each 4 h, which goes on to remote within 3 h
    saves("memory", 4), saves("remote", after="memory", behind_h=3),
    tiers=(memory(Ring(2)), remote()), rules=(rule("all", "reschedule 1", "memory", "remote"),),
)  # fmt: skip
CORRUPT = saving(
    saves("remote", 2), rules=(rule("all", "load", "remote"),),
    tiers=(remote(1, generations=2, p_corrupt=0.5),),
)  # fmt: skip


def all_corrupt(load: str) -> SimulatedJob:
    rules = (rule("all", load, "remote"),)
    return saving(saves("remote", 2), rules=rules, tiers=(remote(1, p_corrupt=0.5),))


def undone(step_h: float) -> SimulatedJob:
    return saving(saves("remote", 4, None, 4), rules=(STEPS_BACK,), step_h=step_h)


SAVES = [
    life("the overhead is the saves, the one at the end included",
         saving(saves("remote", 2, 0.25)), save=1.25, saves=5),
    *(life(f"an interval of {every_h} h, as long as the job or longer, means no save",
           saving(saves("remote", every_h, 0.25)), saves=0) for every_h in (10, 12)),
    life("captures due together save one after the other",
         saving(saves("memory", 2, 0.25), saves("remote", 4, 0.5, 1),
                tiers=(remote(), memory(OWN))),
         save=5 * 0.25 + 2 * 0.5, saves=7),
    # begun at the hours 2, 5, 8, 11 and 14: four waits of 1 h, then 3 h for the last commit
    life("a save waits for the one in flight", busy(1), save=7, saves=5),
    # 4 and 8 are left out; the save of 10 commits at 13
    life("a save is left out while one is in flight", busy(1, when_busy=SKIP), save=3, saves=3),
    life("two in flight are enough: nothing waits but the end", busy(2), save=3, saves=5),
    life("a process leaves the memory of its node", TWO_TIERS, "2.5 process 0",
         lost=0.5, reschedule=1, save=1),
    life("a node does not, and the save to remote commits at 3 only", TWO_TIERS, "2.5 node 0",
         lost=2.5, reschedule=1, save=1),
    life("once it has, all go back to it", TWO_TIERS, "3.5 node 0", lost=1.5, reschedule=1, save=1),
    # at 5 back to 4, going on at 6; the flush of 4 commits at 7; at 7.5 (progress 5.5) back to 4.
    # Saves of 4 in both, of 8 in memory: nobody waits for more
    life("a flush goes on while what it copies survives", FLUSHED,
         "5 node 0, 7.5 everything 0 1 2 3", lost=1 + 1.5, reschedule=2, saves=3),
    life("a flush ends with what it copies", FLUSHED, "5 everything 0 1 2 3",
         lost=5, reschedule=1, saves=4),  # of 4 once, and again in both; of 8
    # memory at 4, and again at 9 and 13; flushed from 9 on
    life("a flush of what is undone ends",
         saving(saves("memory", 4), saves("remote", after="memory", behind_h=3),
                tiers=(memory(Ring(2)), remote()), rules=(from_start(),)),
         "5 process 0", lost=5, saves=3 + 1),
    life("a flush of every second content takes the even ones",
         saving(saves("memory", 2), saves("remote", after="memory", every_nth=2, behind_h=0.5),
                tiers=(memory(Ring(2)), remote()), rules=(BACK,)),
         "7 everything 0 1 2 3", lost=3),  # of 2, 4, 6 it has 4
    life("a corrupt content is found when it is loaded", CORRUPT, "5 node 0",
         lost=3, load=2, spoiled={"remote": (1,)}),
    life("a newer one is loaded before it", CORRUPT, "7 node 0",
         lost=1, load=1, spoiled={"remote": (1,)}),
    life("where all that survives is corrupt all start again", all_corrupt("load .5"), "5 node 0",
         lost=5, load=1.5, spoiled={"remote": (1,)}),
    life("what was tried is loaded even so", all_corrupt("load"), "5 node 0",
         lost=5, load=1, spoiled={"remote": (1,)}),
    life("a save that comes to nothing is noticed at its commit",
         saving(saves("remote", 4, 0.5, p_fail=0.5), rules=(BACK,)), "9.5 node 0",
         save=1.5, lost=4.5, saves=2, spoiled={"remote": (1,)}),  # progress 8.5; 8 again
    life("a struck save is tried again where nobody goes back",
         saving(saves("remote", 4, 1), rules=(STRUCK, AGAIN)), "4.5 node 0",
         save=0.5 + 1 + 1, reschedule=0.5, saves=2, stale=[(4, 0, 0)]),
    # the save of 4 is struck at progress 5, and tried at 5.5; it commits at 7.5
    life("a save struck in the background is tried again with what there is then",
         saving(saves("remote", 4, None, 2), rules=(STRUCK, AGAIN)), "5 node 0, 8 node 1",
         reschedule=1, stale=[(5, 0, 0), (7.5, 1, 5)]),
    # to 5 h: what was held is done, and saved again until 11.5; the save of 8 h waits from 10.5
    life("a struck save is tried again after a rollback", undone(2), "7 node 0",
         lost=2, reschedule=0.5, save=1),
    # to 3 h: it is undone; 4 h are saved from 8.5 to 12.5, when those of 8 h are due
    life("a struck save is not tried again where a rollback undoes what it holds", undone(4),
         "7 node 0", lost=4, reschedule=0.5),
    life("after a rollback the grid alone says when to save",
         saving(saves("remote", 4, 1), rules=(rule("all", "reschedule .5", "remote"),)),
         "4.5 node 0", lost=4, save=0.5 + 1 + 1, reschedule=0.5),
    life("a rule that stops nothing abandons no save",
         saving(saves("remote", 4, 1), rules=(rule("nobody", "reschedule 2~"), AGAIN)),
         "4.5 node 0", save=2, saves=2),
    life("a stall runs on while a recovery blocks the job",
         saving(saves("remote", 4, 1), useful_h=8,
                rules=(rule("nobody", "detect .5~, reschedule 2"), AGAIN)),
         "3.75 node 0", save=0.25 + 1, reschedule=2,
         log="4 save_started save @4; 4.25 stage reschedule @4; 5 save_committed reschedule @4"),
    # at 4 one tier is saved to, and the other has room from 5 on; both hold the end then
    life("a save due at the end begins as the one before it commits",
         saving(saves("remote", 2, None, 6, in_flight=2), saves("memory", 2, None, 3),
                tiers=(remote(), memory(Ring(2))), useful_h=4),
         save=6, log="5 save_committed save @4; 5 save_started save @4"),
    life("what is due at the progress of a failure is saved before it strikes",
         saving(saves("remote", 2, 0.5), saves("memory", 2, 0.5), tiers=(remote(), memory(Ring(2))),
                rules=(rule("all", "regroup 1", "remote"),), clock=Clock.PROGRESS, useful_h=6),
         "4 node 0", save=3, regroup=1,
         log="6 save_committed useful @4; 6 failed 0 regroup @4; 6 rolled_back regroup @4"),
    life("what ends at an instant ends before a failure of that instant",
         saving(saves("remote", 4, 0.5), useful_h=8, tiers=(remote(1.5),),
                rules=(rule("all", "detect, load", "remote"),)),
         "4.5 back 0", save=1, detect=0.5, load=1.5),
    # flushes take 2 h; that of 2 h ends at 5 as the save of 4 h commits, and makes room for its own
    life("of saves that commit at one instant those begun first commit first",
         saving(saves("memory", 2, None, 1), saves("remote", after="memory", behind_h=2),
                tiers=(memory(OWN), remote())), save=1, saves=5 + 4),
    # that of 2 h ends at 7 as the save of 4 h commits, which began before it and finds no room
    life("a flush begun later commits later",
         saving(saves("memory", 2, None, 3, in_flight=2),
                saves("remote", after="memory", behind_h=2, when_busy=SKIP),
                tiers=(memory(OWN), remote())), save=3, saves=5 + 2),
]  # fmt: skip
test_saves = lived(SAVES)


def struck_twice(step_h: float, **how) -> SimulatedJob:
    """A failure stops the job for an hour; so does the next, and takes work."""
    return saving(
        saves("remote", **how), useful_h=20, step_h=step_h,
        rules=(
            rule("nobody", "reschedule 1", scopes=("nobody",)),
            rule("all", "reschedule 1", to=To.STEP_BEFORE),
        ),
    )  # fmt: skip


TEN = {"every_h": 10, "behind_h": 4}  # the next on the grid is due at 20 h
STAYS_DUE = [
    life("back to 10.5 h before the save of 10 h is tried again", struck_twice(1.5, **TEN),
         "12 nobody 0, 12.5 node 1", lost=1.5, save=4, reschedule=1.5,
         log="12.5 rolled_back reschedule @10.5; 13.5 resumed lost @10.5; "
             "13.5 save_started lost @10.5"),
    life("back to 11.5 h: what the second try held, 12 h, is undone", struck_twice(1.5, **TEN),
         "12 nobody 0, 14 node 1", lost=1.5, save=4, reschedule=2,
         log="14 rolled_back reschedule @11.5; 15 resumed lost @11.5; "
             "15 save_started lost @11.5"),
    life("back to 9.5 h, and at 10 h it is due on the grid", struck_twice(2.5, **TEN),
         "12 nobody 0, 12.5 node 1", lost=2.5, save=4, reschedule=1.5,
         log="12.5 rolled_back reschedule @9.5; 13.5 resumed lost @9.5; "
             "14 save_started lost @10"),
    # those of 2 h and of 4 h, the last of a content, struck at 5 h; back to 3.5 h
    life("of parts that are due again those not undone say whether one completes",
         struck_twice(1.5, every_h=2, behind_h=4, parts=2, in_flight=2),
         "5 nobody 0, 5.5 node 1", lost=1.5, save=5.5, reschedule=1.5,
         log="6.5 sub_save_started lost @3.5; 6.5 save_resumed lost @3.5; "
             "7 save_started lost @4"),
]  # fmt: skip
test_a_save_stays_due_until_it_commits_or_its_work_is_undone = lived(STAYS_DUE)


def parts(every_h: float, *hours: float | None, n: int = 2, rules=(BACK,), **how) -> SimulatedJob:
    return saving(saves("remote", every_h, *hours, parts=n, **how), rules=rules)


TRIED = (STRUCK, AGAIN)
PARTS = [
    life("a content in parts is there with the last of them", parts(1, 0.25), save=2.5, saves=5),
    # progress 3.5, three parts on their way: the third kept nothing
    life("its first parts keep nothing", parts(1, 0.25), "4.25 node 0",
         lost=1.5, save=11 * 0.25, saves=5),
    # as without parts: saves begin at 2, 5, 8, 11 and 14, and that of 10 h, a part, is awaited
    life("a part stalls the job and is in flight as any save",
         parts(2, None, 3), save=7, saves=2),
    life("the last part may be left out", parts(2, None, 3, when_busy=SKIP), save=3, saves=0),
    life("a first part can't come to nothing", parts(1, p_fail=0.5), "3.5 node 0",
         lost=1.5, spoiled={"remote": (0,)}),
    life("the last one can", parts(1, p_fail=0.5), "3.5 node 0",
         lost=3.5, spoiled={"remote": (1,)}),
    # the part of 2 is struck at 3 and tried at 3.5, to no content by 5.5; that of 4 is struck at 6
    # and tried at 6.5 (progress 5.5): it completes one at 8.5
    life("a part that is tried again completes nothing",
         parts(2, None, 2, in_flight=2, rules=TRIED), "3 node 0, 6 node 1, 8.5 node 2",
         save=2, reschedule=1.5, stale=[(3, 0, 0), (5.5, 1, 0), (7.5, 2, 5.5)]),
    # the save of 4 is struck at progress 5, and tried at 5.5; it commits at 7.5
    life("the last part tried again completes what there is then",
         parts(2, None, 2, in_flight=2, rules=TRIED), "5 node 0, 8 node 1",
         save=2, reschedule=1, stale=[(5, 0, 0), (7.5, 1, 5)]),
    # at 4.5 the save of 4 waits for the part of 2: one save of 4 at 5, which commits at 8. The part
    # of 6, begun at 8, is tried at 9; waits at 4, 6, 8 and 10 h, then for that of 10 h
    life("a part tried again stands for the last one that is due by then",
         parts(2, None, 3, rules=TRIED), "4.5 node 0, 8.5 node 1",
         save=0.5 + 1 + 1.5 + 1 + 3, reschedule=1, saves=2, stale=[(4, 0, 0), (6.5, 1, 4)]),
    # at 4.5 that of 4 h waits for the part of 2 h, and the memory has 4 h: one save at 5
    life("a part and the last one stay due if a rollback undoes neither",
         saving(saves("memory", 4), saves("remote", 2, None, 3, parts=2),
                tiers=(memory(OWN), remote()),
                rules=(rule("all", "reschedule .5", "memory"), AGAIN)),
         "4.5 process 0", save=0.5 + 1 + 1 + 1 + 3, reschedule=0.5, saves=4),
    # in the save of 4, the second of its content: those of 3 and 4 again
    life("after a rollback the grid alone says which part is the last", parts(1, 0.5),
         "5.75 node 0", lost=2, save=3 * 0.5 + 0.25 + 8 * 0.5, saves=5),
]  # fmt: skip
test_contents_in_parts = lived(PARTS)

# --------------------------------------------------------------------------- cycles are skipped

LINK = Storage(0.04, shard_bytes=4.0)  # 100 h for a shard
CYCLES = [
    # 560 cycles before the failure, in one step
    life("many saves without a failure",
         saving(saves("remote", 1, 0.25), rules=(rule("all", "load", "remote"),),
                tiers=(remote(1),), useful_h=1000),
         "700.5 node 0", lost=0.5, save=250, load=1, saves=1000),
    # 562.5 h are done, and 560 saved
    life("of many parts each fourth is a save",
         saving(saves("remote", 1, 0.25, parts=4), rules=(rule("all", "load", "remote"),),
                tiers=(remote(1),), useful_h=1000),
         "703 node 0", lost=2.5, save=250.5, load=1, saves=250),
    # 0.5 h at the full speed before it; then 44 cycles of 2.25 h, but for 0.5 h of work: 44.5 h
    life("not past the end of a shared load",
         saving(saves("remote", 1, 0.25), tiers=(remote(LINK),), useful_h=1000,
                rules=(rule("struck", "load~", "remote", speed_meanwhile=0.5), AGAIN)),
         "13 node 0", save=250, degraded=44.5, stale=[(10.5, 0, 10)]),
    # the flush of 3 h ends at 9.25; those of 9 h and 15 h are corrupt
    life("not with a slow flush on its way",
         saving(saves("memory", 1, 0.25),
                saves("remote", after="memory", every_nth=3, behind_h=5.5, when_busy=SKIP),
                tiers=(memory(Ring(2)), remote(generations=3, p_corrupt=0.5)), useful_h=200,
                rules=(rule("all", "regroup .5", "remote"),)),
         "30 node 0", lost=21, save=55.25, regroup=0.5, spoiled={"remote": (1, 2)}),
    # the save of 4 h, tried again at 4.25 h, is flushed until 9.5875 h, and that of 8 h is not: so
    # that of 28 h is still being flushed as all go back at 32 h, to that of 24 h
    life("not with a flush that began late",
         saving(saves("memory", 1, 0, 0.9375, in_flight=2),
                saves("remote", after="memory", every_nth=4, behind_h=3.9),
                tiers=(memory(Ring(2)), remote()), useful_h=60,
                rules=(rule("nobody", "regroup .5", scopes=("nobody",)),
                       rule("all", "regroup .5", "remote"))),
         "4.25 nobody 0, 32 back 1", lost=31.5 - 24, save=0.9375, regroup=1),
    # every fourth save is flushed; that of 6 h is tried again at 6.75 h: it is no eighth one. Saves
    # to the peers before, again and after; flushed
    life("not past a save off the grid",
         saving(saves("memory", 1, 0, 0.9375, in_flight=2),
                saves("remote", after="memory", every_nth=4), tiers=(memory(Ring(2)), remote()),
                rules=(rule("nobody", "regroup .5"),), useful_h=20),
         "6.75 node 0", regroup=0.5, save=0.9375, saves=5 + 1 + 14 + 5),
]  # fmt: skip
test_cycles_are_skipped = lived(CYCLES)

# --------------------------------------------------------------------------- what survives


def in_memory(placement: Ring | Groups, words: str = "", **how) -> SimulatedJob:
    return saving(
        saves("memory", 2), tiers=(memory(placement, **how),),
        rules=(rule("all", words, "memory"), AGAIN),
    )  # fmt: skip


PAIRS, STRIDED, WHOLE = Groups(2, 1), Groups(2, 1, strided=True), Groups(3, 2)
PEER = in_memory(Ring(2), "reschedule 1")
FETCH = in_memory(Ring(2), "load", load_h=1)
REPLICAS = job(
    rule("all", "regroup .5", to=To.STEP_BEGUN, needs=("replicas",), replay_speed=2), AGAIN,
    tiers=(Tier("replicas", Medium.DEVICE, Groups(2, 1), "state"),), step_h=0.75,
)  # fmt: skip
SURVIVES = [
    # at 3.5 the recovery from 3 is under way: shard 0 was on 0 and 1
    life("two neighbours of a ring are too many", PEER, "3 node 0, 3.5 node 1",
         lost=3, reschedule=0.5 + 2),
    life("two that are no neighbours are not", PEER, "3 node 0, 3.5 node 2",
         lost=1, reschedule=0.5 + 1),
    # going on at 4 from 2; 0 is up again but empty
    life("a slot is empty until the next save, not only until it is up", PEER,
         "3 node 0, 4.5 node 1", lost=0.5 + 3, reschedule=1 + 2),
    # the save of 4 at the hour 6
    life("the next save fills it", PEER, "3 node 0, 6.5 node 1", lost=1.5, reschedule=2),
    life("a failure during a fetch may kill the peer", FETCH, "3 node 0, 3.5 node 1",
         lost=3, load=0.5, reschedule=2),
    life("or another", FETCH, "3 node 0, 3.5 node 2", lost=1, load=1.5),
    life("a group outlives one of its members", in_memory(PAIRS), "3 node 0 2", lost=1),
    life("but not two", in_memory(PAIRS), "3 node 0 1", lost=3, reschedule=2),
    life("nor does a strided one", in_memory(STRIDED), "3 node 0 2", lost=3, reschedule=2),
    life("of which the neighbour is no member", in_memory(STRIDED), "3 node 0 1", lost=1),
    life("replicas retry the step", REPLICAS, "3.5 process 0", lost=0.25, regroup=0.5),  # to 3 h
    life("without replicas all start again", REPLICAS, "3.5 process 0, 3.75 process 1",
         lost=3.5, regroup=0.25, reschedule=2),
    life("a live tier is there again as the recovery ends", REPLICAS,  # progress 4.25, to 3.75
         "3.5 process 0, 5 process 1", lost=0.5, regroup=1),
    # shard 0 is lost at 3.5, where shard 1 alone is asked for
    life("for the struck alone the shards of others do not have to be there",
         saving(saves("memory", 2), tiers=(memory(Ring(2)),),
                rules=(rule("struck", "reschedule 1", "memory"), AGAIN)),
         "3 node 0, 3.5 node 1", reschedule=1.5, stale=[(3, 0, 2), (3, 1, 2)]),
]  # fmt: skip
test_what_survives = lived(SURVIVES)


def shrunk(
    placement: Ring | Groups, n_nodes: int, struck: str, medium: Medium = Medium.DEVICE, **expected
):
    """Copies are made again when a failure is detected; its slot is back 8 h later."""
    of = job(
        rule("nobody", "detect again, rebuild 8~", needs=("live",)), from_start("detect"),
        tiers=(Tier("live", medium, placement, "state"),),
        roles=(Role("state", n_nodes, Holds.SHARD),),
    )  # fmt: skip
    return life(f"{placement} of {n_nodes}: {struck}", of, struck, **expected)


def after_node_0(placement: Ring | Groups, n_nodes: int, slots: str, outlived: bool):
    """Slot 0 fails at 1 h, and others at 2 h: copies have been made again meanwhile."""
    lost = {} if outlived else {"lost": 1.75}
    return shrunk(placement, n_nodes, f"1 node 0, 2 node {slots}", detect=0.5, **lost)


test_others_hold_all_copies_again_in_a_smaller_ring_or_in_groups_of_their_own = lived(
    [
        after_node_0(Ring(2), 4, "1", True),
        after_node_0(Ring(2), 4, "1 3", False),  # neighbours by now
        after_node_0(Ring(3), 3, "1", True),
        after_node_0(Ring(3), 3, "1 2", False),  # all that are left
        after_node_0(PAIRS, 6, "1 2", False),  # groups of 1 and 2, and of 3 to 5
        after_node_0(PAIRS, 6, "2 3", True),
        after_node_0(PAIRS, 6, "4 5", False),
        after_node_0(STRIDED, 6, "1 4", True),  # groups of 1, 3 and 5, and of 2 and 4
        after_node_0(STRIDED, 6, "1 5", False),
        after_node_0(WHOLE, 3, "1", True),  # two are left, of which one may go
        after_node_0(WHOLE, 3, "1 2", False),
        # slot 0 is up, and in the ring again, at 9.25
        shrunk(Ring(2), 2, "1 node 0, 9.5 node 1", detect=0.5),
        shrunk(Ring(2), 3, "1 node 0, 9.5 node 0 1", detect=0.5, lost=9.25),
        # slot 1 has left the ring, though its memory is there: 0 and 2 are neighbours
        shrunk(Ring(2), 4, "1 process 1, 2 node 0 2", Medium.HOST, detect=0.375, lost=1.875),
    ]
)


def grids(near_min: int, far_min: int) -> SimulatedJob:
    return saving(
        saves("near", near_min / 60), saves("remote", far_min / 60), useful_h=40,
        tiers=(Tier("near", Medium.HOST, OWN, "state"), remote(1)), roles=(STATE, TRAINERS),
        rules=(rule("all", "load", "near", "remote"),),
    )  # fmt: skip


def meetings(far_min: int) -> str:
    """Failures of a trainer 0.01 h after each meeting of the grids."""
    return ", ".join(f"{n * (far_min / 60 + 0.01)!r} node 4" for n in range(1, 20))


# 7 times 10 min, in hours, is not what 70 min are: they differ by rounding
test_grids_that_meet_save_one_content_and_the_faster_tier_is_loaded = lived(
    [
        life(f"{near} and {far} min", grids(near, far), meetings(far), lost=0.19)
        for near, far in ((10, 70), (6, 18), (6, 42), (7, 21))
    ]
)


def rounded(stall_h: float, behind_h: float) -> SimulatedJob:
    return saving(saves("remote", 1.1, stall_h, behind_h), rules=(BACK,), useful_h=22)


# 1.1 h + 0.1 h are more than 1.2 h, 0.2 h + 0.1 h more than 0.3 h
test_rounding_does_not_decide_whether_a_save_is_there = lived(
    [
        *(life(f"stalled, {n}", rounded(0.1, 0), f"{round(n * 1.2, 3)} node 0", save=2)
          for n in (1, 2, 3, 12)),
        *(life(f"in the background, {n}", rounded(0, 0.2), f"{round(n * 1.1 + 0.2, 3)} node 0",
               save=0.2, lost=0.2) for n in (1, 2, 3, 12)),
        life("as the job ends", saving(saves("remote", 0.2, 0, 0.1), useful_h=0.3), saves=1),
    ]
)  # fmt: skip


def notified(stall_h: float = 0.125, **how) -> SimulatedJob:
    """All go back to a save on notice, or to one at an interval."""
    every_h = how.pop("every_h", None)
    at_interval = () if every_h is None else (saves("remote", every_h, stall_h),)
    tiers = (replace(remote(), name="on notice"), remote())
    return saving(
        saves("on notice", None, stall_h, on_notice=True, **how), *at_interval, useful_h=8,
        tiers=tiers, rules=(rule("all", "detect", "on notice", "remote"),),
    )  # fmt: skip


NOTICES = [
    life("only what was done after the save is lost", notified(), "2.5 notice, 3 node 1",
         failed=1, lost=0.375, save=0.125, detect=0.25),
    life("a notice shorter than the save is of no use", notified(0.625), "2.5 notice, 3 node 1",
         failed=1, lost=2.5, save=0.5, detect=0.25),
    life("a save that is still being written is lost", notified(behind_h=0.5),
         "2.5 notice, 3 node 1", failed=1, lost=2.875, save=0.125, detect=0.25),
    # struck at 3 by surprise, until 3.25; then saved
    life("a notice while the job recovers is heeded when it goes on", notified(),
         "3 node 0, 3.125 notice, 3.625 node 1", failed=2, lost=3.25, save=0.125, detect=0.5),
    life("the newer of both saves is loaded", notified(every_h=2), "4.625 notice, 5.125 node 1",
         failed=1, lost=0.375, save=0.625, detect=0.25),
    life("without notice the save of 4 h is", notified(every_h=2), "5.125 node 1",
         lost=0.875, save=0.5, detect=0.25),
]  # fmt: skip
test_saves_on_notice = lived(NOTICES)
