"""Recoveries: stages, waits for nodes, loads over a shared link.

Sections 1 and 3 of `docs/recovery.md`.
"""

from __future__ import annotations

from math import ceil, inf, isnan

from cprsim.job.intervals import ROUNDING
from cprsim.job.legal import MOST_UNITS
from cprsim.job.records import EventKind
from cprsim.simulation.copies import come_back
from cprsim.simulation.log import note
from cprsim.simulation.saves import failure_h
from cprsim.simulation.spec import DETECT, LOAD, NONE, REGROUP, REPLAY, RETRY, WAIT, Spec, StageSpec
from cprsim.simulation.state import Recovery, Sim

# --------------------------------------------------------------------------- loads over the link


def rate_of_each(spec: Spec, n_shards: int) -> float:
    """Return the rate of each of `n_shards` shards that share the link [bytes/h]."""
    return float(min(spec.server_bytes_per_h, spec.link_bytes_per_h / n_shards))


def read_link(sim: Sim) -> None:
    """Move the shards that load over the link on to this instant."""
    spec, job = sim.spec, sim.job
    if job.n_moving:
        job.link_bytes += (job.now_h - job.link_read_at_h) * rate_of_each(spec, job.n_moving)
    job.link_read_at_h = job.now_h


def moves(spec: Spec, recovery: Recovery) -> bool:
    """Whether a recovery loads over the link now."""
    return bool(recovery.rule != NONE and recovery.shares and recovery.kind == LOAD)


def moving(sim: Sim, recovery: Recovery) -> tuple[int, float]:
    """How many shards of a load over the link still move, and when the next of them has moved."""
    spec, job, slots = sim.spec, sim.job, sim.slots
    if not spec.is_uneven:
        ends_bytes = recovery.began_bytes + spec.shard_bytes
        n = recovery.n_loads if ends_bytes > job.link_bytes else 0
        return n, ends_bytes
    n, next_bytes = 0, inf
    first = spec.tiers[recovery.source].first
    for slot in range(first, first + spec.tiers[recovery.source].size):
        ends_bytes = recovery.began_bytes + slots[slot].shard_bytes
        if ends_bytes > job.link_bytes and (
            not recovery.hands_over or slots[slot].loaded_by == recovery.serial
        ):
            n += 1
            next_bytes = min(next_bytes, ends_bytes)
    return n, next_bytes


def plan_link(sim: Sim) -> None:
    """See which shards share the link from now on, and when the next of them has moved."""
    spec, job, recoveries = sim.spec, sim.job, sim.recoveries
    read_link(sim)
    job.n_moving, job.link_ends_bytes, job.link_ends_at_h = 0, inf, inf
    for n in range(job.n_recoveries):
        if moves(spec, recoveries[n]):
            n_moving, ends_bytes = moving(sim, recoveries[n])
            job.n_moving += n_moving
            if n_moving:
                job.link_ends_bytes = min(job.link_ends_bytes, ends_bytes)
    if job.n_moving:
        left_bytes = job.link_ends_bytes - job.link_bytes
        job.link_ends_at_h = job.now_h + left_bytes / rate_of_each(spec, job.n_moving)


def end_loads(sim: Sim, but: int) -> None:
    """Loads over the link of which no shard moves any more are over; not that at a place."""
    spec, job, recoveries = sim.spec, sim.job, sim.recoveries
    for n in range(job.n_recoveries):
        if n != but and moves(spec, recoveries[n]):
            n_moving, _ = moving(sim, recoveries[n])
            if n_moving == 0:
                next_stage(sim, n)


# --------------------------------------------------------------------------- stages


