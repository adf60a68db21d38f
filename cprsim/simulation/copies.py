"""Copies of the job's state: commits, losses by failures, and the choice of a rule and its source.

Sections 5 and 6 of `docs/recovery.md`.
"""

from __future__ import annotations

from math import floor, inf

from cprsim.job.intervals import ROUNDING
from cprsim.simulation.spec import (
    ALL,
    MOST_SOURCES,
    NEWEST,
    NOBODY,
    NONE,
    OUTSIDE,
    START,
    STEP_BEGUN,
    STRUCK,
    Spec,
)
from cprsim.simulation.state import N_LEVELS, Sim

NEVER_WRITTEN = 2**62  # order of wiping: this slot is without that level
ALWAYS_CURRENT = NEVER_WRITTEN - 1  # order of writing of what is always current


# --------------------------------------------------------------------------- commits and wipes


def begin(sim: Sim) -> None:
    """Reset to the start of a job: outside tiers hold the content 0."""
    spec, job, slots = sim.spec, sim.job, sim.slots
    for n in range(job.n_recent):
        slot = slots[n].recent
        slots[slot].is_recent = slots[slot].left = False
        for level in range(N_LEVELS):
            slots[slot].wiped[level] = 0
    job.n_recent = job.n_errors = 0
    job.error_h = job.noticed_at_h = inf
    job.latest += 1
    for tier in range(spec.n_tiers):
        job.n_kept[tier] = 0
        if spec.tiers[tier].level == OUTSIDE:
            keep(sim, tier, 0.0, False)


def keep(sim: Sim, tier: int, content_h: float, corrupt: bool) -> None:
    """A content is committed to a tier, on all slots that are not without its level."""
    spec, job = sim.spec, sim.job
    last = min(job.n_kept[tier], spec.tiers[tier].generations - 1)
    for n in range(last, 0, -1):
        job.kept[tier][n] = job.kept[tier][n - 1]
    job.latest += 1
    content = job.kept[tier][0]
    content.progress_h, content.order, content.corrupt = content_h, job.latest, corrupt
    job.n_kept[tier] = last + 1


def corrupt_state(sim: Sim, progress_h: float, noticed_at_h: float) -> None:
    """A silent error strikes the state: whatever lies beyond this progress holds it."""
    job = sim.job
    job.n_errors += 1
    job.error_h = min(job.error_h, progress_h)
    job.noticed_at_h = min(job.noticed_at_h, noticed_at_h)


def drop_beyond(sim: Sim, progress_h: float) -> None:
    """Drop the contents that the job has gone back behind, and the errors in them."""
    spec, job = sim.spec, sim.job
    if progress_h <= job.error_h:
        job.error_h = job.noticed_at_h = inf
    for tier in range(spec.n_tiers):
        n_kept = 0
        for n in range(job.n_kept[tier]):
            if job.kept[tier][n].progress_h <= progress_h:
                job.kept[tier][n_kept] = job.kept[tier][n]
                n_kept += 1
        job.n_kept[tier] = n_kept


def wipe(sim: Sim, slot: int, level: int) -> None:
    """A failure takes a level of a slot's memory and those before it."""
    job, slots = sim.job, sim.slots
    if not slots[slot].is_recent:
        slots[slot].is_recent = True
        slots[job.n_recent].recent = slot
        job.n_recent += 1
    for below in range(level + 1):
        slots[slot].wiped[below] = NEVER_WRITTEN


def come_back(sim: Sim, slot: int) -> None:
    """Mark a slot as up: copies written from now on count."""
    job, slots = sim.job, sim.slots
    job.latest += 1
    slots[slot].left = False
    for level in range(N_LEVELS):
        if slots[slot].wiped[level] == NEVER_WRITTEN:
            slots[slot].wiped[level] = job.latest


def forget_wipes(sim: Sim, oldest: int) -> None:
    """Leave out slots that are back and were wiped before anything that is kept was written.

    `oldest` is the order of the oldest flush in flight, or any later one.
    """
    spec, job, slots = sim.spec, sim.job, sim.slots
    for tier in range(spec.n_tiers):
        if spec.tiers[tier].level != OUTSIDE and job.n_kept[tier]:
            oldest = min(oldest, job.kept[tier][job.n_kept[tier] - 1].order)
    n_left = 0
    for n in range(job.n_recent):
        slot = slots[n].recent
        latest = slots[slot].wiped[0]  # no other level is wiped without this one
        if latest > oldest:
            slots[n_left].recent = slot
            n_left += 1
        else:
            slots[slot].is_recent = False
    job.n_recent = n_left


# --------------------------------------------------------------------------- what survives


def is_of(spec: Spec, tier: int, slot: int) -> bool:
    """Whether a slot is of the role whose shards a tier holds."""
    first = spec.tiers[tier].first
    return bool(first <= slot < first + spec.tiers[tier].size)


