"""Accuracy loss over PLS, by strategy: fresh runs, beside the curve that is shipped.

A full run also measures the curve anew, as `cprsim measure` does, on seeds of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import atanh, sqrt, tanh
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from cprsim.curves import CurveFile, read_curve
from cprsim.curves.choosing import shipped_names, shipped_path
from cprsim.failures.streams import stream
from cprsim.kernel.trials import Saving, ShardFailure, Trial, stale_shards
from cprsim.measuring.design import Design
from cprsim.measuring.measure import Measured, MeasureRequest, measure
from cprsim.measuring.runs import SeedResult
from cprsim.plots.chart import Chart, Panel, Series, floats
from cprsim.records import HIGH, ROUNDED_Z_95, Floats, ShardLoss
from cprsim.reproduce.estimates import StudyEstimate
from cprsim.reproduce.paper import Mark, about, words
from cprsim.reproduce.study import Study, Work
from cprsim.reproduce.summary import Listing, Target, Tested, alone
from cprsim.reproduce.trained import FREE, Trials, clicks_of, lost_by, setting_of, shown
from cprsim.reproduce.verdicts import Assumptions
from cprsim.staleness import Metric, Response

SCENARIO = "criteo-kaggle.yaml"
CURVE = "criteo-kaggle-linear"
FIRST_SEED, FIRST_ANEW = 900_001, 910_001  # none of those that the shipped curve was measured on
STRATEGIES = ("partial", "ssu", "mfu", "scar", "round-robin")
N_SERVERS = 8
# (failures, servers that fail together, T_save over the job): PLS from about 0.01 to 0.3
HISTORIES = ((1, 1, 0.2), (2, 1, 0.8), (4, 2, 0.2), (8, 4, 0.15))
ANEW = Design(STRATEGIES)
CORRELATION = about(0.88, "", Mark.RECALLED)
LINEAR = words("accuracy loss grows linearly with PLS", Mark.RECALLED)
ORDER = words("steepest for whole saves, flattest for SCAR and MFU, SSU close", Mark.RECALLED)
ORDERED = ("ssu", "mfu", "scar")
History = tuple[int, int, float]
TELLS_BEND = 50.0  # %, half-width of the square term's share: a wider interval tells nothing
SET_UP = Assumptions(FREE)


@dataclass(frozen=True)
class PlsRuns:
    """Fresh runs, the shipped curve, and that curve measured anew."""

    trials: Trials
    curve: CurveFile | None  # None: none belongs to these clicks
    anew: Measured | None  # None: not measured

    def points(self, strategy: str) -> tuple[Floats, Floats]:
        """PLS and AUC lost of all runs under a strategy."""
        pls, lost = zip(*(_points(one) for one in self.trials.of(strategy)), strict=True)
        return np.concatenate(pls), np.concatenate(lost)

    def slopes(self, strategy: str) -> Floats:
        """Slope of each seed's line through 0: its twin lost nothing."""
        points = (_points(one) for one in self.trials.of(strategy))
        return np.array([float(pls @ lost / (pls @ pls)) for pls, lost in points])

    def slope(self, strategy: str) -> StudyEstimate:
        """AUC lost per PLS."""
        return StudyEstimate.of_mean(self.slopes(strategy))

    def slope_ratio(self, strategy: str) -> StudyEstimate:
        """Its slope over that of whole saves, seed by seed."""
        return StudyEstimate.of_mean(self.slopes(strategy) / self.slopes("partial"))

    def response(self, strategy: str) -> Response | None:
        """What the shipped curve says of a strategy."""
        if self.curve is None:
            return None
        return self.curve.curve("shipped").of(strategy, Metric.AUC)


def _points(trials: Sequence[Mapping[str, Any]]) -> tuple[Floats, Floats]:
    return np.array([t["pls_net"] for t in trials]), np.array([t["auc"] for t in trials])


def numbers(work: Work) -> PlsRuns:
    """Train fresh seeds with more and less PLS, and measure the shipped curve anew."""
    n_seeds, histories = work.pick((4, HISTORIES[1:3]), (8, HISTORIES), (20, HISTORIES))
    compute = partial(_trained, work, histories)
    seeds = work.per_seed(compute, n_seeds, FIRST_SEED, (SCENARIO,))
    shipped = work.clicks is None and CURVE in shipped_names()
    return PlsRuns(
        Trials(clicks_of(work), seeds),
        read_curve(shipped_path(CURVE)) if shipped else None,
        _measured_anew(work, work.pick(0, 6, 20)),
    )


def _trained(work: Work, histories: Sequence[History], seed: int) -> dict[str, Any]:
    trials = []
    for n_failures, together, interval in histories:
        rng = stream(seed, n_failures, "reproduce/pls-accuracy")
        failures = tuple(
            ShardFailure(float(at), _servers(together, rng))
            for at in np.sort(rng.random(n_failures))
        )
        trials += [Trial(Saving(name, interval), failures) for name in STRATEGIES]
    return lost_by(setting_of(work, SCENARIO, seed, None), trials)