def refresh(sim: Sim) -> None:
    """See what blocks the job, how fast it works if nothing does, and which stage ends next."""
    spec, job, recoveries = sim.spec, sim.job, sim.recoveries
    job.blocked_by = NONE
    speed, ends_at_h = 1.0, inf
    n_used = 0
    for n in range(job.n_recoveries):
        recovery = recoveries[n]
        if recovery.rule == NONE:
            continue
        n_used = n + 1
        ends_at_h = min(ends_at_h, recovery.ends_at_h)
        if not recovery.blocks:
            speed = min(speed, recovery.speed)
        elif job.blocked_by == NONE or recovery.kind < job.blocked_by:
            job.blocked_by = recovery.kind
    job.n_recoveries, job.stage_ends_at_h = n_used, ends_at_h
    if spec.elastic_size and n_used:
        speed *= spec.elastic_speed[min(n_units_lost(sim), MOST_UNITS)]
    job.speed = speed
    if spec.shares:
        plan_link(sim)


def next_stage(sim: Sim, place: int) -> None:
    """Advance a recovery to its next stage that takes time, or end it."""
    spec, job, slots, recovery = sim.spec, sim.job, sim.slots, sim.recoveries[place]
    rule = spec.rules[recovery.rule]
    if recovery.stage < 0:
        recovery.n_again = n_failed_attempts(sim, recovery)
    elif spec.stages[rule.first_stage + recovery.stage].kind == RETRY:
        recovery.stage = rule.again - 1
    while True:
        if recovery.stage >= 0 and spec.stages[rule.first_stage + recovery.stage].copies_again:
            for n in range(job.n_recent):
                if slots[slots[n].recent].recovery == place:
                    slots[slots[n].recent].left = True
        recovery.stage += 1
        if recovery.stage == rule.n_stages:
            recovery.stage -= 1
            end_recovery(sim, place)
            return
        stage = spec.stages[rule.first_stage + recovery.stage]
        hours = failure_h(sim, stage.cost, recovery.number)
        if stage.kind == DETECT and not stage.has_cost:
            hours = recovery.detect_h
        elif stage.kind == LOAD:
            if not recovery.loads or (recovery.hands_over and recovery.n_loads == 0):
                continue
            hours += recovery.load_h
            if recovery.shares:
                read_link(sim)
                recovery.began_bytes, hours = job.link_bytes, inf
        elif stage.kind == REPLAY and not stage.has_cost:
            hours = recovery.replay_h
        elif stage.kind == REGROUP and not stage.has_cost:
            hours = spec.elastic_regroup_h[min(n_units_lost(sim), MOST_UNITS)]
        elif stage.kind == RETRY:
            if recovery.n_again == 0:
                continue
            recovery.n_again -= 1
            n_failed = n_failed_attempts(sim, recovery) - recovery.n_again
            if stage.gives_up_after > 0 and n_failed % stage.gives_up_after == 0:
                hours = failure_h(sim, stage.operator, recovery.number)
            if hours == 0.0:
                recovery.stage = rule.again - 1
        elif stage.kind == WAIT and not isnan(stage.grows_h):
            hours = grows_in_h(stage.grows_h, job.now_h)
        elif stage.kind == WAIT:
            if spec.n_spares == NONE:
                continue
            hours = inf if has_to_wait(sim, place, stage) else 0.0
        if hours > 0.0:
            recovery.ends_at_h = job.now_h + hours
            recovery.kind, recovery.blocks = stage.kind, stage.blocks
            note(sim, EventKind.STAGE, NONE)
            return


def n_failed_attempts(sim: Sim, recovery: Recovery) -> int:
    """How many attempts to restart fail in a recovery, from its first on."""
    return int(failure_h(sim, sim.spec.rules[recovery.rule].attempts, recovery.number))


def begun_after(sim: Sim, begun: int) -> int:
    """Return the place of the recovery that began next after the nth; `NONE` if it was the last."""
    job, recoveries = sim.job, sim.recoveries
    first = NONE
    for n in range(job.n_recoveries):
        recovery = recoveries[n]
        is_later = recovery.rule != NONE and recovery.begun > begun
        if is_later and (first == NONE or recovery.begun < recoveries[first].begun):
            first = n
    return first


def end_stages(sim: Sim, until_h: float) -> None:
    """Advance recoveries whose stage has ended by an instant, in the order in which they began."""
    recoveries = sim.recoveries
    place = begun_after(sim, NONE)
    while place != NONE:
        begun = recoveries[place].begun
        if recoveries[place].ends_at_h <= until_h:
            next_stage(sim, place)
        place = begun_after(sim, begun)


