"""What a job does next under a recovery system: pure functions, the same for both engines.

They take the job's `Numbers` and what is known of its copies, and decide; engines keep the time.
`docs/recovery.md` says in words what stands here, section by section.
"""

from __future__ import annotations

from math import ceil, floor, inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cprsim.records import Ints
from cprsim.recovery.intervals import ROUNDING
from cprsim.recovery.legal import MOST_GENERATIONS, MOST_TIERS, MOST_UNITS
from cprsim.simulate.numbers import (
    ALL,
    MOST_SOURCES,
    NEWEST,
    NOBODY,
    NONE,
    OUTSIDE,
    PROGRESS,
    START,
    STEP_BEGUN,
    STRUCK,
    WALL,
    Numbers,
    as_objects,
)

N_LEVELS = OUTSIDE
WITHOUT = 2**62  # order of wiping: this slot is without that level
LIVE = WITHOUT - 1  # order of writing of what is always current
MASK = 2**32 - 1


COPIES = [
    ("content_h", "f8", (MOST_TIERS, MOST_GENERATIONS)),  # the newest commit first
    ("order", "i8", (MOST_TIERS, MOST_GENERATIONS)),
    ("corrupt", "i8", (MOST_TIERS, MOST_GENERATIONS)),
    ("n_kept", "i8", (MOST_TIERS,)),
    ("tries", "i8", (MOST_TIERS,)),  # corrupt contents that the latest choice found
    ("latest", "i8"),  # the latest of all orders
    ("n_struck", "i8"),  # slots that the latest failure strikes
    ("n_recent", "i8"),  # how many slots are listed of which something may be missing
    ("n_errors", "i8"),  # silent ones that have struck
    ("error_h", "f8"),  # progress at the first of those in the state; infinite without one
    ("noticed_at_h", "f8"),  # instant at which they are noticed
]
"""What is kept on the tiers. Commits, wipes and returns are numbered in one order: a copy is there
if it was written after its slot was last wiped."""

SLOT = [
    ("wiped", "i8", (N_LEVELS,)),  # order of the last wipe of each level, or WITHOUT
    ("recovery", "i8"),  # that it is in, or NONE
    ("is_recent", "?"),
    ("struck", "i8"),  # the nth slot that the latest failure strikes
    ("recent", "i8"),  # the nth slot of which something may be missing
    ("left", "?"),  # the live tiers: other slots hold all copies
]
"""What is known of each slot of the job."""

Copies = Any  # a record with the fields of COPIES, or an object with such attributes
Slots = Any  # (n_slots,) of records with the fields of SLOT, or a list of such objects


NO_SLOT = np.zeros(1, SLOT)[0]
NO_SLOT["recovery"] = NONE


def copies_as_object(num: Numbers) -> Copies:
    """Copies for a Python engine, no more contents than are kept; `begin` sets them up."""
    n_kept = max((tier.generations for tier in num.tiers), default=1)
    contents = [(name, kind, (MOST_TIERS, n_kept)) for name, kind, *_ in COPIES[:3]]
    return as_objects(np.zeros(1, [*contents, *COPIES[3:]])[0])


class SlotsAsObjects(dict[int, Any]):
    """Slots for a Python engine, made as they are asked for: of an array, or in no recovery."""

    def __init__(self, slots: NDArray[Any] | None = None) -> None:
        self._slots = slots

    def __missing__(self, slot: int) -> Any:
        record = self[slot] = as_objects(NO_SLOT if self._slots is None else self._slots[slot])
        return record


# --------------------------------------------------------------------------- copies


def begin(num: Numbers, copies: Copies, slots: Slots) -> None:
    """Stand at the start of a job: outside tiers hold the content 0."""
    for n in range(copies.n_recent):
        slot = slots[n].recent
        slots[slot].is_recent = slots[slot].left = False
        for level in range(N_LEVELS):
            slots[slot].wiped[level] = 0
    copies.n_recent = copies.n_errors = 0
    copies.error_h = copies.noticed_at_h = inf
    copies.latest += 1
    for tier in range(num.n_tiers):
        copies.n_kept[tier] = 0
        if num.tiers[tier].level == OUTSIDE:
            keep(num, copies, tier, 0.0, False)


def keep(num: Numbers, copies: Copies, tier: int, content_h: float, corrupt: bool) -> None:
    """A content is committed to a tier, on all slots that are not without its level."""
    last = min(copies.n_kept[tier], num.tiers[tier].generations - 1)
    for n in range(last, 0, -1):
        copies.content_h[tier][n] = copies.content_h[tier][n - 1]
        copies.order[tier][n] = copies.order[tier][n - 1]
        copies.corrupt[tier][n] = copies.corrupt[tier][n - 1]
    copies.latest += 1
    copies.content_h[tier][0] = content_h
    copies.order[tier][0] = copies.latest
    copies.corrupt[tier][0] = corrupt
    copies.n_kept[tier] = last + 1