def group_of(sim: Sim, tier: int, slot: int, n_left: int) -> int:
    """Return the group of a slot of the tier's role, once `n_left` slots have left."""
    spec, job, slots = sim.spec, sim.job, sim.slots
    place = slot - spec.tiers[tier].first
    if n_left:
        for n in range(job.n_recent):
            other = slots[n].recent
            place -= slots[other].left and spec.tiers[tier].first <= other < slot
    n_groups = max(1, (spec.tiers[tier].size - n_left) // spec.tiers[tier].group)
    if spec.tiers[tier].stride > 1:
        return int(place % n_groups)
    return int(min(place // spec.tiers[tier].group, n_groups - 1))


def shard_is_there(sim: Sim, tier: int, order: int, slot: int, n_left: int) -> bool:
    """Whether the shard of a slot can be loaded from the content written to a tier at `order`.

    Parameters
    ----------
    n_left : slots that have left the tier, whose shards other slots hold by now
    """
    spec, job, slots = sim.spec, sim.job, sim.slots
    level, copied = spec.tiers[tier].level, spec.tiers[tier].copies
    first, size = spec.tiers[tier].first, spec.tiers[tier].size
    if n_left and slots[slot].left:
        return True
    if copied:
        n_lost = ahead = 0
        while n_lost < copied:
            other = first + (slot - first + ahead) % size
            if not (n_left and slots[other].left):
                if slots[other].wiped[level] <= order:
                    return True
                n_lost += 1
            ahead += 1
        return False
    group, n_missing = group_of(sim, tier, slot, n_left), 0
    for n in range(job.n_recent):
        other = slots[n].recent
        if (
            is_of(spec, tier, other)
            and slots[other].wiped[level] > order
            and not (n_left and slots[other].left)
        ):
            n_missing += group_of(sim, tier, other, n_left) == group
    return bool(n_missing <= min(spec.tiers[tier].tolerates, size - n_left - 1))


def survives(sim: Sim, tier: int, order: int, only_struck: bool) -> bool:
    """Whether the content written to a tier at `order` survives for all shards that are needed."""
    spec, job, slots = sim.spec, sim.job, sim.slots
    level = spec.tiers[tier].level
    if level == OUTSIDE:
        return True
    n_left = 0
    if order == ALWAYS_CURRENT:
        for n in range(job.n_recent):
            n_left += slots[slots[n].recent].left and is_of(spec, tier, slots[n].recent)
    if n_left == spec.tiers[tier].size:
        return False
    for n in range(job.n_struck if only_struck else job.n_recent):
        slot = slots[n].struck if only_struck else slots[n].recent
        if (
            is_of(spec, tier, slot)
            and (only_struck or slots[slot].wiped[level] > order)
            and not shard_is_there(sim, tier, order, slot, n_left)
        ):
            return False
    return True


# --------------------------------------------------------------------------- which rule


def newest(sim: Sim, rule: int, only_struck: bool) -> tuple[int, float]:
    """The source of a rule and its content; NONE where none survives that is not corrupt.

    Corrupt ones that would be tried before it are added to `job.tries`.
    """
    spec, job = sim.spec, sim.job
    last_h, last_place, last_n = inf, NONE, NONE
    while True:
        source, source_place, source_n, source_h = NONE, NONE, NONE, -1.0
        for place in range(MOST_SOURCES):
            tier = spec.rules[rule].sources[place]
            if tier == NONE:
                break
            for n in range(job.n_kept[tier]):
                content_h = job.kept[tier][n].progress_h
                is_next = content_h < last_h or (
                    content_h == last_h
                    and (place > last_place or (place == last_place and n > last_n))
                )
                if (
                    is_next
                    and content_h > source_h
                    and survives(sim, tier, job.kept[tier][n].order, only_struck)
                ):
                    source, source_place, source_n, source_h = tier, place, n, content_h
        if source == NONE or not job.kept[source][source_n].corrupt:
            return source, source_h
        job.tries[source] += 1
        last_h, last_place, last_n = source_h, source_place, source_n


def choose(sim: Sim, scope: int) -> tuple[int, int, float]:
    """Return the rule that applies, its source, and the content that it restores.

    The rule is `NONE` if none applies: all slots restart, with the stages of the last rule. The
    source is `NONE`, and the content -1, if the rule loads from no tier.
    """
    spec, job = sim.spec, sim.job
    for tier in range(spec.n_tiers):
        job.tries[tier] = 0
    for rule in range(spec.n_rules):
        if not spec.rules[rule].scopes >> scope & 1:
            continue
        if not is_of_its_roles(sim, rule):
            continue
        only_struck = spec.rules[rule].reverts == STRUCK
        holds = True
        for place in range(MOST_SOURCES):
            tier = spec.rules[rule].needs[place]
            if tier != NONE and not survives(sim, tier, ALWAYS_CURRENT, only_struck):
                holds = False
        if not holds:
            continue
        if spec.rules[rule].reverts == NOBODY or spec.rules[rule].to != NEWEST:
            return rule, NONE, -1.0
        source, content_h = newest(sim, rule, only_struck)
        if source != NONE:
            return rule, source, content_h
    return NONE, NONE, -1.0


def is_of_its_roles(sim: Sim, rule: int) -> bool:
    """Whether all struck slots are of the roles that a rule is for."""
    spec, job, slots = sim.spec, sim.job, sim.slots
    if spec.rules[rule].roles == 0:
        return True
    for n in range(job.n_struck):
        role = 0
        while slots[n].struck >= spec.role_ends[role]:
            role += 1
        if not spec.rules[rule].roles >> role & 1:
            return False
    return True


def goes_back_to(spec: Spec, rule: int, progress_h: float, content_h: float) -> float:
    """The progress that all go back to under a rule that reverts all, or under none."""
    if rule == NONE or spec.rules[rule].to == START:
        return 0.0
    if spec.rules[rule].to == NEWEST:
        return content_h
    if spec.rules[rule].to == STEP_BEGUN:
        return float(min(progress_h, spec.step_h * floor(progress_h / spec.step_h + ROUNDING)))
    return float(max(0.0, progress_h - spec.step_h))


def reverts_of(spec: Spec, rule: int) -> int:
    """Whose state goes back under a rule, or under none."""
    return ALL if rule == NONE else int(spec.rules[rule].reverts)
