"""What a failure does: who goes back, what a recovery takes, and how the job works meanwhile."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cprsim.failures.distributions import Exponential
from cprsim.records import Clock, Storage
from cprsim.recovery.policy import Elastic, Medium, Outside, Reach, Rule, Scope, Tax, Tier, To
from cprsim.simulate.job import ScopedFailure, SimulatedJob
from tests.engines import ENGINES, draws_of, failures
from tests.recovery.lives import (
    READERS,
    STATE,
    TRAINERS,
    Life,
    from_start,
    job,
    life,
    lived,
    remote,
    rule,
    saves,
)  # fmt: skip

AGAIN = from_start("reschedule 2")  # the last rule of most jobs


def saving(*rules: Rule, load_h: float | Storage | None = None, every_h: float = 4, **how):
    """Saves each 4 h, at no cost."""
    return job(*rules, captures=(saves("remote", every_h),), tiers=(remote(load_h),), **how)


# --------------------------------------------------------------------------- who goes back


def to_a_step(to: To, words: str = "regroup .25") -> SimulatedJob:
    return job(rule("all", words, to=to), step_h=0.75)


def for_roles(*roles: str, spares: int | None = None) -> SimulatedJob:
    """The struck alone go back if they are of these roles, else all do."""
    struck = rule("struck", "wait, regroup .5", "remote", roles=roles)
    back = rule("all", "wait, reschedule 1", "remote")
    return saving(struck, back, roles=(STATE, TRAINERS), spares=spares)


def of_roles(roles: tuple[str, ...], slots: str, holds: bool) -> Life:
    parts = {"regroup": 0.5} if holds else {"lost": 1, "reschedule": 1}
    shards = [int(slot) for slot in slots.split() if int(slot) < 4] if holds else []
    stale = [(5, slot, 4) for slot in shards]
    name = f"a rule for {' and '.join(roles) or 'all'} where {slots} are struck"
    return life(name, for_roles(*roles), f"5 node {slots}", stale=stale, **parts)


READ = saving(
    rule("struck", "reschedule .25, load .125", "remote"), AGAIN, load_h=0.5, roles=(STATE, READERS)
)
SLOW_RULE = rule("all", "reschedule 1", "remote", scopes=("back",))
GOES_BACK = [
    # in the save of 4: back to 2
    life("all go back, and what is done again is saved again",
         job(rule("all", "detect, load", "remote"), captures=(saves("remote", 2, 0.5),),
             tiers=(remote(0.5),)),
         "4.75 node 0", lost=2, save=0.5 + 0.25 + 4 * 0.5, detect=0.25, load=0.5, saves=5),
    life("to the step begun", to_a_step(To.STEP_BEGUN), "3.5 node 0", lost=0.5, regroup=0.25),
    life("to the step before", to_a_step(To.STEP_BEFORE), "3.5 node 0", lost=0.75, regroup=0.25),
    life("to the start", to_a_step(To.START), "3.5 node 0", lost=3.5, regroup=0.25),
    life("before the first step there is nothing to undo", to_a_step(To.STEP_BEFORE, ""),
         "0.5 node 0", lost=0.5),
    life("work that is replayed faster costs less", job(from_start(replay_speed=4)), "4 node 0",
         lost=1),
    # back from 6 h to 4 h at speed 1, then to where it is, at speed 2
    life("the replay speed is that of the last rule that reverts all, moved or not",
         saving(SLOW_RULE, replace(SLOW_RULE, scopes=("struck",), replay_speed=2.0), useful_h=8),
         "6 back 0, 6.5 struck 1", lost=1, reschedule=1.5),
    life("shards that go back alone are stale",
         saving(rule("struck", "load", "remote", replay_speed=2), AGAIN, load_h=0.5),
         "7 node 1 2", load=0.5, stale=[(7, 1, 4), (7, 2, 4)]),
    life("or replay what they lost",
         saving(rule("struck", "load, replay", "remote", replay_speed=2), AGAIN, load_h=0.5),
         "7 node 1 2", load=0.5, replay=1.5),
    life("all shards may go back while the progress stays",
         saving(rule("shards", "load", "remote"), AGAIN, load_h=0.5), "5 node 2",
         load=0.5, stale=[(5, slot, 4) for slot in range(4)]),
    life("a reader loads nothing where the struck alone go back", READ, "5 node 4",
         reschedule=0.25),
    life("a shard of another node struck with it does", READ, "5 node 4 0",
         reschedule=0.25, load=0.625, stale=[(5, 0, 4)]),
    of_roles(("state",), "0", True),
    of_roles(("state",), "0 3", True),
    of_roles(("state",), "0 4", False),
    of_roles(("state",), "4", False),
    of_roles(("trainers",), "4 5", True),
    of_roles(("trainers", "state"), "0 4", True),
    of_roles((), "0 4", True),
    # the trainer waits from 5 on, and has the node of slot 0 at 6.5; slot 0 has its node at 7
    life("a slot that waits for a node is of no role that counts", for_roles("state", spares=0),
         "5 node 4 repair 2, 5.5 node 0 4 repair 1",
         lost=1, wait=2, reschedule=0.5, stale=[(4, 0, 4)]),
]  # fmt: skip
test_who_goes_back = lived(GOES_BACK)

# --------------------------------------------------------------------------- overlapping failures

OVERLAP = job(  # saves 4 h of 8 h of work from the hour 4 to 4.5; a failure's scope tells its rule
    rule("all", "detect, load", "remote", scopes=("back",)),
    rule("struck", "detect, reschedule 1", "remote", scopes=("struck",)),
    rule("nobody", "regroup 1", scopes=("nobody",)),
    rule("nobody", "reschedule 2~", scopes=("quiet",), speed_meanwhile=0.5),
    tiers=(remote(1.5),), captures=(saves("remote", 4, 0.5),), useful_h=8,
)  # fmt: skip


def pair(first: str, second: str, **expected) -> Life:
    """A failure of slot 0 at 5 h, when 4.5 h are done, and one that overlaps with its recovery."""
    return life(f"{first}, {second}", OVERLAP, f"5 {first} 0, {second}", save=1, **expected)


OVERLAPPING = [
    pair("back", "6 back 1", lost=0.5, detect=1, load=2,
         log="6 rolled_back detect @4; 6.5 stage load @4; 8 resumed lost @4; "
             "8.5 caught_up useful @4.5"),
    pair("back", "6 struck 1", lost=0.5, detect=1, reschedule=1, load=0.5, stale=[(4, 1, 4)],
         log="6 reverted 1 detect @4; 6.5 stage reschedule @4; 7.5 resumed lost @4"),
    # the load goes on without slots
    pair("back", "5.25 struck 0", lost=0.5, detect=0.75, reschedule=1, load=0.25,
         stale=[(4, 0, 4)],
         log="5.25 reverted 0 detect @4; 5.75 stage reschedule @4; 6.75 stage load @4; "
             "7 resumed lost @4"),
    pair("back", "6 nobody 1", lost=0.5, detect=0.5, regroup=1, load=0.5,
         log="6 failed 1 regroup @4; 7 resumed lost @4"),
    pair("struck", "6 back 1", lost=0.5, detect=1, reschedule=0.5, load=1.5, stale=[(4.5, 0, 4)],
         log="6 rolled_back detect @4; 6.5 stage load @4; 8 resumed lost @4"),
    pair("struck", "6 struck 1", detect=1, reschedule=1.5, stale=[(4.5, 0, 4), (4.5, 1, 4)],
         log="6 reverted 1 detect @4.5; 6.5 stage reschedule @4.5; 7.5 resumed useful @4.5"),
    pair("struck", "6 struck 0", detect=1, reschedule=1.5, stale=[(4.5, 0, 4), (4.5, 0, 4)],
         log="6 reverted 0 detect @4.5; 6.5 stage reschedule @4.5; 7.5 resumed useful @4.5"),
    pair("nobody", "5.5 back 1", lost=0.5, detect=0.5, regroup=0.5, load=1.5,
         log="5.5 rolled_back detect @4; 6 stage load @4; 7.5 resumed lost @4"),
    pair("nobody", "5.5 struck 1", detect=0.5, reschedule=1, regroup=0.5, stale=[(4.5, 1, 4)],
         log="5.5 reverted 1 detect @4.5; 6 stage reschedule @4.5; 7 resumed useful @4.5"),
    # at half the speed: 5 h are done
    pair("quiet", "6 back 1", lost=1, detect=0.5, load=1.5, degraded=0.5,
         log="6 failed 1 detect @5; 6 rolled_back detect @4; 6.5 stage load @4; "
             "7 replaced 0 load @4; 8 resumed lost @4; 9 caught_up useful @5"),
    life("an hour is booked under the stage of the least advanced",
         job(rule("nobody", "detect, reschedule 1"), AGAIN), "3 node 0, 3.5 node 1",
         detect=0.5, reschedule=1.25),  # until 4.25 and 4.75; detection .25 h each
]  # fmt: skip
test_each_rule_of_two_overlapping_failures_does_its_part = lived(OVERLAPPING)


def slotless(words: str) -> SimulatedJob:
    aside = rule("nobody", "regroup .25", scopes=("process",))
    return saving(aside, rule("all", words, "remote"), load_h=1, every_h=8)


SLOTLESS = [
    life("it goes on while it has to load", slotless("load 1, rebuild 2"), "3 node 0, 4 process 0",
         lost=3, regroup=0.25, load=1.75, rebuild=2),
    life("it ends once it has loaded", slotless("load, rebuild 2"), "3 node 0, 4.5 process 0",
         lost=3, load=1, rebuild=0.5, regroup=0.25),
]  # fmt: skip
test_a_recovery_of_all_without_slots = lived(SLOTLESS)

# --------------------------------------------------------------------------- loads that share

LINK = Storage(4.0, shard_bytes=4.0)  # an hour for a shard alone
LOADS, BESIDE = rule("struck", "load", "remote"), rule("struck", "load~", "remote")
STRUCK_OR_ALL = (replace(LOADS, scopes=("struck",)), rule("all", "load", "remote"))


def sharing(*rules: Rule, link: Storage = LINK, **how) -> SimulatedJob:
    return saving(*rules, AGAIN, load_h=link, **how)


def loading(reverts: str, server: float, load_h: float) -> Life:
    """Two of four shards are struck."""
    link = Storage(4.0, server, 4.0)
    lost = {"lost": 1} if reverts == "all" else {}
    slots = {"struck": (0, 1), "shards": range(4), "all": ()}[reverts]
    name = f"{reverts} over {server} bytes an hour"
    stale = [(5, slot, 4) for slot in slots]
    return life(name, sharing(rule(reverts, "load", "remote"), link=link), "5 node 0 1",
                load=load_h, stale=stale, **lost)  # fmt: skip


def stale(*slots: int, progress_h: float = 5) -> list[tuple[float, int, float]]:
    return [(progress_h, slot, 4) for slot in slots]


OWN_LINK = saving(
    rule("shards", "regroup 1~, load 1~, rebuild 1~", "remote"), AGAIN, load_h=1,
    elastic=Elastic("state", (1.0, 0.75, 0.5, 0.25)),
)  # fmt: skip
SHARED = [
    loading("struck", 4, 2),
    loading("struck", 1, 4),  # its own bandwidth
    loading("shards", 4, 4),
    loading("shards", 0.5, 8),
    loading("all", 4, 4),
    # at 2 bytes an hour for each, two do not slow each other down
    life("a server has a bandwidth of its own", sharing(LOADS, link=Storage(4.0, 2.0, 4.0)),
         "5 node 0, 6 node 1", load=3, stale=stale(0, 1)),
    # beside the load, so that the log says when each slot is back
    life("two recoveries", sharing(BESIDE), "5 node 0, 5.5 node 1",
         stale=[(5, 0, 4), (5.5, 1, 4)],
         log="6.5 replaced 0 useful @6.5; 7 replaced 1 useful @7"),
    life("shard by shard", sharing(BESIDE), "5 node 0 1, 6 node 2 3",
         stale=[(5, 0, 4), (5, 1, 4), (6, 2, 4), (6, 3, 4)],
         log="8 replaced 0 useful @8; 8 replaced 1 useful @8"),
    life("a shard is taken back again as it loads", sharing(BESIDE),
         "5 node 0 1, 6 node 0", stale=[(5, 0, 4), (5, 1, 4), (6, 0, 4)],
         log="7 replaced 1 useful @7; 7.5 replaced 0 useful @7.5"),
    life("a shard is taken back again, and the others go on faster",
         sharing(rule("struck", "regroup .5, load", "remote")), "5 node 0 1, 6 node 0",
         regroup=1, load=1.75, stale=stale(0, 1, 0)),
    life("the last shard is taken back again as it loads",
         sharing(rule("shards", "load, rebuild 1", "remote")), "5 node 0, 6 node 1",
         load=5, rebuild=1, stale=stale(0, 1, 2, 3, 0, 1, 2, 3)),
    life("all shards are taken back again before they load",
         sharing(rule("shards", "regroup 1, load, rebuild 1", "remote")), "5 node 0, 5.5 node 1",
         regroup=1.5, load=4, rebuild=1, stale=stale(0, 1, 2, 3, 0, 1, 2, 3)),
    # 1 byte of each of 4 shards by 6; with the others 3 until 12, and theirs 1 until 13
    life("all go back, and all of them again", sharing(*STRUCK_OR_ALL),
         "5 node 0, 6 struck 0 1 2 3", lost=1, load=8, stale=stale(0, 1, 2, 3, progress_h=4)),
    life("some go back, and then all, who take the link from them", sharing(*STRUCK_OR_ALL),
         "5 struck 0 1, 6 node 2", lost=1, load=5, stale=stale(0, 1)),
    life("a load of no bytes is none to go on for",
         sharing(rule("nobody", "regroup .25", scopes=("process",)),
                 rule("all", "reschedule 1, load, rebuild 2", "remote"),
                 link=Storage(4.0, shard_bytes=0.0)),
         "3 node 0, 3.5 process 0", lost=3, reschedule=0.5, regroup=0.25),
    # the second takes 1 + 2 + 1 h; so does the first, unless it has not begun to load
    *(life(f"a load over no link is left out as well but not cut short: {at_h}", OWN_LINK,
           f"5 node 0, {at_h} node 1", degraded=(hours + 4) * 0.25,
           stale=stale(0, 1, 2, 3) + stale(0, 1, 2, 3, progress_h=progress_h))
      for at_h, hours, progress_h in ((5.5, 2, 5.375), (6.5, 4, 6.125))),
]  # fmt: skip
test_loads_under_way_share_the_link = lived(SHARED)

# --------------------------------------------------------------------------- speed, nodes, clocks

AWAY = rule("nobody", "reschedule 2~")


def elastic(*speed: float, rules=(AWAY, AGAIN), unit_nodes: int = 1, **how) -> SimulatedJob:
    return job(*rules, elastic=Elastic("state", (1.0, *speed), unit_nodes), **how)


TWO_SPEEDS = job(
    rule("nobody", "reschedule 2~", scopes=("node",), speed_meanwhile=0.25),
    rule("nobody", "reschedule 2~", speed_meanwhile=0.75),
    AGAIN,
)
GROW = elastic(
    0.5, rules=(rule("nobody", "wait~, regroup 1"),), spares=0, useful_h=8,
    captures=(saves("remote", 2.75, 1),),
)  # fmt: skip
SPEEDS = [
    life("the job is slower without a unit", elastic(0.5), "3 node 0", degraded=1),
    # half speed from 3 to 4 and from 5 to 6, none between
    life("and stands still beyond the table", elastic(0.5), "3 node 0, 4 node 1",
         degraded=1, wait=1),
    life("two nodes of one unit are one", elastic(0.5, unit_nodes=2), "3 node 0 1", degraded=1),
    life("of two units are two", elastic(0.5, unit_nodes=2), "3 node 1 2", wait=2),
    # 0.75 from 2 to 3, 0.25 from 3 to 5
    life("of two recoveries the slower one counts", TWO_SPEEDS, "2 process 0, 3 node 1",
         degraded=0.25 + 2 * 0.75),
    # at progress 4, done again in 2 h of work
    life("a tax is paid for lost work too", job(from_start(replay_speed=2), tax=Tax(0.25)),
         "5 node 0", lost=2, tax=2.5 + 0.5),
    life("the job shrinks while a node is missing and grows in one stall",
         elastic(0.75, rules=(rule("nobody", "wait~, regroup .5"), AGAIN), spares=0),
         "3 node 0 repair 2", regroup=0.5, degraded=0.5),
    life("a save goes on while the job stops to grow", GROW, "2 node 0 repair 2",
         save=1.5, regroup=1, degraded=0.75,
         log="2 failed 0 useful @2; 3.5 save_started save @2.75; 4 stage regroup @2.75; "
             "4.5 save_committed regroup @2.75; 5 resumed useful @2.75"),
]  # fmt: skip
test_speed = lived(SPEEDS)

WAITS = job(rule("nobody", "wait"), AGAIN, spares=0)
ALL_WAIT = job(from_start("wait, regroup 1"), spares=0)
NODES = [
    life("a spare that is free is not waited for", job(rule("nobody", "wait"), AGAIN, spares=1),
         "3 node 0 repair 2"),
    life("another is", job(rule("nobody", "wait"), AGAIN, spares=1),
         "3 node 0 repair 2, 4 node 1", wait=1),
    # nodes are back at 5, 12, 7 and 9; that of 7 goes to 0, who asked before, that of 9 to 3
    life("nodes go to slots in the order in which they asked", WAITS,
         "1 node 3 repair 4, 2 node 0 repair 10, 6 node 3 repair 1, 6.5 node 0, 8 node 0 repair 1",
         failed=4, wait=11),
    life("a failure of a slot that waits for a node is missed", ALL_WAIT,
         "3 node 0 repair 2, 4 node 0", failed=1, lost=3, wait=2, regroup=1),
    life("with another slot it is left out", ALL_WAIT, "3 node 0 repair 4, 4 node 0 1",
         lost=3, wait=4, regroup=1),
    # one node alone goes to repair: until 6. With a second the first to be back would do, at 4.5
    life("a slot that has lost its node has no further one to lose",
         job(from_start("detect 1, wait"), spares=0), "3 node 0 repair 3, 3.5 node 0",
         lost=3, detect=1.5, wait=1.5),
    life("a process asks for no node", job(rule("nobody", "wait, regroup .5"), AGAIN, spares=0),
         "3 process 0", regroup=0.5),
]  # fmt: skip
test_nodes = lived(NODES)

GROWING = {
    grows: elastic(
        0.5,
        rules=(rule("nobody", f"detect 0, wait~, grow {grows}"), from_start("detect")),
        spares=0,
    )
    for grows in ("0", "2", "1.5", "inf")
}


def grown(grows: str, struck: str, **expected) -> Life:
    """A node is missing, at half the speed, until it is back and the job takes it in."""
    return life(f"each {grows} h: {struck}", GROWING[grows], struck, **expected)


test_slots_wait_for_the_job_to_take_them_in = lived(
    [
        grown("0", "1 node 0", degraded=0.5),
        grown("2", "1 node 0", degraded=0.5),
        grown("1.5", "1 node 0", degraded=1),
        grown("inf", "1 node 0", degraded=9),  # never
        grown("inf", "1 node 0, 4 node 1", degraded=9),  # one is, the other isn't
        # one is, as the job stands still without both from 1.25 to 2
        grown("inf", "1 node 0, 1.25 node 1", degraded=0.125 + 8.875, wait=0.75),
    ]
)
UPTIME = job(
    rule("nobody", "reschedule 1~, regroup 2"), AGAIN, clock=Clock.UPTIME, useful_h=6
)  # fmt: skip
CLOCKS = [
    life("wall", job(AGAIN), "3 node 0, 3.5 node 1", lost=3, reschedule=2.5),
    # strikes at the hour 5.5, again at 0.5
    life("uptime", job(AGAIN, clock=Clock.UPTIME), "3 node 0, 3.5 node 1",
         lost=3.5, reschedule=4),
    # at the first time at 3.5
    life("progress", job(AGAIN, clock=Clock.PROGRESS), "3 node 0, 3.5 node 1",
         lost=6.5, reschedule=4),
    life("uptime goes on while the job stands still with nobody in its way",
         elastic(clock=Clock.UPTIME), "3 node 0, 4 node 1", wait=3),
    life("on uptime no failure strikes as a stage begins that blocks the job", UPTIME,
         "2 node 0, 3 node 1", regroup=4,
         log="3 stage regroup @3; 5 resumed useful @3; 5 failed 1 useful @3"),
    # the clock stands still as 4 h are reached, and goes on with the work
    life("on the clock of progress no failure ages in a save",
         replace(OVERLAP, clock=Clock.PROGRESS), "4 back 0, 6 nobody 1",
         save=1, detect=0.5, load=1.5, regroup=1),
]  # fmt: skip
test_failures_age_on_their_clock = lived(CLOCKS)

STANDS_STILL = {"finished": False, "useful_h": 3, "wait": 997}
ENDS = [
    # going on at 5; 1 h is lost for good
    life("at a horizon", job(AGAIN, horizon_h=7), "3 node 0", useful_h=2, lost=3, reschedule=2),
    life("before it", job(AGAIN, horizon_h=16), "3 node 0", lost=3, reschedule=2),
    life("a job whose work is all lost at its horizon has not finished",
         job(AGAIN, horizon_h=9, useful_h=20), "8 node 0",
         finished=False, useful_h=8, reschedule=1),
    life("a job that stands still does so to the end",
         elastic(rules=(rule("nobody", "wait"), AGAIN), spares=0), "3 node 0 repair 1000000",
         **STANDS_STILL),
    life("nobody in its way", elastic(rules=(rule("nobody", "wait~"), AGAIN), spares=0),
         "3 node 0 repair 1000000", **STANDS_STILL),
    life("a thousand failures without work between them are enough", job(AGAIN),
         [ScopedFailure(0.5 + n / 1024, (0,), 1, (1.0,)) for n in range(2000)],
         failed=1000, finished=False, useful_h=0.5, reschedule=1000 / 1024),
]  # fmt: skip
test_ends = lived(ENDS)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("down_h", "finishes"), [(11.0, False), (7.0, True)])
def test_after_five_thousand_failures_a_job_has_to_get_on(
    engine: str, down_h: float, finishes: bool
) -> None:
    """12 hours for each hour of work are too many, 8 are not."""
    of = job(rule("nobody", f"reschedule {down_h}"), AGAIN, useful_h=6000)
    struck = [ScopedFailure((down_h + 1) * n, (0,), 1, (1.0,)) for n in range(1, 6001)]
    found = ENGINES[engine](of, struck, draws_of(of))
    assert found.finished == finishes
    assert finishes or found.n_failures == 5000


@pytest.mark.parametrize("engine", ENGINES)
def test_costs_that_vary_are_asked_for_by_name_and_number(engine: str) -> None:
    """Failures at progress 5 h, in the save of 4 h and in that of 8 h, with what they take."""
    varying = Exponential(0.25)
    tier = Tier("remote", Medium.REMOTE, Outside(), "state", load=varying)
    back = rule("all", "detect, regroup, load", "remote")
    back = replace(
        back, stages=(back.stages[0], replace(back.stages[1], cost=varying), back.stages[2])
    )
    scopes = (Scope("gpu", Reach.GPU, varying),)
    of = job(back, tiers=(tier,), captures=(replace(saves("remote", 4), stall=varying),))
    of = replace(of, scopes=scopes, clock=Clock.PROGRESS)
    draws = draws_of(of, seed=7)
    found = ENGINES[engine](of, failures("5 gpu 0, 9 gpu 0", ["gpu"]), draws)

    def hours(name: str, n: int = 2) -> float:
        return sum(draws.of(0).hours(name, number) for number in range(n))

    parts = dict(zip(of.policy.parts, found.hours, strict=True))
    assert parts == pytest.approx(
        {
            "lost": 1 + 1,
            "save": hours("stall/remote"),
            "detect": hours("detect/gpu"),
            "regroup": hours("stage/0/1"),
            "load": hours("load/remote"),
        }
    )