def end_recovery(sim: Sim, place: int) -> None:
    """A recovery ends, and its slots are up."""
    spec, job, slots, recovery = sim.spec, sim.job, sim.slots, sim.recoveries[place]
    last = spec.rules[recovery.rule].first_stage + recovery.stage
    was_waited_for = recovery.stage < 0 or spec.stages[last].blocks
    recovery.rule = NONE
    for n in range(job.n_recent):
        slot = slots[n].recent
        if slots[slot].recovery == place:
            slots[slot].recovery = NONE
            come_back(sim, slot)
            if not was_waited_for:
                note(sim, EventKind.REPLACED, slot)


def free_place(sim: Sim) -> int:
    """The first place for a recovery that none is in; drivers see to it that there is one."""
    job, recoveries = sim.job, sim.recoveries
    place = 0
    while place < job.n_recoveries and recoveries[place].rule != NONE:
        place += 1
    job.n_recoveries = max(job.n_recoveries, place + 1)
    return place


def take_load(sim: Sim, slot: int) -> None:
    """A shard that goes back is loaded by a new recovery, not by one that is under way."""
    job, slots, recoveries = sim.job, sim.slots, sim.recoveries
    for place in range(job.n_recoveries):
        other = recoveries[place]
        if other.rule != NONE and other.serial == slots[slot].loaded_by:
            other.n_loads -= 1
    slots[slot].loaded_by = job.serial


def take_over(sim: Sim, place: int, of_all: bool) -> None:
    """A new recovery takes its slots from those under way; some of them end."""
    spec, job, slots, recoveries = sim.spec, sim.job, sim.slots, sim.recoveries
    n_slots = job.n_struck
    for n in range(job.n_struck):
        slot = slots[n].struck
        before = slots[slot].recovery
        slots[slot].recovery = place
        if before != NONE:
            other = recoveries[before]
            other.n_slots -= 1
            if other.n_slots == 0 and not (other.of_all and has_load_to_come(spec, other)):
                other.rule = NONE
    if of_all:
        for n in range(job.n_recent):
            slot = slots[n].recent
            before = slots[slot].recovery
            if before != NONE and before != place and recoveries[before].blocks:
                slots[slot].recovery = place
                n_slots += 1
        for n in range(job.n_recoveries):
            if n != place and recoveries[n].blocks:
                recoveries[n].rule = NONE
    recoveries[place].n_slots = n_slots


def has_load_to_come(spec: Spec, recovery: Recovery) -> bool:
    """Whether a recovery has a load before it or under way, also in an attempt after this one."""
    if not recovery.loads:
        return False
    rule = spec.rules[recovery.rule]
    begin = 0 if recovery.n_again > 0 or recovery.kind == RETRY else recovery.stage
    for n in range(rule.first_stage + begin, rule.first_stage + rule.n_stages):
        if spec.stages[n].kind == LOAD:
            return True
    return False


# --------------------------------------------------------------------------- nodes


def ask_for_nodes(sim: Sim, recovery: int) -> int:
    """Each slot of a recovery without a node asks for one; how many have to wait."""
    spec, job, slots = sim.spec, sim.job, sim.slots
    n_waiting, first, last = 0, spec.n_slots, NONE  # of those that have not asked
    for n in range(job.n_recent):
        slot = slots[n].recent
        if slots[slot].vacant and slots[slot].recovery == recovery:
            if slots[slot].requested:
                n_waiting += 1
            else:
                first, last = min(first, slot), max(last, slot)
    for slot in range(first, last + 1):
        if not slots[slot].vacant or slots[slot].requested or slots[slot].recovery != recovery:
            continue
        if job.n_free > 0:
            job.n_free -= 1
            slots[slot].vacant = False
        else:
            n_waiting += 1
            slots[slot].requested = True
            slots[job.n_queued].queued = slot
            job.n_queued += 1
    return n_waiting


