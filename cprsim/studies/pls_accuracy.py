"""Accuracy loss over PLS, by strategy: fresh runs, beside the curve that is shipped.

A full run also measures the curve anew, as `cprsim measure` does, on seeds of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from math import atanh, sqrt, tanh
from typing import Any

import numpy as np
from scipy import stats

from cprsim.curves.choosing import shipped_path
from cprsim.curves.curve_file import read_curve
from cprsim.failures.streams import stream
from cprsim.kernel.trials import Saving, ShardFailure, Trial
from cprsim.measuring.design import Design
from cprsim.measuring.measure import Measured, MeasureRequest, measure
from cprsim.measuring.runs import SeedResult
from cprsim.plots.chart import Chart, Panel, Series, floats
from cprsim.records import HIGH, ROUNDED_Z_95, Floats, ShardLoss
from cprsim.staleness.names import Metric
from cprsim.staleness.response import Response
from cprsim.studies.estimates import StudyEstimate
from cprsim.studies.study import Study, Summary, Work
from cprsim.studies.trained import (
    STAND_IN,
    Seed,
    clicks_of,
    losses,
    lost_by,
    setting_of,
    shown,
    trials_of,
)
from cprsim.studies.verdicts import RECALLED, Claim, Tested, about, alone, compare

SCENARIO = "criteo-kaggle.yaml"
CURVE = "criteo-kaggle-linear"
FIRST_SEED, FIRST_ANEW = 900_001, 910_001  # none of those that the shipped curve was measured on
STRATEGIES = ("partial", "ssu", "mfu", "scar", "round-robin")
N_SERVERS = 8
# (failures, servers that fail together, T_save over the job): PLS from about 0.01 to 0.3
HISTORIES = ((1, 1, 0.2), (2, 1, 0.8), (4, 2, 0.2), (8, 4, 0.15))
ANEW = Design(STRATEGIES)
CORRELATION = about(0.88, "", RECALLED)
LINEAR = "accuracy loss grows linearly with PLS"
ORDER = "steepest for whole saves, flattest for SCAR and MFU, SSU close"
ORDERED = ("ssu", "mfu", "scar")
TELLS_BEND = 50.0  # %, half-width of the square term's share: a wider interval tells nothing


def pls_accuracy(work: Work) -> Summary:
    """Train fresh seeds with more and less PLS, and measure the shipped curve anew."""
    n_seeds, histories = work.pick((4, HISTORIES[1:3]), (8, HISTORIES), (20, HISTORIES))
    compute = partial(_trained, work, histories)
    seeds = work.per_seed(compute, n_seeds, FIRST_SEED)
    has_curve = work.clicks is None and work.study.found()
    curve = read_curve(shipped_path(CURVE)) if has_curve else None
    responses = {name: curve.curve("shipped").of(name, Metric.AUC) for name in STRATEGIES if curve}
    anew = _measured_anew(work, work.pick(0, 6, 20))
    trials = {name: trials_of(seeds, name) for name in STRATEGIES}
    points = {
        name: [np.array([[one[key] for one in seed] for key in ("pls_net", "auc")]) for seed in of]
        for name, of in trials.items()
    }
    pooled = {name: np.concatenate(of, axis=1) for name, of in points.items()}
    # Lines through 0: each twin lost nothing.
    slopes = {
        name: np.array([float(pls @ lost / (pls @ pls)) for pls, lost in points[name]])
        for name in STRATEGIES
    }
    ratios = {name: StudyEstimate.of_mean(slopes[name] / slopes["partial"]) for name in STRATEGIES}
    slope = {name: StudyEstimate.of_mean(slopes[name]) for name in STRATEGIES}
    flatter = [ratios[name].below(1) for name in ORDERED]
    in_order = Tested(None if None in flatter else all(flatter), "see the slopes")

    def slope_anew(name: str) -> str:
        if anew is None:
            return ""
        fitted = anew.fitted[Metric.AUC].slopes
        return _with_error(fitted.mean(name), fitted.standard_error(name))

    def slope_shipped(name: str) -> str:
        if (response := responses.get(name)) is None:
            return ""
        ends = (float(one[-1]) for one in (response.loss, response.standard_error))
        return _with_error(*(end / response.most_pls for end in ends))

    claims: list[Claim] = []
    for name in ("partial", "mfu"):
        if (response := responses.get(name)) is None:
            continue
        over = StudyEstimate.of_mean([_over_prediction(one, response) for one in trials[name]])
        what = f"fresh runs over the shipped curve's prediction, {shown(name)}"
        claims.append(alone(what, over, "times"))
        if anew is not None:
            what = f"single failures measured anew over the shipped curve's, {shown(name)}"
            claims.append(alone(what, over_shipped(anew.results, name, response), "times"))
    return Summary.of(
        "Accuracy loss over PLS",
        "Does accuracy fall linearly with the portion of lost samples, and how steeply under each "
        f"strategy ({clicks_of(work)})?",
        [
            compare("correlation of AUC lost and PLS, whole saves", CORRELATION,
                    correlation(*pooled["partial"]), STAND_IN),
            compare("a line describes it", LINEAR, linear(*pooled["partial"]), STAND_IN),
            compare("order of the slopes", ORDER, in_order, STAND_IN),
            alone("AUC lost per PLS, whole saves", slope["partial"]),
            *(alone(f"slope of {shown(name)} over that of whole saves", ratios[name], "times")
              for name in STRATEGIES[1:]),
            *claims,
        ],
        {
            "AUC lost per PLS (a slope of 0.01 means: 1 % of the samples lost, 0.0001 of AUC):": (
                {
                    "strategy": shown(name),
                    "fresh runs, per PLS": slope[name].shown(),
                    "measured anew, per weighted PLS (standard error)": slope_anew(name),
                    "shipped curve, likewise": slope_shipped(name),
                }
                for name in STRATEGIES
            )
        },
        (
            "PLS is net (nothing is lost twice). Slopes are lines through 0 for each seed, for a "
            "run that loses nothing is its twin; mean over seeds with its 95 % interval. "
            "Strategies at equal bytes: small tables with each interval.",
            "What keeps the correlation from 1 is when the samples are lost: training forgets "
            "early losses, and late ones count little where the rate falls to 0. PLS weighed by "
            "that (docs/staleness.md) predicts better.",
            "No shipped curve belongs to these clicks and this training." if curve is None else
            f"The shipped curve {CURVE} was measured on other seeds, by `{curve.command}`; the "
            "fresh runs check it. Its slope is that of single failures.",
            "" if anew is None else
            f"Measured anew: single failures of {len(anew.results)} further seeds, as `cprsim "
            "measure` runs and fits them. Each fit weighs PLS by weights of its own, so that "
            "slopes of two fits differ even where the losses agree; the ratios of single failures "
            "take the shipped curve's weights for both.",
        ),
        _chart(pooled, slope),
    )  # fmt: skip


def _trained(work: Work, histories: Sequence[tuple[int, int, float]], seed: int) -> Seed:
    trials = []
    for n_failures, together, interval in histories:
        rng = stream(seed, n_failures, "reproduce/pls-accuracy")
        failures = tuple(
            ShardFailure(
                float(at), tuple(sorted(rng.choice(N_SERVERS, together, replace=False).tolist()))
            )
            for at in np.sort(rng.random(n_failures))
        )
        trials += [Trial(Saving(name, interval), failures) for name in STRATEGIES]
    return lost_by(setting_of(work, SCENARIO, seed, None), trials)


def _measured_anew(work: Work, n_seeds: int) -> Measured | None:
    """The curve on seeds of our own, as `cprsim measure` measures it; None for no seeds."""
    if not n_seeds:
        return None
    loaded = work.scenario(SCENARIO, [f"kernel.seed={FIRST_ANEW}", *work.clicks_overrides()])
    (journals,) = work.paths(["curve"])
    request = MeasureRequest(loaded, journals, n_seeds=n_seeds, workers=work.workers, design=ANEW)
    return measure(request)


def correlation(x: Floats, y: Floats) -> StudyEstimate:
    """Pearson's correlation with its 95 % interval.

    Notes
    -----
    Fisher's transformation; exact for a bivariate normal distribution.
    """
    r = float(np.corrcoef(x, y)[0, 1])
    half = ROUNDED_Z_95 / sqrt(len(x) - 3)
    return StudyEstimate(r, tanh(atanh(r) - half), tanh(atanh(r) + half))


def linear(pls: Floats, lost: Floats) -> Tested:
    """Whether a square term beside the line can be told from 0; open where none could be."""
    design = np.stack([pls, pls**2], axis=1)
    (slope, bend), (residual,), *_ = np.linalg.lstsq(design, lost)
    covariance = residual / (len(lost) - 2) * np.linalg.inv(design.T @ design)
    at = float(pls.max())
    half = 100 * ROUNDED_Z_95 * float(np.sqrt(covariance[1, 1])) * at / abs(slope)
    adds = StudyEstimate.around(100 * bend * at / slope, half)
    met = False if abs(adds.mean) > half else True if half <= TELLS_BEND else None
    return Tested(met, f"a square term adds {adds.shown('%')} at PLS {at:.2f}")


def over_shipped(results: Sequence[SeedResult], strategy: str, response: Response) -> StudyEstimate:
    """AUC that the trials of a measurement lost over what the shipped response says.

    Mean over seeds of the ratio of sums; the error of the response's slope is in the interval.
    """
    ratios = np.array([_over_prediction(_lost(one, strategy), response) for one in results])
    mean, n = float(ratios.mean()), len(ratios)
    of_slope = float(response.standard_error[-1] / response.loss[-1])
    deviation = float(np.hypot(ratios.std(ddof=1) / sqrt(n), mean * of_slope))
    return StudyEstimate.around(mean, float(stats.t.ppf(HIGH, n - 1)) * deviation)


def _lost(seed: SeedResult, strategy: str) -> list[dict[str, Any]]:
    """A measured seed's trials of a strategy."""
    assert seed.twin is not None, "a measured seed is complete"
    return [
        losses(trial, seed.twin.quality, quality, N_SERVERS)
        for trial, quality in seed.quality.items()
        if trial.saving.strategy == strategy
    ]


