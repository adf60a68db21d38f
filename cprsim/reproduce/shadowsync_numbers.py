"""The numbers of ShadowSync's result, in parts: throughput, calibration, quality seed by seed.

`shadowsync` tells them; what stands here decides them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from cprsim.errors import ParameterError
from cprsim.failures.distributions import Constant
from cprsim.in_step import Team, sync_setting, train_in_step, warm_start
from cprsim.reproduce.study import Part, Work
from cprsim.stand_in import stand_in
from cprsim.sync import SyncSetting, load_model, throughput

SCENARIO = "shadowsync.yaml"
FLATTENS_AT = 14  # trainers, FR-EASGD-5 with 2 sync servers: the one number that is fitted
N_TRAINERS = (1, 2, 5, 8, 10, 12, 14, 16, 18, 20)
N_QUALITY = (5, 10, 20)
SERVERS = (2, 4)
SECONDS = 3600.0
EASGD = {"S-EASGD": "shadow-easgd", "FR-EASGD-5": "fr-easgd:5", "FR-EASGD-30": "fr-easgd:30"}
ALGORITHMS = EASGD | {
    "S-MA": "shadow-ma",
    "FR-MA-30": "fr-ma:30",
    "S-BMUF": "shadow-bmuf",
    "FR-BMUF-30": "fr-bmuf:30",
    "none": "none",
}
MOMENTUM = 0.5  # of BMUF, assumed
RATES = (0.15, 0.3, 0.6)  # of the replicas: that of one trainer, and more
TUNING_SEEDS = (101, 102)  # on which learning rates are chosen; reported are others


@dataclass(frozen=True, slots=True)
class Case:
    """An algorithm and a number of trainers."""

    name: str
    n_trainers: int

    def __str__(self) -> str:
        return f"{self.name}, {self.n_trainers}"


def setting_of(work: Work, name: str, n_servers: int = 2) -> SyncSetting:
    """The scenario's setting with another algorithm and other servers."""
    algorithm, _, every = ALGORITHMS[name].partition(":")
    overrides = [f"sync.algorithm={algorithm}", f"sync.servers={n_servers}"]
    overrides.append(f"sync.every={every or 'null'}")
    if algorithm.endswith("bmuf"):
        overrides.append(f"sync.momentum={MOMENTUM}")
    return sync_setting(work.scenario(SCENARIO, overrides))


def calibrated_h(work: Work) -> float:
    """Hours of an iteration at which FR-EASGD-5 with 2 servers saturates at `FLATTENS_AT`.

    By the load model n* = B k t_iter / (2 P m): nothing else is fitted, and nothing to anything
    else.
    """
    setting = setting_of(work, "FR-EASGD-5", 2)
    return setting.iteration.mean_h * FLATTENS_AT / load_model(setting).saturates_at


def over_trainers(work: Work, name: str, n_servers: int) -> dict[str, Any]:
    """Simulated and modelled examples per second and sync gap of one form, over trainers."""
    fitted = replace(setting_of(work, name, n_servers), iteration=Constant(calibrated_h(work)))
    counts = work.pick((1, 5, 10, 14, 20), N_TRAINERS, (*N_TRAINERS, 30, 40))
    settings = [fitted.with_trainers(n) for n in counts]
    simulated, modelled = [throughput(one) for one in settings], [load_model(s) for s in settings]
    return {
        "trainers": list(counts),
        "eps": [one.samples_per_h / SECONDS for one in simulated],
        "gap": [one.gap for one in simulated],
        "eps model": [one.samples_per_h / SECONDS for one in modelled],
        "linear": [one.linear_samples_per_h / SECONDS for one in modelled],
        "gap model": [one.gap for one in modelled],
        "elp": [one.elp for one in settings],
    }


def throughputs(work: Work) -> dict[tuple[str, int], dict[str, Any]]:
    """All forms of EASGD with 2 and 4 servers."""
    forms = [(name, n) for name in EASGD for n in SERVERS]
    parts = [Part(f"{name}, {n} servers", partial(over_trainers, work, name, n))
             for name, n in forms]  # fmt: skip
    return dict(zip(forms, work.each(parts), strict=True))