def _servers(together: int, rng: np.random.Generator) -> tuple[int, ...]:
    return tuple(sorted(rng.choice(N_SERVERS, together, replace=False).tolist()))


def _measured_anew(work: Work, n_seeds: int) -> Measured | None:
    """The curve on seeds of our own, as `cprsim measure` measures it; None for no seeds."""
    if not n_seeds:
        return None
    loaded = work.scenario(SCENARIO, [f"kernel.seed={FIRST_ANEW}", *work.clicks_overrides()])
    journals = work.folder("curve", (SCENARIO,))
    request = MeasureRequest(loaded, journals, n_seeds=n_seeds, workers=work.workers, design=ANEW)
    return measure(request)


# ------------------------------------------------------------------------------ comparisons


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
    """A square term beside the line: linear if it can't be told from 0, by those who could."""
    design = np.stack([pls, pls**2], axis=1)
    (slope, bend), (residual,), *_ = np.linalg.lstsq(design, lost)
    covariance = residual / (len(lost) - 2) * np.linalg.inv(design.T @ design)
    at = float(pls.max())
    half = 100 * ROUNDED_Z_95 * float(np.sqrt(covariance[1, 1])) * at / abs(slope)
    adds = StudyEstimate.around(100 * bend * at / slope, half)
    met = False if abs(adds.mean) > half else True if half <= TELLS_BEND else None
    return Tested(met, f"a square term adds {adds.shown('%')} at PLS {at:.2f}")


def _ordered(runs: PlsRuns) -> Tested:
    below = [runs.slope_ratio(strategy).below(1) for strategy in ORDERED]
    return Tested(None if None in below else all(below), "see the slopes")


def _slope_ratio(strategy: str) -> Target[PlsRuns]:
    quantity = f"slope of {shown(strategy)} over that of whole saves"
    return alone(quantity, lambda runs: runs.slope_ratio(strategy), "times")


def _beside_the_curve(strategy: str) -> list[Target[PlsRuns]]:
    """What fresh runs lost over what the shipped curve predicts, and its slopes measured anew."""

    def over_prediction(runs: PlsRuns) -> StudyEstimate | None:
        response = runs.response(strategy)
        if response is None:
            return None
        seeds = runs.trials.of(strategy)
        return StudyEstimate.of_mean([_over_prediction(trials, response) for trials in seeds])

    def anew(runs: PlsRuns) -> StudyEstimate | None:
        response = runs.response(strategy)
        if response is None or runs.anew is None:
            return None
        return over_shipped(runs.anew.results, strategy, response)

    name = shown(strategy)
    return [
        alone(f"fresh runs over the shipped curve's prediction, {name}", over_prediction, "times"),
        alone(f"single failures measured anew over the shipped curve's, {name}", anew, "times"),
    ]


TARGETS: list[Target[PlsRuns]] = [
    Target(
        "correlation of AUC lost and PLS, whole saves",
        CORRELATION,
        lambda runs: correlation(*runs.points("partial")),
        SET_UP,
    ),
    Target("a line describes it", LINEAR, lambda runs: linear(*runs.points("partial")), SET_UP),
    Target("order of the slopes", ORDER, _ordered, SET_UP),
    alone("AUC lost per PLS, whole saves", lambda runs: runs.slope("partial")),
    *(_slope_ratio(strategy) for strategy in STRATEGIES[1:]),
    *_beside_the_curve("partial"),
    *_beside_the_curve("mfu"),
]


def over_shipped(results: Sequence[SeedResult], strategy: str, response: Response) -> StudyEstimate:
    """AUC that the trials of a measurement lost over what the shipped response says.

    Mean over seeds of the ratio of sums; the error of the response's slope is in the interval.
    """
    ratios = np.array([_over_said(one, strategy, response) for one in results])
    mean, n = float(ratios.mean()), len(ratios)
    of_slope = float(response.standard_error[-1] / response.loss[-1])
    deviation = float(np.hypot(ratios.std(ddof=1) / sqrt(n), mean * of_slope))
    return StudyEstimate.around(mean, float(stats.t.ppf(HIGH, n - 1)) * deviation)


def _over_said(one: SeedResult, strategy: str, response: Response) -> float:
    """AUC lost over that predicted in one seed's trials of a strategy, all together."""
    assert one.twin is not None, "a measured seed is complete"
    lost, said = 0.0, 0.0
    for trial, quality in one.quality.items():
        if trial.saving.strategy == strategy:
            stale = [(at.at_fraction, at.since_save, at.since_reload) for at in stale_shards(trial)]
            run = {"stale": stale, "interval": trial.saving.interval_fraction}
            lost += one.twin.quality.auc - quality.auc
            said += float(response.predict(_weighted(run, response))[0][0])
    return lost / said


