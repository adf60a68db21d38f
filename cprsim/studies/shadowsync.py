"""ShadowSync (Zheng et al. 2020, arXiv 2003.03477): throughput, sync gap and quality, ours beside.

Nearly everything of that paper is recalled. One number is fitted: that FR-EASGD-5 flattens at about
14 trainers with 2 sync servers. All else is then a prediction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import nan
from typing import Any

import numpy as np
from scipy import stats

from cprsim.experiments.proxy_model import proxy_model
from cprsim.experiments.train_in_step import Team, sync_setting, train_in_step, warm_start
from cprsim.failures.distributions import Constant
from cprsim.in_step.load_model import load_model
from cprsim.in_step.setting import SyncSetting
from cprsim.in_step.simulation import throughput
from cprsim.plots.chart import Band, Chart, Panel, Series, floats
from cprsim.records import HIGH, NO_NUMBER
from cprsim.studies.estimates import StudyEstimate
from cprsim.studies.study import Study, Summary, Work
from cprsim.studies.verdicts import (
    FITTED,
    PUBLISHED,
    RECALLED,
    SOLID,
    Claim,
    Reported,
    Tested,
    about,
    agreement,
    compare,
    free,
)

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

LINEAR_WITHIN = 0.03  # of n times the throughput of one trainer
NO_WORSE = 0.0005  # AUC
POWER = 0.8  # of finding a difference that is called detectable
FEW = 5  # trainers: with fewer, a trainer's own link bounds its exchanges and not the servers

FLATTENS = about(14, "trainers", RECALLED, text="flattens at about 14 trainers")
SHADOW_LINEAR = Reported("throughput scales linearly with the number of trainers", PUBLISHED)
RECOVERED = "with 4 sync servers it scales to 20"
GAP_GROWS = "grows about as n for a fixed number of sync servers"
GAP_FALLS = "falls about as 1/servers"
ELP = about(96_000, "", RECALLED, text="96,000")
NEUTRAL = Reported("neutral to better model quality", PUBLISHED)
S_EASGD_NO_WORSE = "no worse than FR-EASGD at the same n"
FR_WORSE = "worse than its shadow form as n grows"
FREE = free("cost of the shadow thread for its workers")
OF_QUALITY = free("model and clicks", "elastic coefficient and momentum", "learning rate")
DRAWN = ("S-EASGD", "FR-EASGD-30", "S-MA", "FR-MA-30", "S-BMUF", "FR-BMUF-30")  # as many as looks
PAIRS = (
    ("S-EASGD", "FR-EASGD-5", S_EASGD_NO_WORSE),
    ("S-EASGD", "FR-EASGD-30", S_EASGD_NO_WORSE),
    ("S-MA", "FR-MA-30", NEUTRAL),
    ("S-BMUF", "FR-BMUF-30", NEUTRAL),
)
FORMS = tuple((name, n) for name in EASGD for n in SERVERS)  # algorithm, sync servers
CASES = tuple((name, n) for name in ALGORITHMS for n in N_QUALITY)  # algorithm, trainers
Curve = Mapping[str, Any]  # over trainers: examples per second and sync gap, simulated and modelled
Curves = Mapping[tuple[str, int], Curve]
Seeds = Sequence[Mapping[str, Any]]  # what `quality_of_a_seed` found on each


def shadowsync(work: Work) -> Summary:
    """Throughput over trainers and servers, and the quality of a stand-in, seed by seed."""
    curves: Curves = work.each({form: partial(over_trainers, work, *form) for form in FORMS})
    seeds = work.per_seed(partial(quality_of_a_seed, work), work.pick(1, 5, 20))
    return Summary.of(
        "ShadowSync: trainers that synchronise in the background",
        "Does background synchronisation scale where the foreground saturates, and does it "
        "cost quality?",
        [*_of_throughput(curves), *_of_quality(seeds)],
        _tables(curves, seeds),
        (
            f"Fitted: one iteration takes {3.6e6 * calibrated_h(work):.0f} ms, so that by the load "
            f"model FR-EASGD-5 saturates at {FLATTENS_AT} trainers with 2 sync servers of 25 "
            "Gbit/s and 8 MB of dense weights; only the ratio of the three is determined. 4 "
            "servers, k = 30 and the background are predictions.",
            "Linear in the background is what the model assumes if the shadow thread costs its "
            "workers nothing.",
            "Quality: a small model on generated clicks, half of them trained by one trainer "
            "first; 5 threads per trainer for 24, batch 8 for 200, every 5 iterations becoming "
            "every 1, so that a run synchronises as often as one of the whole job on "
            f"{seeds[0]['stands for'] / 1e6:.0f} million clicks. Elastic coefficient 0.5, of S-MA "
            "and S-BMUF 0.1; block momentum 0.5, block rate 0.5. The 0.1 was chosen on other "
            "seeds.",
            "Algorithms make steps of different length of the same gradients (step gain). Replicas "
            "see 1/n of the clicks each, so the learning rate of one trainer is low for them, and "
            "whoever makes longer steps has an advantage that is the learning rate's. Compared is "
            f"therefore at about equal step gain; {LONGER_STEPS} stands in the table of quality "
            "for itself.",
        ),
        _chart(curves, seeds),
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
        "elp": [one.elp for one in settings],
    }


def quality_of_a_seed(work: Work, seed: int) -> dict[str, Any]:
    """Every case from the same start on the same clicks."""
    loaded = work.scenario(SCENARIO, [f"kernel.seed={seed}"])
    section = loaded.scenario.sync
    assert section is not None, "the scenario has trainers in step"
    what, threads = proxy_model(loaded), section.stand_in.threads
    start = warm_start(what, section.stand_in.warm_start_fraction)
    runs: dict[str, Any] = {}
    for name, n in CASES:
        small = setting_of(work, name).with_trainers(n).stand_in(threads, what.plan.batch)
        run = train_in_step(Team(what, small, start))
        runs[f"{name}, {n}"] = {
            "auc": run.quality.auc,
            "log_loss": run.quality.log_loss,
            "syncs": run.n_syncs,
            "gain": small.step_gain,
        }
    whole = setting_of(work, "S-EASGD")
    small = whole.stand_in(threads, what.plan.batch)
    start.run()  # last: one trainer alone trains the rest
    alone = start.evaluate(what.test)
    return runs | {
        "stands for": small.stands_for(whole) * len(what.train),
        "alone": {"auc": alone.auc, "log_loss": alone.log_loss},
    }


def shown(loss: StudyEstimate) -> str:
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
    if all(one.high <= NO_WORSE for one in losses):
        return True
    return False if any(one.low > NO_WORSE for one in losses) else None


def _of_throughput(curves: Curves) -> Iterator[Claim]:
    # Where the line through the first point meets the height of the last one.
    eps, trainers = (curves["FR-EASGD-5", 2][key] for key in ("eps", "trainers"))
    knee = StudyEstimate(eps[-1] / (eps[0] / trainers[0]))
    yield compare("FR-EASGD-5, 2 sync servers", FLATTENS, knee, FITTED)
    for name, n_servers, reported, basis, how in (
        ("S-EASGD", 2, SHADOW_LINEAR, FREE, ""),
        ("FR-EASGD-30", 2, "linear", SOLID, " (predicted)"),
        ("FR-EASGD-5", 4, RECOVERED, SOLID, " (predicted)"),
    ):
        eps = curves[name, n_servers]["eps"]
        share = eps[-1] / eps[0] * trainers[0] / trainers[-1]
        linear = f"{100 * share:.1f} % of linear at {trainers[-1]} trainers"
        tested = Tested(share > 1 - LINEAR_WITHIN, linear)
        yield compare(f"{name}, {n_servers} sync servers{how}", reported, tested, basis)
    gaps = [curves["S-EASGD", servers]["gap"] for servers in SERVERS]
    n, gap = np.array([(n, gap) for n, gap in zip(trainers, gaps[0], strict=True) if n >= FEW]).T
    growth = float(np.polyfit(np.log(n), np.log(gap), 1)[0])
    grows = Tested(abs(growth - 1) < 0.1, f"as n^{growth:.2f} from {FEW} trainers on")
    yield compare("sync gap of S-EASGD over trainers", GAP_GROWS, grows)
    ratio = gaps[0][-1] / gaps[1][-1]
    falls = Tested(abs(ratio - 2) < 0.2, f"with 4 servers {ratio:.2f} times smaller than with 2")
    yield compare("sync gap of S-EASGD over servers", GAP_FALLS, falls)
    elp = curves["S-EASGD", 2]["elp"][trainers.index(20)]
    estimate = StudyEstimate(float(elp))
    tested = Tested(agreement(ELP, estimate), f"{elp:,}: 200 x 24 x 20", estimate)
    yield compare("ELP of 20 trainers", ELP, tested, FITTED)


def _of_quality(seeds: Seeds) -> Iterator[Claim]:
    for shadow, other, reported in PAIRS:
        losses = losses_of(seeds, shadow, other).values()
        worst = max(losses, key=lambda one: one.high)
        said = f"loses {shown(worst)} x 1e-4 AUC at worst; seeds: {len(seeds)}"
        tested = Tested(no_worse(list(losses)), said)
        yield compare(f"{shadow} against {other}", reported, tested, OF_QUALITY)
    most = max(N_QUALITY)
    for shadow, other, _ in PAIRS[2:]:  # what is said to get worse
        last = losses_of(seeds, shadow, other)[most]
        tested = Tested(last.below(0), f"gains {shown(last)} x 1e-4 AUC at {most}")
        yield compare(f"{other} against {shadow}", FR_WORSE, tested, OF_QUALITY)


def losses_of(seeds: Seeds, shadow: str, other: str) -> dict[int, StudyEstimate]:
    """AUC that the shadow form loses to the other, by trainers."""
    return {
        n: StudyEstimate.of_mean(
            [float(seed[f"{other}, {n}"]["auc"] - seed[f"{shadow}, {n}"]["auc"]) for seed in seeds]
        )
        for n in N_QUALITY
    }


def _mean(seeds: Seeds, case: tuple[str, int], key: str) -> float:
    name, n = case
    return float(np.mean([seed[f"{name}, {n}"][key] for seed in seeds]))


def _tables(curves: Curves, seeds: Seeds) -> dict[str, Iterable[Mapping[str, str]]]:
    def over(cell: Callable[[Curve, int], str], *more: str) -> Iterator[Mapping[str, str]]:
        first = curves["S-EASGD", 2]
        for i, n in enumerate(first["trainers"]):
            cells = {"trainers": str(n)} | {key.upper(): f"{first[key][i]:,}" for key in more}
            yield cells | {f"{name}, {on}": cell(one, i) for (name, on), one in curves.items()}

    in_words = {True: "yes", False: "no", None: "can't tell"}
    auc, log_loss = (np.mean([seed["alone"][key] for seed in seeds]) for key in ("auc", "log_loss"))
    return {
        "Thousand examples per second by trainers (algorithm, sync servers): simulated, and "
        "the load model in brackets:": over(
            lambda one, i: f"{one['eps'][i] / 1e3:.1f} ({one['eps model'][i] / 1e3:.1f})", "elp"
        ),
        "Sync gap, iterations of a trainer between two of its synchronisations, simulated:": over(
            lambda one, i: f"{one['gap'][i]:.2f}"
        ),
        f"AUC that shadow forms lose to their foreground forms, in 1e-4, over {len(seeds)} paired "
        "seeds (95 % interval; what 8 of 10 such experiments would find):": (
            {
                "shadow": shadow,
                "foreground": other,
                "trainers": str(n),
                "loses": shown(loss),
                "smallest detectable": f"{1e4 * detectable(loss):.1f}"
                if loss.has_interval
                else NO_NUMBER,
                "within 5": in_words[no_worse([loss])],
            }
            for shadow, other, _ in PAIRS
            for n, loss in losses_of(seeds, shadow, other).items()
        ),
        f"Quality on the test clicks, mean over seeds; one trainer alone: AUC {auc:.4f}, log-loss "
        f"{log_loss:.4f}:": (
            {
                "algorithm": case[0],
                "trainers": str(case[1]),
                "AUC": f"{_mean(seeds, case, 'auc'):.4f}",
                "log-loss": f"{_mean(seeds, case, 'log_loss'):.4f}",
                "syncs per trainer": f"{_mean(seeds, case, 'syncs'):,.0f}",
                "step gain": f"{_mean(seeds, case, 'gain'):.2f}",
            }
            for case in CASES
        ),
    }


def _chart(curves: Curves, seeds: Seeds) -> Chart:
    def line(form: tuple[str, int], label: str, key: str, unit: float = 1.0) -> Series:
        one = curves[form]
        return Series(label, floats(one["trainers"]), floats([y / unit for y in one[key]]))

    drawn = [form for form in FORMS if form[1] == 2 or form[0] == "FR-EASGD-5"]
    losses = (
        Series(name, floats(N_QUALITY),
               floats([_mean(seeds, (name, n), "log_loss") for n in N_QUALITY]))
        for name in DRAWN
    )  # fmt: skip
    return Chart(
        "Trainers in step: background and foreground",
        f"Simulated; loss: mean of {len(seeds)} seeds.",
        (
            Panel(
                "Throughput", "trainers", "thousand examples per second",
                tuple(line(form, f"{form[0]}, {form[1]} sync servers", "eps", 1e3)
                      for form in drawn),
                (Band("paper: FR-EASGD-5 flattens (recalled)", FLATTENS_AT, FLATTENS_AT, "x"),),
            ),
            Panel(
                "Sync gap of S-EASGD", "trainers", "iterations between synchronisations",
                tuple(line(("S-EASGD", n), f"{n} sync servers", "gap") for n in SERVERS),
            ),
            Panel("Loss of the stand-in", "trainers", "log-loss, nats", tuple(losses),
                  y_from_zero=False),
        ),
    )  # fmt: skip


STUDY = Study(
    "shadowsync",
    "trainers that synchronise in the background: throughput, sync gap, quality",
    shadowsync,
    (SCENARIO,),
)
