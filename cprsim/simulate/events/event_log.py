"""What SimPy logs of a replication under a recovery system, as an event log like any other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise

import numpy as np

from cprsim.records import Activity, EventKind, EventLog
from cprsim.simulate.events.replication import LogEntry, What

NO_SLOT = -1
KINDS: dict[What, EventKind] = {
    What.STARTED: EventKind.STARTED,
    What.SAVE_AWAITED: EventKind.SAVE_DUE,
    What.SAVE_STARTED: EventKind.SAVE_STARTED,
    What.SAVE_RESUMED: EventKind.SAVE_RESUMED,
    What.SAVE_COMMITTED: EventKind.SAVE_COMMITTED,
    What.PART_STARTED: EventKind.SUB_SAVE_STARTED,
    What.PART_COMMITTED: EventKind.SUB_SAVE_COMMITTED,
    What.SAVE_FAILED: EventKind.SAVE_ABANDONED,
    What.SAVE_ABANDONED: EventKind.SAVE_ABANDONED,
    What.FAILED: EventKind.FAILED,
    What.MISSED: EventKind.MISSED,
    What.REVERTED: EventKind.REVERTED,
    What.ROLLED_BACK: EventKind.ROLLED_BACK,
    What.STAGE: EventKind.STAGE,
    What.REPLACED: EventKind.REPLACED,
    What.RESUMED: EventKind.RESUMED,
    What.CAUGHT_UP: EventKind.CAUGHT_UP,
    What.FINISHED: EventKind.FINISHED,
    What.STOPPED: EventKind.STOPPED,
}
"""What is not here (cycles taken at once, saves left out) is no event of the log."""
SAVES_BEGIN = (What.SAVE_STARTED, What.PART_STARTED)
SAVES_END = (
    What.SAVE_COMMITTED, What.PART_COMMITTED, What.SAVE_FAILED, What.SAVE_ABANDONED
)  # fmt: skip
OVER = (What.FINISHED, What.STOPPED)
OF_A_FAILURE = (What.FAILED, What.MISSED, What.REVERTED, What.ROLLED_BACK)


def event_log(entries: Sequence[LogEntry], replication: int) -> EventLog:
    """The log of one replication.

    Parameters
    ----------
    replication : number that its rows carry
    """
    kept = list(_in_full(_abandoned_first(entries)))
    kept = kept[:1] + [one for before, one in pairwise(kept) if not _says_nothing(before, one)]
    n = len(kept)
    activities = [
        Activity.OVER if entry.part == "over" else Activity[entry.part.upper()] for entry in kept
    ]
    return EventLog(
        np.full(n, replication, dtype=np.int64),
        np.array([entry.at_h for entry in kept]),
        np.array([KINDS[entry.what] for entry in kept], dtype=np.int64),
        np.array(activities, dtype=np.int64),
        np.array([entry.progress_h for entry in kept]),
        np.array(
            [entry.detail if isinstance(entry.detail, int) else NO_SLOT for entry in kept],
            dtype=np.int64,
        ),
    )


def _abandoned_first(entries: Sequence[LogEntry]) -> Iterator[LogEntry]:
    """The same, but what a failure abandons comes before the failure, at the progress of that."""
    held: list[LogEntry] = []  # the failure, and what else it does, until that is known
    for entry in entries:
        if entry.what is What.SAVE_ABANDONED and held:
            yield entry._replace(progress_h=held[0].progress_h)
        elif held and entry.at_h == held[0].at_h and entry.what in OF_A_FAILURE:
            held.append(entry)
        else:
            yield from held
            held = [entry] if entry.what in OF_A_FAILURE else []
            if not held:
                yield entry
    yield from held


def _in_full(entries: Iterable[LogEntry]) -> Iterator[LogEntry]:
    """What is an event, and besides: a stage that goes on as another ends, a save cut off."""
    part, n_open = "", 0
    for _, together in groupby(entries, key=lambda entry: entry.at_h):
        group = list(together)
        events = [entry for entry in group if entry.what in KINDS]
        if not events and group[-1].part != part:
            yield group[-1]._replace(what=What.STAGE, detail="")
        for entry in events:
            n_open += (entry.what in SAVES_BEGIN) - (entry.what in SAVES_END)
            if entry.what in OVER:
                yield from [entry._replace(what=What.SAVE_ABANDONED, detail="")] * n_open
            yield entry
        part = group[-1].part


def _says_nothing(before: LogEntry, entry: LogEntry) -> bool:
    """Whether an entry is a stage that its hours go into anyhow."""
    return entry.what is What.STAGE and entry.part == before.part