def _over_prediction(trials: Sequence[Mapping[str, Any]], response: Response) -> float:
    predicted = [float(response.predict(_weighted(trial, response))[0][0]) for trial in trials]
    return float(sum(trial["auc"] for trial in trials) / sum(predicted))


def _weighted(trial: Mapping[str, Any], response: Response) -> Floats:
    """Weighted PLS (1,) of one run; shares of the run stand for hours of a job of 1 h."""
    at, since_save, since_reload = np.array(trial["stale"]).T
    n = len(at)
    zeros = np.zeros(n, np.int64)
    losses = ShardLoss(zeros, at, zeros, since_save, since_reload, np.full(n, 1 / N_SERVERS))
    return response.weighted_pls(losses, np.zeros(1, np.int64), 1.0, trial["interval"])


# ------------------------------------------------------------------------------ how it is shown


def _listings(runs: PlsRuns) -> list[Listing]:
    def anew(strategy: str) -> str:
        if runs.anew is None:
            return ""
        slopes = runs.anew.fitted[Metric.AUC].slopes
        return _with_error(slopes.mean(strategy), slopes.standard_error(strategy))

    def shipped(strategy: str) -> str:
        response = runs.response(strategy)
        if response is None:
            return ""
        return _with_error(
            *(
                float(one[-1]) / response.most_pls
                for one in (response.loss, response.standard_error)
            )
        )

    return [
        Listing.of(
            "AUC lost per PLS (a slope of 0.01 means: 1 % of the samples lost, 0.0001 of AUC):",
            STRATEGIES,
            ("strategy", shown),
            ("fresh runs, per PLS", lambda strategy: runs.slope(strategy).shown()),
            ("measured anew, per weighted PLS (standard error)", anew),
            ("shipped curve, likewise", shipped),
        )
    ]


def _with_error(slope: float, error: float) -> str:
    return f"{slope:.4f} ({error:.4f})"


def _curve_note(runs: PlsRuns) -> str:
    if runs.curve is None:
        return "No shipped curve belongs to these clicks and this training."
    return (
        f"The shipped curve {CURVE} was measured on other seeds, by `{runs.curve.command}`; the "
        "fresh runs check it. Its slope is that of single failures."
    )


def _anew_note(runs: PlsRuns) -> str:
    if runs.anew is None:
        return ""
    return (
        f"Measured anew: single failures of {len(runs.anew.results)} further seeds, as `cprsim "
        "measure` runs and fits them. Each fit weighs PLS by weights of its own, so that "
        "slopes of two fits differ even where the losses agree; the ratios of single failures "
        "take the shipped curve's weights for both."
    )


def _chart(runs: PlsRuns) -> Chart:
    ends = np.array([0.0, float(runs.points("partial")[0].max())])

    def both(strategy: str) -> tuple[Series, Series]:
        pls, lost = runs.points(strategy)
        slope, name = runs.slope(strategy).mean, shown(strategy)
        return (
            Series(f"{name}, runs", floats(pls), floats(lost), kind="points"),
            Series(
                f"{name}: {slope:.4f} per PLS",
                floats(ends),
                floats(slope * ends),
            ),
        )

    def panel(strategies: Sequence[str], title: str) -> Panel:
        drawn = tuple(one for strategy in strategies for one in both(strategy))
        return Panel(title, "PLS (net)", "AUC lost", drawn)

    return Chart(
        "Accuracy lost over the portion of lost samples",
        "Each point one run against its twin without failures; lines: mean slope over seeds.",
        (panel(("partial",), "Whole saves"), panel(ORDERED, "Priority, equal bytes")),
    )


def _inputs() -> dict[str, Path]:
    """The shipped curve, where there is one."""
    path = shipped_path(CURVE)
    return {path.name: path} if path.is_file() else {}


STUDY = Study(
    name="pls-accuracy",
    shows="AUC lost over PLS by strategy: slope and correlation, fresh runs beside the shipped "
    "curve",
    title="Accuracy loss over PLS",
    question=lambda runs: (
        "Does accuracy fall linearly with the portion of lost samples, and how steeply under each "
        f"strategy ({runs.trials.clicks})?"
    ),
    numbers=numbers,
    targets=TARGETS,
    listings=_listings,
    notes=(
        "PLS is net (nothing is lost twice). Slopes are lines through 0 for each seed, for a run "
        "that loses nothing is its twin; mean over seeds with its 95 % interval. Strategies at "
        "equal bytes: small tables with each interval.",
        "What keeps the correlation from 1 is when the samples are lost: training forgets early "
        "losses, and late ones count little where the rate falls to 0. PLS weighed by that "
        "(docs/staleness.md) predicts better.",
        _curve_note,
        _anew_note,
    ),
    chart=_chart,
    inputs=(SCENARIO,),
    more_inputs=_inputs,
    trains=True,
)
