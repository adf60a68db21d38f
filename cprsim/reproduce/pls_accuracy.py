"""Accuracy loss over PLS, by strategy: fresh runs, beside the curve that is shipped.

A full run also measures the curve anew, as `cprsim measure` does, on seeds of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from math import atanh, sqrt, tanh
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from cprsim.curves import CurveFile, read_curve
from cprsim.curves.choosing import shipped_names, shipped_path
from cprsim.kernel.trials import Saving, ShardFailure, Trial, stale_shards
from cprsim.measuring.design import Design
from cprsim.measuring.measure import Measured, MeasureRequest, measure
from cprsim.measuring.runs import SeedResult
from cprsim.plots.chart import Chart, Panel, Series, floats
from cprsim.records import Floats, ShardLoss
from cprsim.reproduce.paper import Mark, about, words
from cprsim.reproduce.study import Part, Study, Work
from cprsim.reproduce.summary import Listing, Row, Summary, alone, as_shown, compared, tested
from cprsim.reproduce.trained import lost_by, setting_of, shown
from cprsim.reproduce.verdicts import Basis, Ours
from cprsim.results.metrics import interval_of_mean
from cprsim.staleness import Metric, Response
from cprsim.streams import stream

SCENARIO = "criteo-kaggle.yaml"
CURVE = "criteo-kaggle-linear"
FIRST_SEED, FIRST_ANEW = 900_001, 910_001  # none of those that the shipped curve was measured on
STRATEGIES = ("partial", "ssu", "mfu", "scar", "round-robin")
N_SERVERS = 8
# (failures, servers that fail together, T_save over the job): PLS from about 0.01 to 0.3
HISTORIES = ((1, 1, 0.2), (2, 1, 0.8), (4, 2, 0.2), (8, 4, 0.15))
ANEW = Design(STRATEGIES, histories=(), held_back=())
CORRELATION = about(0.88, "", Mark.RECALLED)
LINEAR = words("accuracy loss grows linearly with PLS", Mark.RECALLED)
ORDER = words("steepest for whole saves, flattest for SCAR and MFU, SSU close", Mark.RECALLED)
History = tuple[int, int, float]
TELLS_BEND = 50.0  # %, half-width of the square term's share: a wider interval tells nothing
FREE = ("the model, smaller than the paper's", "its clicks", "its training")
BASIS = Basis(free=FREE)


def make(work: Work) -> Summary:
    """Train fresh seeds with more and less PLS, and compare with the shipped curve."""
    n_seeds, histories = work.pick((4, HISTORIES[1:3]), (8, HISTORIES), (20, HISTORIES))
    parts = [
        Part(f"seed {seed}", partial(_measured, work, seed, histories), (SCENARIO,))
        for seed in range(FIRST_SEED, FIRST_SEED + n_seeds)
    ]
    found = work.each(parts)
    curve = _shipped() if work.clicks is None else None
    anew = _measured_anew(work, work.pick(0, 6, 20))
    slopes = {name: _slopes(found, name) for name in STRATEGIES}
    return Summary(
        "Accuracy loss over PLS",
        "Does accuracy fall linearly with the portion of lost samples, and how steeply under each "
        f"strategy ({'generated clicks' if work.clicks is None else work.clicks.name})?",
        tuple([*_rows(found, slopes), *_curve_rows(found, curve, anew)]),
        (_listing(slopes, curve, anew),),
        _notes(curve, anew),
        (_chart(found, slopes),),
    )


def _shipped() -> CurveFile | None:
    return read_curve(shipped_path(CURVE)) if CURVE in shipped_names() else None


def _measured(work: Work, seed: int, histories: Sequence[History]) -> dict[str, Any]:
    trials = []
    for n_failures, together, interval in histories:
        rng = stream(seed, n_failures, "reproduce/pls-accuracy")
        failures = tuple(
            ShardFailure(float(at), _servers(together, rng))
            for at in np.sort(rng.random(n_failures))
        )
        trials += [Trial(Saving(name, interval), failures) for name in STRATEGIES]
    return lost_by(setting_of(work, SCENARIO, seed, None), trials)


def _measured_anew(work: Work, n_seeds: int) -> Measured | None:
    """The curve on seeds of our own, as `cprsim measure` measures it; None for no seeds."""
    if not n_seeds:
        return None
    loaded = work.scenario(SCENARIO, [f"kernel.seed={FIRST_ANEW}", *work.clicks_overrides()])
    journals = work.folder("curve", (SCENARIO,))
    request = MeasureRequest(loaded, journals, n_seeds=n_seeds, workers=work.workers, design=ANEW)
    return measure(request)


def _servers(together: int, rng: np.random.Generator) -> tuple[int, ...]:
    return tuple(sorted(rng.choice(N_SERVERS, together, replace=False).tolist()))


def _points(one: Mapping[str, Any], strategy: str) -> tuple[Floats, Floats]:
    """PLS and AUC lost of one seed's runs under a strategy."""
    mine = [trial for trial in one["trials"] if trial["strategy"] == strategy]
    return np.array([t["pls_net"] for t in mine]), np.array([t["auc"] for t in mine])


