"""Many trials of one run: their common part is trained once, each trial from its first failure on.

Saving changes no weight, so one run without failures serves all ways of saving: each has a saver
that follows the run. At a trial's first failure the model continues alone with that saver, as a
fork, and is then restored. A fork equals a run from scratch bit by bit; the run itself is the
baseline (the twin) of all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from cprsim.training.kernel.loops import Array
from cprsim.training.kernel.metrics import Quality
from cprsim.training.kernel.playing import play
from cprsim.training.kernel.saving import Saver
from cprsim.training.kernel.shards import Shards
from cprsim.training.kernel.trials import Saving, Trial
from cprsim.training.kernel.weights import TrainableModel


@dataclass(frozen=True, slots=True)
class Baseline:
    """The run without failures."""

    quality: Quality
    bytes_written: dict[Saving, int]  # by all saves of a run, per way of saving


class SharedRun:
    """One run without failures, and the trials that branch off it.

    `until` has, for each way of saving, the share of the run up to which it is followed.
    """

    def __init__(
        self, model: TrainableModel, shards: Shards, until: Mapping[Saving, float]
    ) -> None:
        self.model, self.until, self.at_fraction = model, until, 0.0
        self.savers = {
            saving: Saver(model, shards, saving.sub_saves, follows=True) for saving in until
        }
        model.observe = self._observe

    def _observe(self, rows: Array) -> None:
        for saver in self.savers.values():
            if saver.tracker is not None:
                saver.tracker.observe(rows)

    def advance(self, until: float) -> None:
        """Train on to a share of the run, with the saves that are due up to it."""
        due = [
            (save, saver)
            for saving, saver in self.savers.items()
            for save in saving.due(self.at_fraction, min(until, self.until[saving]))
        ]
        for save, saver in sorted(due, key=lambda one: one[0].at):
            play(self.model, saver, (save,), self._train)
        self._train(self.model.on_grid(until * self.model.n_samples))
        self.at_fraction = until

    def _train(self, position: int) -> None:
        """Train up to a position, and mark for every saver what changed."""
        self.model.run(position)
        for saver in self.savers.values():
            saver.changed |= self.model.changed
        self.model.changed[:] = 0

    def leave(self, before: float) -> None:
        """Drop the savers whose trials all branched off before this share of the run."""
        self.savers = {
            saving: saver for saving, saver in self.savers.items() if self.until[saving] >= before
        }

    @contextmanager
    def fork(self, saving: Saving) -> Iterator[Saver]:
        """Let the model continue alone from here with one way of saving; then restore it."""
        state, observe = self.model.state(), self.model.observe
        self.model.observe = None
        yield self.savers[saving].fork()
        self.model.restore(state)
        self.model.changed[:], self.model.observe = 0, observe


def run_trials(
    model: TrainableModel, shards: Shards, trials: Iterable[Trial], savings: Iterable[Saving] = ()
) -> Iterator[tuple[Trial, Quality] | Baseline]:
    """Train every trial, in the order of their first failures, and at the end their twin.

    The model is at the start of its run.
    """
    waiting = sorted(trials, key=lambda trial: trial.failures[0].at_fraction)
    last = {trial.saving: trial.failures[0].at_fraction for trial in waiting}
    shared = SharedRun(model, shards, last | dict.fromkeys(savings, 1.0))
    for trial in waiting:
        first = trial.failures[0].at_fraction
        shared.leave(before=first)
        shared.advance(first)
        with shared.fork(trial.saving) as saver:
            play(model, saver, trial.schedule(after=first))
            quality = model.evaluate()
        yield trial, quality
    shared.leave(before=1.0)
    shared.advance(1.0)
    written = {saving: saver.bytes_written for saving, saver in shared.savers.items()}
    yield Baseline(model.evaluate(), written)
