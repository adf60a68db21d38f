"""Many trials of one run: their common part is trained once, each trial from its first failure on.

Saving changes no weight, so one run without failures serves every way of saving at once: each has
a saver that follows the run. Where a trial's first failure strikes, the run as that saver sees it
is copied into a fork, which goes on alone to the end. A fork is bit by bit what a run from scratch
would have been; the run itself is the baseline (the twin) of all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Protocol

from cprsim.errors import ParameterError
from cprsim.kernel.clicks.records import Clicks
from cprsim.kernel.loops import Array
from cprsim.kernel.metrics import Quality
from cprsim.kernel.saving import Savable, Saver, copy_state
from cprsim.kernel.shape import ModelShape
from cprsim.kernel.shards import Shards
from cprsim.kernel.training import ProxyTrainer, TrainingPlan
from cprsim.kernel.trials import Saving, Trial

MOST_COPIED_BYTES = 8 << 30  # of tables that all savers of one run hold together


class TrainingRun(Savable, Protocol):
    """A model on its way through its samples."""

    @property
    def n_samples(self) -> int:
        """Samples in the whole run."""

    def on_grid(self, samples: float) -> int:
        """The position between two batches that is nearest to a number of samples."""

    def run(self, until: int | None = None) -> object:
        """Train up to a position on the grid; None: the end."""

    def follower(self) -> TrainingRun:
        """The same run seen by one more saver: it moves with this one, its marks are its own."""


class Forkable(Protocol):
    """What every trial of one run shares, for any trainer."""

    @property
    def shards(self) -> Shards:
        """Which server holds which rows."""

    def trainer(self) -> TrainingRun:
        """A run at its start."""

    def fork_of(self, run: TrainingRun) -> AbstractContextManager[TrainingRun]:
        """A run of its own that goes on from where another is; that one stands still meanwhile."""

    def evaluate(self, run: TrainingRun) -> Quality:
        """How good the model of a run is on samples that it is not trained on."""

    def require_memory(self, n_savers: int) -> None:
        """Raise ParameterError where so many ways of saving can't be followed at once."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What every trial of one run of the built-in model shares."""

    shape: ModelShape
    train: Clicks
    test: Clicks
    plan: TrainingPlan
    shards: Shards

    def trainer(self) -> ProxyTrainer:
        trainer = ProxyTrainer(self.shape, self.train, self.plan)
        trainer.initialise()
        return trainer

    @contextmanager
    def fork_of(self, run: TrainingRun) -> Iterator[TrainingRun]:
        assert isinstance(run, ProxyTrainer)
        other = ProxyTrainer(self.shape, self.train, self.plan)
        copy_state(run, other)
        yield other

    def evaluate(self, run: TrainingRun) -> Quality:
        assert isinstance(run, ProxyTrainer)
        return run.evaluate(self.test)

    def require_memory(self, n_savers: int) -> None:
        """Each way of saving holds a copy of the tables."""
        n_bytes = n_savers * self.shape.table_bytes
        if n_bytes > MOST_COPIED_BYTES:
            raise ParameterError(
                f"{n_savers} ways of saving at once would hold {n_bytes / 2**30:.1f} GiB of copied "
                f"tables; at most {MOST_COPIED_BYTES / 2**30:g}: lower `kernel.most_rows`"
            )


@dataclass(frozen=True, slots=True)
class Baseline:
    """The run without failures."""

    quality: Quality
    bytes_written: dict[Saving, int]  # by all saves of a run, per way of saving


class _Followed:
    """A run and one saver that follows it, with marks of what changed of its own."""

    def __init__(self, run: TrainingRun, shards: Shards, saving: Saving) -> None:
        self.saving = saving
        self.trainer = run.follower()
        self.saver = Saver(self.trainer, shards, saving.sub_saves)

    def note(self, changed: Array) -> None:
        self.trainer.changed |= changed


class SharedRun:
    """One run without failures, and all that may branch off it.

    `until` says of each way of saving up to which share of the run it is followed.
    """

    def __init__(self, setting: Forkable, until: Mapping[Saving, float]) -> None:
        self.setting, self.until = setting, until
        self.trainer = setting.trainer()
        self.at_fraction = 0.0
        setting.require_memory(len(until))
        self._followed = {
            saving: _Followed(self.trainer, setting.shards, saving) for saving in until
        }
        self.trainer.observe = self._observe

    def _observe(self, rows: Array) -> None:
        for one in self._followed.values():
            if one.trainer.observe is not None:
                one.trainer.observe(rows)

    def advance(self, until: float) -> None:
        """Train on to a share of the run, saving on the way; what is due there is saved."""
        due = sorted(
            ((at, saving, ends) for saving in self.until for at, ends in self._due(saving, until)),
            key=lambda one: one[0],
        )
        for at, saving, ends_interval in due:
            if saving in self._followed:
                self._train(at)
                self._followed[saving].saver.save(ends_interval)
        self._train(until)
        self.at_fraction = until

    def _due(self, saving: Saving, until: float) -> Iterator[tuple[float, bool]]:
        return saving.due(self.at_fraction, min(until, self.until[saving]))

    def _train(self, at_fraction: float) -> None:
        """Train up to a share of the run, and mark for every saver what changed."""
        self.trainer.run(self.trainer.on_grid(at_fraction * self.trainer.n_samples))
        for one in self._followed.values():
            one.note(self.trainer.changed)
        self.trainer.changed[:] = 0

    def leave(self, before: float) -> None:
        """Follow no longer what nothing branches off at a share of the run, or later."""
        for saving, last in self.until.items():
            if last < before:
                self._followed.pop(saving, None)

    @contextmanager
    def fork(self, saving: Saving) -> Iterator[tuple[TrainingRun, Saver]]:
        """A run of its own that goes on from here, saved in one of the ways."""
        one = self._followed[saving]
        with self.setting.fork_of(one.trainer) as run:
            yield run, one.saver.fork(run)

    def bytes_written(self) -> dict[Saving, int]:
        """By each way of saving so far."""
        return {saving: one.saver.bytes_written for saving, one in self._followed.items()}


def run_trials(
    setting: Forkable, trials: Iterable[Trial], savings: Iterable[Saving] = ()
) -> Iterator[tuple[Trial, Quality] | Baseline]:
    """Train every trial, in the order of their first failures, and at the end their twin."""
    waiting = sorted(trials, key=lambda trial: trial.failures[0].at_fraction)
    last = {trial.saving: trial.failures[0].at_fraction for trial in waiting}
    shared = SharedRun(setting, last | dict.fromkeys(savings, 1.0))
    for trial in waiting:
        shared.leave(before=trial.failures[0].at_fraction)
        shared.advance(trial.failures[0].at_fraction)
        with shared.fork(trial.saving) as (run, saver):
            quality = _finish(setting, trial, run, saver)
        yield trial, quality
    shared.leave(before=1.0)
    shared.advance(1.0)
    yield Baseline(setting.evaluate(shared.trainer), shared.bytes_written())


def _finish(setting: Forkable, trial: Trial, trainer: TrainingRun, saver: Saver) -> Quality:
    """From a trial's first failure to its end."""
    for at, event in trial.events(after=trial.failures[0].at_fraction):
        trainer.run(trainer.on_grid(at * trainer.n_samples))
        if isinstance(event, bool):
            saver.save(ends_interval=event)
        else:
            saver.lose(event)
    trainer.observe = None  # nothing is lost any more, so nothing need be known of accesses
    trainer.run()
    return setting.evaluate(trainer)
