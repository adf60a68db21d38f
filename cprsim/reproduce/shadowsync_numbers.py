"""The numbers of ShadowSync's result, in parts: throughput, calibration, quality seed by seed.

`shadowsync` tells them; what stands here decides them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from cprsim.errors import ParameterError
from cprsim.failures.distributions import Constant
from cprsim.reproduce.study import Part, Work
from cprsim.stand_in import stand_in
from cprsim.sync import SyncSetting, load_model, throughput
from cprsim.train_in_step import Team, sync_setting, train_in_step, warm_start

SCENARIO = "shadowsync.yaml"
FLATTENS_AT = 14  # trainers, FR-EASGD-5 with 2 sync servers: the one number that is fitted
N_TRAINERS = (1, 2, 5, 8, 10, 12, 14, 16, 18, 20)
N_QUALITY = (5, 10, 20)
SERVERS = (2, 4)
SECONDS = 3600.0
EASGD = {"S-EASGD": "shadow-easgd", "FR-EASGD-5": "fr-easgd:5", "FR-EASGD-30": "fr-easgd:30"}
LONGER_STEPS = "FR-BMUF-30, block rate 1"
ALGORITHMS = EASGD | {
    "S-MA": "shadow-ma",
    "FR-MA-30": "fr-ma:30",
    "S-BMUF": "shadow-bmuf",
    "FR-BMUF-30": "fr-bmuf:30",
    LONGER_STEPS: "fr-bmuf:30",
    "none": "none",
}
MOMENTUM = 0.5  # of BMUF, assumed
BLOCK_RATE = 1 - MOMENTUM  # so that steps in the foreground are as long as those of MA


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
        rate = 1.0 if name == LONGER_STEPS else BLOCK_RATE
        overrides += [f"sync.momentum={MOMENTUM}", f"sync.block_rate={rate}"]
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


def cases() -> list[Case]:
    """Every algorithm with every number of trainers."""
    return [Case(name, n) for name in ALGORITHMS for n in N_QUALITY]


class Start:
    """Clicks of one seed, and the model that all replicas begin with on them."""

    def __init__(self, work: Work, seed: int) -> None:
        loaded = work.scenario(SCENARIO, [f"kernel.seed={seed}"])
        section = loaded.scenario.sync
        if section is None or loaded.scenario.kernel is None:
            raise ParameterError(f"{SCENARIO} needs its sections `sync` and `kernel`")
        self.what, self._scaled, self._work = stand_in(loaded), section.stand_in, work
        self._warm = warm_start(self.what, self._scaled.warm_start_fraction)

    def train(self, case: Case) -> dict[str, float]:
        """Train the rest on replicas."""
        run = train_in_step(Team(self.what, self._small(case), self._warm))
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


def quality_of_a_seed(work: Work, seed: int) -> dict[str, Any]:
    """Every case from the same start on the same clicks."""
    start = Start(work, seed)
    found: dict[str, Any] = {str(case): start.train(case) for case in cases()}
    return found | {"stands for": start.stands_for(), "alone": start.alone()}


def qualities(work: Work) -> list[dict[str, Any]]:
    """One entry per seed."""
    seeds = range(1, 1 + work.pick(1, 5, 20))
    return work.each(
        [Part(f"seed {seed}", partial(quality_of_a_seed, work, seed)) for seed in seeds]
    )
