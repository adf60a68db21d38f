"""The one loop that plays a schedule on a model in training, and its loss on the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cprsim.job.records import EventKind, Floats, Ints
from cprsim.training.kernel.saving import Saver
from cprsim.training.kernel.schedule import Schedule
from cprsim.training.kernel.weights import TrainableModel

N_MARKS = 100  # points of a loss curve


def play(
    model: TrainableModel,
    saver: Saver | None,
    schedule: Schedule,
    go_to: Callable[[int], Any] | None = None,
) -> None:
    """Train, and save, lose and go back as a schedule says; `go_to` trains up to a position.

    Without a saver saves may overlap: what the run goes back to is kept of all of them.
    """
    goes_back = any(event.kind is EventKind.ROLLED_BACK for event in schedule)
    started = committed = model.position  # of the last save
    states = {started: model.state()} if goes_back else {}  # by where saves started
    for event in schedule:
        position = model.on_grid(event.at * model.n_samples)
        if event.kind is EventKind.ROLLED_BACK:
            model.restore(states[position if saver is None else committed])
            model.changed[:] = 1  # any row may differ from what was last saved of it
            if saver is not None:
                saver.lose(range(saver.shards.n_servers), takes_layers=True)
            continue
        if event.kind is EventKind.FINISHED:
            model.observe = None  # nothing is lost any more, so nothing need be known of accesses
        if position > model.position:
            (go_to or model.run)(position)
        if goes_back and event.kind is EventKind.SAVE_STARTED:
            started, states[position] = position, model.state()
        if saver is not None:
            saver.do(event)
            if goes_back and event.kind is EventKind.SAVE_COMMITTED:
                committed, states = started, {started: states[started]}


class Course:
    """Trains a model from event to event, and records its loss at regular marks on the way.

    After a step back the loss of the repeated training replaces the earlier one.
    """

    def __init__(
        self, model: TrainableModel, on_progress: Callable[[int], None] | None = None
    ) -> None:
        self.model, self._tell = model, on_progress or (lambda position: None)
        marks = np.linspace(0, model.n_samples, N_MARKS + 1)[1:]
        self._marks = np.unique([at for at in map(model.on_grid, marks) if at])
        self._noted: list[tuple[int, int, float]] = []  # mark, position, summed loss up to there

    def go_to(self, position: int) -> None:
        """Train up to a position, if the model is not there yet."""
        while self._noted and self._noted[-1][1] > self.model.position:
            self._noted.pop()
        while (first := self.model.position) < position:
            mark = int(np.searchsorted(self._marks, first, side="right"))
            stop = min(position, int(self._marks[mark]))
            self._noted.append((mark, stop, self.model.run(stop) * (stop - first)))
            self._tell(stop)

    def curve(self) -> tuple[Ints, Floats]:
        """Positions (n,), and the mean loss since the one before [nats].

        Each batch is predicted before it is learned from. Empty if the model reports no loss.
        """
        mark, _, loss = np.array(self._noted, float).reshape(-1, 3).T
        summed = np.bincount(mark.astype(np.int64), loss, len(self._marks))
        passed = (self._marks <= self.model.position) & (not np.isnan(summed).any())
        mean = summed / np.diff(self._marks, prepend=0)
        return self._marks[passed], mean[passed]