# ----------------------------------------------------------------------------- quality


def trainer_counts(work: Work) -> tuple[int, ...]:
    """Numbers of trainers whose quality is measured."""
    return work.pick(N_QUALITY[:1], N_QUALITY, N_QUALITY)


def cases(work: Work) -> list[Case]:
    """Every algorithm with every number of trainers."""
    return [Case(name, n) for n in trainer_counts(work) for name in ALGORITHMS]


class Start:
    """Clicks of one seed, and the model that all replicas begin with on them."""

    def __init__(self, work: Work, seed: int) -> None:
        loaded = work.scenario(SCENARIO, [f"kernel.seed={seed}"])
        section = loaded.scenario.sync
        if section is None or loaded.scenario.kernel is None:
            raise ParameterError(f"{SCENARIO} needs its sections `sync` and `kernel`")
        self.what, self._scaled, self._work = stand_in(loaded), section.stand_in, work
        self._warm = warm_start(self.what, self._scaled.warm_start_fraction)

    def train(self, case: Case, rate: float) -> dict[str, float]:
        """Train the rest on replicas, at this learning rate."""
        what = replace(self.what, plan=replace(self.what.plan, rate=rate))
        run = train_in_step(Team(what, self._small(case), self._warm))
        return {
            "auc": run.quality.auc,
            "log_loss": run.quality.log_loss,
            "training_loss": run.training_loss,
            "syncs": run.n_syncs,
            "gain": self._small(case).step_gain,
        }

    def _small(self, case: Case) -> SyncSetting:
        setting = setting_of(self._work, case.name).with_trainers(case.n_trainers)
        return setting.stand_in(self._scaled.threads, self.what.plan.batch)

    def alone(self) -> dict[str, float]:
        """One trainer trains the rest; call it last."""
        self._warm.run()
        quality = self._warm.evaluate(self.what.test)
        return {"auc": quality.auc, "log_loss": quality.log_loss}

    def stands_for(self) -> float:
        """Clicks of the whole job for those of the stand-in."""
        whole = setting_of(self._work, "S-EASGD")
        small = whole.stand_in(self._scaled.threads, self.what.plan.batch)
        return small.stands_for(whole) * len(self.what.train)


def auc_of_a_rate(work: Work, seed: int, rate: float) -> dict[str, float]:
    """AUC of every case at one learning rate."""
    start = Start(work, seed)
    return {str(case): start.train(case, rate)["auc"] for case in cases(work)}


def of_tuning(work: Work) -> dict[str, list[float]]:
    """Mean AUC of every case at each of `RATES`, on seeds that are not reported."""
    seeds = work.pick(TUNING_SEEDS[:1], TUNING_SEEDS, TUNING_SEEDS)
    parts = [
        Part(f"seed {seed}, rate {rate:g}", partial(auc_of_a_rate, work, seed, rate))
        for rate in RATES
        for seed in seeds
    ]
    found = iter(work.each(parts))
    by_rate = [[next(found) for _ in seeds] for _ in RATES]
    return {
        str(case): [float(np.mean([one[str(case)] for one in at_rate])) for at_rate in by_rate]
        for case in cases(work)
    }


def chosen_rates(tuning: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """The learning rate of every case: the one with the highest mean AUC."""
    return {case: RATES[int(np.argmax(auc))] for case, auc in tuning.items()}


def quality_of_a_seed(work: Work, seed: int, rates: Mapping[str, float]) -> dict[str, Any]:
    """Every case from the same start on the same clicks, each at its own learning rate."""
    start = Start(work, seed)
    found: dict[str, Any] = {str(case): start.train(case, rates[str(case)]) for case in cases(work)}
    return found | {"stands for": start.stands_for(), "alone": start.alone()}


def reported_seeds(work: Work) -> range:
    """Seeds whose quality is told."""
    return range(1, 1 + work.pick(1, 5, 20))


def qualities(work: Work, rates: Mapping[str, float]) -> list[dict[str, Any]]:
    """One entry per seed."""
    return work.each(
        [
            Part(f"seed {seed}", partial(quality_of_a_seed, work, seed, rates))
            for seed in reported_seeds(work)
        ]
    )
