"""The saves of a job on the SimPy cluster: due, under way, committed or abandoned."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Any, NamedTuple

from cprsim.records import EventKind
from cprsim.simulate import transitions
from cprsim.simulate.numbers import NONE
from cprsim.simulate.running import NOTICES, SAVES, Running


@dataclass(slots=True, eq=False)
class Save:
    """A save under way."""

    capture: int
    number: int  # of those of its capture that began
    content_h: float
    due_h: float  # progress from which what it stands for is due ...
    completes_h: float  # ... and what of that completes a content; infinite: it is a part of one
    copied: int = NONE  # of a flush: the order in which what it copies was written
    behind_h: float = 0.0  # that it takes in the background
    end: Any = None  # of its stall or its background: an alarm, or flows over a shared storage


class SharedSaves(NamedTuple):
    """Saves of a job that go over the cluster's storage.

    One of so many hours for the job alone has moved hours x `bytes_per_h` bytes in each flow.
    """

    captures: frozenset[int] = frozenset()
    n_flows: int = 1
    bytes_per_h: float = 1.0


ALL_ALONE = SharedSaves()


class Saves:
    """The saves of a job; what is there of each capture has its number."""

    def __init__(self, job: Running) -> None:
        captures = range(job.num.n_captures)
        self._job = job
        self.due_h = [inf for _ in captures]
        self.completes_h = [inf for _ in captures]  # of what is due, as of a save
        self.stand_on_grid(captures)
        self.n_begun = [0 for _ in captures]
        self.in_flight: list[list[Save]] = [[] for _ in captures]
        self.stalling: Save | None = None
        self.n_committed = 0

    def begin_due(self) -> bool:
        """Begin the saves that are due; whether one stalls the job or has to wait."""
        for capture, due_h in enumerate(self.due_h):
            if not transitions.is_due(self._job.num, due_h, self._job.progress_h):
                continue
            saves, in_flight = self._job.num.captures[capture], self.in_flight[capture]
            is_full = len(in_flight) >= saves.in_flight
            if is_full and not saves.skips:
                return True
            completes_h = self.completes_h[capture]
            self.stand_on_grid([capture])
            if not is_full:
                self._begin(capture, self._job.progress_h, due_h, completes_h)
                if self.stalling is not None:
                    return True
        return False

    def has_last_under_way(self) -> bool:
        """Whether a save of the final state is under way."""
        useful_h = self._job.num.useful_h
        return self._job.progress_h >= useful_h and any(
            save.content_h >= useful_h and save.copied == NONE for save in self.under_way()
        )

    def stand_on_grid(self, captures: Iterable[int]) -> None:
        """The next saves of some captures are those that the grid has from here on."""
        num = self._job.num
        for capture in captures:
            due_h = self.due_h[capture] = transitions.due_after(num, capture, self._job.progress_h)
            completes = transitions.completes(num, capture, due_h)
            self.completes_h[capture] = due_h if completes else inf

    def _begin(
        self, capture: int, content_h: float, due_h: float = 0.0, completes_h: float = 0.0,
        copied: int = NONE,
    ) -> None:  # fmt: skip
        """A save begins, or a flush of what was `copied`; what takes no time is committed."""
        num, saves = self._job.num, self._job.num.captures[capture]
        completing = transitions.is_due(num, completes_h, content_h)
        completes_h = completes_h if completing else inf
        save = Save(capture, self.n_begun[capture], content_h, due_h, completes_h, copied)
        self.n_begun[capture] += 1
        self._job.note(EventKind.SAVE_STARTED if completing else EventKind.SUB_SAVE_STARTED)
        save.behind_h = self._job.cost_h(
            saves.background_h, f"background/{saves.name}", save.number
        )
        stall_h = 0.0
        if copied == NONE:
            stall_h = self._job.cost_h(saves.stall_h, f"stall/{saves.name}", save.number)
        if stall_h > 0.0:
            self.stalling = save
            self._take(save, stall_h, self._go_behind)
        else:
            self._go_behind(save)

    def _take(self, save: Save, hours: float, then: Callable[[Save], None]) -> None:
        """A save takes so long, or longer over a storage that others use."""
        captures, n_flows, cap = self._job.shared_saves
        ends = partial(self._job.happens, partial(then, save))
        if save.capture in captures:
            storage = self._job.cluster.storage
            save.end = storage.start(self._job.at, n_flows, hours * cap, cap, SAVES, ends)
        else:
            save.end = self._job.at(hours, SAVES, ends)

    def _go_behind(self, save: Save) -> None:
        """The stall of a save is over: it goes on in the background, or is committed."""
        if save is self.stalling:
            self.stalling = None
        if save.behind_h == 0.0:
            self._commit(save)
            return
        self.in_flight[save.capture].append(save)
        if save.copied == NONE:
            self._job.note(EventKind.SAVE_RESUMED)
        self._take(save, save.behind_h, self._end_behind)

    def _end_behind(self, save: Save) -> None:
        self.in_flight[save.capture].remove(save)
        self._commit(save)

    def _commit(self, save: Save) -> None:
        """A save is valid from here on, or comes to nothing; flushes of it begin."""
        num, saves, corrupt = self._job.num, self._job.num.captures[save.capture], False
        if saves.checks and self._job.copies.error_h < inf:
            self._job.copies.noticed_at_h = self._job.now_h
            self._job.at(0.0, NOTICES, self._job.notice)
        if save.completes_h == inf:
            self._job.note(EventKind.SUB_SAVE_COMMITTED)
            return
        p_fail, p_corrupt = saves.p_fail, num.tiers[saves.tier].p_corrupt
        if p_fail > 0.0 or p_corrupt > 0.0:
            u = self._job.draws.uniform(saves.name, save.number)
            if u < p_fail:
                self._job.note(EventKind.SAVE_ABANDONED)
                return
            corrupt = u < p_fail + (1.0 - p_fail) * p_corrupt
        transitions.keep(num, self._job.copies, saves.tier, save.content_h, corrupt)
        self.n_committed += 1
        self._job.note(EventKind.SAVE_COMMITTED)
        order = self._job.copies.latest
        for number, flush in enumerate(num.captures):
            if (
                flush.after == save.capture
                and transitions.is_flushed(num, number, save.content_h)
                and len(self.in_flight[number]) < flush.in_flight
            ):
                self._begin(number, save.content_h, copied=order)

    def under_way(self) -> list[Save]:
        stalling = [] if self.stalling is None else [self.stalling]
        return [save for in_flight in self.in_flight for save in in_flight] + stalling

    def abandon(self, line: int, before_h: float, silent: bool) -> None:
        """Abandon what is under way; what it stands for is due again, unless that is undone.

        The log has it before the failure, at its line and at the progress of then.
        """
        for save in self.under_way():
            if self._outlives(save) and not silent:
                continue
            save.end.cancel()
            if save is self.stalling:
                self.stalling = None
            else:
                self.in_flight[save.capture].remove(save)
            if self._job.logbook is not None:
                self._job.logbook.note(
                    self._job.now_h, EventKind.SAVE_ABANDONED, before_h, place=line
                )
                line += 1
            is_due = transitions.is_due(self._job.num, save.due_h, self._job.progress_h)
            if is_due and save.copied == NONE:
                self.make_due(save.capture, save.due_h, save.completes_h)

    def make_due(self, capture: int, due_h: float, completes_h: float) -> None:
        """A save is due as the job goes on: one, also if others of its capture are by then."""
        self.due_h[capture] = min(self.due_h[capture], due_h)
        self.completes_h[capture] = min(self.completes_h[capture], completes_h)

    def _outlives(self, save: Save) -> bool:
        """Whether a save is a flush of something that is still there."""
        if save.copied == NONE or save.content_h > self._job.progress_h:
            return False
        copied = self._job.num.captures[self._job.num.captures[save.capture].after]
        return transitions.survives(
            self._job.num, self._job.copies, self._job.slots, copied.tier, save.copied, False
        )
