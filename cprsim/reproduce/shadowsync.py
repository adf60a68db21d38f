"""ShadowSync (Zheng et al. 2020, arXiv 2003.03477): throughput, sync gap and quality, ours beside.

Nearly everything of that paper is recalled. One number is fitted: that FR-EASGD-5 flattens at about
14 trainers with 2 sync servers. All else is then a prediction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, sqrt
from typing import Any

import numpy as np
from scipy import stats

from cprsim.plots.chart import Band, Chart, Panel, Series, floats
from cprsim.reproduce.paper import Mark, about, words
from cprsim.reproduce.shadowsync_numbers import (
    EASGD,
    FLATTENS_AT,
    LONGER_STEPS,
    N_QUALITY,
    SCENARIO,
    SERVERS,
    Case,
    calibrated_h,
    cases,
    qualities,
    throughputs,
)
from cprsim.reproduce.study import Study, Work
from cprsim.reproduce.summary import Listing, Summary, compared, tested
from cprsim.reproduce.verdicts import Basis, Ours
from cprsim.results.words import NO_NUMBER

LINEAR_WITHIN = 0.03  # of n times the throughput of one trainer
NO_WORSE = 0.0005  # AUC
POWER = 0.8  # of finding a difference that is called detectable
FEW = 5  # trainers: with fewer, a trainer's own link bounds its exchanges and not the servers

FLATTENS = about(
    FLATTENS_AT, "trainers", Mark.RECALLED, text=f"flattens at about {FLATTENS_AT} trainers"
)
SHADOW_LINEAR = words("throughput scales linearly with the number of trainers", Mark.PUBLISHED)
FR_30_LINEAR = words("linear", Mark.RECALLED)
RECOVERED = words("with 4 sync servers it scales to 20", Mark.RECALLED)
GAP_GROWS = words("grows about as n for a fixed number of sync servers", Mark.RECALLED)
GAP_FALLS = words("falls about as 1/servers", Mark.RECALLED)
ELP = about(96_000, "", Mark.RECALLED, text="96,000")
NEUTRAL = words("neutral to better model quality", Mark.PUBLISHED)
S_EASGD_NO_WORSE = words("no worse than FR-EASGD at the same n", Mark.RECALLED)
FR_WORSE = words("worse than its shadow form as n grows", Mark.RECALLED)
FREE = ("cost of the shadow thread for its workers",)
OF_QUALITY = ("model and clicks", "elastic coefficient and momentum", "learning rate")
DRAWN = ("S-EASGD", "FR-EASGD-30", "S-MA", "FR-MA-30", "S-BMUF", "FR-BMUF-30")  # as many as looks
FOREGROUND = {"S-MA": "FR-MA-30", "S-BMUF": "FR-BMUF-30"}  # of what is said to get worse
PAIRS = (
    ("S-EASGD", "FR-EASGD-5", S_EASGD_NO_WORSE),
    ("S-EASGD", "FR-EASGD-30", S_EASGD_NO_WORSE),
    ("S-MA", "FR-MA-30", NEUTRAL),
    ("S-BMUF", "FR-BMUF-30", NEUTRAL),
)
Curves = Mapping[tuple[str, int], dict[str, Any]]
Losses = Mapping[tuple[str, str, int], "Paired"]


def make(work: Work) -> Summary:
    """Throughput over trainers and servers, and the quality of a stand-in, seed by seed."""
    curves, seeds = throughputs(work), qualities(work)
    losses = {
        (shadow, other, n): paired([loss_of(seed, shadow, other, n) for seed in seeds])
        for shadow, other, _ in PAIRS
        for n in N_QUALITY
    }
    return Summary(
        "ShadowSync: trainers that synchronise in the background",
        "Does background synchronisation scale where the foreground saturates, and does it cost "
        "quality?",
        rows=(*_speed_rows(curves), *_quality_rows(losses, len(seeds))),
        listings=(
            _eps(curves),
            _gaps(curves),
            _quality(losses, len(seeds)),
            _loss(seeds),
        ),
        notes=_notes(work, seeds),
        charts=(_chart(curves, seeds),),
    )


# ----------------------------------------------------------------------------- throughput


def share_of_linear(curve: Mapping[str, Any]) -> float:
    """Examples per second of the most trainers over so many times those of one."""
    eps, trainers = curve["eps"], curve["trainers"]
    return float(eps[-1] / eps[0] * trainers[0] / trainers[-1])


def flattens_at(curve: Mapping[str, Any]) -> float:
    """Where the line through the first point meets the height of the last one [trainers]."""
    return float(curve["eps"][-1] / (curve["eps"][0] / curve["trainers"][0]))


def exponent(curve: Mapping[str, Any]) -> float:
    """X where the sync gap grows as n^x, from FEW trainers on."""
    n, gap = (np.array(curve[key]) for key in ("trainers", "gap"))
    many = n >= FEW
    return float(np.polyfit(np.log(n[many]), np.log(gap[many]), 1)[0])


def _speed_rows(curves: Curves) -> Sequence[Any]:
    shadow, fr_5, fr_30 = (curves[name, 2] for name in EASGD)
    knee = Ours(flattens_at(fr_5))
    more = curves["FR-EASGD-5", 4]
    growth, fall = exponent(shadow), shadow["gap"][-1] / curves["S-EASGD", 4]["gap"][-1]
    at = shadow["trainers"].index(20)
    return (
        compared("FR-EASGD-5, 2 sync servers", FLATTENS, knee, Basis(fitted=True)),
        _linear("S-EASGD, 2 sync servers", SHADOW_LINEAR, shadow, Basis(FREE)),
        _linear("FR-EASGD-30, 2 sync servers (predicted)", FR_30_LINEAR, fr_30, Basis()),
        _linear("FR-EASGD-5, 4 sync servers (predicted)", RECOVERED, more, Basis()),
        tested("sync gap of S-EASGD over trainers", GAP_GROWS, abs(growth - 1) < 0.1,
               f"as n^{growth:.2f} from {FEW} trainers on", Basis()),
        tested("sync gap of S-EASGD over servers", GAP_FALLS, abs(fall - 2) < 0.2,
               f"with 4 servers {fall:.2f} times smaller than with 2", Basis()),
        compared("ELP of 20 trainers", ELP, Ours(float(shadow["elp"][at])), Basis(fitted=True),
                 f"{shadow['elp'][at]:,}: 200 x 24 x 20"),
    )  # fmt: skip


def _linear(quantity: str, claim: Any, curve: Mapping[str, Any], basis: Basis) -> Any:
    share, n = share_of_linear(curve), curve["trainers"][-1]
    shown = f"{100 * share:.1f} % of linear at {n} trainers"
    return tested(quantity, claim, share > 1 - LINEAR_WITHIN, shown, basis)


def _eps(curves: Curves) -> Listing:
    trainers = curves["S-EASGD", 2]["trainers"]
    names = [f"{name}, {n}" for name, n in curves]
    return Listing(
        "Thousand examples per second by trainers (algorithm, sync servers): simulated, and the "
        "load model in brackets:",
        ("trainers", "ELP", *names),
        tuple(
            (str(n), f"{curves['S-EASGD', 2]['elp'][i]:,}",
             *(f"{one['eps'][i] / 1e3:.1f} ({one['eps model'][i] / 1e3:.1f})"
               for one in curves.values()))
            for i, n in enumerate(trainers)
        ),
    )  # fmt: skip


def _gaps(curves: Curves) -> Listing:
    return Listing(
        "Sync gap, iterations of a trainer between two of its synchronisations, simulated:",
        ("trainers", *(f"{name}, {n}" for name, n in curves)),
        tuple(
            (str(n), *(f"{one['gap'][i]:.2f}" for one in curves.values()))
            for i, n in enumerate(curves["S-EASGD", 2]["trainers"])
        ),
    )


# ----------------------------------------------------------------------------- quality


@dataclass(frozen=True, slots=True)
class Paired:
    """A mean difference over seeds, paired, with its 95 % interval (Student's t)."""

    mean: float
    half_width: float
    detectable: float  # difference that would be found with probability `POWER`

    @property
    def shown(self) -> str:
        """In 1e-4, with its interval where there are several seeds."""
        interval = f" ± {1e4 * self.half_width:.1f}" if self.half_width < inf else ", one seed"
        return f"{1e4 * self.mean:.1f}{interval}"

    @property
    def high(self) -> float:
        return self.mean + self.half_width

    @property
    def low(self) -> float:
        return self.mean - self.half_width


def paired(differences: Sequence[float]) -> Paired:
    """The mean of paired differences; one alone tells nothing of its spread."""
    n = len(differences)
    if n < 2:
        return Paired(differences[0], inf, inf)
    error = float(np.std(differences, ddof=1)) / sqrt(n)
    t = float(stats.t.ppf(0.975, n - 1))
    detectable = (t + float(stats.t.ppf(POWER, n - 1))) * error
    return Paired(float(np.mean(differences)), t * error, detectable)


def loss_of(seed: Mapping[str, Any], shadow: str, other: str, n: int) -> float:
    """AUC that the shadow form loses to the other one, with one seed."""
    return float(seed[f"{other}, {n}"]["auc"] - seed[f"{shadow}, {n}"]["auc"])


def no_worse(losses: Sequence[Paired]) -> bool | None:
    """Whether no loss is beyond `NO_WORSE`: all intervals below it, some above it, or open."""
    if all(one.high <= NO_WORSE for one in losses):
        return True
    return False if any(one.low > NO_WORSE for one in losses) else None


def _quality_rows(losses: Losses, n_seeds: int) -> Sequence[Any]:
    rows = []
    for shadow, other, claim in PAIRS:
        over_n = [one for (*pair, _), one in losses.items() if pair == [shadow, other]]
        worst = max(over_n, key=lambda one: one.high)
        shown = f"loses {worst.shown} x 1e-4 AUC at worst; seeds: {n_seeds}"
        rows.append(
            tested(f"{shadow} against {other}", claim, no_worse(over_n), shown, Basis(OF_QUALITY))
        )
    for shadow, other in FOREGROUND.items():
        most = max(n for *_, n in losses)
        last = losses[shadow, other, most]
        met = True if last.high < 0 else False if last.low > 0 else None
        shown = f"gains {last.shown} x 1e-4 AUC at {most}"
        rows.append(tested(f"{other} against {shadow}", FR_WORSE, met, shown, Basis(OF_QUALITY)))
    return rows


def _quality(losses: Losses, n_seeds: int) -> Listing:
    return Listing(
        f"AUC that shadow forms lose to their foreground forms, in 1e-4, over {n_seeds} paired "
        "seeds (95 % interval; what 8 of 10 such experiments would find):",
        ("shadow", "foreground", "trainers", "loses", "smallest detectable", "within 5"),
        tuple(
            (shadow, other, str(n), one.shown,
             f"{1e4 * one.detectable:.1f}" if one.detectable < inf else NO_NUMBER,
             {True: "yes", False: "no", None: "can't tell"}[no_worse([one])])
            for (shadow, other, n), one in losses.items()
        ),
    )  # fmt: skip


def _mean(seeds: Sequence[Mapping[str, Any]], case: Case, key: str) -> float:
    return float(np.mean([seed[str(case)][key] for seed in seeds]))


def _loss(seeds: Sequence[Mapping[str, Any]]) -> Listing:
    alone = {key: np.mean([seed["alone"][key] for seed in seeds]) for key in ("auc", "log_loss")}
    return Listing(
        "Quality on the test clicks, mean over seeds; one trainer alone: AUC "
        f"{alone['auc']:.4f}, log-loss {alone['log_loss']:.4f}:",
        ("algorithm", "trainers", "AUC", "log-loss", "syncs per trainer", "step gain"),
        tuple(
            (case.name, str(case.n_trainers), f"{_mean(seeds, case, 'auc'):.4f}",
             f"{_mean(seeds, case, 'log_loss'):.4f}", f"{_mean(seeds, case, 'syncs'):,.0f}",
             f"{_mean(seeds, case, 'gain'):.2f}")
            for case in cases()
        ),
    )  # fmt: skip


# ----------------------------------------------------------------------------- words and figure


def _notes(work: Work, seeds: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    return (
        f"Fitted: one iteration takes {3.6e6 * calibrated_h(work):.0f} ms, so that by the load "
        f"model FR-EASGD-5 saturates at {FLATTENS_AT} trainers with 2 sync servers of 25 Gbit/s "
        "and 8 MB of dense weights; only the ratio of the three is determined. 4 servers, k = 30 "
        "and the background are predictions.",
        "Linear in the background is what the model assumes if the shadow thread costs its workers "
        "nothing; benchmarks/bench_hogwild.py measures what it costs on real threads.",
        "Quality: a small model on generated clicks, half of them trained by one trainer first; 5 "
        "threads per trainer for 24, batch 8 for 200, every 5 iterations becoming every 1, so that "
        "a run synchronises as often as one of the whole job on "
        f"{seeds[0]['stands for'] / 1e6:.0f} million clicks. Elastic coefficient 0.5, of S-MA and "
        "S-BMUF 0.1; block momentum 0.5, block rate 0.5. The 0.1 was chosen on other seeds.",
        "Algorithms make steps of different length of the same gradients (step gain). Replicas see "
        "1/n of the clicks each, so the learning rate of one trainer is low for them, and whoever "
        "makes longer steps has an advantage that is the learning rate's. Compared is therefore at "
        f"about equal step gain; {LONGER_STEPS} stands in the table of quality for itself.",
    )


def _chart(curves: Curves, seeds: Sequence[Mapping[str, Any]]) -> Chart:
    shown = {("S-EASGD", 2), ("FR-EASGD-30", 2), *(("FR-EASGD-5", n) for n in SERVERS)}
    speed = Panel(
        "Throughput",
        "trainers",
        "thousand examples per second",
        tuple(
            Series(f"{name}, {n} sync servers", floats(one["trainers"]),
                   floats([eps / 1e3 for eps in one["eps"]]))
            for (name, n), one in curves.items() if (name, n) in shown
        ),
        (Band("paper: FR-EASGD-5 flattens (recalled)", FLATTENS_AT, FLATTENS_AT, axis="x"),),
    )  # fmt: skip
    gap = Panel(
        "Sync gap of S-EASGD",
        "trainers",
        "iterations between synchronisations",
        tuple(
            Series(f"{n} sync servers", floats(curves["S-EASGD", n]["trainers"]),
                   floats(curves["S-EASGD", n]["gap"]))
            for n in SERVERS
        ),
    )  # fmt: skip
    loss = Panel(
        "Loss of the stand-in",
        "trainers",
        "log-loss, nats",
        tuple(
            Series(
                name,
                floats(N_QUALITY),
                floats([_mean(seeds, Case(name, n), "log_loss") for n in N_QUALITY]),
            )
            for name in DRAWN
        ),
        y_from_zero=False,
    )
    return Chart(
        "Trainers in step: background and foreground",
        f"Simulated; loss: mean of {len(seeds)} seeds.",
        (speed, gap, loss),
    )


STUDY = Study(
    "shadowsync",
    "trainers that synchronise in the background: throughput, sync gap, quality",
    make,
    (SCENARIO,),
    code="cprsim.reproduce.shadowsync_numbers",
)
