"""One replication's failures on a trainer of the user's own, for `cprsim train`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cprsim.experiments.accuracy import OnProgress, Run, Train, Trained, replayed
from cprsim.experiments.assemble import Experiment
from cprsim.kernel.replay import Bookmark, LossCurve, TracedTraining
from cprsim.kernel.saving import Saver
from cprsim.measuring.plugged import Plugged, PluggedSetting
from cprsim.measuring.runs import own_setting
from cprsim.records import EventKind, EventLog
from cprsim.recovery.policy import Policy
from cprsim.scenario.reading import LoadedScenario

NO_CURVE = LossCurve(np.zeros(0, np.int64), np.zeros(0))


@dataclass(frozen=True, slots=True)
class OwnModel:
    """What is trained: a model of the user's own."""

    named: str
    n_samples: int
    teacher: None = None
    n_skipped: int = 0

    def __str__(self) -> str:
        return f"{self.named}, trained on {self.n_samples:,} samples"

    @property
    def measured_on(self) -> str:
        """What accuracy was measured on, in words."""
        return f"a trainer of your own: {self}"


class OwnCourse(TracedTraining):
    """A trainer of the user's own going from event to event; it notes no loss on its way."""

    def __init__(self, run: Plugged, goes_back: bool, on_progress: Callable[[int], None]) -> None:
        self.trainer, self._goes_back, self._tell = run, goes_back, on_progress

    def go_to(self, position: int) -> None:
        if self.trainer.position[0] < position:
            self.trainer.run(position)
            self._tell(position)

    def curve(self) -> LossCurve:
        return NO_CURVE

    def bookmark(self) -> Bookmark:
        """Where it stands, with a copy of its state where the run may go back."""
        state = self.trainer.trainer.get_state() if self._goes_back else None
        return Bookmark(self.trainer.position[0], state)

    def go_back(self, to: Bookmark) -> None:
        """Be as at the bookmark; every row may then differ from what was last saved of it."""
        self.trainer.trainer.set_state(to.noted)
        self.trainer.position[0] = to.position
        self.trainer.changed[:] = 1


def runs_of(setting: PluggedSetting, experiment: Experiment, on_progress: OnProgress) -> Train:
    """Runs of one trainer of the user's own."""

    def train(policy: Policy | None, log: EventLog | None) -> Run:
        run, saver, curve = setting.trainer(), None, NO_CURVE
        if policy is None or log is None:
            run.run()
            on_progress("no failures", run.n_samples, run.n_samples)
        else:
            saver, name = Saver(run, setting.shards, policy.sub_saves), policy.name
            goes_back = bool(np.any(log.kind == EventKind.ROLLED_BACK))
            course = OwnCourse(run, goes_back, lambda done: on_progress(name, done, run.n_samples))
            curve = replayed(log, experiment, course, saver)
        return Trained(setting.evaluate(run), curve), saver, ()

    return train


def own_runs(
    loaded: LoadedScenario, experiment: Experiment, on_progress: OnProgress
) -> tuple[OwnModel, Train]:
    """The trainer that the scenario names, made. Raises ScenarioError where it can't be."""
    kernel = loaded.scenario.kernel
    assert kernel is not None
    setting = own_setting(loaded, kernel.seed)
    what = OwnModel(str(kernel.trainer), setting.trainer().n_samples)
    return what, runs_of(setting, experiment, on_progress)