def _over_prediction(trials: Sequence[Mapping[str, Any]], response: Response) -> float:
    """AUC lost over that predicted, of the trials of one seed together."""
    predicted = [float(response.predict(_weighted(trial, response))[0][0]) for trial in trials]
    return float(sum(trial["auc"] for trial in trials) / sum(predicted))


def _weighted(trial: Mapping[str, Any], response: Response) -> Floats:
    """Weighted PLS (1,) of one run; shares of the run stand for hours of a job of 1 h."""
    at, since_save, since_reload = np.array(trial["stale"]).T
    n = len(at)
    zeros = np.zeros(n, np.int64)
    stale = ShardLoss(zeros, at, zeros, since_save, since_reload, np.full(n, 1 / N_SERVERS))
    return response.weighted_pls(stale, np.zeros(1, np.int64), 1.0, trial["interval"])


def _with_error(slope: float, error: float) -> str:
    return f"{slope:.4f} ({error:.4f})"


def _chart(points: Mapping[str, Any], slope: Mapping[str, StudyEstimate]) -> Chart:
    ends = np.array([0.0, float(points["partial"][0].max())])

    def panel(title: str, *names: str) -> Panel:
        drawn = []
        for name in names:
            pls, lost = points[name]
            line, per_pls = slope[name].mean, f"{shown(name)}: {slope[name].mean:.4f} per PLS"
            drawn += [
                Series(f"{shown(name)}, runs", floats(pls), floats(lost), kind="points"),
                Series(per_pls, floats(ends), floats(line * ends)),
            ]
        return Panel(title, "PLS (net)", "AUC lost", tuple(drawn))

    return Chart(
        "Accuracy lost over the portion of lost samples",
        "Each point one run against its twin without failures; lines: mean slope over seeds.",
        (panel("Whole saves", "partial"), panel("Priority, equal bytes", *ORDERED)),
    )


STUDY = Study(
    "pls-accuracy",
    "AUC lost over PLS by strategy: slope and correlation, fresh runs beside the shipped curve",
    pls_accuracy,
    (SCENARIO,),
    {f"{CURVE}.json": shipped_path(CURVE)},
    trains=True,
)
