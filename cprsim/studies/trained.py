"""Runs of the stand-in with failures, beside their twins: what the studies that train share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cprsim.kernel.metrics import Quality
from cprsim.kernel.shared_run import Setting
from cprsim.kernel.trials import Trial, stale_shards
from cprsim.measuring import runs
from cprsim.staleness.names import MORE_BYTES
from cprsim.studies.study import Work
from cprsim.studies.verdicts import free

SHOWN = {
    "partial": "whole saves",
    "round-robin": "round robin",
    "ssu": "CPR-SSU",
    "mfu": "CPR-MFU",
    "scar": "CPR-SCAR",
}
STAND_IN = free("the model, smaller than the paper's", "its clicks", "its training")
Seed = dict[str, Any]  # what `lost_by` found on one


def trials_of(seeds: Sequence[Seed], strategy: str) -> list[list[dict[str, Any]]]:
    """The trials of one strategy, seed by seed."""
    return [[one for one in seed["trials"] if one["strategy"] == strategy] for seed in seeds]


def clicks_of(work: Work) -> str:
    """What the stand-in is trained on, in words."""
    return "generated clicks" if work.clicks is None else work.clicks.name


def shown(strategy: str) -> str:
    """A strategy as people call it."""
    name = SHOWN[strategy.removesuffix(MORE_BYTES)]
    return f"{name}, small tables often" if strategy.endswith(MORE_BYTES) else name


def setting_of(work: Work, scenario: str, seed: int, samples: int | None) -> Setting:
    """Clicks, model and order of one seed, as `cprsim measure` has them; None: all clicks."""
    overrides = work.clicks_overrides()
    if samples is not None and work.clicks is None:
        overrides.append(f"kernel.samples={samples}")
    return runs.setting_of(work.scenario(scenario, overrides), seed)


def lost_by(setting: Setting, trials: Sequence[Trial]) -> Seed:
    """What each trial loses against its twin, and the twin's quality."""
    twin, quality = runs.forked(setting, trials)
    lost = [losses(trial, twin, quality[trial], setting.shards.n_servers) for trial in trials]
    return {"twin": {"auc": twin.auc, "log_loss": twin.log_loss}, "trials": lost}


def losses(trial: Trial, twin: Quality, quality: Quality, n_servers: int) -> dict[str, Any]:
    """What a trial loses against its twin, and how stale which shards were."""
    stale = stale_shards(trial)
    return {
        "strategy": trial.saving.strategy,
        "pls": sum(one.since_save for one in stale) / n_servers,
        "pls_net": sum(one.since_reload for one in stale) / n_servers,
        "auc": twin.auc - quality.auc,
        "log_loss": quality.log_loss - twin.log_loss,
        "interval": trial.saving.interval_fraction,
        "stale": [[one.at_fraction, one.since_save, one.since_reload] for one in stale],
    }
