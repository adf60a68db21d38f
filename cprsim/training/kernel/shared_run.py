"""Many trials of one run: their common part is trained once, each trial from its first failure on.

Saving changes no weight, so one run without failures serves all ways of saving: each has a saver
that follows the run. At a trial's first failure the model continues alone with that saver, as a
fork, and is then restored. A fork equals a run from scratch bit by bit; the run itself is the
baseline (the twin) of all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
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


def run_trials(
    model: TrainableModel, shards: Shards, trials: Iterable[Trial], savings: Iterable[Saving] = ()
) -> Iterator[tuple[Trial, Quality] | Baseline]:
    """Train every trial, in the order of their first failures, and at the end their twin.

    The model is at the start of its run.
    """
    waiting = sorted(trials, key=lambda trial: trial.failures[0].at_fraction)
    until = {trial.saving: trial.failures[0].at_fraction for trial in waiting}
    until |= dict.fromkeys(savings, 1.0)  # share of the run up to which each is followed
    savers = {saving: Saver(model, shards, saving.sub_saves, follows=True) for saving in until}
    at = 0.0

    def observe(rows: Array) -> None:
        for saver in savers.values():
            saver.tracker.observe(rows)

    model.observe = observe
    for trial in waiting:
        before, at = at, trial.failures[0].at_fraction
        _advance(model, savers, until, before, at)
        state = model.state()
        model.observe = None  # a fork continues alone, with a saver that observes it
        play(model, savers[trial.saving].fork(), trial.schedule(after=at))
        quality = model.evaluate()
        model.restore(state)
        model.changed[:], model.observe = 0, observe
        yield trial, quality
    _advance(model, savers, until, at, 1.0)
    yield Baseline(model.evaluate(), {saving: s.bytes_written for saving, s in savers.items()})


def _advance(
    model: TrainableModel, savers: dict[Saving, Saver], until: Mapping[Saving, float],
    before: float, at: float,
) -> None:  # fmt: skip
    """Train on to a share of the run, with the saves that are due; drops savers left behind."""

    def train(position: int) -> None:
        """Train up to a position, and mark for every saver what changed."""
        model.run(position)
        for saver in savers.values():
            saver.changed |= model.changed
        model.changed[:] = 0

    for saving in [saving for saving in savers if until[saving] < at]:
        del savers[saving]
    due = [
        (save, saver)
        for saving, saver in savers.items()
        for save in saving.due(before, min(at, until[saving]))
    ]
    for save, saver in sorted(due, key=lambda one: one[0].at):
        play(model, saver, (save,), train)
    train(model.on_grid(at * model.n_samples))
