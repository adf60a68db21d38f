"""ShadowSync (Zheng et al. 2020, arXiv 2003.03477): throughput, sync gap, quality.

Nearly everything of that paper is recalled. One number is fitted: that FR-EASGD-5 flattens at about
14 trainers with 2 sync servers. All else is then a prediction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import nan
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from cprsim.commands.reproduce.estimates import StudyEstimate, series
from cprsim.commands.reproduce.study import Summary, Work
from cprsim.commands.reproduce.verdicts import Ours, Tested
from cprsim.job.distributions import Constant
from cprsim.job.records import HIGH, NO_NUMBER, S_PER_H, Floats
from cprsim.job.sync_setting import SyncSetting
from cprsim.pages.chart import Band, Panel, Series
from cprsim.training.in_step.load_model import load_model, saturates_at
from cprsim.training.in_step.simulation import speed_at
from cprsim.training.measuring.fit import POWER
from cprsim.training.proxy_model import proxy_model
from cprsim.training.train_in_step import Team, sync_setting, train_in_step, warm_start

SCENARIO = "shadowsync.yaml"
FLATTENS_AT = 14  # trainers, FR-EASGD-5 with 2 sync servers: the one number that is fitted
N_TRAINERS = (1, 2, 5, 8, 10, 12, 14, 16, 18, 20)
N_QUALITY = (5, 10, 20)
SERVERS = (2, 4)
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

LINEAR_WITHIN = 0.03  # of n times the throughput of one trainer
NO_WORSE = 0.0005  # AUC
MANY_TRAINERS = 5  # with fewer a trainer's own link bounds its exchanges, and not the servers

DRAWN = ("S-EASGD", "FR-EASGD-30", "S-MA", "FR-MA-30", "S-BMUF", "FR-BMUF-30")  # as many as looks
PAIRS = (
    ("S-EASGD", "FR-EASGD-5"), ("S-EASGD", "FR-EASGD-30"), ("S-MA", "FR-MA-30"),
    ("S-BMUF", "FR-BMUF-30"),
)  # fmt: skip
EASGD_SETUPS = tuple((name, n) for name in EASGD for n in SERVERS)  # algorithm, sync servers
QUALITY_CASES = tuple((name, n) for name in ALGORITHMS for n in N_QUALITY)  # algorithm, trainers
Curves = Mapping[tuple[str, int], pd.DataFrame]  # of forms over trainers, see `of_form`


def shadowsync(work: Work) -> Summary:
    """Throughput over trainers and servers, and the quality of a stand-in, seed by seed."""
    of_forms = work.compute({form: partial(of_form, work, *form) for form in EASGD_SETUPS})
    curves = {
        form: pd.DataFrame(columns).set_index("trainers") for form, columns in of_forms.items()
    }
    seeds = work.per_seed(partial(quality_of_a_seed, work), work.pick(1, 5, 20))
    # (algorithm, trainers), quantity: of each seed
    runs = pd.concat({n: pd.DataFrame(seed["runs"]) for n, seed in enumerate(seeds)})
    quality = runs.set_index(["algorithm", "trainers"])
    return work.study.summary(
        _of_throughput(work, curves) | _of_quality(quality, len(seeds)),
        _tables(curves, quality, seeds),
        *_panels(curves, quality),
        n_seeds=len(seeds),
        iteration_ms=3.6e6 * calibrated_h(work),
        clicks=seeds[0]["stands for"] / 1e6,
    )


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
    return setting.iteration.mean_h * FLATTENS_AT / saturates_at(setting)


def of_form(work: Work, name: str, n_servers: int) -> dict[str, list[float]]:
    """Simulated and modelled examples per second and sync gap of one form, over trainers."""
    fitted = replace(setting_of(work, name, n_servers), iteration=Constant(calibrated_h(work)))
    counts = work.pick((1, 5, 10, 14, 20), N_TRAINERS, (*N_TRAINERS, 30, 40))
    points = [speed_at(fitted, n) for n in counts]
    return {
        "trainers": list(counts),
        "eps": [point.samples_per_h / S_PER_H for point in points],
        "gap": [point.gap for point in points],
        "eps model": [load_model(point.setting).samples_per_h / S_PER_H for point in points],
        "elp": [point.setting.elp for point in points],
    }


def quality_of_a_seed(work: Work, seed: int) -> dict[str, Any]:
    """Every case from the same start on the same clicks."""
    loaded = work.scenario(SCENARIO, [f"kernel.seed={seed}"])
    section = loaded.scenario.sync
    assert section is not None, "the scenario has trainers in step"
    stand_in, threads = proxy_model(loaded), section.stand_in.threads
    start = warm_start(stand_in, section.stand_in.warm_start_fraction)
    runs = []
    for name, n in QUALITY_CASES:
        setting = replace(setting_of(work, name), n_trainers=n)
        small = setting.stand_in(threads, stand_in.plan.batch)
        quality, n_syncs = train_in_step(Team(stand_in, small, start))
        runs.append(
            {
                "algorithm": name,
                "trainers": n,
                "auc": quality.auc,
                "log_loss": quality.log_loss,
                "syncs": n_syncs,
                "gain": small.step_gain,
            }
        )
    full_setting = setting_of(work, "S-EASGD")
    small = full_setting.stand_in(threads, stand_in.plan.batch)
    start.run()  # last: one trainer alone trains the rest
    single = start.evaluate()
    return {
        "runs": runs,
        "stands for": small.stands_for(full_setting) * len(stand_in.train),
        "auc": single.auc,
        "log_loss": single.log_loss,
    }


def in_1e4(loss: StudyEstimate) -> str:
    """In 1e-4, with its interval where there are several seeds."""
    interval = f" ± {1e4 * loss.half_width:.1f}" if loss.has_interval else ", one seed"
    return f"{1e4 * loss.mean:.1f}{interval}"


def detectable(loss: StudyEstimate) -> float:
    """The difference that as many seeds would find with probability `POWER`; NaN for one seed."""
    if not loss.has_interval:
        return nan
    t, more = (float(stats.t.ppf(p, loss.n - 1)) for p in (HIGH, POWER))
    return loss.half_width * (1 + more / t)


def no_worse(losses: Sequence[StudyEstimate]) -> bool | None:
    """Whether no loss is beyond `NO_WORSE`: all intervals below it, some above it, or open."""
    if all(loss.high <= NO_WORSE for loss in losses):
        return True
    return False if any(loss.low > NO_WORSE for loss in losses) else None


def _of_throughput(work: Work, curves: Curves) -> dict[str, Ours]:
    eps = curves["FR-EASGD-5", 2].eps
    first, last = eps.index[0], eps.index[-1]
    # Where the line through the first point meets the height of the last one.
    estimates: dict[str, Ours] = {
        "FR-EASGD-5, 2 sync servers": StudyEstimate(eps[last] / (eps[first] / first))
    }
    for (name, n_servers), how in {
        ("S-EASGD", 2): "", ("FR-EASGD-30", 2): " (predicted)", ("FR-EASGD-5", 4): " (predicted)",
    }.items():  # fmt: skip
        eps = curves[name, n_servers].eps
        share = eps[last] / eps[first] * first / last
        estimates[f"{name}, {n_servers} sync servers{how}"] = Tested(
            bool(share > 1 - LINEAR_WITHIN), f"{100 * share:.1f} % of linear at {last} trainers"
        )
    gaps = [curves["S-EASGD", servers].gap for servers in SERVERS]
    many = gaps[0][gaps[0].index >= MANY_TRAINERS]
    growth = float(np.polyfit(np.log(many.index), np.log(many), 1)[0])
    ratio = gaps[0][last] / gaps[1][last]
    elp = StudyEstimate(float(curves["S-EASGD", 2].elp[20]))
    claimed = work.study.claims["ELP of 20 trainers"]
    return estimates | {
        "sync gap of S-EASGD over trainers": Tested(
            abs(growth - 1) < 0.1, f"as n^{growth:.2f} from {MANY_TRAINERS} trainers on"
        ),
        "sync gap of S-EASGD over servers": Tested(
            bool(abs(ratio - 2) < 0.2), f"with 4 servers {ratio:.2f} times smaller than with 2"
        ),
        "ELP of 20 trainers": Tested(claimed.met_by(elp), f"{elp.mean:,.0f}: 200 x 24 x 20", elp),
    }


def _of_quality(quality: pd.DataFrame, n_seeds: int) -> dict[str, Ours]:
    estimates: dict[str, Ours] = {}
    for shadow, foreground in PAIRS:
        losses = [*losses_of(quality, shadow, foreground).values()]
        worst = max(losses, key=lambda one: one.high)
        estimates[f"{shadow} against {foreground}"] = Tested(
            no_worse(losses), f"loses {in_1e4(worst)} x 1e-4 AUC at worst; seeds: {n_seeds}"
        )
    most = max(N_QUALITY)
    for shadow, foreground in PAIRS[2:]:  # what is said to get worse
        last = losses_of(quality, shadow, foreground)[most]
        estimates[f"{foreground} against {shadow}"] = Tested(
            last.below(0), f"gains {in_1e4(last)} x 1e-4 AUC at {most}"
        )
    return estimates


def losses_of(quality: pd.DataFrame, shadow: str, foreground: str) -> dict[int, StudyEstimate]:
    """AUC that the shadow form loses to the other, by trainers."""

    def auc(name: str, n: int) -> Floats:
        return np.asarray(quality.auc.loc[[(name, n)]])

    return {n: StudyEstimate.of_mean(auc(foreground, n) - auc(shadow, n)) for n in N_QUALITY}


def _tables(
    curves: Curves, quality: pd.DataFrame, seeds: Sequence[Mapping[str, Any]]
) -> dict[str, list[dict[str, str]]]:
    first, mean = curves["S-EASGD", 2], quality.groupby(level=[0, 1]).mean()
    in_words = {True: "yes", False: "no", None: "can't tell"}
    auc, log_loss = (np.mean([seed[key] for seed in seeds]) for key in ("auc", "log_loss"))
    return {
        "Thousand examples per second by trainers (algorithm, sync servers): simulated, and "
        "the load model in brackets:": [
            {"trainers": str(n), "ELP": f"{first.elp[n]:,}"}
            | {f"{name}, {on}": f"{curve.eps[n] / 1e3:.1f} ({curve['eps model'][n] / 1e3:.1f})"
               for (name, on), curve in curves.items()}
            for n in first.index
        ],
        "Sync gap, iterations of a trainer between two of its synchronisations, simulated:": [
            {"trainers": str(n)}
            | {f"{name}, {on}": f"{curve.gap[n]:.2f}" for (name, on), curve in curves.items()}
            for n in first.index
        ],
        f"AUC that shadow forms lose to their foreground forms, in 1e-4, over {len(seeds)} paired "
        "seeds (95 % interval; what 8 of 10 such experiments would find):": [
            {
                "shadow": shadow,
                "foreground": foreground,
                "trainers": str(n),
                "loses": in_1e4(loss),
                "smallest detectable":
                    f"{1e4 * detectable(loss):.1f}" if loss.has_interval else NO_NUMBER,
                "within 5": in_words[no_worse([loss])],
            }
            for shadow, foreground in PAIRS
            for n, loss in losses_of(quality, shadow, foreground).items()
        ],
        f"Quality on the test clicks, mean over seeds; one trainer alone: AUC {auc:.4f}, log-loss "
        f"{log_loss:.4f}:": [
            {
                "algorithm": name,
                "trainers": str(n),
                "AUC": f"{mean.auc[name, n]:.4f}",
                "log-loss": f"{mean.log_loss[name, n]:.4f}",
                "syncs per trainer": f"{mean.syncs[name, n]:,.0f}",
                "step gain": f"{mean.gain[name, n]:.2f}",
            }
            for name, n in QUALITY_CASES
        ],
    }  # fmt: skip


def _panels(curves: Curves, quality: pd.DataFrame) -> tuple[Panel, ...]:
    def line(label: str, y: pd.Series[float]) -> Series:
        return series(label, y.index, y)

    mean = quality.log_loss.groupby(level=[0, 1]).mean()
    drawn = [form for form in EASGD_SETUPS if form[1] == 2 or form[0] == "FR-EASGD-5"]
    return (
        Panel(
            "Throughput", "trainers", "thousand examples per second",
            tuple(line(f"{form[0]}, {form[1]} sync servers", curves[form].eps / 1e3)
                  for form in drawn),
            (Band("paper: FR-EASGD-5 flattens (recalled)", FLATTENS_AT, FLATTENS_AT, "x"),),
        ),
        Panel(
            "Sync gap of S-EASGD", "trainers", "iterations between synchronisations",
            tuple(line(f"{n} sync servers", curves["S-EASGD", n].gap) for n in SERVERS),
        ),
        Panel("Loss of the stand-in", "trainers", "log-loss, nats",
              tuple(line(name, mean[name]) for name in DRAWN), y_from_zero=False),
    )  # fmt: skip
