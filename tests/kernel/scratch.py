"""Trials that are trained alone, from their beginning."""

from __future__ import annotations

from cprsim.kernel.metrics import Quality
from cprsim.kernel.playing import play
from cprsim.kernel.saving import Saver
from cprsim.kernel.shared_run import Runnable
from cprsim.kernel.trials import Trial


def run_trial(setting: Runnable, trial: Trial) -> Quality:
    """One trial from scratch: what its fork has to equal."""
    model = setting.trainer()
    play(model, Saver(model, setting.shards, trial.saving.sub_saves), trial.schedule())
    return model.evaluate()
