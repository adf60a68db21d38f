"""Lives of jobs by hand: when they save, what survives, what a failure does, the strategies."""

from dataclasses import replace

import pytest

from cprsim.job.distributions import Constant, Mixture
from cprsim.job.policy import Elastic, Groups, Medium, Ring, Rule, Tax, Tier, To, WhenBusy
from cprsim.job.records import Clock, Holds, Role, Storage, SubSaves
from cprsim.simulation.job import ScopedFailure, SimulatedJob
from tests.in_step.settings import in_step
from tests.recovery.lives import (
    STATE,
    TRAINERS,
    Life,
    check,
    from_start,
    job,
    life,
    memory,
    remote,
    rule,
    saves,
)
from tests.simulators import (
    FULL,
    PARTIAL,
    SIMULATORS,
    assert_same_outcome,
    draws_of,
    failures,
    job_of,
    ran,
)

AGAIN = from_start("reschedule 2")  # the last rule of most jobs
BACK = rule("all", "", "remote")
STRUCK = rule("struck", "reschedule .5", "remote")


def saving(*captures, rules=(AGAIN,), **how) -> SimulatedJob:
    return job(*rules, captures=captures, **how)


FLUSHED = saving(  # to memory each 4 h, which goes on to remote within 3 h
    saves("memory", 4), saves("remote", after="memory", behind_h=3),
    tiers=(memory(Ring(2)), remote()), rules=(rule("all", "reschedule 1", "memory", "remote"),),
)  # fmt: skip


SAVES = [
    life("an interval as long as the job means no save", saving(saves("remote", 10, 0.25)),
         saves=0),
    # at 5 back to 4, going on at 6; the flush of 4 commits at 7; at 7.5 (progress 5.5) back to 4.
    # Saves of 4 in both, of 8 in memory: nobody waits for more
    life("a flush goes on while what it copies survives", FLUSHED,
         "5 node 0, 7.5 everything 0 1 2 3", lost=1 + 1.5, reschedule=2, saves=3),
    life("a flush ends with what it copies", FLUSHED, "5 everything 0 1 2 3",
         lost=5, reschedule=1, saves=4),  # of 4 once, and again in both; of 8
    # shard 0 of the content of 2 h is lost on its own slot at 3, and with slot 1 at 6: not flushed
    life("a flush knows what was lost before a later one began",
         saving(saves("memory", 2), saves("remote", after="memory", behind_h=6, in_flight=2),
                tiers=(memory(Ring(2)), remote()),
                rules=(rule("nobody", "regroup .5", scopes=("nobody", "process")),
                       rule("all", "regroup .5", "memory", "remote"))),
         "3 nobody 0, 5 process 3, 6 nobody 1, 9 everything 0 1 2 3", lost=7.5, regroup=2),
    life("a flush of every second content takes the even ones",
         saving(saves("memory", 2), saves("remote", after="memory", every_nth=2, behind_h=0.5),
                tiers=(memory(Ring(2)), remote()), rules=(BACK,)),
         "7 everything 0 1 2 3", lost=3),  # of 2, 4, 6 it has 4
    life("a corrupt content is found when it is loaded",
         saving(saves("remote", 2), rules=(rule("all", "load", "remote"),),
                tiers=(remote(1, generations=2, p_corrupt=0.5),)), "5 node 0",
         lost=3, load=2, spoiled={"remote": (1,)}),
    life("of two tiers with one content the first of the sources is loaded",
         saving(saves("memory", 4), saves("remote", 4), tiers=(remote(2), memory(Ring(2), 1)),
                rules=(rule("all", "load", "memory", "remote"),)), "5 process 0", lost=1, load=1),
    life("where all that survives is corrupt all start again",
         saving(saves("remote", 2), tiers=(remote(1, p_corrupt=0.5),),
                rules=(rule("all", "load .5", "remote"),)),
         "5 node 0", lost=5, load=1.5, spoiled={"remote": (1,)}),
    life("a struck save is tried again where nobody goes back",
         saving(saves("remote", 4, 1), rules=(STRUCK, AGAIN)), "4.5 node 0",
         save=0.5 + 1 + 1, reschedule=0.5, saves=2, stale=[(4, 0, 0)]),
    # the save of 4 is struck at progress 5, and tried at 5.5; it commits at 7.5
    life("a save struck in the background is tried again with what there is then",
         saving(saves("remote", 4, None, 2), rules=(STRUCK, AGAIN)), "5 node 0, 8 node 1",
         reschedule=1, stale=[(5, 0, 0), (7.5, 1, 5)]),
    # to 5 h: what was held is done, and saved again until 11.5; the save of 8 h waits from 10.5
    life("a struck save is tried again after a rollback",
         saving(saves("remote", 4, None, 4), step_h=2,
                rules=(rule("all", "reschedule .5", to=To.STEP_BEFORE),)), "7 node 0",
         lost=2, reschedule=0.5, save=1),
    life("a rule that stops nothing abandons no save",
         saving(saves("remote", 4, 1), rules=(rule("nobody", "reschedule 2~"), AGAIN)),
         "4.5 node 0", save=2, saves=2),
    life("what is due at the progress of a failure is saved before it strikes",
         saving(saves("remote", 2, 0.5), saves("memory", 2, 0.5), tiers=(remote(), memory(Ring(2))),
                rules=(rule("all", "regroup 1", "remote"),), clock=Clock.PROGRESS, useful_h=6),
         "4 node 0", save=3, regroup=1),
]  # fmt: skip


