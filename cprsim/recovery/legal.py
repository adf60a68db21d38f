"""What makes sense of a policy, and what does not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import inf
from typing import NamedTuple

from cprsim.errors import PolicyError
from cprsim.records import Cluster, Storage
from cprsim.recovery.policy import (
    Capture,
    Groups,
    Medium,
    Outside,
    Policy,
    Reverts,
    Ring,
    Rule,
    Scope,
    StageKind,
    Tier,
    To,
)

MOST_TIERS = 8
MOST_GENERATIONS = 8
MOST_IN_FLIGHT = 8
MOST_RULES = 16
MOST_STAGES = 96
MOST_SCOPES = 16
MOST_ROLES = 16
MOST_UNITS = 4096


class Nonsense(NamedTuple):
    """What makes no sense about a policy."""

    sentence: str
    at: tuple[str | int, ...] = ()  # field of the policy, and number of its entry


def require_legal(policy: Policy, cluster: Cluster, scopes: tuple[Scope, ...]) -> None:
    """Raise PolicyError for the first thing about a policy that makes no sense for a job."""
    for sentence, at in problems(policy, cluster, scopes):
        raise PolicyError(f"recovery system `{policy.name}`: {sentence}", at)


def problems(policy: Policy, cluster: Cluster, scopes: tuple[Scope, ...]) -> Iterator[Nonsense]:
    """All that makes no sense about a policy for a job."""
    yield from _at((), _of_sizes(policy, scopes, cluster))
    for n, tier in enumerate(policy.tiers):
        yield from _at(("tiers", n), _of_tier(policy, tier, cluster))
    for n, capture in enumerate(policy.captures):
        yield from _at(("captures", n), _of_capture(policy, capture, scopes))
    names = {scope.name for scope in scopes}
    for n, rule in enumerate(policy.rules):
        for sentence in _of_rule(policy, rule, names, cluster):
            yield Nonsense(f"rule {n + 1} {sentence}", ("rules", n))
    yield from _at((), _of_links(policy))
    yield from _at(("rules", len(policy.rules) - 1), _of_last_rule(policy))
    yield from _at(("elastic",), _of_elastic(policy, cluster))
    for name in ("compute", "nodes", "memory"):
        if getattr(policy.tax, name) < 0:
            sentence = f"a tax can't be negative: {name} {getattr(policy.tax, name):g}"
            yield Nonsense(sentence, ("tax", name))


def _at(at: tuple[str | int, ...], sentences: Iterable[str]) -> Iterator[Nonsense]:
    return (Nonsense(sentence, at) for sentence in sentences)


def _of_sizes(policy: Policy, scopes: tuple[Scope, ...], cluster: Cluster) -> Iterator[str]:
    n_stages = sum(len(rule.stages) for rule in policy.rules)
    asks_roles = any(rule.roles for rule in policy.rules)
    counts = {
        "tiers": (len(policy.tiers), MOST_TIERS),
        "rules": (len(policy.rules), MOST_RULES),
        "stages of all rules": (n_stages, MOST_STAGES),
        "scopes": (len(scopes), MOST_SCOPES),
        "roles to tell apart": (len(cluster.roles) if asks_roles else 0, MOST_ROLES),
        "links that loads share": (len(_links(policy)), 1),
    }
    for what, (n, most) in counts.items():
        if n > most:
            yield f"has {n} {what}; at most {most} are possible"
    if not policy.rules:
        yield "has no rule: nothing says what a failure does"


def _of_tier(policy: Policy, tier: Tier, cluster: Cluster) -> Iterator[str]:
    what = f"tier `{tier.name}`"
    if sum(other.name == tier.name for other in policy.tiers) > 1:
        yield f"there are two tiers `{tier.name}`"
    try:
        n_nodes = len(cluster.slots(tier.role))
    except KeyError:
        yield f"{what} holds shards of role `{tier.role}`, which the cluster does not have"
        return
    if (tier.medium is Medium.REMOTE) != isinstance(tier.placement, Outside):
        yield f"{what}: remote copies lie outside, and no others do"
    uneven = isinstance(tier.load, Storage) and bool(tier.load.bytes_of_shards)
    if uneven and cluster.slots(tier.role) != cluster.shard_slots:
        yield f"{what} loads shards of several sizes, which role `{tier.role}` does not hold"
    place = tier.placement
    if isinstance(place, Ring) and not 1 <= place.copies <= n_nodes:
        yield f"{what} has {place.copies} copies in a ring of {n_nodes} nodes"
    if isinstance(place, Groups):
        if place.size < 1 or n_nodes % place.size:
            yield f"{what}: groups of {place.size} do not divide the {n_nodes} nodes of the role"
        if not 0 <= place.tolerates < max(place.size, 1):
            yield f"{what}: a group of {place.size} can't tolerate {place.tolerates} losses"
    if not 1 <= tier.generations <= MOST_GENERATIONS:
        yield f"{what} keeps {tier.generations} generations; 1 to {MOST_GENERATIONS} are possible"
    if not 0.0 <= tier.p_corrupt < 1.0:
        yield f"{what}: a probability of corruption is in [0, 1), not {tier.p_corrupt:g}"


def _of_capture(policy: Policy, capture: Capture, scopes: tuple[Scope, ...]) -> Iterator[str]:
    names = {tier.name: tier for tier in policy.tiers}
    what = f"capture to `{capture.tier}`"
    if capture.tier not in names:
        yield f"{what}: there is no such tier"
        return
    if sum(other.tier == capture.tier for other in policy.captures) > 1:
        yield f"{what}: a tier is written by one capture"
    if (capture.every_h is not None) + (capture.after is not None) + capture.on_notice != 1:
        yield f"{what}: give one of `every_h`, `after` and `on_notice`"
    if capture.on_notice and not any(scope.notice_h > 0.0 for scope in scopes):
        yield f"{what}: saves on notice, and no scope has any: give one `notice`"
    if capture.every_h is not None and not capture.every_h > 0.0:
        yield f"{what}: an interval of {capture.every_h} h is no interval"
    if capture.after is not None:
        followed = policy.followed_by(capture)
        if followed is None or followed.every_h is None:
            yield f"{what}: `{capture.after}` is no tier that is saved to at an interval"
        elif names[capture.after].role != names[capture.tier].role:
            yield f"{what}: `{capture.after}` holds shards of another role"
        elif followed.parts > 1:
            yield f"{what}: what is saved in parts is not copied on"
        if capture.stall is not None:
            yield f"{what}: what follows a tier does not stall the job"
    if capture.parts < 1 or (capture.parts > 1 and capture.every_h is None):
        yield f"{what}: saves at an interval alone are in parts, of which there is one at least"
    if not 1 <= capture.in_flight <= MOST_IN_FLIGHT:
        yield f"{what}: 1 to {MOST_IN_FLIGHT} saves can be in flight, not {capture.in_flight}"
    if capture.every_nth < 1:
        yield f"{what}: `every_nth` is at least 1, not {capture.every_nth}"
    if not 0.0 <= capture.p_fail < 1.0:
        yield f"{what}: a probability of failure is in [0, 1), not {capture.p_fail:g}"


def _of_rule(policy: Policy, rule: Rule, scopes: set[str], cluster: Cluster) -> Iterator[str]:
    tiers = {tier.name: tier for tier in policy.tiers}
    for name in rule.scopes:
        if name not in scopes:
            yield f"names the scope `{name}`, which the job does not have"
    for name in (*rule.sources, *rule.needs):
        if name not in tiers:
            yield f"names the tier `{name}`, which there is not"
            return
    for name in rule.sources:
        if name not in policy.written and not isinstance(tiers[name].placement, Outside):
            yield f"loads from `{name}`, which nothing is saved to"
    if any(name in policy.written for name in rule.needs):
        yield "needs a tier that is saved to: name it as a source"
    names = {role.name for role in cluster.roles}
    for name in rule.roles:
        if name not in names:
            yield f"names the role `{name}`, which the cluster does not have"
    has_cost = any(s.kind is StageKind.LOAD and s.cost is not None for s in rule.stages)
    if has_cost and any(isinstance(tiers[name].load, Storage) for name in rule.sources):
        yield "loads over a shared link, which says what that takes: its load has no cost"
    if len({tiers[name].role for name in rule.sources}) > 1:
        yield "has sources of several roles"
    if rule.reverts in (Reverts.STRUCK, Reverts.SHARDS) and rule.to is not To.NEWEST:
        yield "takes shards back, which can only be to the newest content"
    newest = rule.reverts is not Reverts.NOBODY and rule.to is To.NEWEST
    if newest != bool(rule.sources):
        yield "has sources if, and only if, somebody goes back to the newest content"
    if rule.to in (To.STEP_BEGUN, To.STEP_BEFORE) and not policy.step_h > 0.0:
        yield "goes back by steps, whose length the policy does not say"
    if not rule.replay_speed > 0.0 or not 0.0 < rule.speed_meanwhile <= 1.0:
        speeds = f"{rule.replay_speed:g}, {rule.speed_meanwhile:g}"
        yield f"has a speed out of range ({speeds}): replay above 0, meanwhile above 0 up to 1"
    kinds = [stage.kind for stage in rule.stages]
    if StageKind.REPLAY in kinds and rule.reverts is not Reverts.STRUCK:
        yield "replays, which goes with taking the struck shards back"
    for_nodes = [s.kind is StageKind.WAIT and s.grows_h is None for s in rule.stages]
    if cluster.n_spares is not None and not any(for_nodes):
        yield "never waits for a node, where spares are finite"
    for n, stage in enumerate(rule.stages):
        free = {StageKind.DETECT, StageKind.LOAD, StageKind.REPLAY, StageKind.WAIT}
        if policy.elastic is not None and policy.elastic.regroup_h:
            free.add(StageKind.REGROUP)
        if stage.cost is None and stage.kind not in free:
            yield f"has a stage `{stage.kind.value}` without a cost"
        if stage.cost is not None and stage.kind is StageKind.WAIT:
            yield "has a wait with a cost: it takes as long as nodes are missing"
        if stage.each and stage.kind is not StageKind.WAIT:
            yield f"has a stage `{stage.kind.value}` for each slot: only waits are"
        alone = rule.reverts in (Reverts.STRUCK, Reverts.SHARDS)
        if stage.each and alone:
            yield "waits for each slot, and takes shards back: those are loaded together"
        if stage.grows_h is not None:
            if stage.kind is not StageKind.WAIT or stage.blocks or stage.each or alone:
                yield "has a stage with `grows`: only waits that do not block, for all slots, have"
            if policy.elastic is None or not any(for_nodes[:n]) or not stage.grows_h >= 0.0:
                yield "has a wait with `grows`, a time, without an elastic role or a wait for nodes"
        if stage.each and any(isinstance(tiers[name].load, Storage) for name in rule.sources):
            yield "waits for each slot, and loads over a shared link: write the load as a time"


def _of_links(policy: Policy) -> Iterator[str]:
    if _links(policy) and any(tier.p_corrupt for tier in policy.tiers):
        yield "loads share a link and may find contents corrupt: write what a load takes as a time"


def _of_last_rule(policy: Policy) -> Iterator[str]:
    if not policy.rules:
        return
    last = policy.rules[-1]
    if last.scopes or last.roles:
        yield "the last rule must hold for all scopes and roles"


def _links(policy: Policy) -> set[Storage]:
    """The links that loads share."""
    return {tier.load for tier in policy.tiers if isinstance(tier.load, Storage)}


def _of_elastic(policy: Policy, cluster: Cluster) -> Iterator[str]:
    elastic = policy.elastic
    if elastic is None:
        return
    try:
        n_nodes = len(cluster.slots(elastic.role))
    except KeyError:
        yield f"is elastic in role `{elastic.role}`, which the cluster does not have"
        return
    if elastic.unit_nodes < 1 or n_nodes % elastic.unit_nodes:
        yield f"units of {elastic.unit_nodes} do not divide the {n_nodes} nodes of the role"
    elif not 1 <= len(elastic.speed) <= min(MOST_UNITS, n_nodes // elastic.unit_nodes + 1):
        yield f"knows {len(elastic.speed)} speeds; at most one for each number of units lost"
    if len(elastic.regroup_h) > MOST_UNITS or any(not 0.0 <= h < inf for h in elastic.regroup_h):
        yield f"a regrouping takes no negative time; at most {MOST_UNITS} times can be said"
    if elastic.speed and elastic.speed[0] != 1.0:
        yield f"the speed without any unit lost is 1, not {elastic.speed[0]:g}"
    for n_lost, speed in enumerate(elastic.speed):
        if not 0.0 <= speed <= 1.0:
            yield f"an elastic speed lies between 0 and 1, not {speed:g} without {n_lost} units"
