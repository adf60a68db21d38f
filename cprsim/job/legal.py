"""Checks of a policy against its job: bounds and contradictions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, get_args, get_type_hints

from cprsim.errors import PolicyError
from cprsim.job.options import Bound, beyond
from cprsim.job.policy import (
    Elastic,
    Groups,
    Medium,
    Outside,
    Policy,
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
from cprsim.job.records import STATE, Cluster, Storage

MOST_TIERS = 8
MOST_RULES = 16
MOST_STAGES = 96
MOST_SCOPES = 16
MOST_ROLES = 16
MOST_UNITS = 4096

Checks = Iterable[tuple[bool, str]]  # whether something makes no sense, and what
Place = tuple[str | int, ...]  # field of the policy, number of its entry, field of that


def require_legal(policy: Policy, cluster: Cluster, scopes: tuple[Scope, ...]) -> None:
    """Raise PolicyError for the first thing about a policy that makes no sense for a job."""
    for problem in problems(policy, cluster, scopes):
        raise PolicyError(f"recovery system `{policy.name}`: {problem}", problem.at)


def problems(policy: Policy, cluster: Cluster, scopes: tuple[Scope, ...]) -> Iterator[PolicyError]:
    """Yield every error of a policy for a job."""
    for at, subject, record, checks in _places(policy, cluster, scopes):
        for name, bound in FIELD_BOUNDS.get(type(record), {}).items():
            key, value = name.removesuffix("_h"), getattr(record, name)
            if value is not None and (wrong := beyond(key, value, bound)):
                yield PolicyError(f"{subject}: {wrong}", (*at, key))
        where = subject and f"{subject}: "
        yield from (PolicyError(where + sentence, at) for wrong, sentence in checks if wrong)


def _bounds_of(record: type[Any]) -> dict[str, Bound]:
    """The bounds of the fields of a record: of a number, or of each of several."""
    found = {}
    for name, hint in get_type_hints(record, include_extras=True).items():
        for kind in (hint, *get_args(hint)):
            for bound in getattr(kind, "__metadata__", ()):
                if isinstance(bound, Bound):
                    found[name] = bound
    return found


FIELD_BOUNDS = {record: _bounds_of(record) for record in (Tier, SaveSchedule, Rule, Elastic, Tax)}


def _places(
    policy: Policy, cluster: Cluster, scopes: tuple[Scope, ...]
) -> Iterator[tuple[Place, str, Any, Checks]]:
    yield (), "", policy, _of_policy(policy, scopes, cluster)
    for n, tier in enumerate(policy.tiers):
        yield ("tiers", n), f"tier `{tier.name}`", tier, _of_tier(tier, cluster)
    for n, capture in enumerate(policy.captures):
        checks = _of_capture(policy, capture, scopes)
        yield ("captures", n), f"capture to `{capture.tier}`", capture, checks
    for n, rule in enumerate(policy.rules):
        checks = _of_rule(policy, rule, {scope.name for scope in scopes}, cluster)
        yield ("rules", n), f"rule {n + 1}", rule, checks
    for last in policy.rules[-1:]:
        check = bool(last.scopes or last.roles), "the last rule must hold for all scopes and roles"
        yield ("rules", len(policy.rules) - 1), "", None, (check,)
    yield ("elastic",), "elastic", policy.elastic, _of_elastic(policy.elastic, cluster)
    yield ("tax",), "tax", policy.tax, ()


def _of_policy(policy: Policy, scopes: tuple[Scope, ...], cluster: Cluster) -> Checks:
    links = {tier.load for tier in policy.tiers if isinstance(tier.load, Storage)}
    asks_roles = any(rule.roles for rule in policy.rules)
    counts = (
        ("tiers", len(policy.tiers), MOST_TIERS),
        ("rules", len(policy.rules), MOST_RULES),
        ("stages of all rules", sum(len(rule.stages) for rule in policy.rules), MOST_STAGES),
        ("scopes", len(scopes), MOST_SCOPES),
        ("roles to tell apart", len(cluster.roles) if asks_roles else 0, MOST_ROLES),
        ("links that loads share", len(links), 1),
    )
    names = [tier.name for tier in policy.tiers]
    return (
        *((n > most, f"has {n} {noun}; at most {most} are possible") for noun, n, most in counts),
        *((names.count(name) > 1, f"there are two tiers `{name}`") for name in names),
        (not policy.rules, "has no rule, so no recovery from a failure: write one"),
        (bool(links) and any(tier.p_corrupt for tier in policy.tiers),
         "loads share a link and may find contents corrupt: write the cost of a load as a time"),
    )  # fmt: skip


def _of_tier(tier: Tier, cluster: Cluster) -> Checks:
    if tier.role not in _roles(cluster):
        return ((True, f"holds shards of role `{tier.role}`, which the cluster does not have"),)
    n_nodes = len(cluster.slots(tier.role))
    uneven = isinstance(tier.load, Storage) and bool(tier.load.bytes_of_shards)
    place = tier.placement
    copies = place.copies if isinstance(place, Ring) else 1
    size, tolerates = (place.size, place.tolerates) if isinstance(place, Groups) else (1, 0)
    return (
        ((tier.medium is Medium.REMOTE) != isinstance(tier.placement, Outside),
         "remote copies lie outside, and no others do"),
        (uneven and cluster.slots(tier.role) != cluster.shard_slots,
         f"loads shards of several sizes, which role `{tier.role}` does not hold"),
        (not 1 <= copies <= n_nodes, f"has {copies} copies in a ring of {n_nodes} nodes"),
        (size < 1 or n_nodes % size != 0,
         f"groups of {size} do not divide the {n_nodes} nodes of the role"),
        (not 0 <= tolerates < max(size, 1),
         f"a group of {size} can't tolerate {tolerates} losses"),
    )  # fmt: skip


def _of_capture(policy: Policy, capture: SaveSchedule, scopes: tuple[Scope, ...]) -> Checks:
    roles = {tier.name: tier.role for tier in policy.tiers}
    every_h, after = capture.every_h, capture.after
    written = [captured.tier for captured in policy.captures]
    if capture.tier not in roles:
        return ((True, "there is no such tier"),)
    followed = policy.followed_by(capture)
    follows = followed is not None and followed.every_h is not None
    return (
        (written.count(capture.tier) > 1,
         "a tier is written by one capture"),
        ((every_h is not None) + (after is not None) + capture.on_notice != 1,
         "give one of `every_h`, `after` and `on_notice`"),
        (capture.on_notice and not any(scope.notice_h > 0.0 for scope in scopes),
         "saves on notice, and no scope has any: give one `notice`"),
        (after is not None and not follows,
         f"`{after}` is no tier that is saved to at an interval"),
        (follows and roles[capture.tier] != roles.get(str(after), ""),
         f"`{after}` holds shards of another role"),
        (followed is not None and followed.parts > 1, "saves in parts are not copied on"),
        (after is not None and capture.stall is not None,
         "a save `after` a tier does not stall the job"),
        (capture.parts > 1 and every_h is None, "saves at an interval alone are in parts"),
    )  # fmt: skip


def _of_rule(policy: Policy, rule: Rule, scopes: set[str], cluster: Cluster) -> Checks:
    tiers = {tier.name: tier for tier in policy.tiers}
    tier_names = (*rule.sources, *rule.needs)
    roles = {role.name for role in cluster.roles}
    references = (
        ("scope", rule.scopes, scopes, "the job"), ("role", rule.roles, roles, "the cluster"),
        ("tier", tier_names, set(tiers), "the policy"),
    )  # fmt: skip
    unknown = tuple(
        (name not in declared, f"names the {kind} `{name}`, which {owner} does not have")
        for kind, names, declared, owner in references
        for name in names
    )
    if not tiers.keys() >= set(tier_names):
        return unknown
    sources = [tiers[name] for name in rule.sources]
    over_link = any(isinstance(tier.load, Storage) for tier in sources)
    is_partial = rule.reverts in (Reverts.STRUCK, Reverts.SHARDS)
    to_newest = rule.reverts is not Reverts.NOBODY and rule.to is To.NEWEST
    load_costs = any(s.kind is StageKind.LOAD and s.cost is not None for s in rule.stages)
    return (
        *unknown,
        *((source.name not in policy.written and not isinstance(source.placement, Outside),
           f"loads from `{source.name}`, which nothing is saved to") for source in sources),
        (not policy.written.isdisjoint(rule.needs),
         "needs a tier that is saved to: name it as a source"),
        (load_costs and over_link,
         "loads over a shared link, which says what that takes: its load has no cost"),
        (len({tier.role for tier in sources}) > 1, "has sources of several roles"),
        (is_partial and rule.to is not To.NEWEST,
         "takes shards back, which can only be to the newest content"),
        (to_newest != bool(rule.sources),
         "has sources if, and only if, somebody goes back to the newest content"),
        (rule.to in (To.STEP_BEGUN, To.STEP_BEFORE) and not policy.step_h > 0.0,
         "goes back by steps, whose length the policy does not say"),
        (rule.replays and rule.reverts is not Reverts.STRUCK,
         "replays, which goes with taking the struck shards back"),
        (cluster.n_spares is not None and not any(map(_is_for_nodes, rule.stages)),
         "never waits for a node, where spares are finite"),
        *(check for n, stage in enumerate(rule.stages) for check in
          _of_stage(policy, stage, rule.stages[:n], is_partial, over_link)),
    )  # fmt: skip


def _of_stage(
    policy: Policy, stage: Stage, before: tuple[Stage, ...], is_partial: bool, over_link: bool
) -> Checks:
    is_wait, elastic = stage.kind is StageKind.WAIT, policy.elastic
    free = {StageKind.DETECT, StageKind.LOAD, StageKind.REPLAY, StageKind.WAIT}
    if elastic is not None and elastic.regroup_h:
        free.add(StageKind.REGROUP)
    grows = stage.grows_h is not None
    waited = elastic is not None and any(map(_is_for_nodes, before))
    return (
        (stage.cost is None and stage.kind not in free,
         f"has a stage `{stage.kind.value}` without a cost"),
        (stage.cost is not None and is_wait,
         "has a wait with a cost: it takes as long as nodes are missing"),
        (stage.each and not is_wait,
         f"has a stage `{stage.kind.value}` for each slot: only waits are"),
        (stage.each and is_partial,
         "waits for each slot, and takes shards back: those are loaded together"),
        (grows and (not is_wait or stage.blocks or stage.each or is_partial),
         "has a stage with `grows`: only waits that do not block, for all slots, have"),
        (stage.grows_h is not None and not (waited and stage.grows_h >= 0.0),
         "has a wait with `grows`, a time, without an elastic role or a wait for nodes"),
        (stage.each and over_link,
         "waits for each slot, and loads over a shared link: write the load as a time"),
    )  # fmt: skip


def _is_for_nodes(stage: Stage) -> bool:
    return stage.kind is StageKind.WAIT and stage.grows_h is None


def _of_elastic(elastic: Elastic | None, cluster: Cluster) -> Checks:
    if elastic is None:
        return ()
    if elastic.role not in _roles(cluster):
        return ((True, f"is in role `{elastic.role}`, which the cluster does not have"),)
    n_nodes, unit, speed = len(cluster.slots(elastic.role)), elastic.unit_nodes, elastic.speed
    divides = unit >= 1 and n_nodes % unit == 0
    return (
        (unit >= 1 and not divides,
         f"units of {unit} do not divide the {n_nodes} nodes of the role"),
        (divides and not 1 <= len(speed) <= min(MOST_UNITS, n_nodes // unit + 1),
         f"knows {len(speed)} speeds; at most one for each number of units lost"),
        (len(elastic.regroup_h) > MOST_UNITS, f"at most {MOST_UNITS} times can be said"),
        (speed[:1] not in ((), (1.0,)), f"the speed without any unit lost is 1, not {speed[:1]}"),
    )  # fmt: skip


def _roles(cluster: Cluster) -> set[str]:
    return {STATE, *(role.name for role in cluster.roles)}