PARTS = [
    # progress 3.5, three parts on their way: the third kept nothing
    life("its first parts keep nothing",
         saving(saves("remote", 1, 0.25, parts=2), rules=(BACK,)), "4.25 node 0",
         lost=1.5, save=11 * 0.25, saves=5),
    # the part of 2 is struck at 3 and tried at 3.5, to no content by 5.5; that of 4 is struck at 6
    # and tried at 6.5 (progress 5.5): it completes one at 8.5
    life("a part that is tried again completes nothing",
         saving(saves("remote", 2, None, 2, parts=2, in_flight=2), rules=(STRUCK, AGAIN)),
         "3 node 0, 6 node 1, 8.5 node 2",
         save=2, reschedule=1.5, stale=[(3, 0, 0), (5.5, 1, 0), (7.5, 2, 5.5)]),
]  # fmt: skip

# --------------------------------------------------------------------------- cycles are skipped

SLOW_LINK = Storage(0.04, shard_bytes=4.0)  # 100 h for a shard
CYCLES = [
    # 0.5 h at the full speed before it; then 44 cycles of 2.25 h, but for 0.5 h of work: 44.5 h
    life("not past the end of a shared load",
         saving(saves("remote", 1, 0.25), tiers=(remote(SLOW_LINK),), useful_h=1000,
                rules=(rule("struck", "load~", "remote", speed_meanwhile=0.5), AGAIN)),
         "13 node 0", save=250, degraded=44.5, stale=[(10.5, 0, 10)]),
    # the flush of 3 h ends at 9.25; those of 9 h and 15 h are corrupt
    life("not with a slow flush on its way",
         saving(saves("memory", 1, 0.25),
                saves("remote", after="memory", every_nth=3, behind_h=5.5, when_busy=WhenBusy.SKIP),
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
    # the save of 2 h, tried again at 2.75 h, commits at 5.75, as late as one on the grid would
    life("not with a save of what is off the grid",
         saving(saves("remote", 2, None, 3, in_flight=2),
                rules=(rule("nobody", "detect .25~, reschedule .75", scopes=("nobody",)), BACK)),
         "2.75 nobody 0, 6.25 back 1", lost=5.5 - 2.75, save=3, reschedule=0.75),
]  # fmt: skip

# --------------------------------------------------------------------------- what survives


def in_memory(placement: Ring | Groups, words: str = "", **how) -> SimulatedJob:
    return saving(
        saves("memory", 2), tiers=(memory(placement, **how),),
        rules=(rule("all", words, "memory"), AGAIN),
    )  # fmt: skip


RING, PAIRS, STRIDED = Ring(2), Groups(2, 1), Groups(2, 1, strided=True)
REPLICAS = job(
    rule("all", "regroup .5", to=To.STEP_BEGUN, needs=("replicas",), replay_speed=2), AGAIN,
    tiers=(Tier("replicas", Medium.DEVICE, Groups(2, 1), "state"),), step_h=0.75,
)  # fmt: skip
SURVIVES = [
    # going on at 4 from 2; 0 is up again but empty
    life("a slot is empty until the next save, not only until it is up",
         in_memory(RING, "reschedule 1"),
         "3 node 0, 4.5 node 1", lost=0.5 + 3, reschedule=1 + 2),
    life("a group outlives one of its members", in_memory(PAIRS), "3 node 0 2", lost=1),
    life("replicas retry the step", REPLICAS, "3.5 process 0", lost=0.25, regroup=0.5),  # to 3 h
    # shard 0 is lost at 3.5, where shard 1 alone is asked for
    life("for the struck alone the shards of others do not have to be there",
         saving(saves("memory", 2), tiers=(memory(Ring(2)),),
                rules=(rule("struck", "reschedule 1", "memory"), AGAIN)),
         "3 node 0, 3.5 node 1", reschedule=1.5, stale=[(3, 0, 2), (3, 1, 2)]),
]  # fmt: skip


def shrunk(
    struck: str, n_nodes: int = 4, placement: Ring | Groups = RING, medium: Medium = Medium.DEVICE,
    **expected,
) -> Life:  # fmt: skip
    """Copies are made again when a failure is detected; its slot is back 8 h later."""
    of = job(
        rule("nobody", "detect again, rebuild 8~", needs=("live",)), from_start("detect"),
        tiers=(Tier("live", medium, placement, "state"),),
        roles=(Role("state", n_nodes, Holds.SHARD),),
    )  # fmt: skip
    return life(f"{placement} of {n_nodes}: {struck}", of, struck, **expected)


SHRUNK = [
    shrunk("1 node 0, 2 node 1 3", detect=0.5, lost=1.75),  # neighbours by now
    shrunk("1 node 0, 2 node 1 5", 6, STRIDED, detect=0.5, lost=1.75),
    # slot 0 is up, and in the ring again, at 9.25
    shrunk("1 node 0, 9.5 node 1", 2, detect=0.5),
    shrunk("1 node 0, 2 node 1 2", 4, Groups(4, 1), detect=0.5, lost=1.75),  # 3 of it tolerate 1
    # 0 has left the ring, and its shard is others': a rule for the struck needs 1's alone, on 2
    life("a rule for the struck needs nothing of a live tier that they have left",
         job(rule("struck", "detect again, rebuild 8~", "remote", needs=("live",)), AGAIN,
             tiers=(remote(), Tier("live", Medium.DEVICE, RING, "state"))),
         "1 node 0, 2 node 0 1", detect=0.5, stale=[(1, 0, 0), (1.75, 0, 0), (1.75, 1, 0)]),
    # slot 1 has left the ring, though its memory is there: 0 and 2 are neighbours (random policy
    # 703900 once had 0 survive on 1)
    shrunk("1 process 1, 2 node 0 2", medium=Medium.HOST, detect=0.375, lost=1.875),
]  # fmt: skip


NOTIFIED = saving(
    saves("on notice", None, 0.125, on_notice=True), saves("remote", 2, 0.125), useful_h=8,
    tiers=(replace(remote(), name="on notice"), remote()),
    rules=(rule("all", "detect", "on notice", "remote"),),
)  # fmt: skip
NOTICES = [
    life("the newer of both saves is loaded", NOTIFIED, "4.625 notice, 5.125 node 1",
         failed=1, lost=0.375, save=0.625, detect=0.25),
    # struck at 3.25 by surprise, until 3.5; then saved
    life("a notice while the job recovers is heeded when it goes on", NOTIFIED,
         "3.25 node 0, 3.375 notice, 3.875 node 1", failed=2, lost=1.125 + 0.25, save=0.625,
         detect=0.5),
]  # fmt: skip


def saved(*rules: Rule, load_h: float | Storage | None = None, every_h: float = 4, **how):
    """Saves each 4 h, at no cost."""
    return job(*rules, captures=(saves("remote", every_h),), tiers=(remote(load_h),), **how)


SLOW_RULE = rule("all", "reschedule 1", "remote", scopes=("back",))
GOES_BACK = [
    life("to the step before",
         job(rule("all", "regroup .25", to=To.STEP_BEFORE), step_h=0.75), "3.5 node 0",
         lost=0.75, regroup=0.25),
    # back from 6 h to 4 h at speed 1, then to where it is, at speed 2
    life("the replay speed is that of the last rule that reverts all, moved or not",
         saved(SLOW_RULE, replace(SLOW_RULE, scopes=("struck",), replay_speed=2.0), useful_h=8),
         "6 back 0, 6.5 struck 1", lost=1, reschedule=1.5),
    life("shards that go back alone may replay what they lost",
         saved(rule("struck", "load, replay", "remote", replay_speed=2), AGAIN, load_h=0.5),
         "7 node 1 2", load=0.5, replay=1.5),
    # the trainer waits from 5 on, and has the node of slot 0 at 6.5; slot 0 has its node at 7
    life("a slot that waits for a node is of no role that counts",
         saved(rule("struck", "wait, regroup .5", "remote", roles=("state",)),
               rule("all", "wait, reschedule 1", "remote"), roles=(STATE, TRAINERS), spares=0),
         "5 node 4 repair 2, 5.5 node 0 4 repair 1",
         lost=1, wait=2, reschedule=0.5, stale=[(4, 0, 4)]),
]  # fmt: skip

# --------------------------------------------------------------------------- overlapping failures

OVERLAP = job(  # saves 4 h of 8 h of work from the hour 4 to 4.5; a failure's scope tells its rule
    rule("all", "detect, load", "remote", scopes=("back",)),
    rule("struck", "detect, reschedule 1", "remote", scopes=("struck",)),
    rule("nobody", "regroup 1", scopes=("nobody",)),
    rule("nobody", "reschedule 2~", scopes=("quiet",), speed_meanwhile=0.5),
    tiers=(remote(1.5),), captures=(saves("remote", 4, 0.5),), useful_h=8,
)  # fmt: skip


OVERLAPPING = [
    life("a load of all goes on without slots", OVERLAP, "5 back 0, 5.25 struck 0", save=1,
         lost=0.5, detect=0.75, reschedule=1, load=0.25, stale=[(4, 0, 4)]),
    life("a recovery without slots ends once it has loaded",
         saved(rule("nobody", "regroup .25", scopes=("process",)),
               rule("all", "load, rebuild 2", "remote"), load_h=1, every_h=8),
         "3 node 0, 4.5 process 0", lost=3, load=1, rebuild=0.5, regroup=0.25),
]  # fmt: skip

# --------------------------------------------------------------------------- loads that share

LINK = Storage(4.0, shard_bytes=4.0)  # an hour for a shard alone


def sharing(*rules: Rule, link: Storage = LINK, **how) -> SimulatedJob:
    return saved(*rules, AGAIN, load_h=link, **how)


def stale(*slots: int, progress_h: float = 5) -> list[tuple[float, int, float]]:
    return [(progress_h, slot, 4) for slot in slots]


OWN_LINK = saved(
    rule("shards", "regroup 1~, load 1~, rebuild 1~", "remote"), AGAIN, load_h=1,
    elastic=Elastic("state", (1.0, 0.75, 0.5, 0.25)),
)  # fmt: skip
SHARED = [
    life("a server has a bandwidth of its own",
         sharing(rule("struck", "load", "remote"), link=Storage(4.0, 1.0, 4.0)), "5 node 0 1",
         load=4, stale=stale(0, 1)),
    # it loads until 7.5
    life("a shard is taken back again as it loads",
         sharing(rule("struck", "load~", "remote", speed_meanwhile=0.5)),
         "5 node 0 1, 6 node 0", degraded=1.25, stale=[(5, 0, 4), (5, 1, 4), (5.5, 0, 4)]),
    life("a load of no bytes is none to go on for",
         sharing(rule("nobody", "regroup .25", scopes=("process",)),
                 rule("all", "reschedule 1, load, rebuild 2", "remote"),
                 link=Storage(4.0, shard_bytes=0.0)),
         "3 node 0, 3.5 process 0", lost=3, reschedule=0.5, regroup=0.25),
    life("a load over no link is left out as well but not cut short", OWN_LINK,
         "5 node 0, 6.5 node 1", degraded=(4 + 4) * 0.25,
         stale=stale(0, 1, 2, 3) + stale(0, 1, 2, 3, progress_h=6.125)),
]  # fmt: skip

# --------------------------------------------------------------------------- speed, nodes, clocks


def elastic(*speed: float, rules: tuple[Rule, ...], **how) -> SimulatedJob:
    return job(*rules, elastic=Elastic("state", (1.0, *speed)), **how)


GROW = elastic(
    0.5, rules=(rule("nobody", "wait~, regroup 1"),), spares=0, useful_h=8,
    captures=(saves("remote", 2.75, 1),),
)  # fmt: skip
SPEEDS = [
    # half speed from 3 to 4 and from 5 to 6, none between
    life("and stands still beyond the table",
         elastic(0.5, rules=(rule("nobody", "reschedule 2~"), AGAIN)), "3 node 0, 4 node 1",
         degraded=1, wait=1),
    # at progress 4, done again in 2 h of work
    life("a tax is paid for lost work too", job(from_start(replay_speed=2), tax=Tax(0.25)),
         "5 node 0", lost=2, tax=2.5 + 0.5),
    life("a save goes on while the job stops to grow", GROW, "2 node 0 repair 2",
         save=1.5, regroup=1, degraded=0.75,
         log="2 failed 0 useful @2; 3.5 save_started save @2.75; 4 stage regroup @2.75; "
             "4.5 save_committed regroup @2.75; 5 resumed useful @2.75"),
]  # fmt: skip

NODES = [
    # nodes are back at 5, 12, 7 and 9; that of 7 goes to 0, who asked before, that of 9 to 3
    life("nodes go to slots in the order in which they asked",
         job(rule("nobody", "wait"), AGAIN, spares=0),
         "1 node 3 repair 4, 2 node 0 repair 10, 6 node 3 repair 1, 6.5 node 0, 8 node 0 repair 1",
         failed=4, wait=11),
    life("a failure of a slot that waits for a node is missed",
         job(from_start("wait, regroup 1"), spares=0), "3 node 0 repair 2, 4 node 0",
         failed=1, lost=3, wait=2, regroup=1),
]  # fmt: skip


def grown(grows: str, struck: str, **expected) -> Life:
    """A node is missing, at half the speed, until it is back and the job takes it in."""
    rules = rule("nobody", f"detect 0, wait~, grow {grows}"), from_start("detect")
    of = elastic(0.5, rules=rules, spares=0)
    return life(f"taken in each {grows} h: {struck}", of, struck, **expected)


GROWN = [
    grown("1.5", "1 node 0", degraded=1),
    grown("inf", "1 node 0, 4 node 1", degraded=9),  # one is, the other isn't
    # one is, as the job stands still without both from 1.25 to 2
    grown("inf", "1 node 0, 1.25 node 1", degraded=0.125 + 8.875, wait=0.75),
]
# a node is back at 5, as a save of 4 ends; then all go back to what its memory has
NODE_AND_SAVE = (
    rule("nobody", "wait~", scopes=("node",)), rule("all", "reschedule 1", "memory"), AGAIN,
)  # fmt: skip
SAME_INSTANT = [
    life("a save that commits as a node comes back is not on it",
         saving(saves("memory", 4, None, 1), tiers=(memory(Ring(1)),), rules=NODE_AND_SAVE,
                spares=0), "2 node 0 repair 3, 6 process 1", lost=6, reschedule=2),
    life("a save whose stall ends as a node comes back is not on it",
         saving(saves("memory", 4, 1), tiers=(memory(Ring(1)),), rules=NODE_AND_SAVE,
                spares=0), "2 node 0 repair 3, 6 process 1", lost=5, save=3, reschedule=2),
    life("a save commits at the horizon, at which a node comes back too",
         saving(saves("remote", 4, None, 1), rules=(rule("nobody", "wait~"), AGAIN), spares=0,
                horizon_h=5), "2 node 0 repair 3", useful_h=5, saves=1),
    life("no save begins at the horizon", saving(saves("remote", 2.5), horizon_h=5),
         useful_h=5, saves=1),
    life("a free save begins after the stage that ends at its instant",
         saving(saves("memory", 2.5), tiers=(memory(Ring(1)),),
                rules=(rule("nobody", "reschedule 2.5~", scopes=("node",)),
                       rule("all", "", "memory"))), "2.5 node 0, 6 process 1", lost=1),
]  # fmt: skip
CLOCKS = [
    # strikes at the hour 5.5, again at 0.5
    life("uptime", job(AGAIN, clock=Clock.UPTIME), "3 node 0, 3.5 node 1",
         lost=3.5, reschedule=4),
    # at the first time at 3.5
    life("progress", job(AGAIN, clock=Clock.PROGRESS), "3 node 0, 3.5 node 1",
         lost=6.5, reschedule=4),
    life("on uptime no failure strikes as a stage begins that blocks the job",
         job(rule("nobody", "reschedule 1~, regroup 2"), AGAIN, clock=Clock.UPTIME, useful_h=6),
         "2 node 0, 3 node 1", regroup=4),
    # the clock stands still as 4 h are reached, and goes on with the work
    life("on the clock of progress no failure ages in a save",
         replace(OVERLAP, clock=Clock.PROGRESS), "4 back 0, 6 nobody 1",
         save=1, detect=0.5, load=1.5, regroup=1),
]  # fmt: skip


def each_hour(down_h: float, n: int, **expected) -> Life:
    """A failure after each hour of work, which stops the job."""
    struck = [ScopedFailure((down_h + 1) * i, (0,), 1, (1.0,)) for i in range(1, n + 1)]
    return life(f"after 5,000 failures a job has to get on: {down_h} h for each of work",
                job(rule("nobody", f"reschedule {down_h}"), AGAIN, useful_h=6000), struck,
                **expected)  # fmt: skip


ENDS = [
    each_hour(7, 5992, reschedule=7 * 5992),
    each_hour(11, 6000, failed=5000, finished=False, useful_h=5012, reschedule=11 * 5000),

    # going on at 5; 1 h is lost for good
    life("at a horizon", job(AGAIN, horizon_h=7), "3 node 0", useful_h=2, lost=3, reschedule=2),
    life("a job whose work is all lost at its horizon has not finished",
         job(AGAIN, horizon_h=9, useful_h=20), "8 node 0",
         finished=False, useful_h=8, reschedule=1),
    life("a job that stands still does so to the end",
         elastic(rules=(rule("nobody", "wait"), AGAIN), spares=0), "3 node 0 repair 1000000",
         finished=False, useful_h=3, wait=997),
    life("a thousand failures without work between them are enough", job(AGAIN),
         [ScopedFailure(0.5 + n / 1024, (0,), 1, (1.0,)) for n in range(2000)],
         failed=1000, finished=False, useful_h=0.5, reschedule=1000 / 1024),
]  # fmt: skip


# --------------------------------------------------------------------------- strategies


STRATEGIES = [
    life("full recovery goes back to the last committed save",
         job_of(FULL, 2, useful_h=6, save_h=0.5, load_h=0.25, detect_h=0.125, reschedule_h=1),
         "3.5 node 0", lost=1, save=1.5, detect=0.125, reschedule=1, load=0.25, saves=3,
         log="0 started useful @0; 2 save_started save @2; 2.5 save_committed useful @2; "
             "3.5 failed 0 detect @3; 3.5 rolled_back detect @2; 3.625 stage reschedule @2; "
             "4.625 stage load @2; 4.875 resumed lost @2; 5.875 caught_up useful @3; "
             "6.875 save_started save @4; 7.375 save_committed useful @4; "
             "9.375 save_started save @6; 9.875 save_committed over @6; 9.875 finished over @6"),
    life("partial recovery goes on where it was: two nodes, one failure",
         job_of(PARTIAL, 2, useful_h=6, save_h=0.5, load_h=0.25, reschedule_h=1), "3.5 node 1 2",
         save=1.5, reschedule=1, load=0.25, stale=[(3, 1, 2), (3, 2, 2)],
         log="3.5 failed 1 reschedule @3; 3.5 failed 2 reschedule @3; "
             "3.5 reverted 1 reschedule @3; 3.5 reverted 2 reschedule @3; 4.5 stage load @3; "
             "4.75 resumed useful @3; 5.75 save_started save @4; 6.25 save_committed useful @4; "
             "8.25 save_started save @6; 8.75 save_committed over @6; 8.75 finished over @6"),
    life("with the last trainer all shards go back",
         job_of(PARTIAL, 2, useful_h=6, n_trainers=2, load_h=5, reschedule_h=1),
         "3 node 4, 3.5 node 5", reschedule=1.5, load=5, stale=[(3, slot, 2) for slot in range(4)]),
    life("each moves a share of the bytes, and choosing its rows costs extra",
         job_of(PARTIAL, 2, SubSaves("mfu", 0.25, 0.125), useful_h=8,
                save_h=Storage(8.0, shard_bytes=1.0)), save=16 * (0.125 + 0.125)),
    life("each costs its share and the one that ends the interval counts",
         job_of(PARTIAL, 2, SubSaves("mfu", fraction=0.5), useful_h=4, save_h=0.5),
         save=1, saves=2,
         log="1 sub_save_started save @1; 1.25 sub_save_committed useful @1; "
             "2.25 save_started save @2; 2.5 save_committed useful @2"),
    # trainers in step: a quarter of 2 h
    life("a lost trainer costs its share of the time that it is away", in_step(), "3 node 4",
         degraded=0.5,
         log="0 started useful @0; 3 failed 4 useful @3; 5 replaced 4 useful @4.5; "
             "10.5 finished over @10"),
    life("the last trainer is waited for and begins with the central copy", in_step(n_trainers=1),
         "3 node 4", detect=0.5, reschedule=1.5),
    life("without sync servers its loss reverts everything", in_step(n_sync_ps=0, n_trainers=1),
         "3 node 4", detect=0.5, reschedule=1.5, stale=[(3, slot, 0) for slot in range(4)]),
    life("a sync server costs nothing", in_step(), "3 node 8"),
]  # fmt: skip
ALL = (
    *SAVES, *PARTS, *CYCLES, *SURVIVES, *SHRUNK, *NOTICES, *GOES_BACK,
    *OVERLAPPING, *SHARED, *SPEEDS, *NODES, *GROWN, *SAME_INSTANT, *CLOCKS, *ENDS, *STRATEGIES,
)  # fmt: skip


@pytest.mark.parametrize("simulator", SIMULATORS)
@pytest.mark.parametrize("life", ALL, ids=[life.name for life in ALL])
def test_a_life(simulator: str, life: Life) -> None:
    check(simulator, life)


@pytest.mark.parametrize("simulator", ["simpy", "loop"])
def test_a_server_that_fails_twice_loses_nothing_twice_in_the_net_count(simulator: str) -> None:
    job = job_of(PARTIAL, 8)
    struck = failures("2 node 0, 5 node 0, 6 node 1, 9 node 0")
    stale = ran(simulator, job, struck, draws_of(job)).stale
    assert [shard.progress_h - shard.content_h for shard in stale] == [2, 5, 6, 1]
    assert [shard.progress_h - shard.fresh_h for shard in stale] == [2, 3, 6, 1]


@pytest.mark.parametrize("behind_h", [None, 1.0])
@pytest.mark.parametrize("simulator", ["simpy", "loop"])
def test_saves_that_commit_at_one_instant_do_so_in_the_order_in_which_they_began(
    simulator: str, behind_h: float | None
) -> None:
    one_or_two = Mixture((0.5, 0.5), (Constant(1.0), Constant(2.0)))
    captures = (
        replace(saves("memory", 1, in_flight=2), background=one_or_two),
        saves("remote", after="memory", behind_h=behind_h, in_flight=2),
    )
    of = saving(*captures, tiers=(memory(Ring(2)), remote()), rules=(BACK,))
    struck = failures("6.5 everything 0 1 2 3", [scope.name for scope in of.scopes])
    for seed in range(8):
        draws = draws_of(of, seed)
        assert_same_outcome(
            ran(simulator, of, struck, draws), ran("naive", of, struck, draws), seed
        )
