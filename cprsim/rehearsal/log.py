"""What the supervisor notes of a run, and the event log that it makes: a log like any other.

Facts are noted as they are learned; the log says what the job did. Between the two stand these
conventions:

- A commit counts, also where a process died after its vote and before the commit: the log has the
  commit before the failure.
- A save that starts, and work that is taken up, while a dead process is not noticed yet come to
  nothing: the log leaves them out. From a failure to its detection the job is in `detect`.
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

from cprsim.records import Activity, EventKind, EventLog
from cprsim.rehearsal.orders import SECONDS, Orders

ADVANCE = (
    Activity.DETECT,
    Activity.WAIT,
    Activity.RESCHEDULE,
    Activity.LOAD,
)  # the least advanced first


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
    DETECTED = "detected"
    GRANTED = "granted"  # a spare; where they are finite
    LAYERS_LOST = "layers lost"  # with this trainer: nobody else had them
    ROLLED_BACK = "rolled back"  # for a death: the position that the whole job goes back to
    LOADING = "loading"  # the replacement is there
    BACK = "back"  # its state is loaded
    FINISHED = "finished"


@dataclass(frozen=True, slots=True)
class RunFact:
    """What the supervisor noted at one instant."""

    at_s: float  # since the start of the job
    what: FactKind
    slot: int = -1
    position: int = 0  # samples
    number: int = -1  # of a save
    ends_interval: bool = True


SAVES = (FactKind.SAVE_COMMITTED, FactKind.SAVE_ABANDONED)
UNTAKEN = (FactKind.RUNNING, FactKind.SAVE_RESUMED, FactKind.SAVE_AWAITED)
"""What comes to nothing while a dead process is not noticed yet."""


@dataclass(frozen=True, slots=True)
class _Row:
    at_s: float
    kind: EventKind
    activity: Activity
    position: int
    slot: int = -1


@dataclass(slots=True)
class _LogBuilder:
    """The state of the job as facts are read one after the other, and the rows so far."""

    orders: Orders
    rows: list[_Row] = field(default_factory=list)
    position: int = 0
    frontier: int = 0
    content: int = 0  # of the last committed save
    works: bool = True
    saving: RunFact | None = None
    awaits: bool = False  # a save behind it
    behind: dict[int, RunFact] = field(default_factory=dict)  # saves under way there, by number
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
        """An event, with what the job does from it on."""
        self.rows.append(_Row(at_s, kind, self.activity, self.position, slot))

    def stage(self, at_s: float, before: Activity) -> None:
        """Add an event where the job has gone on to another stage of recovery."""
        if self.activity is not before:
            self.add(at_s, EventKind.STAGE)


def event_log(
    facts: Sequence[RunFact], orders: Orders, n_samples: int, replication: int
) -> EventLog:
    """The log of one run."""
    course = _LogBuilder(orders)
    course.add(0.0, EventKind.STARTED)
    known = list(_in_order(facts, range(orders.n_servers, orders.n_slots)))
    for place, fact in enumerate(known):
        _take(course, fact, known[place + 1 :])
        if fact.what is FactKind.FINISHED:
            break
    rows = course.rows
    progress_h = np.array([row.position for row in rows]) / n_samples * orders.useful_s / SECONDS
    return EventLog(
        np.full(len(rows), replication, np.int64),
        np.array([row.at_s for row in rows]) / SECONDS,
        np.array([row.kind for row in rows], np.int64),
        np.array([row.activity for row in rows], np.int64),
        progress_h,
        np.array([row.slot for row in rows], np.int64),
    )


def _in_order(facts: Sequence[RunFact], trainers: range) -> Iterator[RunFact]:
    """The facts that count, commits and trainers that are back before deaths that they overtook."""
    commits = {fact.number: fact for fact in facts if fact.what is FactKind.SAVE_COMMITTED}
    unnoticed: set[int] = set()
    started: set[int] = set()  # saves under way
    ended: set[int] = set()
    back: list[RunFact] = []  # before their place
    for place, fact in enumerate(facts):
        if fact in back:
            continue
        if fact.what is FactKind.STRUCK:
            if fact.slot in trainers:
                overtook = _took_layers(fact, facts[place + 1 :], set(trainers) - unnoticed)
                back += overtook
                yield from (replace(one, at_s=fact.at_s) for one in overtook)
            if not unnoticed:
                for number in sorted(started & commits.keys()):
                    yield replace(commits[number], at_s=fact.at_s)
                    ended.add(number)
                started -= ended
            unnoticed.add(fact.slot)
        elif fact.what is FactKind.DETECTED:
            unnoticed.discard(fact.slot)
        elif fact.what is FactKind.SAVE_STARTED:
            if unnoticed:
                ended.add(fact.number)
                continue
            started.add(fact.number)
        elif fact.what in SAVES:
            if fact.number in ended:
                continue
            started.discard(fact.number)
        elif fact.what in UNTAKEN and unnoticed:
            continue
        yield fact


def _took_layers(death: RunFact, later: Sequence[RunFact], others: set[int]) -> list[RunFact]:
    """What says that others had begun to load before this death and are back before it is known."""
    if _takes_layers(death, later):
        return []
    known = FactKind.DETECTED, death.slot
    before = list(takewhile(lambda fact: (fact.what, fact.slot) != known, later))
    others -= {fact.slot for fact in before if fact.what is FactKind.LOADING}
    return [fact for fact in before if fact.what is FactKind.BACK and fact.slot in others]


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
            course.rows.append(_Row(fact.at_s, EventKind.FINISHED, Activity.OVER, course.position))
        case FactKind.SAVE_AWAITED:
            course.awaits = True
            course.add(fact.at_s, EventKind.SAVE_DUE)
        case FactKind.SAVE_STARTED:
            _run(course, fact)
            course.awaits = False
            course.saving = replace(fact, position=course.position)
            kinds = EventKind.SUB_SAVE_STARTED, EventKind.SAVE_STARTED
            course.add(fact.at_s, kinds[fact.ends_interval])
        case FactKind.SAVE_RESUMED if course.saving is not None:
            course.behind[fact.number], course.saving = course.saving, None
            course.add(fact.at_s, EventKind.SAVE_RESUMED)
        case FactKind.SAVE_COMMITTED | FactKind.SAVE_ABANDONED:
            _end_save(course, fact)


def _go_on(course: _LogBuilder, slot: int, stage: Activity) -> None:
    """A slot goes on to a stage; under full recovery all that were noticed begin it again."""
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
        stood = next((one for one in later if one.what is FactKind.STOOD), fact)
        course.position = stood.position
    reached = course.position
    course.frontier = max(course.frontier, reached)
    course.down[fact.slot] = Activity.DETECT
    course.works = course.awaits = False
    _abandon_all(course, fact.at_s)
    course.add(fact.at_s, EventKind.FAILED, fact.slot)
    if course.orders.rolls_back:
        course.position = _back_to(course, fact, later)
        course.add(fact.at_s, EventKind.ROLLED_BACK)
        return
    n_servers = course.orders.n_servers
    all_go_back = _takes_layers(fact, later)
    gone_back = range(n_servers) if all_go_back else range(fact.slot, fact.slot + 1)
    for slot in gone_back:
        if slot < n_servers and (fact.at_s, slot) not in course.reverted:
            course.add(fact.at_s, EventKind.REVERTED, slot)
            course.reverted.add((fact.at_s, slot))


def _takes_layers(death: RunFact, later: Sequence[RunFact]) -> bool:
    """Whether, as was found when it was noticed, no trainer had the layers any more."""
    found = (
        fact.what is FactKind.LAYERS_LOST
        for fact in later
        if fact.slot == death.slot and fact.what in (FactKind.LAYERS_LOST, FactKind.STRUCK)
    )
    return next(found, False)


def _abandon_all(course: _LogBuilder, at_s: float) -> None:
    """Saves that are under way come to nothing."""
    n_under_way = (course.saving is not None) + len(course.behind)
    course.saving = None
    course.behind.clear()
    for _ in range(n_under_way):
        course.add(at_s, EventKind.SAVE_ABANDONED)


def _back_to(course: _LogBuilder, death: RunFact, later: Sequence[RunFact]) -> int:
    """Where the job goes back to, as was found when the death was noticed.

    Of those who die at once any may be noticed first: nobody goes forward by that.
    """
    found = (
        fact.position
        for fact in later
        if fact.what is FactKind.ROLLED_BACK and fact.slot == death.slot
    )
    return min(next(found, course.content), course.position)


def _end_save(course: _LogBuilder, fact: RunFact) -> None:
    if course.saving is not None and course.saving.number == fact.number:
        save, course.saving = course.saving, None
    elif fact.number in course.behind:
        save = course.behind.pop(fact.number)
        if course.works:
            course.position = max(course.position, fact.position)  # the job has gone on meanwhile
    else:
        return  # abandoned at the failure that the log has
    if fact.what is FactKind.SAVE_ABANDONED:
        course.add(fact.at_s, EventKind.SAVE_ABANDONED)
        return
    course.content = save.position
    kinds = EventKind.SUB_SAVE_COMMITTED, EventKind.SAVE_COMMITTED
    course.add(fact.at_s, kinds[fact.ends_interval])
