"""Where copies lie and what of them survives, for the naive interpreter: section 5 of the page."""

from collections.abc import Collection
from dataclasses import dataclass, replace

from cprsim.job.policy import Groups, Level, Outside, Placement, Reverts, Ring, Rule, Scope, Tier
from cprsim.simulation.job import SimulatedJob


@dataclass(eq=False)
class Content:
    """What one commit left on a tier."""

    content_h: float
    corrupt: bool
    on: set[int]  # slots that have their copies of it


class Copies:
    """The contents of all tiers, and the slots that are down."""

    def __init__(self, job: SimulatedJob) -> None:
        self.tiers = {tier.name: tier for tier in job.policy.tiers}
        self.role_slots = {role.name: [*job.cluster.slots(role.name)] for role in job.cluster.roles}
        self.kept: dict[str, list[Content]] = {
            name: [Content(0.0, False, set())] if isinstance(tier.placement, Outside) else []  # 5.4
            for name, tier in self.tiers.items()
        }
        self.without: dict[int, Level] = {}  # slot: the most lasting level, 5.2
        self.left: set[int] = set()  # slots that have left the live tiers, 5.6

    def drop_beyond(self, content_h: float) -> None:
        for name, contents in self.kept.items():
            self.kept[name] = [one for one in contents if one.content_h <= content_h]

    def wipe(self, scope: Scope, struck: set[int]) -> list[str]:
        """5.1: the tiers that lose copies.

        Reading: up to `Scope.wipes`, also where less than a node fails and is replaced.
        """
        for slot in struck:
            self.without[slot] = max(self.without.get(slot, scope.wipes), scope.wipes)
        wiped = [name for name, tier in self.tiers.items() if tier.medium.level <= scope.wipes]
        for content in (content for name in wiped for content in self.kept[name]):
            content.on -= struck
        return wiped

    def survives(self, tier: Tier, on: set[int], shards: Collection[int]) -> bool:
        """5.3: whether these shards are there, of a content of which these slots have copies."""
        slots = self.role_slots[tier.role]
        return all(self.shard_survives(tier.placement, slots, on, shard) for shard in shards)

    def live_survives(self, name: str, rule: Rule, struck: set[int]) -> bool:
        """5.6: whether what a rule needs is there, of a tier that some slots have left."""
        tier = self.tiers[name]
        members = [slot for slot in self.role_slots[tier.role] if slot not in self.left]
        place, size = tier.placement, len(members)
        if isinstance(place, Ring):
            place = Ring(min(place.copies, max(1, size)))
        elif isinstance(place, Groups) and size < place.size:
            place = replace(place, size=max(1, size), tolerates=min(place.tolerates, size - 1))
        on = self.live_copies(tier)
        return size > 0 and all(
            self.shard_survives(place, members, on, shard)
            for shard in self.needed(rule, tier, struck) & {*members}
        )

    def shard_survives(
        self, placement: Placement, slots: list[int], on: set[int], shard: int
    ) -> bool:
        """Of a tier that lies on these slots."""
        if isinstance(placement, Outside):
            return True
        place, n = slots.index(shard), len(slots)
        if isinstance(placement, Ring):
            return any(slots[(place + k) % n] in on for k in range(placement.copies))
        size, n_groups = placement.size, n // placement.size
        if placement.strided:
            group = [k % n_groups for k in range(n)]
        else:
            group = [min(k // size, n_groups - 1) for k in range(n)]
        members = {slot for k, slot in enumerate(slots) if group[k] == group[place]}
        return len(members - on) <= placement.tolerates

    def live_copies(self, tier: Tier) -> set[int]:
        """5.2: on the slots that are not without the level."""
        level = tier.medium.level
        return {s for s in self.role_slots[tier.role] if self.without.get(s, -1) < level}

    def needed(self, rule: Rule, tier: Tier, struck: set[int]) -> set[int]:
        """5.3: shards that have to be there."""
        shards = set(self.role_slots[tier.role])
        return shards & struck if rule.reverts is Reverts.STRUCK else shards

    def surviving(self, rule: Rule, struck: set[int]) -> list[tuple[Content, Tier]]:
        """Contents that survive, in the order in which they are tried."""
        contents = [
            (content, tier)
            for tier in (self.tiers[name] for name in rule.sources)
            for content in reversed(self.kept[tier.name])  # the newest commit first
            if self.survives(tier, content.on, self.needed(rule, tier, struck))
        ]
        return sorted(contents, key=lambda pair: -pair[0].content_h)  # ties stay in their order