def err(copies: Copies, progress_h: float, noticed_at_h: float) -> None:
    """A silent error strikes the state: whatever lies beyond this progress holds it."""
    copies.n_errors += 1
    copies.error_h = min(copies.error_h, progress_h)
    copies.noticed_at_h = min(copies.noticed_at_h, noticed_at_h)


def drop_beyond(num: Numbers, copies: Copies, progress_h: float) -> None:
    """Drop the contents that the job has gone back behind, and the errors in them."""
    if progress_h <= copies.error_h:
        copies.error_h = copies.noticed_at_h = inf
    for tier in range(num.n_tiers):
        n_kept = 0
        for n in range(copies.n_kept[tier]):
            if copies.content_h[tier][n] <= progress_h:
                copies.content_h[tier][n_kept] = copies.content_h[tier][n]
                copies.order[tier][n_kept] = copies.order[tier][n]
                copies.corrupt[tier][n_kept] = copies.corrupt[tier][n]
                n_kept += 1
        copies.n_kept[tier] = n_kept


def wipe(copies: Copies, slots: Slots, slot: int, level: int) -> None:
    """A failure takes a level of a slot's memory and those before it."""
    if not slots[slot].is_recent:
        slots[slot].is_recent = True
        slots[copies.n_recent].recent = slot
        copies.n_recent += 1
    for below in range(level + 1):
        slots[slot].wiped[below] = WITHOUT


def come_back(copies: Copies, slots: Slots, slot: int) -> None:
    """A slot's recovery has ended: what is written from here on is there."""
    copies.latest += 1
    slots[slot].left = False
    for level in range(N_LEVELS):
        if slots[slot].wiped[level] == WITHOUT:
            slots[slot].wiped[level] = copies.latest


def forget_wipes(num: Numbers, copies: Copies, slots: Slots, oldest: int) -> None:
    """Leave out slots that are back and were wiped before anything that is kept was written.

    `oldest` is the order of the oldest flush in flight, or any later one.
    """
    for tier in range(num.n_tiers):
        if num.tiers[tier].level != OUTSIDE and copies.n_kept[tier]:
            oldest = min(oldest, copies.order[tier][copies.n_kept[tier] - 1])
    n_left = 0
    for n in range(copies.n_recent):
        slot = slots[n].recent
        latest = slots[slot].wiped[0]  # no other level is wiped without this one
        if latest > oldest:
            slots[n_left].recent = slot
            n_left += 1
        else:
            slots[slot].is_recent = False
    copies.n_recent = n_left


def is_of(num: Numbers, tier: int, slot: int) -> bool:
    """Whether a slot is of the role whose shards a tier holds."""
    first = num.tiers[tier].first
    return bool(first <= slot < first + num.tiers[tier].size)


