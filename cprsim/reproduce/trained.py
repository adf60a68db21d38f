"""Runs of the stand-in with failures, beside their twins: what several results share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cprsim.kernel.metrics import Quality
from cprsim.kernel.shared_run import Baseline, Setting, run_trials
from cprsim.kernel.trials import Trial, stale_shards
from cprsim.measuring import runs
from cprsim.reproduce.study import Work

SHOWN = {
    "partial": "whole saves",
    "round-robin": "round robin",
    "ssu": "CPR-SSU",
    "mfu": "CPR-MFU",
    "scar": "CPR-SCAR",
}
MORE_BYTES = "+"  # after a strategy's key: small tables with every sub-save


def shown(strategy: str) -> str:
    """A strategy as people call it."""
    name = SHOWN[strategy.removesuffix(MORE_BYTES)]
    return f"{name}, small tables often" if strategy.endswith(MORE_BYTES) else name


def setting_of(work: Work, scenario: str, seed: int, samples: int | None) -> Setting:
    """Clicks, model and order of one seed, as `cprsim measure` has them.

    Parameters
    ----------
    seed : of the clicks, where they are generated, and of weights and order
    samples : clicks; None: as many as the scenario says, or as the log has
    """
    overrides = work.clicks_overrides()
    if samples is not None and work.clicks is None:
        overrides.append(f"kernel.samples={samples}")
    return runs.setting_of(work.scenario(scenario, overrides), seed)


def lost_by(setting: Setting, trials: Sequence[Trial]) -> dict[str, Any]:
    """What each trial loses against its twin, and the twin's quality.

    Returns
    -------
    twin: auc and log_loss; trials: strategy, T_save as share of the job, PLS (published, and net),
    AUC lost, log-loss added, and of each stale shard when it failed, and what it lost since its
    last save and since the later of that and its last reload
    """
    twin: Quality | None = None
    found: dict[Trial, Quality] = {}
    for outcome in run_trials(setting, trials):
        if isinstance(outcome, Baseline):
            twin = outcome.quality
        else:
            found[outcome[0]] = outcome[1]
    assert twin is not None, "the twin comes last"
    return {
        "twin": {"auc": twin.auc, "log_loss": twin.log_loss},
        "trials": [
            {
                "strategy": trial.saving.strategy,
                "pls": _pls(trial, setting.shards.n_servers, net=False),
                "pls_net": _pls(trial, setting.shards.n_servers, net=True),
                "auc": twin.auc - found[trial].auc,
                "log_loss": found[trial].log_loss - twin.log_loss,
                "interval": trial.saving.interval_fraction,
                "stale": [
                    [one.at_fraction, one.since_save, one.since_reload]
                    for one in stale_shards(trial)
                ],
            }
            for trial in trials
        ],
    }


def _pls(trial: Trial, n_servers: int, *, net: bool) -> float:
    lost = [one.since_reload if net else one.since_save for one in stale_shards(trial)]
    return sum(lost) / n_servers
