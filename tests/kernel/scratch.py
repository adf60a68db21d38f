"""Trials that are trained alone, from their beginning."""

from __future__ import annotations

from cprsim.kernel.metrics import Quality
from cprsim.kernel.saving import Saver
from cprsim.kernel.shared_run import Forkable, _finish
from cprsim.kernel.trials import Trial


def run_trial(setting: Forkable, trial: Trial) -> Quality:
    """One trial from scratch: what its fork has to equal."""
    trainer = setting.trainer()
    saver = Saver(trainer, setting.shards, trial.saving.sub_saves)
    for at, ends_interval in trial.saving.due(0.0, trial.failures[0].at_fraction):
        trainer.run(trainer.on_grid(at * trainer.n_samples))
        saver.save(ends_interval)
    return _finish(setting, trial, trainer, saver)