def has_to_wait(sim: Sim, place: int, stage: StageSpec) -> bool:
    """Whether a wait continues; a wait for each slot splits off the slots that still wait."""
    job, slots, recoveries = sim.job, sim.slots, sim.recoveries
    n_waiting = ask_for_nodes(sim, place)
    if n_waiting == 0 or not stage.each or n_waiting == recoveries[place].n_slots:
        return bool(n_waiting > 0)
    behind = free_place(sim)
    recoveries[behind] = recoveries[place]
    waiting = recoveries[behind]
    waiting.kind, waiting.blocks = stage.kind, stage.blocks
    waiting.ends_at_h, waiting.n_slots = inf, n_waiting
    job.n_begun += 1
    waiting.begun = job.n_begun
    for n in range(job.n_recent):
        slot = slots[n].recent
        if slots[slot].recovery == place and slots[slot].requested:
            slots[slot].recovery = behind
    recoveries[place].n_slots -= n_waiting
    return False


def return_nodes(sim: Sim, until_h: float) -> None:
    """Nodes come back from repair; the first slots in the queue get them."""
    spec, job, slots, recoveries = sim.spec, sim.job, sim.slots, sim.recoveries
    n_left = 0
    job.next_return_h = inf
    for n in range(job.n_repairs):
        returns_at_h = slots[n].returns_at_h
        if returns_at_h <= until_h:
            job.n_free += 1
        else:
            slots[n_left].returns_at_h = returns_at_h
            job.next_return_h = min(job.next_return_h, returns_at_h)
            n_left += 1
    job.n_repairs = n_left
    if job.n_free == 0 or job.n_queued == 0:
        return
    n_given = min(job.n_free, job.n_queued)
    job.n_free -= n_given
    job.n_queued -= n_given
    for n in range(n_given):
        slot = slots[n].queued
        slots[slot].vacant = slots[slot].requested = False
    for n in range(job.n_queued):
        slots[n].queued = slots[n + n_given].queued
    place = begun_after(sim, NONE)
    while place != NONE:
        recovery, begun = recoveries[place], recoveries[place].begun
        stage = spec.stages[spec.rules[recovery.rule].first_stage + recovery.stage]
        waits = recovery.kind == WAIT and not is_held(spec, recovery)
        if waits and not has_to_wait(sim, place, stage):
            next_stage(sim, place)
        place = begun_after(sim, begun)
    refresh(sim)


def is_held(spec: Spec, recovery: Recovery) -> bool:
    """Whether a recovery waits for the job to take its slots in."""
    if recovery.rule == NONE or recovery.kind != WAIT:
        return False
    return not isnan(spec.stages[spec.rules[recovery.rule].first_stage + recovery.stage].grows_h)


def takes_in(sim: Sim) -> bool:
    """Admit returned slots while the job has speed 0; return whether any were waiting."""
    spec, recoveries = sim.spec, sim.recoveries
    took_in = False
    place = begun_after(sim, NONE)
    while place != NONE:
        begun = recoveries[place].begun
        if is_held(spec, recoveries[place]):
            next_stage(sim, place)
            took_in = True
        place = begun_after(sim, begun)
    if took_in:
        refresh(sim)
    return took_in


# --------------------------------------------------------------------------- elastic jobs


def grows_in_h(every_h: float, now_h: float) -> float:
    """Hours from a wall hour on until a job takes slots in, unless something makes it do so."""
    if every_h in (0.0, inf):
        return every_h
    return float(max(0.0, ceil(now_h / every_h * (1.0 - ROUNDING)) * every_h - now_h))


def n_units_lost(sim: Sim) -> int:
    """Units of an elastic job that have a slot in a recovery."""
    spec, job, slots = sim.spec, sim.job, sim.slots
    job.n_counts += 1
    n_lost = 0
    for n in range(job.n_recent):
        slot = slots[n].recent
        place = slot - spec.elastic_first
        if slots[slot].recovery == NONE or not 0 <= place < spec.elastic_size:
            continue
        unit = place // spec.unit
        if slots[unit].counted < job.n_counts:
            slots[unit].counted = job.n_counts
            n_lost += 1
    return n_lost
