"""What makes no sense in a policy is said in a sentence; what just makes sense is not."""

from dataclasses import replace
from math import inf
from typing import Any

import pytest

from cprsim.job.distributions import Constant
from cprsim.job.legal import problems
from cprsim.job.policy import (
    OWN,
    Elastic,
    Groups,
    Medium,
    Outside,
    Policy,
    Reach,
    Reverts,
    Ring,
    Rule,
    SaveSchedule,
    Scope,
    Stage,
    StageKind,
    Tax,
    Tier,
    To,
)
from cprsim.job.records import Cluster, Holds, Role, Storage

NODES = 8
CLUSTER = Cluster((Role("worker", NODES, Holds.SHARD), Role("reader", 2, Holds.NOTHING)), 1)
SCOPES = (Scope("node", Reach.NODE, Constant(0.0), notice_h=0.1),)
NEAR = Tier("near", Medium.HOST, Ring(2), "worker")
FAR = Tier("far", Medium.REMOTE, Outside(), "worker")
ALWAYS_CURRENT = Tier("live", Medium.DEVICE, OWN, "worker")
TO_NEAR, TO_FAR = SaveSchedule("near", 1.0), SaveSchedule("far", 4.0)
WAIT, LOAD, REPLAY = (Stage(kind) for kind in (StageKind.WAIT, StageKind.LOAD, StageKind.REPLAY))
BACK = Rule(Reverts.ALL, (WAIT, LOAD), sources=("near", "far"))
LEGAL = Policy("legal", (BACK,), (NEAR, FAR, ALWAYS_CURRENT), (TO_NEAR, TO_FAR))
LINK = Storage(8.0, 4.0, 1.0)
UNEVEN = Storage(8.0, 4.0, 1.0, (0.5, 1.5) * (NODES // 2))


def sentences(policy: Policy) -> list[str]:
    return [str(problem) for problem in problems(policy, CLUSTER, SCOPES)]


def near_is(**changes: Any) -> Policy:
    return replace(LEGAL, tiers=(replace(NEAR, **changes), FAR, ALWAYS_CURRENT))


def saved(**changes: Any) -> Policy:
    return replace(LEGAL, captures=(TO_NEAR, replace(TO_FAR, **changes)))


def ruled(**changes: Any) -> Policy:
    return replace(LEGAL, rules=(replace(BACK, **changes), BACK))


def copied(followed: SaveSchedule = TO_NEAR, **changes: Any) -> Policy:
    return replace(LEGAL, captures=(followed, SaveSchedule("far", after="near", **changes)))


def stretched(speed: tuple[float, ...], **changes: Any) -> Policy:
    return replace(LEGAL, elastic=Elastic("worker", speed, **changes))


def grown(*stages: Stage, elastic: bool = True, **changes: Any) -> Policy:
    policy = stretched((1.0, 0.5)) if elastic else LEGAL
    rule = replace(BACK, stages=stages, **changes)
    return replace(policy, rules=(rule, BACK))


GROW = Stage(StageKind.WAIT, blocks=False, grows_h=inf)

ALLOWED = {  # what no random policy has (`random_policies`): those are legal, too
    "all of it": LEGAL,
    "as many copies as nodes": near_is(placement=Ring(NODES)),
    "many generations": near_is(generations=256),
    "many in flight": saved(in_flight=8),
    "on notice": saved(every_h=None, on_notice=True),
}

REFUSED = [
    (grown(GROW, LOAD), "never waits for a node"),
    (grown(GROW, WAIT), "without an elastic role or a wait for nodes"),
    (grown(WAIT, GROW, elastic=False), "without an elastic role or a wait for nodes"),
    (grown(WAIT, replace(GROW, grows_h=-1.0)), "a wait with `grows`, a time"),
    (grown(WAIT, replace(GROW, blocks=True)), "only waits that do not block"),
    (grown(WAIT, replace(GROW, each=True)), "only waits that do not block"),
    (grown(WAIT, GROW, reverts=Reverts.STRUCK), "only waits that do not block"),
    (replace(LEGAL, tiers=(*LEGAL.tiers, ALWAYS_CURRENT)), "there are two tiers `live`"),
    (near_is(role="nobody"), "role `nobody`, which the cluster does not have"),
    (near_is(medium=Medium.REMOTE), "`near`: remote copies lie outside"),
    (near_is(placement=Ring(NODES + 1)), "has 9 copies in a ring of 8 nodes"),
    (near_is(placement=Ring(0)), "has 0 copies"),
    (near_is(placement=Groups(3, 1)), "groups of 3 do not divide the 8 nodes"),
    (near_is(placement=Groups(0, 0)), "groups of 0 do not divide"),
    (near_is(placement=Groups(4, -1)), "a group of 4 can't tolerate -1 losses"),
    (near_is(placement=Groups(4, 4)), "a group of 4 can't tolerate 4 losses"),
    (near_is(generations=257), "`generations` is 257"),
    (near_is(p_corrupt=1.0), "`p_corrupt` is 1.0; it must be at least 0 and below 1"),
    (near_is(load=LINK, p_corrupt=0.1), "loads share a link and may find contents corrupt"),
    (near_is(load=UNEVEN, role="reader"), "loads shards of several sizes, which role `reader`"),
    (saved(tier="nowhere"), "capture to `nowhere`: there is no such tier"),
    (saved(tier="near"), "a tier is written by one capture"),
    (saved(every_h=None), "give one of `every_h`, `after` and `on_notice`"),
    (saved(every_h=0.0), "`every` is 0.0; it must be positive"),
    (copied(replace(TO_NEAR, every_h=None, on_notice=True)), "`near` is no tier that is saved to"),
    (copied(replace(TO_NEAR, parts=2)), "saves in parts are not copied on"),
    (copied(stall=Constant(0.1)), "a save `after` a tier does not stall the job"),
    (copied(parts=2), "saves at an interval alone are in parts"),
    (saved(parts=0), "capture to `far`: `parts` is 0; it must be positive"),
    (saved(in_flight=0), "`in_flight` is 0; it must be between 1 and 8"),
    (copied(every_nth=0), "`every_nth` is 0; it must be positive"),
    (saved(p_fail=1.0), "`p_fail` is 1.0; it must be at least 0 and below 1"),
    (ruled(scopes=("rack",)), "names the scope `rack`"),
    (ruled(sources=("nowhere",)), "names the tier `nowhere`"),
    (ruled(sources=("live",)), "loads from `live`, which nothing is saved to"),
    (ruled(needs=("near",)), "name it as a source"),
    (ruled(roles=("nobody",)), "names the role `nobody`"),
    (ruled(reverts=Reverts.STRUCK, to=To.START, sources=()), "only be to the newest content"),
    (ruled(sources=()), "has sources if, and only if"),
    (ruled(to=To.STEP_BEFORE, sources=()), "goes back by steps"),
    (ruled(replay_speed=0.0), "rule 1: `replay_speed` is 0.0; it must be positive"),
    (ruled(speed_meanwhile=1.5), "`speed_meanwhile` is 1.5; it must be above 0 and at most 1"),
    (ruled(stages=(WAIT, REPLAY)), "replays, which goes with"),
    (ruled(stages=(LOAD,)), "never waits for a node"),
    (ruled(stages=(WAIT, Stage(StageKind.REBUILD))), "has a stage `rebuild` without a cost"),
    (ruled(stages=(Stage(StageKind.WAIT, Constant(0.1)),)), "has a wait with a cost"),
    (ruled(stages=(WAIT, replace(LOAD, each=True))), "for each slot: only waits are"),
    (replace(LEGAL, rules=()), "has no rule"),
    (replace(LEGAL, rules=(replace(BACK, scopes=("node",)),)), "the last rule must hold for all"),
    (replace(LEGAL, tax=Tax(compute=-0.1)), "tax: `compute` is -0.1; it must be 0 or more"),
    (replace(LEGAL, tax=Tax(nodes=-1.0)), "`nodes` is -1.0"),
    (stretched((1.0, 0.5), unit_nodes=3), "units of 3 do not divide the 8 nodes"),
    (stretched((1.0, 0.5), unit_nodes=0), "elastic: `unit_nodes` is 0"),
    (stretched((1.0,) * 4, unit_nodes=4), "knows 4 speeds"),
    (stretched(()), "knows 0 speeds"),
    (stretched((0.9, 0.5)), "the speed without any unit lost is 1"),
    (stretched((1.0, -0.1)), "`speed` is (1.0, -0.1); it must be between 0 and 1"),
    (stretched((1.0, 0.5), regroup_h=(-1.0,)), "`regroup` is (-1.0,); it must be 0 or more"),
    (replace(LEGAL, elastic=Elastic("nobody", (1.0,))), "elastic: is in role `nobody`"),
    (replace(LEGAL, rules=(BACK,) * 17), "has 17 rules; at most 16"),
]


@pytest.mark.parametrize("case", ALLOWED)
def test_what_makes_sense_is_legal(case: str) -> None:
    assert sentences(ALLOWED[case]) == []


@pytest.mark.parametrize(("policy", "sentence"), REFUSED, ids=[words for _, words in REFUSED])
def test_what_makes_no_sense_is_said(policy: Policy, sentence: str) -> None:
    assert [problem for problem in sentences(policy) if sentence in problem]


def test_saves_on_notice_need_a_scope_that_gives_one() -> None:
    untold = (replace(SCOPES[0], notice_h=0.0),)
    (problem,) = problems(ALLOWED["on notice"], CLUSTER, untold)
    assert str(problem) == (
        "capture to `far`: saves on notice, and no scope has any: give one `notice`"
    )
    assert problem.at == ("captures", 1)


def test_a_problem_says_where_in_the_policy_it_is() -> None:
    policy = replace(
        near_is(p_corrupt=1.2),
        captures=(TO_NEAR, replace(TO_FAR, in_flight=0)),
        rules=(BACK, replace(BACK, replay_speed=0.0)),
        tax=Tax(nodes=-1.0),
    )
    places = [problem.at for problem in problems(policy, CLUSTER, SCOPES)]
    assert places == [
        ("tiers", 0, "p_corrupt"), ("captures", 1, "in_flight"), ("rules", 1, "replay_speed"),
        ("tax", "nodes"),
    ]  # fmt: skip
