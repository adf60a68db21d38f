"""Facts noted by the supervisor of a run, and the event log made of them.

Facts are noted when they are learned; the log has the events of the job. These conventions lead
from one to the other:

- A commit counts, also where a process died after its last answer and before the commit: the log
  has the commit before the failure.
- A save that starts, or work that resumes, between a death and its detection has no effect: the
  log leaves it out. From a failure to its detection the job is in `detect`.
- A replacement that has taken over the layers of a trainer who died meanwhile was back before.
- A batch that was in work when a process died counts if its gradients existed: the progress at the
  failure is where the trainer then stopped. If it catches up with that batch, the failure tells it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import takewhile

import numpy as np

from cprsim.job.records import S_PER_H, Activity, EventKind, EventLog
from cprsim.rehearsal.orders import Orders

# the least advanced first
ADVANCE = (Activity.DETECT, Activity.WAIT, Activity.RESCHEDULE, Activity.LOAD)


class FactKind(StrEnum):
    """Kinds of facts that the supervisor notes."""

    RUNNING = "running"  # the trainer works from here on
    PASSED = "passed"  # work done again has come to where the job had been
    STOOD = "stood"  # where the trainer stopped, or was when it died
    SAVE_AWAITED = "save awaited"  # the job waits for one behind it
    SAVE_STARTED = "save started"
    SAVE_RESUMED = "save resumed"  # the rest of it goes on behind the job
    SAVE_COMMITTED = "save committed"
    SAVE_ABANDONED = "save abandoned"
    STRUCK = "struck"  # a process was killed or stopped
    MISSED = "missed"  # a kill that met no process
    DETECTED = "detected"  # under full recovery with the position that the job goes back to
    GRANTED = "granted"  # a spare; where they are finite
    LOADING = "loading"  # the replacement is there
    BACK = "back"  # its state is loaded
    FINISHED = "finished"


@dataclass(frozen=True, slots=True)
class RunFact:
    """A fact noted by the supervisor, with its instant."""

    at_s: float  # since the start of the job
    what: FactKind
    slot: int = -1
    position: int = 0  # samples
    number: int = -1  # of a save
    ends_interval: bool = True
    layers_lost: bool = False  # with the trainer that is detected: nobody else had them


UNTAKEN = (FactKind.RUNNING, FactKind.SAVE_STARTED, FactKind.SAVE_RESUMED, FactKind.SAVE_AWAITED)
"""Facts without effect between a death and its detection."""


@dataclass(slots=True)
class _LogBuilder:
    """The state of the job as facts are read one after the other, and the rows so far."""

    orders: Orders
    rows: list[tuple[float, EventKind, Activity, int, int]] = field(default_factory=list)
    position: int = 0
    frontier: int = 0
    works: bool = True
    saving: int | None = None  # number of the save that it stands still for
    awaits: bool = False  # a save behind it
    behind: set[int] = field(default_factory=set)  # saves under way there
    down: dict[int, Activity] = field(default_factory=dict)
    reverted: set[tuple[float, int]] = field(default_factory=set)  # when, and which server

    @property
    def activity(self) -> Activity:
        for stage in ADVANCE:
            if stage in self.down.values():
                return stage
        if self.saving is not None or self.awaits:
            return Activity.SAVE
        if not self.works:
            return Activity.LOAD  # all are back; the trainer has not resumed yet
        return Activity.LOST if self.position < self.frontier else Activity.USEFUL

    def add(self, at_s: float, kind: EventKind, slot: int = -1) -> None:
        """Append an event, with the activity of the job after it."""
        self.rows.append((at_s, kind, self.activity, self.position, slot))

    def stage(self, at_s: float, before: Activity) -> None:
        """Append an event when the job enters another stage of recovery."""
        if self.activity is not before:
            self.add(at_s, EventKind.STAGE)


def event_log(
    facts: Sequence[RunFact], orders: Orders, n_samples: int, replication: int
) -> EventLog:
    """The log of one run."""
    course = _LogBuilder(orders)
    course.add(0.0, EventKind.STARTED)
    events = list(_in_order(facts, range(orders.n_servers, orders.n_slots)))
    for place, fact in enumerate(events):
        _take(course, fact, events[place + 1 :])
        if fact.what is FactKind.FINISHED:
            break
    columns = zip(*course.rows, strict=True)
    at_s, kind, activity, position, slot = (np.array(column) for column in columns)
    return EventLog(
        np.full(len(at_s), replication, np.int64),
        at_s / S_PER_H,
        kind.astype(np.int64),
        activity.astype(np.int64),
        position / n_samples * orders.useful_s / S_PER_H,
        slot,
    )


def _in_order(facts: Sequence[RunFact], trainers: range) -> Iterator[RunFact]:
    """The facts that count, commits and trainers that are back before deaths that they overtook."""
    unnoticed: set[int] = set()
    back: list[RunFact] = []  # before their place
    for place, fact in enumerate(facts):
        if fact in back or (fact.what in UNTAKEN and unnoticed):
            continue
        if fact.what is FactKind.DETECTED:
            unnoticed.discard(fact.slot)
        elif fact.what is FactKind.STRUCK:
            overtook, later = [], facts[place + 1 :]
            if fact.slot in trainers:
                overtook = _took_layers(fact, later, set(trainers) - unnoticed)
                back += overtook
            if not unnoticed:  # of these commits, those of saves that are under way
                overtook += [one for one in later if one.what is FactKind.SAVE_COMMITTED]
            yield from (replace(one, at_s=fact.at_s) for one in overtook)
            unnoticed.add(fact.slot)
        yield fact


def _took_layers(death: RunFact, later: Sequence[RunFact], others: set[int]) -> list[RunFact]:
    """What says that others had begun to load before this death and are back before it is known."""
    before = list(takewhile(lambda fact: not _is_detection(fact, death), later))
    if len(before) < len(later) and later[len(before)].layers_lost:
        return []
    others -= {fact.slot for fact in before if fact.what is FactKind.LOADING}
    return [fact for fact in before if fact.what is FactKind.BACK and fact.slot in others]


def _is_detection(fact: RunFact, death: RunFact) -> bool:
    return fact.what is FactKind.DETECTED and fact.slot == death.slot


def _take(course: _LogBuilder, fact: RunFact, later: Sequence[RunFact]) -> None:
    before, orders = course.activity, course.orders
    match fact.what:
        case FactKind.STRUCK:
            _fail(course, fact, later)
        case FactKind.MISSED:
            course.add(fact.at_s, EventKind.MISSED, fact.slot)
        case FactKind.DETECTED:
            waits = orders.repair_s is not None
            _go_on(course, fact.slot, Activity.WAIT if waits else Activity.RESCHEDULE)
            course.stage(fact.at_s, before)
        case FactKind.GRANTED | FactKind.LOADING:
            granted = fact.what is FactKind.GRANTED
            _go_on(course, fact.slot, Activity.RESCHEDULE if granted else Activity.LOAD)
            course.stage(fact.at_s, before)
        case FactKind.BACK:
            course.down.pop(fact.slot, None)
            if orders.n_trainers > 1 and fact.slot >= orders.n_servers:
                course.add(fact.at_s, EventKind.REPLACED, fact.slot)  # it may be the last with them
            course.stage(fact.at_s, before)
        case FactKind.RUNNING:
            _run(course, fact)
        case FactKind.PASSED if course.works:  # else in a batch that outlasted a death: `_fail`
            course.position = fact.position
            course.add(fact.at_s, EventKind.CAUGHT_UP)
        case FactKind.STOOD if course.works and not course.down:  # else the failure stands for it
            course.position = fact.position
            course.frontier = max(course.frontier, course.position)
        case FactKind.FINISHED:
            _abandon_all(course, fact.at_s)
            end = fact.at_s, EventKind.FINISHED, Activity.OVER, course.position, -1
            course.rows.append(end)
        case FactKind.SAVE_AWAITED:
            course.awaits = True
            course.add(fact.at_s, EventKind.SAVE_DUE)
        case FactKind.SAVE_STARTED:
            _run(course, fact)
            course.awaits = False
            course.saving = fact.number
            kinds = EventKind.SUB_SAVE_STARTED, EventKind.SAVE_STARTED
            course.add(fact.at_s, kinds[fact.ends_interval])
        case FactKind.SAVE_RESUMED if course.saving is not None:
            course.behind.add(course.saving)
            course.saving = None
            course.add(fact.at_s, EventKind.SAVE_RESUMED)
        case FactKind.SAVE_COMMITTED | FactKind.SAVE_ABANDONED:
            _end_save(course, fact)


def _go_on(course: _LogBuilder, slot: int, stage: Activity) -> None:
    """Move a slot to a stage; under full recovery all noticed slots begin rescheduling again."""
    course.down[slot] = stage
    if course.orders.rolls_back and stage is Activity.RESCHEDULE:
        for other, now in course.down.items():
            course.down[other] = now if now in ADVANCE[:2] else stage


def _run(course: _LogBuilder, fact: RunFact) -> None:
    if course.works:
        return  # it goes on from a save: the row of the commit stands for it
    course.works = True
    course.add(fact.at_s, EventKind.RESUMED)


def _fail(course: _LogBuilder, fact: RunFact, later: Sequence[RunFact]) -> None:
    if course.works and course.saving is None and not course.down:
        stood = next(
            (later_fact for later_fact in later if later_fact.what is FactKind.STOOD), fact
        )
        course.position = stood.position
    course.frontier = max(course.frontier, course.position)
    course.down[fact.slot] = Activity.DETECT
    course.works = course.awaits = False
    _abandon_all(course, fact.at_s)
    course.add(fact.at_s, EventKind.FAILED, fact.slot)
    known = next((later_fact for later_fact in later if _is_detection(later_fact, fact)), fact)
    if course.orders.rolls_back:  # of those who die at once the first noticed takes nobody forward
        course.position = min(known.position, course.position)
        course.add(fact.at_s, EventKind.ROLLED_BACK)
        return
    n_servers = course.orders.n_servers
    gone_back = range(n_servers) if known.layers_lost else range(fact.slot, fact.slot + 1)
    for slot in gone_back:
        if slot < n_servers and (fact.at_s, slot) not in course.reverted:
            course.add(fact.at_s, EventKind.REVERTED, slot)
            course.reverted.add((fact.at_s, slot))


def _abandon_all(course: _LogBuilder, at_s: float) -> None:
    """Abandon all saves in progress."""
    n_under_way = (course.saving is not None) + len(course.behind)
    course.saving = None
    course.behind.clear()
    for _ in range(n_under_way):
        course.add(at_s, EventKind.SAVE_ABANDONED)


def _end_save(course: _LogBuilder, fact: RunFact) -> None:
    if course.saving == fact.number:
        course.saving = None
    elif fact.number in course.behind:
        course.behind.remove(fact.number)
        if course.works:
            course.position = max(course.position, fact.position)  # the job has gone on meanwhile
    else:
        return  # it ended at the failure that the log has, or began unnoticed
    kinds = EventKind.SUB_SAVE_COMMITTED, EventKind.SAVE_COMMITTED
    abandoned = fact.what is FactKind.SAVE_ABANDONED
    course.add(fact.at_s, EventKind.SAVE_ABANDONED if abandoned else kinds[fact.ends_interval])