def group_of(num: Numbers, copies: Copies, slots: Slots, tier: int, slot: int, n_left: int) -> int:
    """The group of a slot of the tier's role, of those that are there without `n_left` of them."""
    place = slot - num.tiers[tier].first
    if n_left:
        for n in range(copies.n_recent):
            other = slots[n].recent
            place -= slots[other].left and num.tiers[tier].first <= other < slot
    n_groups = max(1, (num.tiers[tier].size - n_left) // num.tiers[tier].group)
    if num.tiers[tier].stride > 1:
        return int(place % n_groups)
    return int(min(place // num.tiers[tier].group, n_groups - 1))


def shard_is_there(
    num: Numbers, copies: Copies, slots: Slots, tier: int, order: int, slot: int, n_left: int
) -> bool:
    """Whether the shard of a slot can be had from what was written to a tier at `order`.

    Parameters
    ----------
    n_left : slots that have left the tier, whose shards are others' by now
    """
    level, copied = num.tiers[tier].level, num.tiers[tier].copies
    first, size = num.tiers[tier].first, num.tiers[tier].size
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
    group, n_missing = group_of(num, copies, slots, tier, slot, n_left), 0
    for n in range(copies.n_recent):
        other = slots[n].recent
        if (
            is_of(num, tier, other)
            and slots[other].wiped[level] > order
            and not (n_left and slots[other].left)
        ):
            n_missing += group_of(num, copies, slots, tier, other, n_left) == group
    return bool(n_missing <= min(num.tiers[tier].tolerates, size - n_left - 1))


def survives(
    num: Numbers, copies: Copies, slots: Slots, tier: int, order: int, only_struck: bool
) -> bool:
    """Whether what was written to a tier at `order` is there for all shards that are needed."""
    level = num.tiers[tier].level
    if level == OUTSIDE:
        return True
    n_left = 0
    if order == LIVE:
        for n in range(copies.n_recent):
            n_left += slots[slots[n].recent].left and is_of(num, tier, slots[n].recent)
    if n_left == num.tiers[tier].size:
        return False
    for n in range(copies.n_struck if only_struck else copies.n_recent):
        slot = slots[n].struck if only_struck else slots[n].recent
        if (
            is_of(num, tier, slot)
            and (only_struck or slots[slot].wiped[level] > order)
            and not shard_is_there(num, copies, slots, tier, order, slot, n_left)
        ):
            return False
    return True


# --------------------------------------------------------------------------- which rule


def newest(
    num: Numbers, copies: Copies, slots: Slots, rule: int, only_struck: bool
) -> tuple[int, float]:
    """The source of a rule and its content; NONE where none survives that is not corrupt.

    Corrupt ones that would be tried before it are added to `copies.tries`.
    """
    last_h, last_place, last_n = inf, NONE, NONE
    while True:
        source, source_place, source_n, source_h = NONE, NONE, NONE, -1.0
        for place in range(MOST_SOURCES):
            tier = num.sources[rule][place]
            if tier == NONE:
                break
            for n in range(copies.n_kept[tier]):
                content_h = copies.content_h[tier][n]
                is_next = content_h < last_h or (
                    content_h == last_h
                    and (place > last_place or (place == last_place and n > last_n))
                )
                if (
                    is_next
                    and content_h > source_h
                    and survives(num, copies, slots, tier, copies.order[tier][n], only_struck)
                ):
                    source, source_place, source_n, source_h = tier, place, n, content_h
        if source == NONE or not copies.corrupt[source][source_n]:
            return source, source_h
        copies.tries[source] += 1
        last_h, last_place, last_n = source_h, source_place, source_n


def choose(num: Numbers, copies: Copies, slots: Slots, scope: int) -> tuple[int, int, float]:
    """The rule that is taken, its source, and the content that it goes back to.

    The rule is NONE where none holds: all start again, with the stages of the last rule. The
    source is NONE, and the content -1, where the rule loads from none.
    """
    for tier in range(num.n_tiers):
        copies.tries[tier] = 0
    for rule in range(num.n_rules):
        if not num.rules[rule].scopes >> scope & 1:
            continue
        if not is_of_its_roles(num, copies, slots, rule):
            continue
        only_struck = num.rules[rule].reverts == STRUCK
        holds = True
        for place in range(MOST_SOURCES):
            tier = num.needs[rule][place]
            if tier != NONE and not survives(num, copies, slots, tier, LIVE, only_struck):
                holds = False
        if not holds:
            continue
        if num.rules[rule].reverts == NOBODY or num.rules[rule].to != NEWEST:
            return rule, NONE, -1.0
        source, content_h = newest(num, copies, slots, rule, only_struck)
        if source != NONE:
            return rule, source, content_h
    return NONE, NONE, -1.0


def is_of_its_roles(num: Numbers, copies: Copies, slots: Slots, rule: int) -> bool:
    """Whether all struck slots are of the roles that a rule is for."""
    if num.rules[rule].roles == 0:
        return True
    for n in range(copies.n_struck):
        role = 0
        while slots[n].struck >= num.role_ends[role]:
            role += 1
        if not num.rules[rule].roles >> role & 1:
            return False
    return True


def goes_back_to(num: Numbers, rule: int, progress_h: float, content_h: float) -> float:
    """The progress that all go back to under a rule that reverts all, or under none."""
    if rule == NONE or num.rules[rule].to == START:
        return 0.0
    if num.rules[rule].to == NEWEST:
        return content_h
    if num.rules[rule].to == STEP_BEGUN:
        return float(min(progress_h, num.step_h * floor(progress_h / num.step_h + ROUNDING)))
    return float(max(0.0, progress_h - num.step_h))


def reverts_of(num: Numbers, rule: int) -> int:
    """Whose state goes back under a rule, or under none."""
    return ALL if rule == NONE else int(num.rules[rule].reverts)


def rate_of_each(num: Numbers, n_shards: int) -> float:
    """Bytes per hour of each of so many shards that share the link."""
    return float(min(num.server_bytes_per_h, num.link_bytes_per_h / n_shards))


# --------------------------------------------------------------------------- work


def rate(num: Numbers, speed: float, replay_speed: float, behind: bool) -> float:
    """Hours of progress per wall hour; `behind`: work is done again."""
    per_h = speed * replay_speed if behind else speed
    return float(per_h / (1.0 + num.tax) if num.tax else per_h)


def hours_of(work_h: float, per_h: float) -> float:
    """Wall hours of so much progress."""
    return float(work_h if per_h == 1.0 else work_h / per_h)  # divisions are what takes time


def speed_of(num: Numbers, copies: Copies, slots: Slots) -> float:
    """Speed of an elastic job by which of its units have a slot in a recovery."""
    return float(num.elastic_speed[min(n_units_lost(num, copies, slots), MOST_UNITS)])


def regroup_h_of(num: Numbers, copies: Copies, slots: Slots) -> float:
    """Hours of a regrouping of an elastic job that begins now."""
    return float(num.elastic_regroup_h[min(n_units_lost(num, copies, slots), MOST_UNITS)])


def grows_in_h(every_h: float, now_h: float) -> float:
    """Hours from a wall hour on until a job takes slots in, unless something makes it do so."""
    if every_h in (0.0, inf):
        return every_h
    return float(max(0.0, ceil(now_h / every_h * (1.0 - ROUNDING)) * every_h - now_h))


def n_units_lost(num: Numbers, copies: Copies, slots: Slots) -> int:
    """Units of an elastic job that have a slot in a recovery."""
    n_lost = 0
    for n in range(copies.n_recent):
        place = slots[n].recent - num.elastic_first
        if slots[slots[n].recent].recovery == NONE or not 0 <= place < num.elastic_size:
            continue
        counted = False
        for before in range(n):
            slot = slots[before].recent
            other = slot - num.elastic_first
            if (
                slots[slot].recovery != NONE
                and 0 <= other < num.elastic_size
                and other // num.unit == place // num.unit
            ):
                counted = True
        n_lost += not counted
    return n_lost


# --------------------------------------------------------------------------- saves


def due_after(num: Numbers, capture: int, progress_h: float) -> float:
    """Progress at which the next save beyond `progress_h` is due; infinite if none is."""
    saves = num.captures[capture]
    if saves.n_due == 0:
        return inf
    number = floor(progress_h / saves.every_h * (1.0 + ROUNDING)) + 1
    if number > saves.n_due:
        return inf
    due_h = number * saves.every_h
    return float(due_h if due_h < (1.0 - ROUNDING) * num.useful_h else num.useful_h)


def is_due(num: Numbers, due_h: float, progress_h: float) -> bool:
    """Whether a save is due: the same progress may differ by rounding on the grids of two tiers."""
    is_near = due_h < num.useful_h and due_h <= progress_h * (1.0 + ROUNDING)
    return bool(due_h <= progress_h or is_near)


def number_of(num: Numbers, capture: int, content_h: float) -> int:
    """The number of the save with this content, counted from the start of the job."""
    number: int = round(content_h / num.captures[capture].every_h)
    return number


def completes(num: Numbers, capture: int, due_h: float) -> bool:
    """Whether the save that the grid has at this progress completes a content."""
    parts = num.captures[capture].parts
    return bool(parts == 1 or (due_h < inf and number_of(num, capture, due_h) % parts == 0))


def is_flushed(num: Numbers, flush: int, content_h: float) -> bool:
    """Whether a flush copies this content of the capture that it follows."""
    number = number_of(num, num.captures[flush].after, content_h)
    return bool(number % num.captures[flush].nth == 0)


def uniform(key: Any, n: Any) -> Any:
    """The nth number in [0, 1) of a stream, by hashing; of many streams where these are arrays.

    The steps and constants are those of a known 32-bit integer hash (recalled).
    """
    x = (key + n * 0x9E3779B1) & MASK
    x ^= x >> 16
    x = (x * 0x7FEB352D) & MASK
    x ^= x >> 15
    x = (x * 0x846CA68B) & MASK
    x ^= x >> 16
    return x / 4294967296.0


def stream_keys(first: int, numbers: Ints) -> Ints:
    """Keys of the streams of `uniform` of some replications, numbered within their block."""
    return (first + numbers * 0x85EBCA6B) & MASK


def cycles_to_skip(
    num: Numbers,
    capture: int,
    n_in_flight: int,
    due_h: float,
    within_h: float,
    progress_per_h: float,
    until_progress_h: float,
    steady_progress_h: float,
    steady_h: float,
) -> int:
    """How many whole cycles of work and save can be taken at once, for one capture.

    Parameters
    ----------
    n_in_flight : of its saves, all of them in rhythm (`is_in_rhythm`)
    due_h : progress at which its next save is due
    within_h : wall hours until then
    until_progress_h : progress at which another save begins that does not hold the job
    steady_progress_h, steady_h : progress, and wall hours from now, up to which nothing else
        happens

    Notes
    -----
    Cycles are all alike while nothing else happens, their saves take what they always do, and none
    has to wait for one before. So many of the last are left over that what is in flight then, and
    what `keep_latest` does not know, has been saved one by one. Flushes go along if each is over
    before the next begins.
    """
    saves = num.captures[capture]
    stall_h, behind_h = saves.stall_h, saves.background_h
    if not stall_h + behind_h >= 0.0 or saves.p_fail > 0.0:
        return 0
    cycle_h = hours_of(saves.every_h, progress_per_h) + stall_h
    if behind_h > 0.0 and stall_h + behind_h > (1.0 - ROUNDING) * saves.in_flight * cycle_h:
        return 0
    n_behind = ceil((stall_h + behind_h) / cycle_h) if behind_h > 0.0 else 0
    # in flight at this point of a cycle: those begun in so many cycles before
    n_steady = ceil((within_h + stall_h + behind_h) / cycle_h) - 1 if behind_h > 0.0 else 0
    step, left_over = saves.parts, 0 if n_in_flight == n_steady else n_behind
    if num.tiers[saves.tier].p_corrupt > 0.0:
        left_over += num.tiers[saves.tier].generations * saves.parts
    along = flushes_go_along(num, capture, progress_per_h)
    if along:
        for flush in range(num.n_captures):
            of = num.captures[flush]
            if of.after == capture:
                step *= of.nth
                left_over += of.nth * (num.tiers[of.tier].generations + 1)
    n = floor(
        min(
            (until_progress_h - due_h) / saves.every_h,
            (steady_progress_h - due_h) / saves.every_h - left_over,
            steady_h / cycle_h - left_over,  # the saves of whole cycles end within them
        )
    )
    if saves.is_followed and not along:
        number = number_of(num, capture, due_h)
        for flush in range(num.n_captures):
            if num.captures[flush].after == capture:
                nth = num.captures[flush].nth
                first = number - n_behind - 1  # perhaps on its way
                n = min(n, -(-first // nth) * nth - number)
    return int(max(0, n if step == 1 else n - n % step))


def flushes_go_along(num: Numbers, capture: int, progress_per_h: float) -> bool:
    """Whether each flush of what a capture saves is over before the next of its kind begins."""
    if not num.captures[capture].is_followed:
        return False
    cycle_h = num.captures[capture].every_h / progress_per_h + num.captures[capture].stall_h
    for flush in range(num.n_captures):
        of = num.captures[flush]
        if of.after == capture:
            steady = 0.0 <= of.background_h <= (1.0 - ROUNDING) * of.nth * cycle_h
            if not steady or of.p_fail > 0.0:
                return False
    return True


def keep_latest(num: Numbers, copies: Copies, capture: int, first: int, last: int) -> None:
    """Commit the saves with these numbers, as far as they are kept in the end."""
    tier, parts = num.captures[capture].tier, num.captures[capture].parts
    if num.tiers[tier].p_corrupt > 0.0:
        return  # some of them are left over
    for number in range(max(first, last - num.tiers[tier].generations * parts + 1), last + 1):
        if parts == 1 or number % parts == 0:
            content_h = min(number * num.captures[capture].every_h, num.useful_h)
            keep(num, copies, tier, content_h, False)


def is_in_rhythm(
    num: Numbers,
    capture: int,
    due_h: float,
    within_h: float,
    progress_per_h: float,
    nth: int,
    content_h: float,
    completing: bool,
    commits_in_h: float,
) -> bool:
    """Whether the nth latest save in flight is what it is in a steady rhythm.

    One that was begun at another speed, or tried again late, may be in the way of the next, and
    be taken for another by flushes.
    """
    saves = num.captures[capture]
    cycle_h = saves.every_h / progress_per_h + saves.stall_h
    steady_h = within_h + saves.stall_h + saves.background_h - nth * cycle_h
    number = number_of(num, capture, due_h) - nth
    return bool(
        abs(commits_in_h - steady_h) <= ROUNDING * cycle_h
        and number_of(num, capture, content_h) == number
        and completing == completes(num, capture, content_h)
    )


def ages(num: Numbers, blocked: bool, behind: bool) -> bool:
    """Whether the clock of the failures runs while the job works, or is blocked by a recovery."""
    if blocked:
        return bool(num.clock == WALL)
    return not (num.clock == PROGRESS and behind)
