"""ShadowSync (Zheng et al. 2020, arXiv 2003.03477): throughput, sync gap and quality, ours beside.

Nearly everything of that paper is recalled. One number is fitted: that FR-EASGD-5 flattens at about
14 trainers with 2 sync servers. All else is then a prediction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import isnan, nan, sqrt
from typing import Any

import numpy as np
from scipy import stats

from cprsim.errors import ParameterError
from cprsim.experiments.proxy_model import proxy_model
from cprsim.experiments.train_in_step import Team, sync_setting, train_in_step, warm_start
from cprsim.failures.distributions import Constant
from cprsim.plots.chart import Band, Chart, Panel, Series, floats
from cprsim.records import HIGH, NO_NUMBER
from cprsim.reproduce.estimates import StudyEstimate
from cprsim.reproduce.paper import Claim, Mark, about, words
from cprsim.reproduce.study import Part, Study, Work
from cprsim.reproduce.summary import Listing, Target, Tested
from cprsim.reproduce.verdicts import FITTED, NONE, Assumptions, agreement
from cprsim.sync.load_model import load_model
from cprsim.sync.setting import SyncSetting
from cprsim.sync.simulation import throughput

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
FREE = Assumptions(("cost of the shadow thread for its workers",))
OF_QUALITY = Assumptions(("model and clicks", "elastic coefficient and momentum", "learning rate"))
DRAWN = ("S-EASGD", "FR-EASGD-30", "S-MA", "FR-MA-30", "S-BMUF", "FR-BMUF-30")  # as many as looks
FOREGROUND = {"S-MA": "FR-MA-30", "S-BMUF": "FR-BMUF-30"}  # of what is said to get worse
PAIRS = (
    ("S-EASGD", "FR-EASGD-5", S_EASGD_NO_WORSE),
    ("S-EASGD", "FR-EASGD-30", S_EASGD_NO_WORSE),
    ("S-MA", "FR-MA-30", NEUTRAL),
    ("S-BMUF", "FR-BMUF-30", NEUTRAL),
)
Curve = Mapping[str, Any]  # over trainers: examples per second and sync gap, simulated and modelled


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


# ----------------------------------------------------------------------------- quality


CASES = tuple((name, n) for name in ALGORITHMS for n in N_QUALITY)  # algorithm, trainers


def quality_of_a_seed(work: Work, seed: int) -> dict[str, Any]:
    """Every case from the same start on the same clicks."""
    loaded = work.scenario(SCENARIO, [f"kernel.seed={seed}"])
    section = loaded.scenario.sync
    if section is None or loaded.scenario.kernel is None:
        raise ParameterError(f"{SCENARIO} needs its sections `sync` and `kernel`")
    what, threads = proxy_model(loaded), section.stand_in.threads
    start = warm_start(what, section.stand_in.warm_start_fraction)
    runs: dict[str, Any] = {}
    for name, n in CASES:
        small = setting_of(work, name).with_trainers(n).stand_in(threads, what.plan.batch)
        run = train_in_step(Team(what, small, start))
        runs[f"{name}, {n}"] = {
            "auc": run.quality.auc,
            "log_loss": run.quality.log_loss,
            "training_loss": run.training_loss,
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


@dataclass(frozen=True, slots=True)
class Paired:
    """A mean difference over seeds, paired, with its 95 % interval (Student's t)."""

    difference: StudyEstimate  # without an interval where there is one seed
    detectable: float  # difference that would be found with probability `POWER`

    @property
    def shown(self) -> str:
        """In 1e-4, with its interval where there are several seeds."""
        low, high = self.difference.ends
        half = (high - low) / 2
        interval = ", one seed" if isnan(self.detectable) else f" ± {1e4 * half:.1f}"
        return f"{1e4 * self.difference.mean:.1f}{interval}"


def paired(differences: Sequence[float]) -> Paired:
    """The mean of paired differences; one alone tells nothing of its spread."""
    n = len(differences)
    mean = StudyEstimate.of_mean(differences)
    if n < 2:
        return Paired(mean, nan)
    error = float(np.std(differences, ddof=1)) / sqrt(n)
    t, more = (float(stats.t.ppf(p, n - 1)) for p in (HIGH, POWER))
    return Paired(mean, (t + more) * error)


def loss_of(seed: Mapping[str, Any], shadow: str, other: str, n: int) -> float:
    """AUC that the shadow form loses to the other one, with one seed."""
    return float(seed[f"{other}, {n}"]["auc"] - seed[f"{shadow}, {n}"]["auc"])


def no_worse(losses: Sequence[Paired]) -> bool | None:
    """Whether no loss is beyond `NO_WORSE`: all intervals below it, some above it, or open."""
    if all(one.difference.high <= NO_WORSE for one in losses):
        return True
    return False if any(one.difference.low > NO_WORSE for one in losses) else None


# ----------------------------------------------------------------------------- the numbers


@dataclass(frozen=True)
class InStepRuns:
    """Throughput by form and servers, quality by seed, and the one number that is fitted."""

    curves: Mapping[tuple[str, int], Curve]
    seeds: Sequence[Mapping[str, Any]]
    iteration_h: float

    def losses(self, shadow: str, other: str) -> dict[int, Paired]:
        """AUC that the shadow form loses to the other, by trainers."""
        return {
            n: paired([loss_of(seed, shadow, other, n) for seed in self.seeds]) for n in N_QUALITY
        }

    def mean(self, case: tuple[str, int], key: str) -> float:
        """Over seeds."""
        name, n = case
        return float(np.mean([seed[f"{name}, {n}"][key] for seed in self.seeds]))


def numbers(work: Work) -> InStepRuns:
    """Throughput over trainers and servers, and the quality of a stand-in, seed by seed."""
    forms = [(name, n) for name in EASGD for n in SERVERS]
    parts = [
        Part(f"{name}, {n} servers", partial(over_trainers, work, name, n)) for name, n in forms
    ]
    return InStepRuns(
        dict(zip(forms, work.each(parts), strict=True)),
        work.per_seed(partial(quality_of_a_seed, work), work.pick(1, 5, 20)),
        calibrated_h(work),
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


def _linear(
    quantity: str, claim: Claim, form: tuple[str, int], assumptions: Assumptions = NONE
) -> Target[InStepRuns]:
    def tested(runs: InStepRuns) -> Tested:
        curve = runs.curves[form]
        share, n = share_of_linear(curve), curve["trainers"][-1]
        return Tested(share > 1 - LINEAR_WITHIN, f"{100 * share:.1f} % of linear at {n} trainers")

    return Target(quantity, claim, tested, assumptions)


def _gap_grows(runs: InStepRuns) -> Tested:
    growth = exponent(runs.curves["S-EASGD", 2])
    return Tested(abs(growth - 1) < 0.1, f"as n^{growth:.2f} from {FEW} trainers on")


def _gap_falls(runs: InStepRuns) -> Tested:
    two, four = (runs.curves["S-EASGD", servers]["gap"][-1] for servers in SERVERS)
    return Tested(
        abs(two / four - 2) < 0.2, f"with 4 servers {two / four:.2f} times smaller than with 2"
    )


def _elp(runs: InStepRuns) -> Tested:
    curve = runs.curves["S-EASGD", 2]
    elp = curve["elp"][curve["trainers"].index(20)]
    estimate = StudyEstimate(float(elp))
    return Tested(agreement(ELP, estimate), f"{elp:,}: 200 x 24 x 20", estimate)


def _no_worse(shadow: str, other: str, claim: Claim) -> Target[InStepRuns]:
    def tested(runs: InStepRuns) -> Tested:
        losses = runs.losses(shadow, other).values()
        worst = max(losses, key=lambda one: one.difference.high)
        shown = f"loses {worst.shown} x 1e-4 AUC at worst; seeds: {len(runs.seeds)}"
        return Tested(no_worse(list(losses)), shown)

    return Target(f"{shadow} against {other}", claim, tested, OF_QUALITY)


def _worse(shadow: str, other: str) -> Target[InStepRuns]:
    def tested(runs: InStepRuns) -> Tested:
        most = max(N_QUALITY)
        last = runs.losses(shadow, other)[most]
        return Tested(last.difference.below(0), f"gains {last.shown} x 1e-4 AUC at {most}")

    return Target(f"{other} against {shadow}", FR_WORSE, tested, OF_QUALITY)


TARGETS: list[Target[InStepRuns]] = [
    Target(
        "FR-EASGD-5, 2 sync servers",
        FLATTENS,
        lambda runs: StudyEstimate(flattens_at(runs.curves["FR-EASGD-5", 2])),
        FITTED,
    ),
    _linear("S-EASGD, 2 sync servers", SHADOW_LINEAR, ("S-EASGD", 2), FREE),
    _linear("FR-EASGD-30, 2 sync servers (predicted)", FR_30_LINEAR, ("FR-EASGD-30", 2)),
    _linear("FR-EASGD-5, 4 sync servers (predicted)", RECOVERED, ("FR-EASGD-5", 4)),
    Target("sync gap of S-EASGD over trainers", GAP_GROWS, _gap_grows),
    Target("sync gap of S-EASGD over servers", GAP_FALLS, _gap_falls),
    Target("ELP of 20 trainers", ELP, _elp, FITTED),
    *(_no_worse(*pair) for pair in PAIRS),
    *(_worse(*pair) for pair in FOREGROUND.items()),
]


# ----------------------------------------------------------------------------- how it is shown


def _over_trainers(
    title: str,
    runs: InStepRuns,
    cell: Callable[[Curve, int], str],
    *more: tuple[str, Callable[[int], str]],
) -> Listing:
    """A row per number of trainers, a column per form."""

    def column(form: tuple[str, int]) -> tuple[str, Callable[[int], str]]:
        return f"{form[0]}, {form[1]}", lambda i: cell(runs.curves[form], i)

    trainers = runs.curves["S-EASGD", 2]["trainers"]
    head = ("trainers", lambda i: str(trainers[i]))
    return Listing.of(title, range(len(trainers)), head, *more, *map(column, runs.curves))


def _listings(runs: InStepRuns) -> list[Listing]:
    elp = runs.curves["S-EASGD", 2]["elp"]
    losses = [
        (shadow, other, n, loss)
        for shadow, other, _ in PAIRS
        for n, loss in runs.losses(shadow, other).items()
    ]
    in_words = {True: "yes", False: "no", None: "can't tell"}
    alone = {
        key: np.mean([seed["alone"][key] for seed in runs.seeds]) for key in ("auc", "log_loss")
    }
    return [
        _over_trainers(
            "Thousand examples per second by trainers (algorithm, sync servers): simulated, and "
            "the load model in brackets:",
            runs,
            lambda one, i: f"{one['eps'][i] / 1e3:.1f} ({one['eps model'][i] / 1e3:.1f})",
            ("ELP", lambda i: f"{elp[i]:,}"),
        ),
        _over_trainers(
            "Sync gap, iterations of a trainer between two of its synchronisations, simulated:",
            runs,
            lambda one, i: f"{one['gap'][i]:.2f}",
        ),
        Listing.of(
            f"AUC that shadow forms lose to their foreground forms, in 1e-4, over "
            f"{len(runs.seeds)} paired seeds (95 % interval; what 8 of 10 such experiments would "
            "find):",
            losses,
            ("shadow", lambda line: line[0]),
            ("foreground", lambda line: line[1]),
            ("trainers", lambda line: str(line[2])),
            ("loses", lambda line: line[3].shown),
            ("smallest detectable", lambda line: _detectable(line[3])),
            ("within 5", lambda line: in_words[no_worse([line[3]])]),
        ),
        Listing.of(
            "Quality on the test clicks, mean over seeds; one trainer alone: AUC "
            f"{alone['auc']:.4f}, log-loss {alone['log_loss']:.4f}:",
            CASES,
            ("algorithm", lambda case: case[0]),
            ("trainers", lambda case: str(case[1])),
            ("AUC", lambda case: f"{runs.mean(case, 'auc'):.4f}"),
            ("log-loss", lambda case: f"{runs.mean(case, 'log_loss'):.4f}"),
            ("syncs per trainer", lambda case: f"{runs.mean(case, 'syncs'):,.0f}"),
            ("step gain", lambda case: f"{runs.mean(case, 'gain'):.2f}"),
        ),
    ]


def _detectable(loss: Paired) -> str:
    return NO_NUMBER if isnan(loss.detectable) else f"{1e4 * loss.detectable:.1f}"


def _fitted_note(runs: InStepRuns) -> str:
    return (
        f"Fitted: one iteration takes {3.6e6 * runs.iteration_h:.0f} ms, so that by the load "
        f"model FR-EASGD-5 saturates at {FLATTENS_AT} trainers with 2 sync servers of 25 Gbit/s "
        "and 8 MB of dense weights; only the ratio of the three is determined. 4 servers, k = 30 "
        "and the background are predictions."
    )


def _quality_note(runs: InStepRuns) -> str:
    return (
        "Quality: a small model on generated clicks, half of them trained by one trainer first; 5 "
        "threads per trainer for 24, batch 8 for 200, every 5 iterations becoming every 1, so that "
        "a run synchronises as often as one of the whole job on "
        f"{runs.seeds[0]['stands for'] / 1e6:.0f} million clicks. Elastic coefficient 0.5, of "
        "S-MA and S-BMUF 0.1; block momentum 0.5, block rate 0.5. The 0.1 was chosen on other "
        "seeds."
    )


def _chart(runs: InStepRuns) -> Chart:
    curves = runs.curves
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
                floats([runs.mean((name, n), "log_loss") for n in N_QUALITY]),
            )
            for name in DRAWN
        ),
        y_from_zero=False,
    )
    return Chart(
        "Trainers in step: background and foreground",
        f"Simulated; loss: mean of {len(runs.seeds)} seeds.",
        (speed, gap, loss),
    )


STUDY = Study(
    name="shadowsync",
    shows="trainers that synchronise in the background: throughput, sync gap, quality",
    title="ShadowSync: trainers that synchronise in the background",
    question="Does background synchronisation scale where the foreground saturates, and does it "
    "cost quality?",
    numbers=numbers,
    targets=TARGETS,
    listings=_listings,
    notes=(
        _fitted_note,
        "Linear in the background is what the model assumes if the shadow thread costs its workers "
        "nothing.",
        _quality_note,
        "Algorithms make steps of different length of the same gradients (step gain). Replicas see "
        "1/n of the clicks each, so the learning rate of one trainer is low for them, and whoever "
        "makes longer steps has an advantage that is the learning rate's. Compared is therefore at "
        f"about equal step gain; {LONGER_STEPS} stands in the table of quality for itself.",
    ),
    chart=_chart,
    inputs=(SCENARIO,),
)