def _slopes(found: Sequence[Mapping[str, Any]], strategy: str) -> Floats:
    """Slope of each seed's line through 0: its twin lost nothing."""
    points = [_points(one, strategy) for one in found]
    return np.array([float(pls @ lost / (pls @ pls)) for pls, lost in points])


# ------------------------------------------------------------------------------ comparisons


def _rows(found: Sequence[Mapping[str, Any]], slopes: Mapping[str, Floats]) -> list[Row]:
    pls, lost = (np.concatenate(one) for one in zip(*(_points(o, "partial") for o in found),
                 strict=True))  # fmt: skip
    rows = [
        compared("correlation of AUC lost and PLS, whole saves", CORRELATION,
                 correlation(pls, lost), BASIS),
        _linear_row(pls, lost),
        alone("AUC lost per PLS, whole saves", _mean(slopes["partial"]), ""),
    ]  # fmt: skip
    order = []
    for name in STRATEGIES[1:]:
        ratio = _mean(slopes[name] / slopes["partial"])
        rows.append(alone(f"slope of {shown(name)} over that of whole saves", ratio, "times"))
        if name in ("ssu", "mfu", "scar"):
            order.append(True if ratio.high < 1 else False if ratio.low > 1 else None)
    met = None if None in order else all(order)
    rows.insert(2, tested("order of the slopes", ORDER, met, "see the slopes", BASIS))
    return rows


def correlation(x: Floats, y: Floats) -> Ours:
    """Pearson's correlation with its 95 % interval.

    Notes
    -----
    Fisher's transformation; exact for a bivariate normal distribution.
    """
    r = float(np.corrcoef(x, y)[0, 1])
    half = 1.96 / sqrt(len(x) - 3)
    return Ours(r, tanh(atanh(r) - half), tanh(atanh(r) + half))


def _linear_row(pls: Floats, lost: Floats) -> Row:
    """A square term beside the line: linear if it can't be told from 0, by those who could."""
    design = np.stack([pls, pls**2], axis=1)
    (slope, bend), (residual,), *_ = np.linalg.lstsq(design, lost)
    covariance = residual / (len(lost) - 2) * np.linalg.inv(design.T @ design)
    at = float(pls.max())
    shown_bend = Ours(100 * bend * at / slope)
    half = 100 * 1.96 * float(np.sqrt(covariance[1, 1])) * at / abs(slope)
    shown_bend = Ours(shown_bend.value, shown_bend.value - half, shown_bend.value + half)
    text = f"a square term adds {as_shown(shown_bend, '%')} at PLS {at:.2f}"
    bent = abs(shown_bend.value) > half
    met = False if bent else True if half <= TELLS_BEND else None
    return tested("a line describes it", LINEAR, met, text, BASIS)


def _mean(values: Floats) -> Ours:
    return Ours(*interval_of_mean(np.asarray(values)))


def _curve_rows(
    found: Sequence[Mapping[str, Any]], curve: CurveFile | None, anew: Measured | None
) -> list[Row]:
    """What fresh runs lost over what the shipped curve predicts, and its slopes measured anew."""
    rows = []
    for strategy in ("partial", "mfu"):
        response = _response(curve, strategy)
        if response is None:
            continue
        ratios = [_over_prediction(one, strategy, response) for one in found]
        what = f"fresh runs over the shipped curve's prediction, {shown(strategy)}"
        rows.append(alone(what, _mean(np.array(ratios)), "times"))
        if anew is not None:
            what = f"single failures measured anew over the shipped curve's, {shown(strategy)}"
            rows.append(alone(what, _over_shipped(anew.results, strategy, response), "times"))
    return rows


def _response(curve: CurveFile | None, strategy: str) -> Response | None:
    return None if curve is None else curve.curve("shipped").of(strategy, Metric.AUC)


def _slope(response: Response) -> tuple[float, float]:
    """A response's slope where losses add up, with its standard error."""
    first = float(response.pls[1])
    return float(response.loss[1]) / first, float(response.standard_error[1]) / first


def _over_shipped(results: Sequence[SeedResult], strategy: str, response: Response) -> Ours:
    """AUC that single failures lost over what the shipped slope says, by the shipped weights.

    Mean over seeds of the ratio of sums; the error of the slope is in the interval.
    """
    slope, error = _slope(response)
    ratios = np.array([_lost(one, strategy, response) for one in results]) / slope
    mean, n = float(ratios.mean()), len(ratios)
    deviation = float(np.hypot(ratios.std(ddof=1) / sqrt(n), mean * error / slope))
    half = float(stats.t.ppf(0.975, n - 1)) * deviation
    return Ours(mean, mean - half, mean + half)


def _lost(one: SeedResult, strategy: str, response: Response) -> float:
    """AUC lost per weighted PLS in one seed's trials of a strategy, all together."""
    assert one.twin is not None, "a measured seed is complete"
    lost, weighted = 0.0, 0.0
    for trial, quality in one.quality.items():
        if trial.saving.strategy == strategy:
            stale = [(at.at_fraction, at.since_save, at.since_reload) for at in stale_shards(trial)]
            run = {"stale": stale, "interval": trial.saving.interval_fraction}
            lost += one.twin.quality.auc - quality.auc
            weighted += float(_weighted(run, response)[0])
    return lost / weighted


def _over_prediction(one: Mapping[str, Any], strategy: str, response: Response) -> float:
    mine = [trial for trial in one["trials"] if trial["strategy"] == strategy]
    predicted = [float(response.predict(_weighted(trial, response))[0][0]) for trial in mine]
    return float(sum(trial["auc"] for trial in mine) / sum(predicted))


def _weighted(trial: Mapping[str, Any], response: Response) -> Floats:
    """Weighted PLS (1,) of one run; shares of the run stand for hours of a job of 1 h."""
    at, since_save, since_reload = np.array(trial["stale"]).T
    n = len(at)
    zeros = np.zeros(n, np.int64)
    losses = ShardLoss(zeros, at, zeros, since_save, since_reload, np.full(n, 1 / N_SERVERS))
    return response.weighted_pls(losses, np.zeros(1, np.int64), 1.0, trial["interval"])


# ------------------------------------------------------------------------------ how it is shown


def _listing(
    slopes: Mapping[str, Floats], curve: CurveFile | None, anew: Measured | None
) -> Listing:
    def line(name: str) -> tuple[str, ...]:
        response = _response(curve, name)
        return (
            shown(name),
            as_shown(_mean(slopes[name]), ""),
            _slope_anew(anew, name),
            "" if response is None else _with_error(*_slope(response)),
        )

    return Listing(
        "AUC lost per PLS (a slope of 0.01 means: 1 % of the samples lost, 0.0001 of AUC):",
        (
            "strategy",
            "fresh runs, per PLS",
            "measured anew, per weighted PLS (standard error)",
            "shipped curve, likewise",
        ),
        tuple(line(name) for name in STRATEGIES),
    )


def _slope_anew(anew: Measured | None, strategy: str) -> str:
    if anew is None:
        return ""
    slopes = anew.fitted[Metric.AUC].slopes
    return _with_error(slopes.mean(strategy), slopes.standard_error(strategy))


def _with_error(slope: float, error: float) -> str:
    return f"{slope:.4f} ({error:.4f})"


def _notes(curve: CurveFile | None, anew: Measured | None) -> tuple[str, ...]:
    notes = [
        "PLS is net (nothing is lost twice). Slopes are lines through 0 for each seed, for a run "
        "that loses nothing is its twin; mean over seeds with its 95 % interval. Strategies at "
        "equal bytes: small tables with each interval.",
        "What keeps the correlation from 1 is when the samples are lost: training forgets early "
        "losses, and late ones count little where the rate falls to 0. PLS weighed by that "
        "(docs/staleness.md) predicts better.",
    ]
    if curve is None:
        notes.append("No shipped curve belongs to these clicks and this training.")
    else:
        notes.append(
            f"The shipped curve {CURVE} was measured on other seeds, by `{curve.command}`; the "
            "fresh runs check it. Its slope is that of single failures."
        )
    if anew is not None:
        notes.append(
            f"Measured anew: single failures of {len(anew.results)} further seeds, as `cprsim "
            "measure` runs and fits them. Each fit weighs PLS by weights of its own, so that "
            "slopes of two fits differ even where the losses agree; the ratios of single failures "
            "take the shipped curve's weights for both."
        )
    return tuple(notes)


def _chart(found: Sequence[Mapping[str, Any]], slopes: Mapping[str, Floats]) -> Chart:
    most = max(float(_points(one, "partial")[0].max()) for one in found)
    ends = np.array([0.0, most])

    def panel(names: Sequence[str], title: str) -> Panel:
        series = []
        for name in names:
            points = [_points(one, name) for one in found]
            pls, lost = (np.concatenate(one) for one in zip(*points, strict=True))
            line = _mean(slopes[name])
            label = f"{shown(name)}: {line.value:.4f} per PLS"
            series += [
                Series(f"{shown(name)}, runs", floats(pls.tolist()), floats(lost.tolist()),
                       kind="points"),
                Series(label, floats(ends.tolist()), floats((line.value * ends).tolist())),
            ]  # fmt: skip
        return Panel(title, "PLS (net)", "AUC lost", tuple(series))

    return Chart(
        "Accuracy lost over the portion of lost samples",
        "Each point one run against its twin without failures; lines: mean slope over seeds.",
        (
            panel(("partial",), "Whole saves"),
            panel(("ssu", "mfu", "scar"), "Priority, equal bytes"),
        ),
    )


def _inputs() -> dict[str, Path]:
    """The shipped curve, where there is one."""
    path = shipped_path(CURVE)
    return {path.name: path} if path.is_file() else {}


STUDY = Study(
    "pls-accuracy",
    "AUC lost over PLS by strategy: slope and correlation, fresh runs beside the shipped curve",
    make,
    (SCENARIO,),
    more_inputs=_inputs,
    trains=True,
)
